"""Exceptions passed to another thread or process."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any


class _KeyText(str):
    """A string that KeyError, which shows the repr of its argument, prints unquoted."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception's type and its traceback as text, to be raised in another thread or process.

    Args:
        exc_info: as returned by `sys.exc_info()`, which is the default.
        where: completes "Caught ValueError ...".

    >>> from naru.nn.parallel.parallel_apply import ExceptionWrapper
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     caught = ExceptionWrapper(where="in replica 0 on cuda:0")
    >>> caught.exc_msg.splitlines()[0]
    'Traceback (most recent call last):'
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: type[BaseException] = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raises an exception of the same type; RuntimeError if that type cannot be constructed from a string."""
        name = self.exc_type.__name__
        text = f"Caught {name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(_KeyText(text))
        try:
            if getattr(self.exc_type, "message", None):
                error = self.exc_type(message=text)  # type: ignore[call-arg]
            else:
                error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error

    def __reduce__(self) -> Any:
        try:
            pickle.dumps(self.exc_type)
        except Exception:  # e.g. a local class, which the other process cannot import
            return _remade, (RuntimeError, self.exc_msg, self.where)
        return _remade, (self.exc_type, self.exc_msg, self.where)


def _remade(exc_type: type[BaseException], exc_msg: str, where: str) -> ExceptionWrapper:
    wrapper = ExceptionWrapper.__new__(ExceptionWrapper)
    wrapper.exc_type, wrapper.exc_msg, wrapper.where = exc_type, exc_msg, where
    return wrapper
