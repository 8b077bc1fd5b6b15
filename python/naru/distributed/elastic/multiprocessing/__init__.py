"""`torch.distributed.elastic.multiprocessing`: how errors of processes are written down."""

from __future__ import annotations

from .... import _missing
from . import errors

__all__ = ["errors"]

__getattr__ = _missing.module_getattr(__name__)
