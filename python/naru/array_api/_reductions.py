"""Reductions and cumulative operations: sums, statistics, any, all, differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._documentation import show
from .._functions.naming import named
from ._types import KINDS

Tensor = _C.Tensor


def _accumulated(x: Tensor, dtype: Any) -> Any:
    """The result dtype of sums and products: int64 for integers, except that uint64 stays uint64."""
    if dtype is not None:
        return dtype
    return x.dtype if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == _C.uint64 else _C.int64


def _axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def _as_int64(function: Callable[..., Tensor], x: Tensor, to: Any, *args: Any) -> Tensor:
    """Computes in int64 if the result is an unsigned type wider than uint8, which the core cannot sum: arithmetic is modulo 2 to the 64."""
    if to in KINDS["unsigned integer"] and to != _C.uint8:
        return function(x.to(_C.int64), *args, dtype=_C.int64).to(to)
    return function(x, *args, dtype=to)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of `x` along `axis` (an integer, a tuple, None for all), which stays with size 1 if `keepdims`. Integers are summed as int64 unless
    `dtype` is given.

    >>> naru.array_api.sum(naru.tensor([[1, 2], [3, 4]]), axis=0)
    tensor([4, 6])
    """
    to, axes = _accumulated(x, dtype), _axes(x, axis)
    return _as_int64(_C.sum, x, to, axes, keepdims) if axes else x.to(to, copy=True)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product of `x` along `axis` (an integer, a tuple, None for all), which stays with size 1 if `keepdims`. Integers are multiplied as int64
    unless `dtype` is given.

    >>> naru.array_api.prod(naru.tensor([[1, 2], [3, 4]]), axis=(0, 1))
    tensor(24)
    """
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
    """The maximum of `x` along `axis` (an integer, a tuple, None for all), which stays with size 1 if `keepdims`; NaN if there is one.

    >>> naru.array_api.max(naru.tensor([[3, 1], [2, 2]]), axis=1)
    tensor([3, 2])
    """
    axes = _axes(x, axis)
    return _C.amax(x, axes, keepdims) if axes else x.clone()


def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The minimum of `x` along `axis` (an integer, a tuple, None for all), which stays with size 1 if `keepdims`; NaN if there is one.

    >>> naru.array_api.min(naru.tensor([[3, 1], [2, 2]]), axis=1, keepdims=True)
    tensor([[1],
            [2]])
    """
    axes = _axes(x, axis)
    return _C.amin(x, axes, keepdims) if axes else x.clone()


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of `x` along `axis` (an integer, a tuple, None for all), which stays with size 1 if `keepdims`.

    >>> naru.array_api.mean(naru.tensor([[1.0, 2.0], [3.0, 6.0]]), axis=1)
    tensor([1.5000, 4.5000])
    """
    axes = _axes(x, axis)
    return _C.mean(x, axes, keepdims) if axes else x.clone()


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance of `x` along `axis` (an integer, a tuple, None for all), which stays with size 1 if `keepdims`; the divisor is the number of
    elements minus `correction`.

    >>> naru.array_api.var(naru.tensor([1.0, 3.0])), naru.array_api.var(naru.tensor([1.0, 3.0]), correction=1)
    (tensor(1.), tensor(2.))
    """
    axes = _axes(x, axis)
    return _C.var(x, axes, correction=correction, keepdim=keepdims) if axes else _spread_of_one(x, correction)


def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance of `x` along `axis`; `correction` and `keepdims` as for `var`.

    >>> naru.array_api.std(naru.tensor([1.0, 3.0]))
    tensor(1.)
    """
    axes = _axes(x, axis)
    return _C.std(x, axes, correction=correction, keepdim=keepdims) if axes else _spread_of_one(x, correction)


def _spread_of_one(x: Tensor, correction: float) -> Tensor:
    zero = (x - x).real if x.dtype.is_complex else x - x
    return zero if correction < 1 else zero / 0.0


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether an element of `x` along `axis` (an integer, a tuple, None for all) is nonzero. `keepdims` keeps the axis with size 1.

    >>> naru.array_api.any(naru.tensor([[0, 1], [0, 0]]), axis=1)
    tensor([ True, False])
    """
    axes = _axes(x, axis)
    return _C.any(x != 0 if x.dtype != _C.bool else x, axes, keepdims) if axes else x.to(_C.bool, copy=True)


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no element of `x` along `axis` (an integer, a tuple, None for all) is zero. `keepdims` keeps the axis with size 1.

    >>> naru.array_api.all(naru.tensor([[0, 1], [2, 3]]), axis=1)
    tensor([False,  True])
    """
    axes = _axes(x, axis)
    return _C.all(x != 0 if x.dtype != _C.bool else x, axes, keepdims) if axes else x.to(_C.bool, copy=True)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements of `x` along `axis` (an integer, a tuple, None for all), as int64. `keepdims` keeps the axis with size 1.

    >>> naru.array_api.count_nonzero(naru.tensor([[0, 1], [2, 3]]), axis=1)
    tensor([1, 2])
    """
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


cumulative_sum = _cumulative("cumulative_sum", _C.cumsum, 0, "The sums of the first elements of `x` along `axis`, in `dtype` (int64 of integers); `include_initial`: with 0 in front.")
cumulative_prod = _cumulative("cumulative_prod", _C.cumprod, 1, "The products of the first elements of `x` along `axis`, in `dtype` (int64 of integers); `include_initial`: with 1 in front.")
show(globals(), "array_api")


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The `n`-th differences of neighboring elements of `x` along `axis`. `prepend`, `append`: arrays to concatenate before and after x first.

    >>> naru.array_api.diff(naru.tensor([1, 4, 9]), prepend=naru.tensor([0]))
    tensor([1, 3, 5])
    """
    return _C.diff(x, n=n, dim=axis, prepend=prepend, append=append)
