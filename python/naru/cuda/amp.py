"""`torch.cuda.amp`: the older names of `torch.amp`, for cuda."""

from __future__ import annotations

import functools
from typing import Any

from .. import _C, amp


def _deprecated(old: str, new: str) -> None:
    import warnings

    warnings.warn(f"`torch.cuda.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """`torch.autocast("cuda")`."""

    def __init__(self, enabled: bool = True, dtype: Any = _C.float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda")`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated("GradScaler", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")
