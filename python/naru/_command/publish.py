"""Publishes a process's state for `naru top`: with NARU_TOP=1, a small file in the user's runtime folder is rewritten twice a second.

Without the variable nothing is done except checking it. Publishing neither flushes nor waits, so it does not change the program's behavior.
"""

from __future__ import annotations

import atexit
import json
import os
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from .. import _C
from .._serialization.atomic_file import atomic_file

INTERVAL = 0.5


def folder() -> Path:
    """The folder of the processes' files, accessible only to the user. Raises OSError if it belongs to another user."""
    if not hasattr(os, "getuid"):  # on Windows, the folder of temporary files is the user's own
        path = Path(tempfile.gettempdir()) / "naru"
        path.mkdir(exist_ok=True)
        return path
    base = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(base) / "naru" if base else Path(tempfile.gettempdir()) / f"naru-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise OSError(f"{path} is not a folder of this user's")
    return path


def _program() -> str:
    """The command line, shortened."""
    words = [Path(word).name if i == 0 else word for i, word in enumerate(sys.argv or [""])]
    return " ".join(words)[:200] or "python"


class Publisher:
    """A thread that publishes for as long as the process lives."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self.interval, self.pid, self.started = interval, os.getpid(), time.time()
        self.path = folder() / f"top-{self.pid}.json"
        self.before: tuple[float, dict[str, int], float] | None = None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._work, name="naru-top", daemon=True)

    def figures(self) -> dict[str, Any]:
        """The published state: of the process, and the memory, queue and completed work of each device that it uses."""
        live, now, processor = _C._live(), time.monotonic(), time.process_time()
        done = {d["device"]: sum(completed for _, _, completed in d["streams"]) for d in live["devices"]}
        then, done_then, processor_then = self.before or (now - self.interval, done, processor)
        passed = max(now - then, 1e-3)
        self.before = (now, done, processor)
        devices = [
            {
                **{name: d[name] for name in ("device", "allocated", "reserved", "peak", "limit")},
                "queued": sum(submitted - completed for _, submitted, completed in d["streams"]),
                "instructions": done[d["device"]],
                "instructions_per_second": max(0, done[d["device"]] - done_then.get(d["device"], 0)) / passed,
            }
            for d in live["devices"]
        ]
        return {"pid": self.pid, "program": _program(), "started": self.started, "time": time.time(), "processors": (processor - processor_then) / passed,
                "kernels_compiled": live["compilations"], "devices": devices}  # fmt: skip

    def _work(self) -> None:
        try:
            while not self.stopped.wait(0 if self.before is None else self.interval):
                with atomic_file(self.path, "w", encoding="utf-8") as file:
                    json.dump(self.figures(), file)
        except OSError:
            return  # the folder was removed or the disk is full: stop publishing, so as not to disturb the program

    def start(self) -> None:
        atexit.register(self.stop)
        self.thread.start()

    def stop(self) -> None:
        """Stops the thread and removes the file; in a forked child it does neither."""
        self.stopped.set()
        if os.getpid() == self.pid:
            self.thread.join(timeout=2)
            self.path.unlink(missing_ok=True)


def start() -> None:
    """Starts publishing; on failure prints a message and the program continues."""
    try:
        Publisher().start()
    except OSError as error:
        print(f"naru: NARU_TOP: can't tell naru top of this process: {error}", file=sys.stderr)
