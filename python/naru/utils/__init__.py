"""`torch.utils`: data loading, hooks' handles."""

from __future__ import annotations

from .._missing import fail
from . import hooks

__all__ = ["data", "dlpack", "hooks"]


def __getattr__(name: str) -> object:
    if name in ("data", "dlpack"):
        import importlib

        return importlib.import_module("." + name, __name__)
    fail("utils", name)
    raise AttributeError(f"module 'torch.utils' has no attribute {name!r}")
