"""`torch.distributed.checkpoint`: not there: checkpoints are files of one process: torch.save of rank 0's state_dict."""

from __future__ import annotations

from ._placeholders import module_getattr as _module_getattr

__all__: list[str] = []

__getattr__ = _module_getattr(__name__)
