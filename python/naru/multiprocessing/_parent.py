"""Children that end with the process that started them, however it ends."""

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
    """Linux' function; None elsewhere."""
    if sys.platform != "linux":
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), "prctl", None)


def can_be_told() -> bool:
    """Whether the system tells a child that this thread starts when its parent ends: where it means the thread, and the main one ends last."""
    return _prctl() is not None and threading.current_thread() is threading.main_thread()


def told_by_system(parent: int) -> None:
    """From here on the system sends this child SIGTERM when its parent ends, whose number is `parent`; it may have ended already."""
    _prctl()(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def before_exec() -> Callable[[], None] | None:
    """What a child of subprocess.Popen calls before it runs its program (`preexec_fn`)."""
    return functools.partial(told_by_system, os.getpid()) if can_be_told() else None


def _watch(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


def end_with_parent(told_of: int | None) -> None:
    """In a child of multiprocessing: it ends with its parent. told_of: the parent's number, where the system is to tell (`can_be_told`); else a
    thread waits for the end of a pipe."""
    if told_of is not None:
        told_by_system(told_of)
    elif (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), name="naru-parent", daemon=True).start()
