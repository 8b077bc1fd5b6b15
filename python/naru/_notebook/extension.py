"""`%load_ext naru`: makes `torch` naru in the notebook, shows tensors as HTML, and adds `%%memory`, which shows what held a device's memory in a
cell, and `%top`, a live table of the devices."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

_MAGICS = {"cell": "memory", "line": "top"}


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


def _top(line: str) -> None:
    """%top [SECONDS]: shows what `naru top` shows, this notebook's process included, and keeps it current for so many seconds (default: 60; 0: as it is
    now) while other cells run."""
    import threading

    from IPython.display import HTML, display

    from .._command.publish import Publisher
    from .._command.top import programs, rows

    try:
        seconds = float(line.strip() or 60)
    except ValueError:
        raise ValueError(f"%top takes a number of seconds, not {line.strip()!r}: %top 30") from None
    mine = Publisher()

    def page() -> HTML:
        others = [told for told in programs() if told["pid"] != mine.pid]
        return HTML(_table(rows([mine.figures(), *others])))

    shown = display(page(), display_id=True)

    def renew() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(1.0, seconds))
            shown.update(page())

    if seconds > 0:
        threading.Thread(target=renew, name="naru-top-page", daemon=True).start()


def _table(lines: list[tuple[str, ...]]) -> str:
    """Rows of text as an HTML table; the first is its head."""
    cells = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) for tag, line in zip(["th"] + ["td"] * len(lines), lines)]
    return f"<table>{''.join(f'<tr>{cell}</tr>' for cell in cells)}</table>"


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
    shell.register_magic_function(lambda line, cell: _memory(shell, line, cell), magic_kind="cell", magic_name=_MAGICS["cell"])
    shell.register_magic_function(_top, magic_kind="line", magic_name=_MAGICS["line"])


def unload_ipython_extension(shell: Any) -> None:
    """Implements `%unload_ext naru` in `shell`, IPython's: tensors are shown as text again. `torch` stays naru, since loaded modules refer to it.

    In a notebook's cell:

    >>> %unload_ext naru  # doctest: +SKIP
    """
    import naru

    naru.set_printoptions(html=False)
    for kind, name in _MAGICS.items():
        shell.magics_manager.magics[kind].pop(name, None)
