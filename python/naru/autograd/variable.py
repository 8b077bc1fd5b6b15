"""`torch.autograd.variable`: the module that old programs import `Variable` from."""

from __future__ import annotations

from . import Variable

__all__ = ["Variable"]
