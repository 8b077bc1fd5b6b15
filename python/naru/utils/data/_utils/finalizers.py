"""What happens when an object is gone, without Python that runs in its place.

A finalizer written in Python runs wherever the last reference ends, and handlers of signals run within it: a Ctrl-C that comes then is raised
there, where it is only printed. So what the interpreter calls is a queue's `put`, which is not Python, and a thread does the rest: handlers run in
the main one alone.
"""

from __future__ import annotations

import os
import queue
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_kept: dict[int, tuple[weakref.ref, Callable[[], None]]] = {}  # by the reference's id
_gone: queue.SimpleQueue[weakref.ref] = queue.SimpleQueue()
_lock = threading.Lock()
_started = [False]


def _run(gone: queue.SimpleQueue[weakref.ref]) -> None:
    while True:
        _, call = _kept.pop(id(gone.get()), (None, None))
        if call is not None:
            call()
        del call


def _start() -> None:
    with _lock:
        if not _started[0]:
            threading.Thread(target=_run, args=(_gone,), daemon=True, name="naru-finalizers").start()
            _started[0] = True


def _forget() -> None:
    """In a forked child, which has not the thread, nor a use for what its parent keeps."""
    global _gone, _lock
    _gone, _lock = queue.SimpleQueue(), threading.Lock()
    _kept.clear()
    _started[0] = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def when_gone(obj: Any, call: Callable[[], None]) -> int:
    """Calls `call` on another thread when `obj` is gone, but not at the end of the program. A number by which `forget` takes it back."""
    _start()
    ref = weakref.ref(obj, _gone.put)
    _kept[id(ref)] = (ref, call)
    return id(ref)


def forget(number: int) -> None:
    """It is not to be called any more."""
    _kept.pop(number, None)
