"""What functions composed in Python need to be in autocast's lists, as those of the core are."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _C
from .._functions.arguments import require_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])
else:
    F = TypeVar("F")


def listed(function: F) -> F:
    """Decorates a function that PyTorch's lists name: inside `torch.autocast` its tensors are cast first, and it runs outside it."""
    name = function.__name__

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        if _C._autocast_anywhere():
            given = (*args, *kwargs.values())
            kind, cast = _C._autocast_arguments(name, given)
            if kind:
                from .autocast_mode import autocast

                with autocast(kind, enabled=False):
                    return function(*cast[: len(args)], **dict(zip(kwargs, cast[len(args) :])))
        try:
            return function(*args, **kwargs)
        except Exception:  # noqa: BLE001
            require_tensors(function, args, kwargs)
            raise

    return inside  # type: ignore[return-value]
