"""Copies of whole storages, shared by all tensors that share the original: copy.deepcopy keeps the sharing."""

from __future__ import annotations

from . import _C

Tensor = _C.Tensor


def storage_copy(plain: Tensor, memo: dict) -> Tensor | None:
    """A copy of the whole storage as a flat tensor of the same dtype, made once for all tensors that share it. None for an empty storage and
    for a sparse tensor."""
    if plain.layout != _C.strided:
        return None
    storage = plain.untyped_storage()
    count = storage.nbytes() // plain.element_size()
    if count == 0:
        return None
    key = ("naru.storage", str(plain.device), storage.data_ptr(), storage.nbytes())
    if key not in memo:
        # Keep the original alive: otherwise its address could be reused while `memo` is in use.
        memo[key] = plain.as_strided((count,), (1,), 0).clone(), plain
    copy = memo[key][0]
    if copy.dtype == plain.dtype:
        return copy
    return copy.as_strided((storage.nbytes() // copy.element_size(),), (1,), 0).view(plain.dtype)
