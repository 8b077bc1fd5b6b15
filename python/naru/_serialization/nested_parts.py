"""The representation of nested tensors in files: PyTorch's functions that rebuild them, and their arguments."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor import _rebuild_from_type_v2
from .._utils import _rebuild_nested_tensor, _rebuild_njt
from ..nested._tensor import NestedTensor, component_sizes, components, from_components


def parts_to_save(x: NestedTensor) -> tuple[Any, tuple]:
    """The function that rebuilds `x`, and its arguments."""
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
