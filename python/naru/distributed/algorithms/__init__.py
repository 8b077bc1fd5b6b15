"""`torch.distributed.algorithms`: only communication hooks of DistributedDataParallel."""

from __future__ import annotations

from ... import _missing
from . import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]

__getattr__ = _missing.module_getattr(__name__)
