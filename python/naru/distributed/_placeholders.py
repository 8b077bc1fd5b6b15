"""Names of modules that are not there, for programs that import them and need not call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _missing

if TYPE_CHECKING:
    from collections.abc import Callable


def module_getattr(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of such a module, by its `__name__`: classes of which none can be made, functions that raise NotImplementedError."""
    mine = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        if name.startswith("_") or name not in _missing.names().get(mine, ()) or f"{mine}.{name}" in _missing.names():
            _missing.fail(mine, name)
            raise AttributeError(f"module 'torch.{mine}' has no attribute '{name}'")
        return _missing.absent_class(f"{mine}.{name}") if name[0].isupper() else _missing.absent_function(f"{mine}.{name}")

    return __getattr__
