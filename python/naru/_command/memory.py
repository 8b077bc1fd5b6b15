"""`naru memory SCRIPT`: runs a script, and writes the page of what held a device's memory, and when."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .. import _C
from . import screen
from .program import run_program

SHOWN = 5  # holders that are told beside the page


def _size(count: int) -> str:
    return f"{count / 2**20:.2f} MiB"


def figures(history: Any) -> dict[str, Any]:
    """What --json prints: the device, the peak, and who held the most, in bytes."""
    peak = max((event["allocated"] for event in history.events), default=0)
    reserved = max((event["reserved"] for event in history.events), default=0)
    holders = [{"line": line, "bytes": most, "allocations": count} for line, most, count in history.holders()]
    return {"device": str(history.device), "events": len(history.events), "peak": peak, "peak_reserved": reserved, "holders": holders}


def _tell(found: dict[str, Any], page: str) -> None:
    """Says on standard error, where the script's output is not, what the page is of."""
    print(f"naru memory: {found['device']}: at most {_size(found['peak'])} in tensors, {_size(found['peak_reserved'])} taken", file=sys.stderr)
    for holder in found["holders"][:SHOWN]:
        print(f"  {_size(holder['bytes']):>12}  {holder['line']}", file=sys.stderr)
    print(f"naru memory: the page is {page}", file=sys.stderr)


def recorded(program: list[str], device: str | None, out: str, show: bool, as_json: bool) -> int:
    """Runs a program and writes the page, however the program ends. Returns the program's exit status; 2 where the device or the file can't be had."""
    import naru

    try:
        history = naru.memory_history(device, " ".join(program))
        _C._describe_device(history.device)
    except RuntimeError as error:
        return screen.wrong("memory", str(error))
    folder = os.path.dirname(os.path.abspath(out))
    if not os.access(folder, os.W_OK):
        return screen.wrong("memory", f"--out: can't write into the folder '{folder}'")
    out = os.path.abspath(out)  # the program may change the folder
    ended: SystemExit | None = None
    status = 0
    with history:
        try:
            status = run_program("memory", program)
        except SystemExit as end:
            ended = end
    if status == 2 and not history.events:
        return status  # there was no program, which it has said
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
