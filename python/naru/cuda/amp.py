"""`torch.cuda.amp`: the older names of `torch.amp`, for cuda."""

from __future__ import annotations

import functools

from .. import _C, amp
from ..amp._older import of_kind as _of_kind

autocast, GradScaler = _of_kind("cuda", _C.float16)
custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")
