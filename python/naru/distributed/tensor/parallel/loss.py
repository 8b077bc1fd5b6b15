"""`torch.distributed.tensor.parallel.loss`: losses of sharded logits."""

from __future__ import annotations

from .... import _missing
from .._loss import loss_parallel

__all__ = ["loss_parallel"]

__getattr__ = _missing.module_getattr(__name__)
