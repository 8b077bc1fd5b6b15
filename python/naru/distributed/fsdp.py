"""`torch.distributed.fsdp`: not there: parameters are not sharded; DistributedDataParallel and ZeroRedundancyOptimizer are there."""

from __future__ import annotations

from ._placeholders import module_getattr as _module_getattr

__all__: list[str] = []

__getattr__ = _module_getattr(__name__)
