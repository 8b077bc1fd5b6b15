"""`torch.utils`: data loading, checkpoints of computations, trees, benchmarks, hooks' handles."""

from __future__ import annotations

from .._missing import fail
from . import hooks

__all__ = ["benchmark", "checkpoint", "cpp_extension", "data", "dlpack", "hooks", "model_zoo", "tensorboard"]

_MODULES = frozenset(("benchmark", "checkpoint", "cpp_extension", "data", "dlpack", "model_zoo", "tensorboard", "_pytree"))



def __getattr__(name: str) -> object:
    if name in _MODULES:
        import importlib

        return importlib.import_module("." + name, __name__)
    fail("utils", name)
    raise AttributeError(f"module 'torch.utils' has no attribute {name!r}")
