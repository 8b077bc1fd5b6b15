"""`torch.types`: type aliases for annotations."""

from __future__ import annotations

import os
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Sequence
from typing import Any, Union

from . import _C, _missing
from ._C import Size, Tensor, device as _device, dtype as _dtype, layout as _layout, memory_format

__all__ = ["Device", "FileLike", "Number", "Storage"]

_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_TensorOrTensorsOrGradEdge = Union[Tensor, Sequence[Tensor], Any]
_size = Union[Size, list, tuple]
_dispatchkey = _str
_symint = Any
IntLikeType = _int
FloatLikeType = _float
BoolLikeType = _bool
py_sym_types: tuple = ()
PySymType = Any

Device = Union[_device, _str, _int, None]
FileLike = Union[_str, os.PathLike, Any]
Number = Union[_int, _float, _bool]
Storage = _C.UntypedStorage

__getattr__ = _missing.module_getattr(__name__)
