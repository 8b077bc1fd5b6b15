"""What files name to rebuild nested tensors by, and what programs take from PyTorch's module of this name."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._tensor import _rebuild_from_type_v2
from ..._utils import _rebuild_nested_tensor, _rebuild_njt
from .. import nested_tensor_from_jagged
from .._tensor import NestedTensor as NestedTensor, component_sizes, components, from_components

Tensor = _C.Tensor


def nested_view_from_values_offsets(values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None) -> Any:
    """`nested_tensor_from_jagged` without lengths."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None
) -> Any:
    """`nested_tensor_from_jagged`."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def rebuild_jagged(parts: dict[str, Any]) -> Any:
    """A nested tensor of layout torch.jagged from a file."""
    made = nested_tensor_from_jagged(parts["values"], parts["offsets"], parts.get("lengths"), parts.get("_ragged_idx", 1))
    components(made)  # they must lie within the values
    return made.requires_grad_() if parts.get("requires_grad") and not made.requires_grad else made


def rebuild_strided(buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor) -> Any:
    """A nested tensor of layout torch.strided from a file: views of the buffer, copied."""
    rows = zip(sizes.tolist(), strides.tolist(), storage_offsets.tolist())
    return from_components([buffer.as_strided(size, stride, start) for size, stride, start in rows]) if sizes.dim() > 1 else from_components([])


def parts_to_save(x: NestedTensor) -> tuple[Any, tuple]:
    """What a file holds of it: the function that rebuilds it, and its arguments."""
    if x.layout is _C.jagged:
        parts = {"values": x._values.detach(), "offsets": x._ragged.offsets, "lengths": x._ragged.lengths, "_ragged_idx": x._ragged_idx}
        parts |= {"_metadata_cache": {}, "requires_grad": x.requires_grad}
        return _rebuild_from_type_v2, (_rebuild_njt, NestedTensor, (parts,), {})
    flat = from_components([c.detach().contiguous().reshape(-1) for c in components(x)])._values
    sizes = [list(s) for s in component_sizes(x)]
    strides = [list(_C.empty(s, device="meta").stride()) for s in sizes]
    starts = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + _C.Size(size).numel())
    return _rebuild_nested_tensor, (flat, _C.tensor(sizes, dtype=_C.int64), _C.tensor(strides, dtype=_C.int64), _C.tensor(starts[: len(sizes)], dtype=_C.int64))
