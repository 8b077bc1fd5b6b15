"""Child processes that end when their parent process ends, for any reason."""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_GRACE = 15  # seconds between SIGTERM and SIGKILL


@functools.cache
def _prctl() -> Any:
    """Linux's prctl; None on other systems."""
    if sys.platform != "linux":
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), "prctl", None)


def can_be_told() -> bool:
    """Whether the system can signal a child of this thread when its parent ends: it signals when the parent thread ends, so only for the main thread."""
    return _prctl() is not None and threading.current_thread() is threading.main_thread()


def told_by_system(parent: int) -> None:
    """Requests SIGTERM for this child when its parent, process `parent`, ends; sends it at once if the parent has already ended."""
    _prctl()(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def before_exec() -> Callable[[], None] | None:
    """The `preexec_fn` for subprocess.Popen, called in the child before it runs its program."""
    return functools.partial(told_by_system, os.getpid()) if can_be_told() else None


def _watch(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


def end_with_parent(told_of: int | None) -> None:
    """Makes a child of multiprocessing end with its parent. told_of: the parent's process id if the system can signal (`can_be_told`); otherwise a
    thread waits on the parent's sentinel pipe."""
    if told_of is not None:
        told_by_system(told_of)
    elif (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), name="naru-parent", daemon=True).start()
