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
    """The shape that arrays of these `shapes` are broadcast to. ValueError where there is none.

    >>> naru.array_api.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(_broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """`x` seen with another `shape`, without a copy.

    >>> naru.array_api.broadcast_to(naru.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return _C.broadcast_to(x, shape)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The `arrays`, each broadcast to the shape of all.

    >>> naru.array_api.broadcast_arrays(naru.tensor([1, 2]), naru.tensor([[3]]))
    (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    return tuple(_C.broadcast_tensors(*arrays)) if arrays else ()


def _of_one_dtype(arrays: Any) -> list[Tensor]:
    both = result_type(*arrays)
    return [x.to(both) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """The `arrays` one behind the other along `axis`; None: flattened before.

    >>> naru.array_api.concat([naru.tensor([1, 2]), naru.tensor([3.5])])
    tensor([1.0000, 2.0000, 3.5000])
    """
    arrays = _of_one_dtype(arrays)
    return _C.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _C.cat(arrays, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """The `arrays`, all of one shape, along a new `axis`.

    >>> naru.array_api.stack([naru.tensor([1, 2]), naru.tensor([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return _C.stack(_of_one_dtype(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of `x` along `axis`.

    >>> naru.array_api.unstack(naru.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    return tuple(_C.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """`x` with a dimension of size 1 at `axis`; of a tuple one at each.

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
    """`x` without the dimensions that `axis` names (an integer or a tuple), each of which must be of size 1: ValueError.

    >>> naru.array_api.squeeze(naru.tensor([[1, 2]]), 0)
    tensor([1, 2])
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: dimension {a} of shape {tuple(x.shape)} is not of size 1")
    return _C.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """`x` in reverse order along `axis` (an integer, a tuple, None for all).

    >>> naru.array_api.flip(naru.tensor([[1, 2], [3, 4]]), axis=1)
    tensor([[2, 1],
            [4, 3]])
    """
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """`x` with dimensions moved from the places `source` to the places `destination`, integers or tuples.

    >>> naru.array_api.moveaxis(naru.ones(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    return _C.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """`x` with its dimensions in another order, `axes`.

    >>> naru.array_api.permute_dims(naru.tensor([[1, 2, 3]]), (1, 0))
    tensor([[1],
            [2],
            [3]])
    """
    return _C.permute(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions of `x` exchanged. ValueError for fewer than two.

    >>> naru.array_api.matrix_transpose(naru.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: wanted at least two dimensions, got shape {tuple(x.shape)}")
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element of `x` `repeats` times (an integer or an array), along `axis`; None: of x flattened.

    >>> naru.array_api.repeat(naru.tensor([1, 2]), naru.tensor([3, 1]))
    tensor([1, 1, 1, 2])
    """
    if isinstance(repeats, Tensor):
        repeats = repeats.to(_C.int64)
        if repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(x.numel() if axis is None else x.shape[axis])
    return _C.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """`x` with another `shape`. `copy`: True for memory of its own, False for a ValueError where that is needed.

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
    """`x` with elements moved on by `shift` along `axis` (an integer or a tuple each; None: of x flattened), those beyond the end to the
    beginning.

    >>> naru.array_api.roll(naru.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if isinstance(axis, tuple) and not isinstance(shift, tuple):
        shift = (shift,) * len(axis)
    return _C.roll(x, shift) if axis is None else _C.roll(x, shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """`x`, again and again along its dimensions, as often as `repetitions` says for each.

    >>> naru.array_api.tile(naru.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return _C.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The entries of `x` at `indices` along `axis`; negative ones count from the end. ValueError where an axis must be named.

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
    """The elements of `x` at `indices` along `axis`, an index for each result; negative ones count from the end.

    >>> naru.array_api.take_along_axis(naru.tensor([[1, 2], [3, 4]]), naru.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    at = indices.to(_C.int64)
    return _C.take_along_dim(x, _C.where(at < 0, at + x.shape[axis], at), axis)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the greatest element of `x` is along `axis` (None: of x flattened), the first of equal ones. The axis stays with size 1 if
    `keepdims`.

    >>> naru.array_api.argmax(naru.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([1, 0])
    """
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the least element of `x` is along `axis` (None: of x flattened), the first of equal ones. The axis stays with size 1 if
    `keepdims`.

    >>> naru.array_api.argmin(naru.tensor([[1, 5], [7, 2]]), axis=1)
    tensor([0, 1])
    """
    return _C.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements of `x` that are not zero, an array for each dimension. ValueError for none.

    >>> naru.array_api.nonzero(naru.tensor([[0, 1], [2, 0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    if x.ndim == 0:
        raise ValueError("nonzero: wanted at least one dimension")
    return tuple(_C.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of `x2` would have to be put into `x1`, which has one dimension, to keep it in order (that of `sorter`, if given),
    before equal ones for `side` "left", behind them for "right". NaN is greater than all numbers, as for sort, and equal to itself.

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
    """`x` in order along `axis`, the greatest first if `descending`; `stable`: equal elements stay in order.

    >>> naru.array_api.sort(naru.tensor([2, 3, 1]), descending=True)
    tensor([3, 2, 1])
    """
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that put `x` in order along `axis`, the greatest first if `descending`; `stable`: those of equal elements stay in order.

    >>> naru.array_api.argsort(naru.tensor([2, 3, 1]))
    tensor([2, 0, 1])
    """
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
    """The different elements of `x`, where each is first, which of them each element of x is, and how many there are. Each NaN is one of its
    own.

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
    """The different elements of `x`, and how often each is there.

    >>> naru.array_api.unique_counts(naru.tensor([3, 1, 3]))
    UniqueCountsResult(values=tensor([1, 3]), counts=tensor([1, 2]))
    """
    every = unique_all(x)
    return UniqueCountsResult(every.values, every.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements of `x`, and which of them each element of x is.

    >>> naru.array_api.unique_inverse(naru.tensor([3, 1, 3]))
    UniqueInverseResult(values=tensor([1, 3]), inverse_indices=tensor([1, 0, 1]))
    """
    every = unique_all(x)
    return UniqueInverseResult(every.values, every.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements of `x`, in order.

    >>> naru.array_api.unique_values(naru.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is in `x2`; `invert`: whether it is not.

    >>> naru.array_api.isin(naru.tensor([1, 2, 3]), naru.tensor([2, 4]))
    tensor([False,  True, False])
    """
    x1, x2 = pair("isin", x1, x2)
    return _C.isin(x1, x2, invert=invert)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product of `x1` and `x2` over the last two dimensions, broadcast over the others; of vectors the sum of products.

    >>> naru.array_api.matmul(naru.tensor([[1, 2], [3, 4]]), naru.tensor([10, 1]))
    tensor([12, 34])
    """
    return _C.matmul(*pair("matmul", x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Products of `x1` and `x2` summed over `axes` of both: the last and first `axes` ones, or a pair of sequences.

    >>> naru.array_api.tensordot(naru.tensor([[1, 2], [3, 4]]), naru.tensor([[1, 0], [0, 1]]), axes=2)
    tensor(5)
    """
    from ..functional import tensordot as product

    x1, x2 = pair("tensordot", x1, x2)
    return product(x1, x2, dims=axes if isinstance(axes, int) else [list(side) for side in axes])


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along `axis`, which counts from the end; both must have the same size there: ValueError.

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
