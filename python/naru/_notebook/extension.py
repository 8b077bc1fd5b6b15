"""`%load_ext naru`: makes `torch` naru in the notebook, shows tensors as HTML, and adds `%%memory`, which shows what held a device's memory in a
cell."""

from __future__ import annotations

import html
import sys
from typing import Any

_MAGIC = "memory"


def _memory(shell: Any, line: str, cell: str) -> None:
    """%%memory [DEVICE]: runs the cell and shows the device's memory page for it (default: the best device)."""
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
    """Implements `%load_ext naru` in `shell`, IPython's. If another torch is already loaded, prints a message and does the rest.

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
    """Implements `%unload_ext naru` in `shell`, IPython's: tensors are shown as text again. `torch` stays naru, since loaded modules refer to it.

    In a notebook's cell:

    >>> %unload_ext naru  # doctest: +SKIP
    """
    import naru

    naru.set_printoptions(html=False)
    shell.magics_manager.magics["cell"].pop(_MAGIC, None)
