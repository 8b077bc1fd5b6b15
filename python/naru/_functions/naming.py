"""Functions that are made in a loop or by another function say what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")


def named(name: str, doc: str) -> Callable[[F], F]:
    """A decorator that gives a function a name and a docstring.

    >>> from naru._functions.naming import named
    >>> @named("twice", "2 * x.")
    ... def made(x):
    ...     return 2 * x
    >>> made.__name__, made.__doc__
    ('twice', '2 * x.')
    """

    def give(function: F) -> F:
        function.__name__ = function.__qualname__ = name  # type: ignore[attr-defined]
        function.__doc__ = doc
        return function

    return give
