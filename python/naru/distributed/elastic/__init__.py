"""`torch.distributed.elastic`: only what programs started by torchrun import."""

from __future__ import annotations

from ... import _missing
from . import multiprocessing

__all__ = ["multiprocessing"]

__getattr__ = _missing.module_getattr(__name__)
