"""`torch.cpu.amp`: the older names of `torch.amp`, for cpu."""

from __future__ import annotations

from .. import _C
from ..amp._older import of_kind as _of_kind

autocast, GradScaler = _of_kind("cpu", _C.bfloat16)
