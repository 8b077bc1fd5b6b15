"""`torch.cpu`: the cpu with the interface of the other devices, so that code written for any of them also runs on it."""

from __future__ import annotations

import contextlib
from typing import Any

from .. import _C
from .._device.namespace import absent

__all__ = [
    "Stream", "StreamContext", "current_device", "current_stream", "device_count", "is_available", "is_initialized", "set_device", "stream",
    "synchronize",
]  # fmt: skip


class Stream:
    """The only stream of the cpu: work runs in submission order. `priority` is ignored.

    >>> naru.cpu.current_stream().wait_stream(naru.cpu.Stream())
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: later work waits anyway."""

    def record_event(self) -> None:
        """Returns None: there is nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Does nothing: later work waits anyway."""


_stream = Stream()


def is_available() -> bool:
    """True.

    >>> naru.cpu.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """True.

    >>> naru.cpu.is_initialized()
    True
    """
    return True


def device_count() -> int:
    """One.

    >>> naru.cpu.device_count()
    1
    """
    return 1


def current_device() -> str:
    """Always "cpu".

    >>> naru.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one `device`.

    >>> naru.cpu.set_device("cpu")
    """


def current_stream(device: Any = None) -> Stream:
    """The only stream, whatever `device` is.

    >>> naru.cpu.current_stream() is naru.cpu.current_stream()
    True
    """
    return _stream


class StreamContext(contextlib.AbstractContextManager[None]):
    """Does nothing: there is one `stream`.

    >>> with naru.cpu.StreamContext(None):
    ...     naru.ones(2).sum()
    tensor(2.)
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __exit__(self, *error: object) -> None:
        return None

    def __enter__(self) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """A context manager in which work goes to `stream`.

    >>> with naru.cpu.stream(naru.cpu.Stream()):
    ...     naru.ones(2).sum()
    tensor(2.)
    """
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Runs the work that was deferred for fusion. `device` is ignored: there is one.

    >>> x = naru.ones(2) * 3
    >>> naru.cpu.synchronize()  # the product is there now
    """
    _C.synchronize(_C.device("cpu"))


def __getattr__(name: str) -> Any:
    if name == "amp":
        import importlib

        return importlib.import_module(f"{__name__}.amp")
    absent("torch.cpu", name)
