"""`naru memory SCRIPT`: runs a script and writes a page that shows what held a device's memory over time."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .. import _C
from . import screen
from .program import run_program

SHOWN = 5  # number of holders printed, besides the page


def _size(count: int) -> str:
    return f"{count / 2**20:.2f} MiB"


def figures(history: Any) -> dict[str, Any]:
    """The contents of --json: the device, the peak, and the lines that held the most, in bytes."""
    peak = max((event["allocated"] for event in history.events), default=0)
    reserved = max((event["reserved"] for event in history.events), default=0)
    holders = [{"line": line, "bytes": most, "allocations": count} for line, most, count in history.holders()]
    return {"device": str(history.device), "events": len(history.events), "peak": peak, "peak_reserved": reserved, "holders": holders}


def _tell(found: dict[str, Any], page: str) -> None:
    """Prints a summary on standard error, to keep it apart from the script's output."""
    print(f"naru memory: {found['device']}: at most {_size(found['peak'])} in tensors, {_size(found['peak_reserved'])} taken", file=sys.stderr)
    for holder in found["holders"][:SHOWN]:
        print(f"  {_size(holder['bytes']):>12}  {holder['line']}", file=sys.stderr)
    print(f"naru memory: the page is {page}", file=sys.stderr)


def recorded(program: list[str], device: str | None, out: str, show: bool, as_json: bool) -> int:
    """Runs a program and writes the page, however the program ends. Returns the program's exit status; 2 if the device or the output file is not
    available."""
    import naru

    try:
        history = naru.memory_history(device, " ".join(program))
        _C._describe_device(history.device)
    except RuntimeError as error:
        return screen.wrong("memory", str(error))
    folder = os.path.dirname(os.path.abspath(out))
    if not os.access(folder, os.W_OK):
        return screen.wrong("memory", f"--out: can't write into the folder '{folder}'")
    out = os.path.abspath(out)  # absolute, since the program may change directory
    ended: SystemExit | None = None
    status = 0
    with history:
        try:
            status = run_program("memory", program)
        except SystemExit as end:
            ended = end
    if status == 2 and not history.events:
        return status  # no program was run; that has been reported already
    page = str(history.page(out))
    found = figures(history)
    sys.stdout.flush()
    if as_json:
        print(json.dumps({**found, "page": page}, indent=2))
    _tell(found, page)
    if show:
        import pathlib
        import webbrowser

        webbrowser.open(pathlib.Path(page).as_uri())
    if ended is not None:
        raise ended
    return status
