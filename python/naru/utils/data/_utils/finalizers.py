"""Finalizers that run no Python code at the point where an object is destroyed.

A finalizer written in Python runs wherever the last reference is dropped, and signal handlers can run within it: a Ctrl-C at that point is raised
inside the finalizer, where it is only printed. So the interpreter calls a queue's `put`, which is implemented in C, and a separate thread does the rest:
signal handlers run only in the main thread.
"""

from __future__ import annotations

import os
import queue
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_kept: dict[int, tuple[weakref.ref, Callable[[], None]]] = {}  # by id of the weak reference
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
    """Resets a forked child, which has neither the thread nor a use for its parent's finalizers."""
    global _gone, _lock
    _gone, _lock = queue.SimpleQueue(), threading.Lock()
    _kept.clear()
    _started[0] = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def when_gone(obj: Any, call: Callable[[], None]) -> int:
    """Calls `call` on another thread when `obj` is destroyed, except at interpreter exit. Returns a number for `forget`."""
    _start()
    ref = weakref.ref(obj, _gone.put)
    _kept[id(ref)] = (ref, call)
    return id(ref)


def forget(number: int) -> None:
    """Cancels the call with that number."""
    _kept.pop(number, None)
