"""Combines samples into batches."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from .... import _C

Tensor = _C.Tensor
CollateMap = dict[Any, Callable[..., Any]]

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

# In the names of NumPy's types of text and objects, which have no tensors: packages ask with it.
np_str_obj_array_pattern = re.compile(r"[SaUO]")
_TEXT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _numpy_kind(value: Any) -> str | None:
    """"array" or "scalar" for a NumPy value; does not import NumPy."""
    np = sys.modules.get("numpy")
    if np is None:
        return None
    if isinstance(value, np.ndarray):
        return "array"
    return "scalar" if isinstance(value, np.generic) else None


def like_mapping(like: Mapping, values: dict) -> Mapping:
    """`values` in a mapping of the type of `like`, copying a mutable one to keep its other attributes; a dict if that is not possible."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(values)
            return clone
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def like_sequence(like: Sequence, values: list) -> Sequence:
    """`values` in a sequence of the type of `like`, copying a mutable one to keep its other attributes; a list if that is not possible."""
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Converts NumPy arrays in `data` to tensors; everything else is unchanged.

    >>> naru.utils.data.default_convert([1.5, 2.5])
    [1.5, 2.5]
    """
    if isinstance(data, Tensor):
        return data
    if _numpy_kind(data):
        return data if data.dtype.kind in "SaUO" else _C.as_tensor(data)
    if isinstance(data, Mapping):
        return like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return like_sequence(data, [default_convert(value) for value in data])
    return data


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return _C.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    if batch[0].dtype.kind in "SaUO":
        raise TypeError(_TEXT.format(batch[0].dtype))
    return collate([_C.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    import numpy as np

    return _C.as_tensor(np.stack(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return _C.tensor(batch, dtype=_C.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return _C.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _collate_function(first: Any, known: CollateMap) -> Callable[..., Any] | None:
    """The function that collates samples like `first`, unless they are containers."""
    if function := known.get(type(first)):
        return function
    for kind, function in known.items():
        if isinstance(first, kind):
            return function
    if known is default_collate_fn_map and (kind := _numpy_kind(first)):
        if kind == "array":
            return collate_numpy_array_fn
        return None if first.dtype.kind in "SaU" else collate_numpy_scalar_fn
    return None


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Combines a list of samples into one batch, with the functions in `collate_fn_map` by type (or tuple of types).

    A function is called with the samples and, as a keyword, the map. Mappings, tuples and other sequences are collated element by
    element. TypeError for values that are neither in the map nor containers.
    """
    first = batch[0]
    if collate_fn_map is not None and (function := _collate_function(first, collate_fn_map)):
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        parts = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return like_mapping(first, parts)
    if not isinstance(first, Sequence):
        raise TypeError(_TEXT.format(type(first)))
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
    if isinstance(first, tuple):
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return like_sequence(first, columns)


def default_collate(batch: Any) -> Any:
    """Combines a list of samples into one batch: tensors are stacked along a new first dimension, numbers become tensors.

    Tuples, lists and mappings are collated element by element; strings stay lists. TypeError names a value that cannot be collated. Support for
    other types can be added to `default_collate_fn_map`.

    >>> default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
