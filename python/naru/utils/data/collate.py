"""Samples put together to batches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ... import _C

if TYPE_CHECKING:
    import numpy

Tensor = _C.Tensor

__all__ = ["default_collate", "default_convert"]

_TEXT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _numpy_kind(value: Any) -> str | None:
    """"array" or "scalar" for what NumPy made; NumPy is not imported to find out."""
    np = sys.modules.get("numpy")
    if np is None:
        return None
    if isinstance(value, np.ndarray):
        return "array"
    return "scalar" if isinstance(value, np.generic) else None


def _is_text_array(array: numpy.ndarray) -> bool:
    return array.dtype.kind in "SaUO"


def _rebuild(like: Any, values: list) -> Any:
    """`values` in a container of `like`'s type."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*values)
    try:
        return type(like)(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """NumPy arrays within `data` as tensors; everything else as it is."""
    kind = _numpy_kind(data)
    if isinstance(data, Tensor):
        return data
    if kind == "array":
        return data if _is_text_array(data) else _C.as_tensor(data)
    if kind == "scalar":
        return data if data.dtype.kind in "SaUO" else _C.as_tensor(data.item())
    if isinstance(data, dict):
        return _rebuild_dict(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, list):
        return _rebuild(data, [default_convert(value) for value in data])
    return data


def _rebuild_dict(like: dict, values: dict) -> dict:
    try:
        return type(like)(values)
    except TypeError:
        return values


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch: tensors are stacked along a new first dimension, numbers become tensors.

    Tuples, lists and dicts are collated part by part; texts stay lists. TypeError names what can't be collated.

    >>> default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _C.stack(list(batch), 0)
    kind = _numpy_kind(first)
    if kind == "array":
        if _is_text_array(first):
            raise TypeError(_TEXT.format(first.dtype))
        return _C.stack([_C.as_tensor(item) for item in batch], 0)
    if kind == "scalar":
        if first.dtype.kind in "SaUO":
            raise TypeError(_TEXT.format(type(first)))
        import numpy as np

        return _C.from_numpy(np.stack(batch))
    if isinstance(first, float):
        return _C.tensor(batch, dtype=_C.float64)
    if isinstance(first, int):
        return _C.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return _rebuild_dict(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch)]
        if isinstance(first, tuple) and not hasattr(first, "_fields"):
            return columns
        return _rebuild(first, columns)
    raise TypeError(_TEXT.format(type(first)))
