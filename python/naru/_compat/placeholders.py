"""Placeholder modules: parts of PyTorch that naru lacks as a whole, and that programs import but rarely call.

Modules of tracers and compilers (torch.fx, torch._dynamo, torch._subclasses ...) and of torch.distributed (FSDP, meshes, RPC, checkpoints ...). Their
names can be imported. Classes can be compared with and subclassed; what is made or called says that naru lacks it. Questions have true answers: no tensor
is a fake one, no tracer is active. Modules that naru does have take precedence.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_REAL = "naru."
# PyTorch's implementation modules of torch.distributed: placeholders with the names that naru has.
_PARTS = frozenset(("distributed.constants", "distributed.distributed_c10d"))
# Placeholder packages, and the modules whose names are theirs, too.
_ROOTS = {"fx": "fx", "_dynamo": "_dynamo", "_library": "library"}
# Older names of modules that naru has under newer ones.
_OLDER = {"distributed._tensor": "distributed.tensor", "distributed._tensor.placement_types": "distributed.tensor.placement_types"}
# Functions that ask for what is active: nothing is.
_NOTHING = frozenset(
    "active_fake_mode detect_fake_mode get_proxy_mode get_innermost_proxy_mode maybe_get_fake_mode peek_interpreter_stack".split()
)


def _no(*args: Any, **kwargs: Any) -> bool:
    """False: the thing asked for is not in naru."""
    return False


def _none(*args: Any, **kwargs: Any) -> None:
    """None: the thing asked for is not in naru."""


def _registered(*args: Any, **kwargs: Any) -> Any:
    """A decorator that returns its function: what is registered with a compiler that is not there is never asked for."""
    return lambda function: function


def module_getattr(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a placeholder module, by its `__name__`: classes that cannot be instantiated, functions that raise NotImplementedError."""
    mine = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        from .. import _missing

        if mine in _PARTS and not name.startswith("_") and name in vars(sys.modules["naru.distributed"]):
            return vars(sys.modules["naru.distributed"])[name]
        public = mine in _missing.names() and not name.startswith("_")
        if name.startswith("__") or (public and (name not in _missing.names()[mine] or f"{mine}.{name}" in _missing.names())):
            _missing.fail(mine, name)
            raise AttributeError(f"module 'torch.{mine}' has no attribute '{name}'")
        made = _stand_in(mine, name)
        setattr(sys.modules[module], name, made)  # the same class each time
        return made

    return __getattr__


def _stand_in(module: str, name: str) -> Any:
    """The placeholder for a name of a placeholder module."""
    from .. import _missing

    root = _ROOTS.get(module.partition(".")[0])
    if root and name in vars(import_module(_REAL + root)):
        return vars(import_module(_REAL + root))[name]
    if module in _OLDER and hasattr(import_module(_REAL + _OLDER[module]), name):
        return getattr(import_module(_REAL + _OLDER[module]), name)
    if name.lstrip("_").startswith(("is_", "has_")):
        return _no
    if name in _NOTHING:
        return _none
    if name.startswith("register_"):
        return _registered
    return _missing.absent_class(f"{module}.{name}") if name.lstrip("_")[:1].isupper() else _missing.absent_function(f"{module}.{name}")


class Finder:
    """Comes after all other finders, so that real modules take precedence."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        from .. import _missing

        if not name.startswith(_REAL) or not _missing.covers(name.removeprefix(_REAL)):
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        module.__doc__ = f"`torch.{name.removeprefix(_REAL)}`: not there; what is asked of it says so when it is called."
        module.__all__ = []  # type: ignore[attr-defined]
        module.__getattr__ = module_getattr(name)  # type: ignore[method-assign]


def install() -> None:
    """Makes the placeholder modules importable."""
    from .. import _C

    _C.__path__ = []  # so that modules within it can be imported
    sys.meta_path.append(Finder())  # type: ignore[arg-type]
