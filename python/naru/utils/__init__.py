"""`torch.utils`: data loading, hooks' handles."""

from __future__ import annotations

from . import hooks

__all__ = ["data", "dlpack", "hooks"]


def __getattr__(name: str) -> object:
    if name in ("data", "dlpack", "checkpoint"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
