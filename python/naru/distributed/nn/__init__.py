"""`torch.distributed.nn`: differentiable collectives."""

from __future__ import annotations

from ... import _missing
from .functional import all_gather, all_reduce, broadcast

__all__ = ["all_gather", "all_reduce", "broadcast"]

__getattr__ = _missing.module_getattr(__name__)
