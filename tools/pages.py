"""Shared command line of the tools that generate pages: `python -m tools.NAME [--check]`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[1]


def write_page(name: str, page: Path, text: Callable[[], str], more: Callable[[], str] = str) -> int:
    """Writes the page and reports it, with `more` appended; with --check only checks whether it is up to date. Returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.{name}", description=str(page.relative_to(ROOT)))
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    check, wanted = parser.parse_args().check, text()
    if check:
        return 0 if page.exists() and page.read_text() == wanted else 1
    page.write_text(wanted)
    print(f"wrote {page.relative_to(ROOT)}{more()}")
    return 0
