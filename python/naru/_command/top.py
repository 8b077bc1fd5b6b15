"""`naru top`: live statistics of this user's running programs that have NARU_TOP=1."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from . import screen
from .publish import folder
from .report import size_text

HEAD = ("pid", "program", "device", "in tensors", "taken", "peak", "queue", "instructions/s", "kernels", "processors")
NONE = "no program of yours tells of itself: start one with NARU_TOP=1"
# A running program that has not published for this many seconds is shown as silent (it may be in a long call that holds the GIL).
SILENT = 3.0


def _lives(pid: int) -> bool:
    if os.name == "nt":  # os.kill would end the process there; one that is gone is soon SILENT
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: Path) -> dict[str, Any] | None:
    """What a process has published; None if the process has ended, whose file is removed."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if _lives(int(found["pid"])):
            return found
        path.unlink(missing_ok=True)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the process is just ending, or the file is not a program's
    return None


def programs() -> list[dict[str, Any]]:
    """The statistics of all programs that publish, longest running first."""
    found = [told for path in sorted(folder().glob("top-*.json")) if (told := _read(path)) is not None]
    return sorted(found, key=lambda told: told["started"])


def rows(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """One row per program and device."""
    made: list[tuple[str, ...]] = [HEAD]
    for told in found:
        age = time.time() - told["time"]
        name = told["program"][:40] + (f" (silent for {age:.0f} s)" if age > SILENT else "")
        for i, d in enumerate(told["devices"]):
            on_cpu = d["device"] == "cpu"
            of_process = (str(told["kernels_compiled"]), f"{told['processors']:.0%}") if i == 0 else ("", "")
            made.append((str(told["pid"]) if i == 0 else "", name if i == 0 else "", d["device"], size_text(d["allocated"]), size_text(d["reserved"]),
                         size_text(d["peak"]), "-" if on_cpu else str(d["queued"]), "-" if on_cpu else f"{d['instructions_per_second']:,.0f}",
                         *of_process))  # fmt: skip
    return made


def _live(interval: float) -> None:
    """Updates the table until interrupted."""
    console = screen.console()
    if console is None:
        while True:
            found = programs()
            print("\033[H\033[2J" + (screen.table(rows(found)) if found else NONE), flush=True)
            time.sleep(interval)
    from rich.live import Live
    from rich.text import Text

    def shown() -> Any:
        found = programs()
        return screen.rich_table(rows(found)) if found else Text(NONE)

    with Live(shown(), console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(interval)
            live.update(shown(), refresh=True)


def top(interval: float, once: bool, as_json: bool) -> int:
    """Shows statistics once, as JSON or a table, or live on a terminal."""
    try:
        if as_json:
            print(json.dumps({"programs": programs()}, indent=2))
        elif once or not sys.stdout.isatty():
            found = programs()
            screen.show_table(rows(found)) if found else print(NONE)
        else:
            with contextlib.suppress(KeyboardInterrupt):
                _live(interval)
    except BrokenPipeError:
        raise  # a closed output pipe is handled by the caller
    except OSError as error:
        return screen.wrong("top", str(error))
    return 0
