"""Marks of what is stable in `torch.fx`, which packages put on their own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .._compat import placeholders

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that returns what it decorates.

    >>> compatibility(is_backward_compatible=True)(abs)(-1)
    1
    """
    return lambda decorated: decorated


__getattr__ = placeholders.module_getattr(__name__)
