"""Non-tensor arguments of functions written in Python: `__torch_function__` of their classes, or PyTorch's message with the parameter's name."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])
else:
    F = TypeVar("F")


def require_tensors(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises TypeError for the first parameter annotated as `Tensor` that was given something else. Called after a call has failed."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return
    for position, (name, parameter) in enumerate(inspect.signature(function).parameters.items(), 1):
        value = given.get(name)
        if parameter.annotation in ("Tensor", _C.Tensor) and name in given and not isinstance(value, _C.Tensor):
            where = f" (position {position})" if position <= len(args) else ""
            raise TypeError(f"{function.__name__}(): argument '{name}'{where} must be Tensor, not {type(value).__name__}")


def takes_tensors(function: F) -> F:
    """Decorates a function with parameters annotated as `Tensor`: if it fails because one is not a tensor, the error says so.
    An argument whose class has `__torch_function__` is asked for the result then.

    >>> try:
    ...     naru.nn.functional.adaptive_avg_pool2d(3, 1)
    ... except TypeError as error:
    ...     print(error)
    adaptive_avg_pool2d(): argument 'input' (position 1) must be Tensor, not int
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:  # noqa: BLE001
            given = (*args, *kwargs.values())
            if others := [value for value in given if hasattr(type(value), "__torch_function__") and not isinstance(value, _C.Tensor)]:
                from ..overrides import handle_torch_function

                return handle_torch_function(checked, others, *args, **kwargs)
            require_tensors(function, args, kwargs)
            raise

    return checked  # type: ignore[return-value]
