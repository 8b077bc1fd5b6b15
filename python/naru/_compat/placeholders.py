"""Placeholders for missing modules of torch.distributed (FSDP, meshes, RPC, checkpoints ...), for programs that import but do not call them."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import TYPE_CHECKING, Any

from .. import _missing

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_HERE = "naru.distributed."
# PyTorch's implementation modules of torch.distributed: placeholders with the names that naru has.
_PARTS = frozenset(("distributed.constants", "distributed.distributed_c10d"))
# Packages that naru lacks entirely, including private modules, which other packages also import.
_WHOLE = frozenset("checkpoint device_mesh fsdp pipelining rpc tensor _composable _functional_collectives _shard _symmetric_memory _tensor".split())


def _no() -> bool:
    return False


def module_getattr(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a placeholder module, by its `__name__`: classes that cannot be instantiated, functions that raise NotImplementedError."""
    mine = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        if name == "is_available":
            return _no
        if mine in _PARTS and name in vars(sys.modules["naru.distributed"]) and not name.startswith("_"):
            return vars(sys.modules["naru.distributed"])[name]
        public = mine in _missing.names() and not name.startswith("_")
        if name.startswith("__") or (public and (name not in _missing.names()[mine] or f"{mine}.{name}" in _missing.names())):
            _missing.fail(mine, name)
            raise AttributeError(f"module 'torch.{mine}' has no attribute '{name}'")
        return _missing.absent_class(f"{mine}.{name}") if name.lstrip("_")[0].isupper() else _missing.absent_function(f"{mine}.{name}")

    return __getattr__


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes after all other finders, so that real modules take precedence."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(_HERE):
            return None
        if name.split(".")[2] not in _WHOLE and name.partition(".")[2] not in _missing.names():
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        module.__doc__ = f"`torch.{name.partition('.')[2]}`: not there; what is asked of it says so when it is called."
        module.__all__ = []  # type: ignore[attr-defined]
        module.__getattr__ = module_getattr(name)  # type: ignore[method-assign]


def install() -> None:
    """Makes the placeholder modules importable."""
    sys.meta_path.append(_Finder())
