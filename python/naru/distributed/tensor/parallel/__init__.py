"""`torch.distributed.tensor.parallel`: modules split over a mesh."""

from __future__ import annotations

from .... import _missing
from . import api, loss
from .api import parallelize_module
from .loss import loss_parallel
from .style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
    "api", "loss", "loss_parallel", "parallelize_module",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)
