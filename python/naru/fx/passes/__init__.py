"""`torch.fx.passes`: of PyTorch's passes `shape_prop` is here."""

from __future__ import annotations

from ... import _missing

__all__: list[str] = []

__getattr__ = _missing.module_getattr(__name__)
