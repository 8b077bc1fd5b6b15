"""Names and docstrings for functions that are made in a loop or by another function."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")


def named(name: str, doc: str) -> Callable[[F], F]:
    """A decorator that sets a function's name and docstring.

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


def inherit_docs(cls: type) -> None:
    """Gives each property of a class without a docstring that of its bases, which `help` does not find by itself.

    >>> from naru._functions.naming import inherit_docs
    >>> class Base:
    ...     @property
    ...     def mean(self):
    ...         "The mean."
    >>> class Zero(Base):
    ...     mean = property(lambda self: 0)
    >>> inherit_docs(Zero)
    >>> Zero.mean.__doc__
    'The mean.'
    """
    for name, value in vars(cls).items():
        if isinstance(value, property) and not value.__doc__:
            value.__doc__ = next((base.__dict__[name].__doc__ for base in cls.__mro__[1:] if name in base.__dict__), None)
