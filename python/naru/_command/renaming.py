"""Under `naru run`, naru's classes and functions carry PyTorch's names: `type(x)` is `torch.Tensor`, `nn.Linear.__module__` is
`torch.nn.modules.linear`.

Packages inspect these names to identify objects, and pickles contain them: what a program pickles under `naru run` has PyTorch's names, and can be
loaded there, by `torch.load`, and (if it is plain state) by PyTorch.
"""

from __future__ import annotations

import importlib.abc
import sys
from typing import TYPE_CHECKING, Any

from .. import _C
from .._missing import module_getattr, open_to_submodules

if TYPE_CHECKING:
    from types import ModuleType

_REAL, _ALIAS = "naru", "torch"
# Names that PyTorch does not have.
_OWN = (f"{_REAL}._command", f"{_REAL}._missing", f"{_REAL}.__main__", f"{_REAL}.vision", f"{_REAL}.safetensors", f"{_REAL}.testing")


def _is_own(name: str) -> bool:
    return any(name == own or name.startswith(own + ".") for own in _OWN)


def rename(module: ModuleType) -> None:
    """Gives everything that a naru module defines PyTorch's names, and registers the module in `sys.modules` under its PyTorch name."""
    name = module.__name__
    if _is_own(name) or not (name == _REAL or name.startswith(_REAL + ".")):
        return
    alias = _ALIAS + name[len(_REAL) :]
    sys.modules.setdefault(alias, module)
    open_to_submodules(module)
    if not hasattr(module, "__getattr__"):
        module.__getattr__ = module_getattr(name)  # type: ignore[method-assign]
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) == name and hasattr(value, "__qualname__"):
            try:
                value.__module__ = alias
            except (AttributeError, TypeError):  # built-in functions
                continue
    module.__name__ = alias


class _Loader(importlib.abc.Loader):
    """Wraps another loader, and renames after loading."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        rename(module)


class RenamingFinder(importlib.abc.MetaPathFinder):
    """Finds naru's modules by means of the other finders, with a loader that renames."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(_REAL + ".") or _is_own(name):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module") and spec.origin and spec.origin.endswith(".py"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def install() -> None:
    """Renames what is loaded already and what will be loaded."""
    for name in ("Tensor", "Size", "device"):
        getattr(_C, name).__module__ = _ALIAS
    for module in list(sys.modules.values()):
        if isinstance(getattr(module, "__name__", None), str):
            rename(module)
    sys.modules[_REAL].torch = sys.modules[_REAL]  # type: ignore[attr-defined]  # PyTorch's own files import it by its name, too
    sys.meta_path.insert(0, RenamingFinder())
