"""`torch.distributed.tensor`: there are no tensors of several processes; packages ask whether one is a `DTensor`."""

from __future__ import annotations

from ... import _missing

__all__ = ["DTensor", "Placement", "Replicate", "Shard"]

DTensor, Placement, Replicate, Shard = (
    _missing.absent_class(f"distributed.tensor.{name}") for name in ("DTensor", "Placement", "Replicate", "Shard")
)

__getattr__ = _missing.module_getattr(__name__)
