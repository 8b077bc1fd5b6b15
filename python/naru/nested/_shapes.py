"""Rules of operators that change sizes and move elements: views of the values, with the ragged dimension where it then is."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import sizes_of
from ._elementwise import aligned
from ._ragged import NestedInt, ragged_of, ragged_of_counts
from ._tensor import NestedTensor, canonical, components, from_components, is_nested, rule, takes_irregular, unsupported

Tensor = _C.Tensor


def _dense_dim(x: NestedTensor, dim: int, name: str, more: int = 0) -> int:
    """A dimension that is neither the batch nor ragged, as the values count it."""
    at = canonical(x.dim() + more, dim)
    if at == x._ragged_idx and not more:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if at == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return at - 1


@rule("unbind")
@takes_irregular
def _unbind(func: Any, input: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The components."""
    if canonical(input.dim(), dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return components(input)


def batch_part(x: NestedTensor, start: int, stop: int) -> NestedTensor:
    """Some components that follow each other, as a nested tensor over the same elements."""
    counts = x._ragged.counts[start:stop]
    if x.irregular or x._ragged.lengths is not None:
        return from_components(components(x)[start:stop], x.layout)
    begin = x._ragged.host()[0][start] if counts else 0
    return NestedTensor(x._values.narrow(x._ragged_idx - 1, begin, sum(counts)), ragged_of_counts(counts, x.device), x._ragged_idx, x.layout)


@rule("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    """Two dimensions behind the batch change places."""
    a, b = canonical(input.dim(), dim0), canonical(input.dim(), dim1)
    if a == b:
        return input
    if 0 in (a, b):
        if input.layout is _C.jagged:
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    at = b if input._ragged_idx == a else a if input._ragged_idx == b else input._ragged_idx
    return input.like(input._values.transpose(a - 1, b - 1), at)


@rule("permute", "movedim", "moveaxis")
def _permute(func: Any, input: NestedTensor, *dims: Any, **named: Any) -> NestedTensor:
    """Another order of the dimensions behind the batch."""
    ndim = input.dim()
    if func.__name__ in ("movedim", "moveaxis"):
        order = list(_C.empty((0,) + (1,) * (ndim - 1)).movedim(*dims, **named).shape)  # for its checks
        source, target = ([v] if isinstance(v, int) else list(v) for v in (dims or named.values()))
        moved = {canonical(ndim, t): canonical(ndim, s) for s, t in zip(source, target)}
        others = iter(d for d in range(ndim) if d not in moved.values())
        order = [moved[d] if d in moved else next(others) for d in range(ndim)]
    else:
        order = [canonical(ndim, d) for d in (sizes_of(dims) if dims else named["dims"])]
        if len(order) != ndim:
            raise RuntimeError(
                f"permute(): number of dimensions in the tensor input ({ndim}) does not match the length of the desired ordering of dimensions ({len(order)})."
            )
        if len(set(order)) != ndim:
            raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return input.like(input._values.permute([d - 1 for d in order[1:]]), order.index(input._ragged_idx))


@rule("t")
def _t(func: Any, input: NestedTensor) -> NestedTensor:
    return input.transpose(0, 1)


def _prefix_fits(x: NestedTensor, sizes: tuple) -> bool:
    """Whether sizes begin as those of the tensor do, up to the ragged dimension: -1 stands for any of them."""
    mine = x._sizes()[: x._ragged_idx + 1]
    if len(sizes) < len(mine):
        return False
    same_length = None if x.layout is _C.jagged or x._ragged.shortest() != x._ragged.longest() else x._ragged.longest()
    return all(w == -1 or m == w or (type(m) is NestedInt and w == same_length) for m, w in zip(mine, sizes))


@rule("view", "reshape", "_unsafe_view")
def reshape(func: Any, input: NestedTensor, *given: Any, **named: Any) -> Any:
    """Other sizes of the dimensions behind the ragged one."""
    if len(given) == 1 and not isinstance(given[0], (int, tuple, list)):
        return input.like(input._values.view(given[0]))  # a dtype
    sizes = sizes_of(given) if given else tuple(named.get("shape", named.get("size", ())))
    if not _prefix_fits(input, sizes):
        raise RuntimeError(f"view(): cannot view shape {input.text_of_size()} as {list(sizes)}: wanted the batch and the ragged dimension to stay")
    inner, end = tuple(input._values.shape), input._ragged_idx
    values = input._values.view if func.__name__ == "view" else input._values.reshape
    return input.like(values((*inner[:end], *sizes[end + 1 :])))


@rule("view_as", "reshape_as", "expand_as")
def _as_other(func: Any, input: Any, other: Any) -> Any:
    """Of the sizes of the other."""
    if func.__name__ == "expand_as" and not is_nested(input):
        return other.like(aligned(func, other, input).expand_as(other._values))
    sizes = other._sizes() if is_nested(other) else tuple(other.shape)
    if is_nested(other) and is_nested(input) and other._ragged.same(input._ragged, input.layout is _C.strided):
        sizes = tuple(-1 if type(n) is NestedInt else n for n in sizes)
    return getattr(input, func.__name__.removesuffix("_as"))(sizes)


@rule("flatten")
def _flatten(func: Any, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    """Dimensions behind the ragged one become one."""
    a, b = _dense_dim(input, start_dim, "flatten"), _dense_dim(input, end_dim, "flatten")
    if a < input._ragged_idx - 1 < b:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return input.like(input._values.flatten(a, b), input._ragged_idx - (b - a if b < input._ragged_idx - 1 else 0))


@rule("unflatten")
def _unflatten(func: Any, input: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    """A dimension of the components becomes several."""
    at = _dense_dim(input, dim, "unflatten")
    return input.like(input._values.unflatten(at, sizes), input._ragged_idx + (len(sizes) - 1 if at < input._ragged_idx - 1 else 0))


@rule("unsqueeze")
def _unsqueeze(func: Any, input: NestedTensor, dim: int) -> NestedTensor:
    at = _dense_dim(input, dim, "unsqueeze", 1)
    return input.like(func(input._values, at), input._ragged_idx + (at < input._ragged_idx))


@rule("squeeze")
def _squeeze(func: Any, input: NestedTensor, dim: Any = None) -> NestedTensor:
    """Dimensions of size 1 that are neither the batch nor ragged go."""
    ragged = input._ragged_idx - 1
    if dim is None:
        gone = [d for d, n in enumerate(input._values.shape) if n == 1 and d != ragged]
    else:
        gone = [_dense_dim(input, d, "squeeze") for d in ((dim,) if isinstance(dim, int) else dim)]
    gone = [d for d in gone if input._values.shape[d] == 1]
    return input.like(input._values.squeeze(tuple(gone)), input._ragged_idx - sum(d < ragged for d in gone)) if gone else input


@rule("select")
@takes_irregular
def _select(func: Any, input: NestedTensor, dim: int, index: int) -> Any:
    """A component, or one place of each."""
    if canonical(input.dim(), dim) == 0:
        return components(input)[canonical(input._ragged.batch, int(index))]
    if input.irregular:
        return from_components([c.select(canonical(input.dim(), dim) - 1, index) for c in components(input)], input.layout)
    at = _dense_dim(input, dim, "select")
    return input.like(input._values.select(at, index), input._ragged_idx - (at < input._ragged_idx - 1))


@rule("narrow")
def _narrow(func: Any, input: NestedTensor, dim: int, start: Any, length: int) -> NestedTensor:
    """A part of a dimension of the components, or some of the components."""
    if canonical(input.dim(), dim) == 0:
        return batch_part(input, int(start), int(start) + length)
    return input.like(input._values.narrow(_dense_dim(input, dim, "narrow"), start, length))


@rule("chunk", "tensor_split", "unsafe_chunk")
def _chunk(func: Any, input: NestedTensor, chunks: Any, dim: int = 0) -> tuple:
    """So many parts along a dimension of the components, or so many groups of components."""
    if canonical(input.dim(), dim) == 0 and func.__name__ != "tensor_split":
        step = -(-input._ragged.batch // chunks)
        ends = [*range(0, input._ragged.batch, max(step, 1)), input._ragged.batch]
        return tuple(batch_part(input, a, b) for a, b in zip(ends, ends[1:]))
    return tuple(input.like(func(input._values, chunks, _dense_dim(input, dim, func.__name__))))


@rule("split", "split_with_sizes", "unsafe_split")
def _split(func: Any, input: NestedTensor, split_size: Any = None, dim: int = 0, **named: Any) -> tuple:
    """Parts of a dimension of the components."""
    size = split_size if split_size is not None else named.get("split_size_or_sections", named.get("split_sizes"))
    return tuple(input.like(func(input._values, size, _dense_dim(input, dim, func.__name__))))


@rule("expand", "broadcast_to")
def _expand(func: Any, input: NestedTensor, *given: Any, **named: Any) -> NestedTensor:
    """Dimensions of size 1 of the components are repeated."""
    sizes = sizes_of(given) if given else tuple(named["size"])
    if len(sizes) != input.dim() or not _prefix_fits(input, tuple(m if type(m) is int and m == 1 else w for m, w in zip(input._sizes(), sizes))):
        raise RuntimeError(f"expand(): cannot expand shape {input.text_of_size()} -> {sizes}")
    at = input._ragged_idx
    return input.like(input._values.expand([-1 if d == at else sizes[d] for d in range(1, input.dim())]))


def _rows_correspond(x: NestedTensor, y: NestedTensor, by_offsets: bool) -> bool:
    """Whether row k of the values of both is of the same component: they are one structure or, unless `by_offsets`, have equal lengths. (PyTorch joins
    values of as many rows whatever component they are of, and so the rows of one with those of another.)"""
    if x._ragged_idx != y._ragged_idx or not x._ragged.same(y._ragged, not by_offsets):
        return False
    return x._ragged is y._ragged or _C.equal(x._ragged.offsets, y._ragged.offsets)


@rule("cat", "concat", "concatenate", "stack")
@takes_irregular
def _joined(func: Any, tensors: Any, dim: int = 0, *, axis: int | None = None) -> NestedTensor:
    """Along a dimension of the components; of layout torch.strided, components behind each other too."""
    tensors, dim, stacked = list(tensors), dim if axis is None else axis, func.__name__ == "stack"
    first = next((t for t in tensors if is_nested(t)), None)
    if first is None:
        raise TypeError(f"{func.__name__}(): wanted a list with a nested tensor in it, and a number as dim, got {type(dim).__name__}")
    at = canonical(first.dim() + stacked, dim)
    if first.layout is _C.strided and at == 0 and not stacked:
        return from_components([c for t in tensors for c in t.unbind()], first.layout)
    if stacked and not all(is_nested(t) for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors inputs")
    if stacked and any(t.dim() != first.dim() for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors to have the same dim")
    if any(is_nested(t) and t.irregular for t in tensors):
        rows = zip(*(t.unbind() for t in tensors))
        return from_components([func(list(row), at - 1) for row in rows], first.layout)
    inner = None if stacked else _dense_dim(first, at, func.__name__)
    if any(is_nested(t) and not _rows_correspond(t, first, stacked and first.layout is _C.jagged) for t in tensors):
        raise RuntimeError(f"{func.__name__}(): expected all nested tensors to have the same nested structure")
    if inner is None:
        inner = _dense_dim(first, at, func.__name__, 1)
    if stacked and at == first._ragged_idx:
        raise RuntimeError("stack(): not supported for NestedTensor on ragged dim")
    values = [t._values if is_nested(t) else t.expand_as(first)._values for t in tensors]
    return first.like(func(values, inner), first._ragged_idx + (stacked and inner < first._ragged_idx - 1))


@rule("repeat_interleave", "index_select", "flip", "roll", "repeat", "tile", "unfold", "gather", "take_along_dim")
def _moved(func: Any, input: NestedTensor, *args: Any, **named: Any) -> Any:
    raise unsupported(func.__name__, input)


@rule("masked_select")
@takes_irregular
def _masked_select(func: Any, input: NestedTensor, mask: NestedTensor) -> NestedTensor:
    """What the mask leaves of each component of one dimension."""
    if input.dim() > 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if not is_nested(mask) or not input._ragged.same(mask._ragged):
        found = mask.text_of_size() if is_nested(mask) else tuple(mask.shape)
        raise RuntimeError(f"Mask with shape {found} is not compatible with input's shape {input.text_of_size()}")
    taken = _C.cat([mask._values.new_zeros(1, dtype=_C.int64), mask._values.cumsum(0)])
    return NestedTensor(input._values.masked_select(mask._values), ragged_of(taken[input._ragged.offsets.to(_C.int64)]), 1, input.layout)


@rule("__getitem__")
@takes_irregular
def _subscript(func: Any, input: NestedTensor, key: Any) -> Any:
    """x[i] is a component; behind a whole batch, and whole rows, what tensors take."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(p is None or isinstance(p, (Tensor, list, bool)) for p in parts):
        raise unsupported("index", input, f" by {key!r}")
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (input.dim() - len(parts) + 1)
    if len(parts) > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()}")
    first, rest = parts[0], parts[1:]
    if not isinstance(first, slice):
        component = components(input)[canonical(input._ragged.batch, int(first))]
        return component[tuple(rest)] if rest else component
    if first != slice(None):
        start, stop, step = first.indices(input._ragged.batch)
        if step != 1:
            raise RuntimeError("slice(): not supported for NestedTensor on dim=0 with a step")
        input = batch_part(input, start, max(start, stop))
    if input.irregular:
        if any(p != slice(None) for p in rest):
            return from_components([c[tuple(rest)] for c in components(input)], input.layout)
        return input
    at = input._ragged_idx - 1
    if len(rest) > at and rest[at] != slice(None):
        if input.layout is _C.strided:
            return from_components([c[tuple(rest)] for c in components(input)], input.layout)
        raise RuntimeError("slice(): not supported for NestedTensor on ragged dim")
    if not rest:
        return input
    return input.like(input._values[tuple(rest)], input._ragged_idx - sum(not isinstance(p, slice) for p in rest[:at]))


@rule("__setitem__")
@takes_irregular
def _assigned(func: Any, input: NestedTensor, key: Any, value: Any) -> None:
    """Writes to a component, or to the same places of all."""
    target = input[key]
    if isinstance(value, (Tensor, NestedTensor)):
        target.copy_(value)
    else:
        target.fill_(value)


@rule("index_put")
def _index_put(func: Any, input: NestedTensor, indices: Any, values: Any, accumulate: bool = False) -> NestedTensor:
    """Writes to the rows that indices name: the component, the place in it, and what is behind."""
    at = input._ragged_idx
    if len(indices) <= at:
        raise unsupported("index_put", input, " by indices that leave the ragged dimension out")
    offsets, lengths = input._ragged.offsets, input._ragged.lengths
    lengths = offsets.diff() if lengths is None else lengths
    if not bool((indices[at] < lengths[indices[0]]).all()):
        raise RuntimeError("Some indices in the ragged dimension are out of bounds!")
    places = (*indices[1:at], offsets[indices[0]] + indices[at], *indices[at + 1 :])
    result = func(input._values, places, values, accumulate)
    return input if func.__name__.endswith("_") else input.like(result)
