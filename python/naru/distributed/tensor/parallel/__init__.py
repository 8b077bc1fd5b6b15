"""`torch.distributed.tensor.parallel`: the styles of plans, which packages make at import. What applies a plan is not there, and says so."""

from __future__ import annotations

from ...._compat import placeholders
from .style import ColwiseParallel, ParallelStyle, PrepareModuleInput, PrepareModuleOutput, RowwiseParallel, SequenceParallel

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel"]

__getattr__ = placeholders.module_getattr(__name__)
