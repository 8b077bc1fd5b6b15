"""`torch.distributed.algorithms.ddp_comm_hooks`: hooks that average a bucket's gradients."""

from __future__ import annotations

from .... import _missing
from . import default_hooks

__all__ = ["default_hooks"]

__getattr__ = _missing.module_getattr(__name__)
