"""`torch.distributed.elastic.multiprocessing`: error files of processes."""

from __future__ import annotations

from .... import _missing
from . import errors

__all__ = ["errors"]

__getattr__ = _missing.module_getattr(__name__)
