"""`torch.storage`: the memory under tensors."""

from __future__ import annotations

from . import _missing
from ._C import TypedStorage, UntypedStorage
from ._storage_methods import storage_type_names as _dtype_to_storage_type_map  # noqa: F401

__all__ = ["TypedStorage", "UntypedStorage"]

__getattr__ = _missing.module_getattr(__name__)
