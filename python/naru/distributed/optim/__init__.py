"""`torch.distributed.optim`: optimizers distributed over processes."""

from __future__ import annotations

from ... import _missing
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]

__getattr__ = _missing.module_getattr(__name__)
