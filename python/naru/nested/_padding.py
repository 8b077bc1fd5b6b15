"""Conversions between packed and padded tensors: to_padded_tensor, its inverse, and copies without gaps. All of them are indexed copies, so they have
gradients and run on every device."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from .. import _C
from ._ragged import Ragged, ragged_of_counts
from ._tensor import NestedTensor, component_sizes, components, rule, takes_irregular

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def padded(values: Tensor, ragged: Ragged, ragged_idx: int, padding: Any, length: int | None = None) -> Tensor:
    """Splits the packed dimension into a batch, which comes first, and one of the greatest length; shorter components are followed by `padding`."""
    at = ragged_idx - 1
    packed = values.movedim(at, 0) if at else values
    longest = ragged.longest()
    length = longest if length is None else length
    rest = tuple(packed.shape)[1:]
    if length < longest:
        keep = ragged.places(packed.shape[0], longest) % longest < length
        packed = packed[keep]
        places = ragged.places(keep.shape[0], longest)[keep]
        places = places // longest * length + places % longest
    else:
        places = ragged.places(packed.shape[0], length)
    if packed.shape[0] == ragged.batch * length:
        out = packed
    else:
        out = packed.new_full((ragged.batch * length, *rest), padding).index_copy(0, places, packed)
    out = out.reshape((ragged.batch, length, *rest))
    return out.movedim(1, ragged_idx) if at else out


def unpadded(dense: Tensor, ragged: Ragged, ragged_idx: int, total: int) -> Tensor:
    """The values of a padded tensor: the inverse of `padded`."""
    at = ragged_idx
    moved = dense.movedim(at, 1) if at > 1 else dense
    length = moved.shape[1]
    flat = moved.reshape((-1, *tuple(moved.shape)[2:]))
    if total != flat.shape[0]:
        flat = flat.index_select(0, ragged.places(total, length))
    return flat.movedim(0, at - 1) if at > 1 else flat


def without_gaps(x: NestedTensor) -> NestedTensor:
    """A copy with consecutive components and new offsets."""
    starts, counts = x._ragged.host()
    places = [n for start, count in zip(starts, counts) for n in range(start, start + count)]
    at = x._ragged_idx - 1
    values = x._values.index_select(at, _C.tensor(places, dtype=_C.int64, device="cpu").to(x.device))
    return NestedTensor(values, ragged_of_counts(counts, x.device), x._ragged_idx, x.layout)


def _irregular(x: NestedTensor, padding: Any) -> Tensor:
    """Pads each component separately, and stacks them."""
    sizes = component_sizes(x)
    most = [max(s) for s in zip(*sizes)]
    rows = []
    for part in components(x):
        widths = [(0, n - have) for n, have in zip(most, part.shape)]
        rows.append(_C._pad(part, list(itertools.chain(*reversed(widths))), "constant", padding) if any(w for _, w in widths) else part)
    return _C.stack(rows)


def _fitting(x: NestedTensor, output_size: Sequence[int]) -> list[int]:
    if len(output_size) != x.dim():
        raise RuntimeError(f"Length of output_size does not match NestedTensor dims. Broadcasting is not supported: got {len(output_size)} sizes for {x.dim()} dimensions")
    wanted = [int(n) for n in output_size]
    have = [x._ragged.batch, *(max(s) for s in zip(*component_sizes(x)))]
    if any(0 <= w < h for w, h in zip(wanted, have)):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
    return [h if w < 0 else w for w, h in zip(wanted, have)]


@rule("to_padded_tensor")
@takes_irregular
def to_padded_tensor(func: Any, input: NestedTensor, padding: Any, output_size: Sequence[int] | None = None, out: Any = None) -> Tensor:
    """As `torch.nested.to_padded_tensor`."""
    if out is not None:
        return out.copy_(to_padded_tensor(func, input, padding, output_size))
    if input._ragged.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes; contiguous() makes one without")
    if input.layout is _C.jagged:
        length = None if output_size is None else int(output_size[input._ragged_idx])
        return padded(input._values, input._ragged, input._ragged_idx, padding, length)
    if not input._ragged.batch or input.dim() == 1:
        return input._values.clone()
    dense = _irregular(input, padding) if input.irregular else padded(input._values, input._ragged, input._ragged_idx, padding)
    if output_size is None:
        return dense
    wider = [(0, n - have) for n, have in zip(_fitting(input, output_size), dense.shape)]
    return _C._pad(dense, list(itertools.chain(*reversed(wider))), "constant", padding)
