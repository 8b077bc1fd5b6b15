"""`%load_ext naru`: in the notebook `torch` is naru, tensors are shown as HTML, and `%%memory` shows what held a device's memory in a cell."""

from __future__ import annotations

import html
import sys
from typing import Any

_MAGIC = "memory"


def _memory(shell: Any, line: str, cell: str) -> None:
    """%%memory [DEVICE]: runs the cell, and shows the page of the device's memory meanwhile (the best device otherwise)."""
    import tempfile
    from pathlib import Path

    from IPython.display import HTML, display

    import naru

    with naru.memory_history(line.strip() or None) as history:
        shell.run_cell(cell)
    with tempfile.TemporaryDirectory() as folder:
        page = history.page(Path(folder) / "memory.html").read_text(encoding="utf-8")
    display(HTML(f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:480px;border:0"></iframe>'))


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext naru` does in `shell`, IPython's. Where another torch is loaded already it says so, and does the rest.

    In a notebook's cell:

    >>> %load_ext naru              # doctest: +SKIP
    >>> import torch; torch.eye(2)  # doctest: +SKIP
    """
    import naru

    try:
        naru.as_torch()
    except RuntimeError as error:
        print(f"naru: {error}; restart the kernel and load naru first", file=sys.stderr)
    naru.set_printoptions(html=True)
    shell.register_magic_function(lambda line, cell: _memory(shell, line, cell), magic_kind="cell", magic_name=_MAGIC)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext naru` does in `shell`, IPython's: tensors are text again. `torch` stays naru: modules that are loaded hold it.

    In a notebook's cell:

    >>> %unload_ext naru  # doctest: +SKIP
    """
    import naru

    naru.set_printoptions(html=False)
    shell.magics_manager.magics["cell"].pop(_MAGIC, None)
