"""Shapes, indexing, sorting, sets, and matrix products."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from .. import _C
from ..functional import broadcast_shapes as _broadcast_shapes
from ._elementwise import pair
from ._types import result_type

Tensor = _C.Tensor


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that results from broadcasting `shapes`. Raises ValueError if they do not broadcast.

    >>> naru.array_api.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(_broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of `x` broadcast to `shape`.

    >>> naru.array_api.broadcast_to(naru.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return _C.broadcast_to(x, shape)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Broadcasts the `arrays` against each other.

    >>> naru.array_api.broadcast_arrays(naru.tensor([1, 2]), naru.tensor([[3]]))
    (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    return tuple(_C.broadcast_tensors(*arrays)) if arrays else ()


def _of_one_dtype(arrays: Any) -> list[Tensor]:
    both = result_type(*arrays)
    return [x.to(both) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Concatenates the `arrays` along `axis`; None flattens them first.

    >>> naru.array_api.concat([naru.tensor([1, 2]), naru.tensor([3.5])])
    tensor([1.0000, 2.0000, 3.5000])
    """
    arrays = _of_one_dtype(arrays)
    return _C.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _C.cat(arrays, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Stacks the `arrays`, all of one shape, along a new `axis`.

    >>> naru.array_api.stack([naru.tensor([1, 2]), naru.tensor([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return _C.stack(_of_one_dtype(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Returns the slices of `x` along `axis`.

    >>> naru.array_api.unstack(naru.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    return tuple(_C.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """Inserts a dimension of size 1 into `x` at `axis`, or at each position in a tuple.

    >>> naru.array_api.expand_dims(naru.ones(3), (0, 2)).shape
    torch.Size([1, 3, 1])
    """
    if not isinstance(axis, tuple):
        return _C.unsqueeze(x, axis)
    ndim = x.ndim + len(axis)
    if len({a % ndim for a in axis if -ndim <= a < ndim}) != len(axis):
        raise ValueError(f"expand_dims: {axis} are not {len(axis)} different dimensions of {ndim}")
    for a in sorted(a % ndim for a in axis):
        x = _C.unsqueeze(x, a)
    return x


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Removes the dimensions `axis` (an integer or a tuple) of `x`. Raises ValueError if one of them is not of size 1.

    >>> naru.array_api.squeeze(naru.tensor([[1, 2]]), 0)
    tensor([1, 2])
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: dimension {a} of shape {tuple(x.shape)} is not of size 1")
    return _C.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Reverses `x` along `axis` (an integer, a tuple, None for all).

    >>> naru.array_api.flip(naru.tensor([[1, 2], [3, 4]]), axis=1)
    tensor([[2, 1],
            [4, 3]])
    """
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Moves dimensions of `x` from the positions `source` to the positions `destination`, integers or tuples.

    >>> naru.array_api.moveaxis(naru.ones(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    return _C.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Permutes the dimensions of `x` to the order `axes`.

    >>> naru.array_api.permute_dims(naru.tensor([[1, 2, 3]]), (1, 0))
    tensor([[1],
            [2],
            [3]])
    """
    return _C.permute(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Swaps the last two dimensions of `x`. Raises ValueError if it has fewer than two.

    >>> naru.array_api.matrix_transpose(naru.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: wanted at least two dimensions, got shape {tuple(x.shape)}")
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeats each element of `x` `repeats` times (an integer or an array) along `axis`; None flattens x first.

    >>> naru.array_api.repeat(naru.tensor([1, 2]), naru.tensor([3, 1]))
    tensor([1, 1, 1, 2])
    """
    if isinstance(repeats, Tensor):
        repeats = repeats.to(_C.int64)
        if repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(x.numel() if axis is None else x.shape[axis])
    return _C.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Reshapes `x` to `shape`. `copy`: True always copies, False raises ValueError if a copy is needed.

    >>> naru.array_api.reshape(naru.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if copy:
        return x.clone(memory_format=_C.contiguous_format).view(shape)
    if copy is None:
        return _C.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape: {error}") from None


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Rolls the elements of `x` by `shift` along `axis` (an integer or a tuple each; None flattens x first). Elements moved past the end wrap
    around.

    >>> naru.array_api.roll(naru.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if isinstance(axis, tuple) and not isinstance(shift, tuple):
        shift = (shift,) * len(axis)
    return _C.roll(x, shift) if axis is None else _C.roll(x, shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeats `x` along each dimension as many times as `repetitions` says.

    >>> naru.array_api.tile(naru.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return _C.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The entries of `x` at `indices` along `axis`; negative indices count from the end. Raises ValueError if axis is required but missing.

    >>> naru.array_api.take(naru.tensor([[1, 2], [3, 4]]), naru.tensor([1, -1]), axis=1)
    tensor([[2, 2],
            [4, 4]])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an axis must be named for an array of {x.ndim} dimensions")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices.to(_C.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of `x` at `indices` along `axis`, one index per result; negative indices count from the end.

    >>> naru.array_api.take_along_axis(naru.tensor([[1, 2], [3, 4]]), naru.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    at = indices.to(_C.int64)
    return _C.take_along_dim(x, _C.where(at < 0, at + x.shape[axis], at), axis)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the maximum of `x` along `axis` (None: of x flattened), the first one if several are equal. `keepdims` keeps the axis with size
    1.

    >>> naru.array_api.argmax(naru.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([1, 0])
    """
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the minimum of `x` along `axis` (None: of x flattened), the first one if several are equal. `keepdims` keeps the axis with size
    1.

    >>> naru.array_api.argmin(naru.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([0, 1])
    """
    return _C.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements of `x`, one array per dimension. Raises ValueError for a 0-d array.

    >>> naru.array_api.nonzero(naru.tensor([[0, 1], [2, 0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    if x.ndim == 0:
        raise ValueError("nonzero: wanted at least one dimension")
    return tuple(_C.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices at which the elements of `x2` would be inserted into the 1-d array `x1` to keep it sorted (in the order `sorter`, if given):
    before equal elements for `side` "left", after them for "right". NaN is greater than all numbers, as in sort, and equal to itself.

    >>> naru.array_api.searchsorted(naru.tensor([1, 3, 5]), naru.tensor([3, 4]))
    tensor([1, 2])
    """
    x1, x2 = pair("searchsorted", x1, x2)
    found = _C.searchsorted(x1, x2, side=side, sorter=None if sorter is None else sorter.to(_C.int64))
    if side != "left" or not x1.dtype.is_floating_point:
        return found
    count = _C.sum(x1 == x1)
    return _C.where(x2 != x2, count, found) if isinstance(x2, Tensor) else count if x2 != x2 else found


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts `x` along `axis`, in descending order if `descending`; `stable` keeps the order of equal elements.

    >>> naru.array_api.sort(naru.tensor([2, 3, 1]), descending=True)
    tensor([3, 2, 1])
    """
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort `x` along `axis`, in descending order if `descending`; `stable` keeps the order of equal elements.

    >>> naru.array_api.argsort(naru.tensor([2, 3, 1]))
    tensor([2, 0, 1])
    """
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


UniqueAllResult = namedtuple("UniqueAllResult", "values indices inverse_indices counts")
UniqueCountsResult = namedtuple("UniqueCountsResult", "values counts")
UniqueInverseResult = namedtuple("UniqueInverseResult", "values inverse_indices")


def _order(flat: Tensor) -> Tensor:
    """The indices that stably sort a flat array; complex numbers are ordered by real part, then imaginary part."""
    if not flat.dtype.is_complex:
        return _C.argsort(flat, dim=0, stable=True)
    order = _C.argsort(flat.imag, dim=0, stable=True)
    return order[_C.argsort(flat.real[order], dim=0, stable=True)]


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The distinct elements of `x`, the index of the first occurrence of each, the index into the distinct elements for each element of x, and
    their counts. NaNs count as distinct.

    >>> values, indices, inverse_indices, counts = naru.array_api.unique_all(naru.tensor([3, 1, 3]))
    >>> values, indices, inverse_indices, counts
    (tensor([1, 3]), tensor([1, 0]), tensor([1, 0, 1]), tensor([1, 2]))
    """
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
    """The distinct elements of `x` and their counts.

    >>> naru.array_api.unique_counts(naru.tensor([3, 1, 3]))
    UniqueCountsResult(values=tensor([1, 3]), counts=tensor([1, 2]))
    """
    every = unique_all(x)
    return UniqueCountsResult(every.values, every.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The distinct elements of `x`, and the index into them for each element of x.

    >>> naru.array_api.unique_inverse(naru.tensor([3, 1, 3]))
    UniqueInverseResult(values=tensor([1, 3]), inverse_indices=tensor([1, 0, 1]))
    """
    every = unique_all(x)
    return UniqueInverseResult(every.values, every.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of `x`, sorted.

    >>> naru.array_api.unique_values(naru.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is in `x2`; `invert` negates the result.

    >>> naru.array_api.isin(naru.tensor([1, 2, 3]), naru.tensor([2, 4]))
    tensor([False,  True, False])
    """
    x1, x2 = pair("isin", x1, x2)
    return _C.isin(x1, x2, invert=invert)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product of `x1` and `x2` over the last two dimensions, broadcast over the others; the inner product for vectors.

    >>> naru.array_api.matmul(naru.tensor([[1, 2], [3, 4]]), naru.tensor([10, 1]))
    tensor([12, 34])
    """
    return _C.matmul(*pair("matmul", x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The products of `x1` and `x2` summed over `axes`: an integer (the last axes of x1, the first of x2) or a pair of sequences.

    >>> naru.array_api.tensordot(naru.tensor([[1, 2], [3, 4]]), naru.tensor([[1, 0], [0, 1]]), axes=2)
    tensor(5)
    """
    from ..functional import tensordot as product

    x1, x2 = pair("tensordot", x1, x2)
    return product(x1, x2, dims=axes if isinstance(axes, int) else [list(side) for side in axes])


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along `axis`, a negative number. Raises ValueError if the sizes there differ.

    >>> naru.array_api.vecdot(naru.tensor([[1, 2], [3, 4]]), naru.tensor([10, 1]))
    tensor([12, 34])
    """
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot: wanted an axis from {-min(x1.ndim, x2.ndim)} to -1, got {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: sizes {x1.shape[axis]} and {x2.shape[axis]} along axis {axis} differ")
    a, b = pair("vecdot", x1, x2)
    a, b = a.movedim(axis, -1), b.movedim(axis, -1)
    return _C.matmul(_C.conj(a).unsqueeze(-2), b.unsqueeze(-1)).squeeze(-1).squeeze(-1)
