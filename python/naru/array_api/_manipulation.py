"""Shapes, indices, order, sets."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from .. import _C
from ..functional import broadcast_shapes as _broadcast_shapes
from ._elementwise import pair
from ._types import result_type

Tensor = _C.Tensor


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes are broadcast to. ValueError where there is none."""
    try:
        return tuple(_broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """x seen with another shape, without a copy."""
    return _C.broadcast_to(x, shape)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays, each broadcast to the shape of all."""
    return tuple(_C.broadcast_tensors(*arrays)) if arrays else ()


def _of_one_dtype(arrays: Any) -> list[Tensor]:
    both = result_type(*arrays)
    return [x.to(both) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """The arrays one behind the other along axis; None: flattened before."""
    arrays = _of_one_dtype(arrays)
    return _C.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _C.cat(arrays, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """The arrays, all of one shape, along a new axis."""
    return _C.stack(_of_one_dtype(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of x along axis."""
    return tuple(_C.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """x with a dimension of size 1 at axis; of a tuple one at each."""
    if not isinstance(axis, tuple):
        return _C.unsqueeze(x, axis)
    ndim = x.ndim + len(axis)
    if len({a % ndim for a in axis if -ndim <= a < ndim}) != len(axis):
        raise ValueError(f"expand_dims: {axis} are not {len(axis)} different dimensions of {ndim}")
    for a in sorted(a % ndim for a in axis):
        x = _C.unsqueeze(x, a)
    return x


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """x without the dimensions named, each of which must be of size 1: ValueError."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: dimension {a} of shape {tuple(x.shape)} is not of size 1")
    return _C.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """x in reverse order along axis (an integer, a tuple, None for all)."""
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """x with dimensions moved to other places."""
    return _C.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """x with its dimensions in another order."""
    return _C.permute(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged. ValueError for fewer than two."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: wanted at least two dimensions, got shape {tuple(x.shape)}")
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element `repeats` times, along axis; None: of x flattened."""
    if isinstance(repeats, Tensor):
        repeats = repeats.to(_C.int64)
        if repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(x.numel() if axis is None else x.shape[axis])
    return _C.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """x with another shape. copy: True for memory of its own, False for a ValueError where that is needed."""
    if copy:
        return x.clone(memory_format=_C.contiguous_format).view(shape)
    if copy is None:
        return _C.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape: {error}") from None


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """x with elements moved on by `shift` along axis, those beyond the end to the beginning."""
    if isinstance(axis, tuple) and not isinstance(shift, tuple):
        shift = (shift,) * len(axis)
    return _C.roll(x, shift) if axis is None else _C.roll(x, shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x, again and again along its dimensions."""
    return _C.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The entries of x at `indices` along axis; negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an axis must be named for an array of {x.ndim} dimensions")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices.to(_C.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of x at `indices` along axis, an index for each result; negative ones count from the end."""
    at = indices.to(_C.int64)
    return _C.take_along_dim(x, _C.where(at < 0, at + x.shape[axis], at), axis)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the greatest element is along axis (None: of x flattened), the first of equal ones."""
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the least element is along axis (None: of x flattened), the first of equal ones."""
    return _C.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, an array for each dimension. ValueError for none."""
    if x.ndim == 0:
        raise ValueError("nonzero: wanted at least one dimension")
    return tuple(_C.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of x2 would have to be put into x1, which has one dimension, to keep it in order (that of `sorter`, if given). NaN is
    greater than all numbers, as for sort, and equal to itself."""
    x1, x2 = pair("searchsorted", x1, x2)
    found = _C.searchsorted(x1, x2, side=side, sorter=None if sorter is None else sorter.to(_C.int64))
    if side != "left" or not x1.dtype.is_floating_point:
        return found
    count = _C.sum(x1 == x1)
    return _C.where(x2 != x2, count, found) if isinstance(x2, Tensor) else count if x2 != x2 else found


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x in order along axis."""
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that put x in order along axis."""
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


UniqueAllResult = namedtuple("UniqueAllResult", "values indices inverse_indices counts")
UniqueCountsResult = namedtuple("UniqueCountsResult", "values counts")
UniqueInverseResult = namedtuple("UniqueInverseResult", "values inverse_indices")


def _order(flat: Tensor) -> Tensor:
    """The order of a flat array, equal elements beside one another as they come; of complex numbers by real part, then imaginary."""
    if not flat.dtype.is_complex:
        return _C.argsort(flat, dim=0, stable=True)
    order = _C.argsort(flat.imag, dim=0, stable=True)
    return order[_C.argsort(flat.real[order], dim=0, stable=True)]


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements, where each is first, which of them each element of x is, and how many there are. Each NaN is one of its own."""
    flat = x.reshape(-1)
    count = flat.numel()
    order = _order(flat)
    ordered = flat[order]
    first = _C.ones(count, dtype=_C.bool, device=x.device)
    if count > 1:
        first[1:] = ordered[1:] != ordered[:-1]
    starts = _C.nonzero(first).reshape(-1)
    inverse = _C.empty(count, dtype=_C.int64, device=x.device)
    inverse[order] = _C.cumsum(first, 0) - 1
    counts = _C.diff(starts, append=_C.full((1,), count, dtype=_C.int64, device=x.device))
    return UniqueAllResult(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements, and how often each is there."""
    every = unique_all(x)
    return UniqueCountsResult(every.values, every.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements, and which of them each element of x is."""
    every = unique_all(x)
    return UniqueInverseResult(every.values, every.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements, in order."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is in x2; invert: whether it is not."""
    x1, x2 = pair("isin", x1, x2)
    return _C.isin(x1, x2, invert=invert)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product over the last two dimensions, broadcast over the others; of vectors the sum of products."""
    return _C.matmul(*pair("matmul", x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Products summed over axes of both: the last and first `axes` ones, or a pair of sequences."""
    from ..functional import tensordot as product

    x1, x2 = pair("tensordot", x1, x2)
    return product(x1, x2, dims=axes if isinstance(axes, int) else [list(side) for side in axes])


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along axis, which counts from the end; both must have the same size there: ValueError."""
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot: wanted an axis from {-min(x1.ndim, x2.ndim)} to -1, got {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: sizes {x1.shape[axis]} and {x2.shape[axis]} along axis {axis} differ")
    a, b = pair("vecdot", x1, x2)
    a, b = a.movedim(axis, -1), b.movedim(axis, -1)
    return _C.matmul(_C.conj(a).unsqueeze(-2), b.unsqueeze(-1)).squeeze(-1).squeeze(-1)
