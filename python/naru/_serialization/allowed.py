"""The globals that a file read as data may refer to."""

from __future__ import annotations

import functools
import pickle
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from .. import _C, _tensor, _utils
from .storages import DTYPE_NAMES, STORAGE_TYPES, _get_layout

Tensor = _C.Tensor

# Bytes (or digits) of an integer.
MAX_INT = 4096


# Functions that rebuild tensors; the last one adds attributes.
_REBUILDERS = (
    "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_meta_tensor_no_storage", "_rebuild_sparse_tensor", "_rebuild_parameter",
    "_rebuild_nested_tensor", "_rebuild_parameter_with_state",
)  # fmt: skip


def refused(why: str) -> pickle.UnpicklingError:
    """The error for a file that is not valid plain data."""
    return pickle.UnpicklingError(f"Weights only load failed. {why}")


def cut_short() -> EOFError:
    """The error for a pickle that ends before its last instruction."""
    return EOFError("Ran out of input: the pickle in the file is cut short.")


def _bytes_like(*args: Any) -> bytearray:
    # bytearray(10**12) in a file would allocate that much memory.
    if any(isinstance(arg, int) for arg in args):
        raise refused("The file asks for a bytearray of a size, not of bytes.")
    return bytearray(*args)


def _number(kind: type) -> Any:
    def number(*args: Any) -> Any:
        if any(isinstance(arg, (str, bytes, bytearray)) and len(arg) > MAX_INT for arg in args):
            raise refused(f"The file has a number of more than {MAX_INT} digits.")
        return kind(*args)

    return number


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise refused(f"The file asks for the encoding {encoding!r}.")
    return text.encode("latin1")


def new_tensor(*args: Any) -> Tensor:
    """A tensor with the given elements."""
    # Tensor(10**12) would allocate memory, too.
    if any(isinstance(arg, (int, _C.Size)) for arg in args):
        raise refused("The file asks for a tensor of a size, not of elements.")
    return Tensor(*args)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Tensor:
    """A tensor with attributes of its own."""
    if func not in [_utils._rebuild_njt, *(getattr(_utils, name) for name in _REBUILDERS[:-1])]:
        raise refused("The file rebuilds a tensor by something else than PyTorch's functions for it.")
    return _tensor._rebuild_from_type_v2(func, new_type, args, state)


@functools.lru_cache(maxsize=1)
def plain_globals() -> dict[tuple[str, str], Any]:
    """The only globals that a file read as data may refer to, except those of `add_safe_globals`."""
    from ..nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

    table: dict[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): OrderedDict,
        ("collections", "Counter"): Counter,
        ("collections", "defaultdict"): defaultdict,
        ("_codecs", "encode"): _encode,
        ("torch", "Size"): _C.Size,
        ("torch", "device"): _C.device,
        ("torch", "Tensor"): new_tensor,
        ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from_type_v2,
        ("torch.nn.parameter", "Parameter"): Parameter,
        ("torch.nn.parameter", "UninitializedBuffer"): UninitializedBuffer,
        ("torch.nn.parameter", "UninitializedParameter"): UninitializedParameter,
        ("torch.storage", "UntypedStorage"): STORAGE_TYPES["UntypedStorage"],
        ("torch.serialization", "_get_layout"): _get_layout,
        ("torch.nested._internal.nested_tensor", "_rebuild_njt"): _utils._rebuild_njt,
        ("torch.nested._internal.nested_tensor", "NestedTensor"): new_tensor,
    }
    for module in ("builtins", "__builtin__"):
        for kind in (set, frozenset, dict, list):
            table[module, kind.__name__] = kind
        for kind in (int, float, complex):
            table[module, kind.__name__] = _number(kind)
        table[module, "bytearray"] = _bytes_like
    for name in _REBUILDERS:
        table["torch._utils", name] = getattr(_utils, name)
    for name, storage in STORAGE_TYPES.items():
        table["torch", name] = table["torch.cuda", name] = storage
    for name in DTYPE_NAMES:
        if hasattr(_C, name):
            table["torch", name] = getattr(_C, name)
    return table
