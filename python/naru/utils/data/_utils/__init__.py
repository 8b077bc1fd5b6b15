"""The implementation of DataLoader. Scripts also use `_utils.collate.default_collate` and the like directly."""

from __future__ import annotations

from ..._exceptions import ExceptionWrapper
from . import collate, fetch, pin_memory, worker

__all__ = ["ExceptionWrapper", "collate", "fetch", "pin_memory", "worker"]
