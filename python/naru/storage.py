"""`torch.storage`: the memory that tensors look at."""

from __future__ import annotations

from . import _missing
from ._C import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

__getattr__ = _missing.module_getattr(__name__)
