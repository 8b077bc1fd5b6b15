"""`torch.nn.parallel`: one module on several devices, each with a part of the batch."""

from __future__ import annotations

from ... import _missing
from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter, scatter_kwargs

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]

__getattr__ = _missing.module_getattr(__name__)
