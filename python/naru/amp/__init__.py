"""`torch.amp`: mixed precision.

>>> import naru as torch
>>> x = torch.ones(2, 3)
>>> with torch.autocast("cpu", dtype=torch.bfloat16):
...     (x @ x.T).dtype
torch.bfloat16
"""

from __future__ import annotations

from .. import _missing
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler, StepOutcome

__all__ = ["GradScaler", "StepOutcome", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__getattr__ = _missing.module_getattr(__name__)
