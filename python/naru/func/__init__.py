"""`torch.func`: modules as functions of their parameters."""

from __future__ import annotations

from .. import _missing
from ._functional_call import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]

__getattr__ = _missing.module_getattr(__name__)
