"""Copies batches to page-locked memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .... import _C
from .collate import like_mapping, like_sequence


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with its CPU tensors copied to page-locked memory, in containers of the same types.

    An object with a method `pin_memory` is replaced by its result. `device` is ignored.
    """
    if isinstance(data, _C.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return like_mapping(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, tuple):
        parts = [pin_memory(value, device) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    if isinstance(data, Sequence):
        return like_sequence(data, [pin_memory(value, device) for value in data])
    return data
