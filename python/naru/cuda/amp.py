"""`torch.cuda.amp`: the older names of `torch.amp`, for cuda."""

from __future__ import annotations

import functools

from .. import _C, amp
from ..amp._older import of_kind as _of_kind

autocast, GradScaler = _of_kind("cuda", _C.float16)
custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Whether there is no device on which float16 is of use: no cuda device.

    >>> naru.cuda.amp.amp_definitely_not_available() == (not naru.cuda.is_available())
    True
    """
    from . import is_available

    return not is_available()
