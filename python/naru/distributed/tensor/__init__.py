"""`torch.distributed.tensor`: naru has no distributed tensors; packages check for `DTensor`, and use placement classes."""

from __future__ import annotations

from ... import _missing
from ..._compat import placeholders
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard"]

DTensor = _missing.absent_class("distributed.tensor.DTensor")

__getattr__ = placeholders.module_getattr(__name__)
