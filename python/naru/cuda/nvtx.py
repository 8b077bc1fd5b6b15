"""`torch.cuda.nvtx`: ranges and marks that NVIDIA's profilers (Nsight Systems, Nsight Compute) show next to kernels. They do nothing without a profiler.

>>> with naru.cuda.nvtx.range("step {}", 3):
...     y = naru.ones(2) + 1
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

# A profiler names its library in the environment. The library is given tables of function pointers, and fills in its functions: the indices are
# those of NVTX 3's core functions for strings.
_CALLBACKS, _VERSION, _CORE, _CORE_SIZE = 1, 3, 1, 16
_MARK, _START, _END, _PUSH, _POP = 2, 5, 7, 9, 11

_GetTable = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint))
_SetVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
_GetExport = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)


class _Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("table", _GetTable)]


class _Version(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("set", _SetVersion)]


class _Profiler:
    """The functions that a profiler has injected; none without a profiler."""

    def __init__(self) -> None:
        self._functions = (ctypes.c_void_p * _CORE_SIZE)()
        self._places = (ctypes.c_void_p * (_CORE_SIZE + 1))(*(ctypes.addressof(self._functions) + 8 * i for i in _builtin_range(_CORE_SIZE)), None)
        self._callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetTable(self._table))
        self._version = _Version(ctypes.sizeof(_Version), 3, 0, _SetVersion(lambda version: None))
        self._export = _GetExport(self._exported)
        path = os.environ.get("NVTX_INJECTION64_PATH")
        try:
            self._library = ctypes.CDLL(path) if path else None
            there = self._library is not None and bool(self._library.InitializeInjectionNvtx2(self._export))
        except (OSError, AttributeError):
            there = False
        text, number = ctypes.c_char_p, ctypes.c_uint64
        self.mark = self._function(there, _MARK, None, text)
        self.start = self._function(there, _START, number, text)
        self.end = self._function(there, _END, None, number)
        self.push = self._function(there, _PUSH, ctypes.c_int, text)
        self.pop = self._function(there, _POP, ctypes.c_int)

    def _table(self, module: int, table: Any, size: Any) -> int:
        if module != _CORE:
            return 0
        table[0] = ctypes.addressof(self._places)
        if size:
            size[0] = _CORE_SIZE
        return 1

    def _exported(self, table: int) -> int | None:
        exported: ctypes.Structure | None = {_CALLBACKS: self._callbacks, _VERSION: self._version}.get(table)
        return None if exported is None else ctypes.addressof(exported)

    def _function(self, there: bool, number: int, result: Any, *arguments: Any) -> Any:
        address = self._functions[number] if there else None
        return ctypes.CFUNCTYPE(result, *arguments)(address) if address else lambda *ignored: 0


_builtin_range = range
_found: _Profiler | None = None


def _profiler() -> _Profiler:
    global _found
    if _found is None:
        _found = _Profiler()
    return _found


def range_push(msg: str) -> int:
    """Begins a nested range on this thread; returns its depth, from 0 on.

    Args:
        msg: the name shown by the profiler.

    >>> depth = naru.cuda.nvtx.range_push("load")
    >>> naru.cuda.nvtx.range_pop() == depth
    True
    """
    return _profiler().push(msg.encode())


def range_pop() -> int:
    """Ends the range that the thread began last; returns its depth.

    >>> depth = naru.cuda.nvtx.range_push("load")
    >>> naru.cuda.nvtx.range_pop() == depth
    True
    """
    return _profiler().pop()


def range_start(msg: str) -> int:
    """Begins a range that any thread may end, and returns its id.

    Args:
        msg: the name shown by the profiler.

    >>> number = naru.cuda.nvtx.range_start("epoch")
    >>> naru.cuda.nvtx.range_end(number)
    """
    return _profiler().start(msg.encode())


def range_end(range_id: int) -> None:
    """Ends a range that `range_start` began.

    Args:
        range_id: what `range_start` returned.

    >>> number = naru.cuda.nvtx.range_start("epoch")
    >>> naru.cuda.nvtx.range_end(number)
    """
    _profiler().end(range_id)


def mark(msg: str) -> None:
    """Marks a point in time.

    Args:
        msg: the name shown by the profiler.

    >>> naru.cuda.nvtx.mark("first batch")
    """
    _profiler().mark(msg.encode())


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block, or around a decorated function; the arguments are formatted into `msg` with `msg.format`.

    Args:
        msg: the name shown by the profiler.
        args: positional arguments of the format.
        kwargs: keyword arguments of the format.

    >>> with naru.cuda.nvtx.range("step {}", 3):
    ...     y = naru.ones(2) + 1
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
