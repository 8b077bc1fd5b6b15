"""`torch.distributed.algorithms`: communication hooks of DistributedDataParallel, and ranks with different numbers of batches."""

from __future__ import annotations

from ... import _missing
from . import ddp_comm_hooks, join
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks", "join"]

__getattr__ = _missing.module_getattr(__name__)
