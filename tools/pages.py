"""Pages that a tool writes, and the command that each has for it: `python -m tools.NAME [--check]`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[1]


def write_page(name: str, page: Path, text: Callable[[], str], more: Callable[[], str] = str) -> int:
    """Writes the page and says so, with `more` behind it; with --check only asks whether it is up to date. The exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.{name}", description=str(page.relative_to(ROOT)))
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    check, wanted = parser.parse_args().check, text()
    if check:
        return 0 if page.exists() and page.read_text() == wanted else 1
    page.write_text(wanted)
    print(f"wrote {page.relative_to(ROOT)}{more()}")
    return 0
