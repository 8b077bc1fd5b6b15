"""`torch.distributed.tensor.experimental`: plain tensors beside distributed ones."""

from __future__ import annotations

from .... import _missing
from .._dispatch import implicit_replication

__all__ = ["implicit_replication"]

__getattr__ = _missing.module_getattr(__name__)
