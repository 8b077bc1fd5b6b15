"""Batching rules by decomposition: each operator is written for one entry, in operators that have batching rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from . import _rules  # noqa: F401: these rules override those of _rules
from ._batched import Level, rule

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def composed(*names: str) -> Callable[[Any], Any]:
    """Registers f(*args, **kwargs), written for tensors as the function of a vmap sees them, for functions with these names. f raises TypeError for
    arguments that it does not cover."""

    def register(f: Any) -> Any:
        def call(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
            return f(*args, **kwargs)

        rule(*names)(call)
        return f

    return register
