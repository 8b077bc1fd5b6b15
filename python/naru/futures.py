"""`torch.futures`: results that become available later."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that is set later.

    Args:
        devices: accepted and ignored: tensors track what they wait for.

    >>> future = naru.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether a result or an error is set."""
        return self._done

    def wait(self) -> T:
        """Waits for the result and returns it; raises the error if one was set."""
        with self._changed:
            while not self._done:
                self._changed.wait()
        return self.value()

    def value(self) -> T:
        """The result. RuntimeError if it is not set yet."""
        if not self._done:
            raise RuntimeError("the Future has no value yet: wait() for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: T) -> None:
        """Sets `result`. RuntimeError if one is already set."""
        self._set(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets the error `result`, which wait() raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result).__name__}, not an Exception.")
        self._set(None, result)

    def _set(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Future can only be marked completed once: it has a result")
            self._value, self._error, self._done = value, error, True
            self._changed.notify_all()
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Calls `callback` with this Future when it is done; immediately if it already is."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Returns a Future for the result of `callback`, which is called with this one when it is done."""
        following: Future[S] = Future()

        def call(done: Future[T]) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:  # noqa: BLE001
                following.set_exception(error)

        self.add_done_callback(call)
        return following


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """A Future of the list `futures`, done when all of them are.

    >>> one = naru.futures.Future()
    >>> one.set_result(1)
    >>> [f.value() for f in naru.futures.collect_all([one]).wait()]
    [1]
    """
    everything: Future[list[Future]] = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def count(_: Future) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            everything.set_result(list(futures))

    if not futures:
        everything.set_result([])
    for future in futures:
        future.add_done_callback(count)
    return everything


def wait_all(futures: Sequence[Future]) -> list:
    """Waits for all `futures` and returns their results; raises the first error.

    >>> one = naru.futures.Future()
    >>> one.set_result(1)
    >>> naru.futures.wait_all([one])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__getattr__ = _missing.module_getattr(__name__)
