"""Functions that files name to rebuild nested tensors, and names that programs import from PyTorch's module."""

from __future__ import annotations

from typing import Any

from ... import _C
from .. import nested_tensor_from_jagged
from .._tensor import NestedTensor as NestedTensor, components, from_components

Tensor = _C.Tensor


def nested_view_from_values_offsets(values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None) -> Any:
    """`nested_tensor_from_jagged` without lengths."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None
) -> Any:
    """`nested_tensor_from_jagged` with lengths."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def rebuild_jagged(parts: dict[str, Any]) -> Any:
    """Rebuilds a nested tensor of layout torch.jagged from a file."""
    made = nested_tensor_from_jagged(parts["values"], parts["offsets"], parts.get("lengths"), parts.get("_ragged_idx", 1))
    components(made)  # raises an error if they exceed the values
    return made.requires_grad_() if parts.get("requires_grad") and not made.requires_grad else made


def rebuild_strided(buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor) -> Any:
    """Rebuilds a nested tensor of layout torch.strided from a file: copies of views of the buffer."""
    rows = zip(sizes.tolist(), strides.tolist(), storage_offsets.tolist())
    return from_components([buffer.as_strided(size, stride, start) for size, stride, start in rows]) if sizes.dim() > 1 else from_components([])
