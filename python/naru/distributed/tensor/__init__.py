"""`torch.distributed.tensor`: there are no tensors of several processes; packages ask whether one is a `DTensor`, and name placements."""

from __future__ import annotations

from ... import _missing
from .. import _placeholders
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard"]

DTensor = _missing.absent_class("distributed.tensor.DTensor")

__getattr__ = _placeholders.module_getattr(__name__)
