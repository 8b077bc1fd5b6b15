"""Reductions and cumulative functions: statistics, any, all, differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._functions.naming import named
from ._types import KINDS

Tensor = _C.Tensor


def _accumulated(x: Tensor, dtype: Any) -> Any:
    """The dtype of sums and products: of integers int64, of uint64 its own."""
    if dtype is not None:
        return dtype
    return x.dtype if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == _C.uint64 else _C.int64


def _axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def _as_int64(function: Callable[..., Tensor], x: Tensor, to: Any, *args: Any) -> Tensor:
    """Computed modulo 2 to the 64 where the result is uint64, which the core does not add up."""
    if to in KINDS["unsigned integer"] and to != _C.uint8:
        return function(x.to(_C.int64), *args, dtype=_C.int64).to(to)
    return function(x, *args, dtype=to)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axis (an integer, a tuple, None for all). Integers are added up as int64 by default."""
    to, axes = _accumulated(x, dtype), _axes(x, axis)
    return _as_int64(_C.sum, x, to, axes, keepdims) if axes else x.to(to, copy=True)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axis (an integer, a tuple, None for all). Integers are multiplied as int64 by default."""
    to = _accumulated(x, dtype)
    axes = sorted({_position(a, x.ndim) for a in _axes(x, axis)})
    if not axes:
        return x.to(to, copy=True)
    rest = [d for d in range(x.ndim) if d not in axes]
    last = x.permute(rest + axes).flatten(len(rest)) if len(axes) > 1 else x.movedim(axes[0], -1)
    made = _as_int64(_C.prod, last, to, -1)
    return made.reshape([1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdims else made


def _position(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {axis})")
    return axis % ndim


def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest element along axis (an integer, a tuple, None for all); NaN where there is one."""
    axes = _axes(x, axis)
    return _C.amax(x, axes, keepdims) if axes else x.clone()


def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The least element along axis (an integer, a tuple, None for all); NaN where there is one."""
    axes = _axes(x, axis)
    return _C.amin(x, axes, keepdims) if axes else x.clone()


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean along axis (an integer, a tuple, None for all)."""
    axes = _axes(x, axis)
    return _C.mean(x, axes, keepdims) if axes else x.clone()


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axis; divided by the number of elements less `correction`."""
    axes = _axes(x, axis)
    return _C.var(x, axes, correction=correction, keepdim=keepdims) if axes else _spread_of_one(x, correction)


def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    axes = _axes(x, axis)
    return _C.std(x, axes, correction=correction, keepdim=keepdims) if axes else _spread_of_one(x, correction)


def _spread_of_one(x: Tensor, correction: float) -> Tensor:
    zero = (x - x).real if x.dtype.is_complex else x - x
    return zero if correction < 1 else zero / 0.0


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether an element along axis is not zero."""
    axes = _axes(x, axis)
    return _C.any(x != 0 if x.dtype != _C.bool else x, axes, keepdims) if axes else x.to(_C.bool, copy=True)


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no element along axis is zero."""
    axes = _axes(x, axis)
    return _C.all(x != 0 if x.dtype != _C.bool else x, axes, keepdims) if axes else x.to(_C.bool, copy=True)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements along axis are not zero, as int64."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def _cumulative(name: str, function: Callable[..., Tensor], first: int, doc: str) -> Callable[..., Tensor]:
    @named(name, doc)
    def call(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"{name}: an axis must be named for an array of {x.ndim} dimensions")
            axis = 0
        made = _as_int64(function, x, _accumulated(x, dtype), axis)
        if not include_initial:
            return made
        sizes = list(x.shape)
        sizes[axis] = 1
        return _C.cat([_C.full(sizes, first, dtype=made.dtype, device=x.device), made], axis)

    return call


cumulative_sum = _cumulative("cumulative_sum", _C.cumsum, 0, "The sums of the first elements along axis; include_initial: with 0 in front.")
cumulative_prod = _cumulative("cumulative_prod", _C.cumprod, 1, "The products of the first elements along axis; include_initial: with 1 in front.")


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The differences of neighbours along axis, n times. prepend, append: arrays that are put in front and behind before."""
    return _C.diff(x, n=n, dim=axis, prepend=prepend, append=append)
