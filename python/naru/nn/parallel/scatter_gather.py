"""Splits nested arguments across several devices, and gathers nested results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from . import comm

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """`inputs` for each device, where each tensor is replaced by that device's piece along `dim`. Recurses into tuples, lists, dicts and named
    tuples; other objects are passed to every device. The result has as many entries as the first tensor has pieces.

    Args:
        target_gpus: devices or indices of cuda devices.

    >>> with naru.virtual("cuda", count=2):
    ...     parts = naru.nn.parallel.scatter_gather.scatter({"x": naru.arange(4), "n": 3}, [0, 1])
    ...     [(p["x"].tolist(), p["n"]) for p in parts]
    [([0, 1], 3), ([2, 3], 3)]
    """

    def pieces(value: Any) -> list:
        if isinstance(value, Tensor):
            return list(comm.scatter(value, target_gpus, None, dim))
        if _is_namedtuple(value):
            return [type(value)(*args) for args in zip(*map(pieces, value))]
        if isinstance(value, tuple) and value:
            return list(zip(*map(pieces, value)))
        if isinstance(value, list) and value:
            return [list(part) for part in zip(*map(pieces, value))]
        if isinstance(value, dict) and value:
            return [type(value)(part) for part in zip(*map(pieces, value.items()))]
        return [value for _ in target_gpus]

    return pieces(inputs)


def has_tensors(value: Any) -> bool:
    """Whether there is a tensor in nested tuples, lists and dicts.

    Args:
        value: any object.

    >>> from naru.nn.parallel.scatter_gather import has_tensors
    >>> has_tensors({"x": [naru.ones(1)]}), has_tensors((1, "a"))
    (True, False)
    """
    if isinstance(value, dict):
        value = tuple(value.values())
    return isinstance(value, Tensor) or (isinstance(value, (tuple, list)) and any(map(has_tensors, value)))


def scatter_kwargs(inputs: Any, kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0) -> tuple[tuple, tuple]:
    """Positional and keyword arguments in pieces, equally many of both: as many as their tensors have pieces.

    Args:
        inputs: a tuple of arguments. kwargs: arguments by name.
        target_gpus: devices or indices. dim: the dimension along which tensors are split.

    >>> with naru.virtual("cuda", count=2):
    ...     args, kwargs = naru.nn.parallel.scatter_gather.scatter_kwargs((naru.arange(4),), {"n": 3}, [0, 1])
    ...     [x.tolist() for (x,) in args], kwargs
    ([[0, 1], [2, 3]], ({'n': 3}, {'n': 3}))
    """
    scattered = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    if inputs and kwargs:
        if has_tensors(inputs) and not has_tensors(kwargs):
            named = named[: len(scattered)]
        elif has_tensors(kwargs) and not has_tensors(inputs):
            scattered = scattered[: len(named)]
    scattered += [()] * (len(named) - len(scattered))
    named += [{} for _ in range(len(scattered) - len(named))]
    return tuple(scattered), tuple(named)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The results of several devices concatenated along `dim` on `target_device` (-1: the CPU).

    Args:
        outputs: a tensor, or nested tuples, lists and dicts of tensors, for each device. ValueError for dicts that differ in length.

    >>> with naru.virtual("cuda", count=2):
    ...     parts = [{"loss": naru.zeros(1, device="cuda:0")}, {"loss": naru.ones(1, device="cuda:1")}]
    ...     naru.nn.parallel.scatter_gather.gather(parts, -1)
    {'loss': tensor([0., 1.])}
    """

    def together(values: Sequence[Any]) -> Any:
        first = values[0]
        if isinstance(first, Tensor):
            return comm.gather(values, dim, target_device)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(first) != len(v) for v in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, together([v[key] for v in values])) for key in first)
        if _is_namedtuple(first):
            return type(first)._make(map(together, zip(*values)))
        return type(first)(map(together, zip(*values)))

    return together(outputs)
