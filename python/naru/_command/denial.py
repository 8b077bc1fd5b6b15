"""Packages that must not find torch under `naru run`.

NARU_TORCH_ALIAS_DENY=a,b names packages to which torch is invisible: within them `import torch` raises ModuleNotFoundError,
`importlib.util.find_spec` returns None, and `importlib.metadata` does not list it. NARU_TORCH_ALIAS_ALLOW=c names the only installed packages that
see torch; modules next to the script always do. This is for packages that need parts of torch that naru lacks: they take their path without torch.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Import machinery between an import and the importing package.
_BETWEEN = frozenset(("importlib", "importlib_metadata", "naru", "functools", "_frozen_importlib", "_frozen_importlib_external"))


def _names(variable: str) -> frozenset[str]:
    return frozenset(name.strip().replace("-", "_") for name in os.environ.get(variable, "").split(",") if name.strip())


@functools.cache
def _is_installed(package: str) -> bool:
    """Whether the package is in a site-packages or dist-packages folder."""
    module = sys.modules.get(package)
    path = getattr(module, "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def is_denied(package: str) -> bool:
    """Whether torch is hidden from the package (a top-level name)."""
    if package in _names("NARU_TORCH_ALIAS_DENY"):
        return True
    allowed = _names("NARU_TORCH_ALIAS_ALLOW")
    return bool(allowed) and package not in allowed and package != "__main__" and _is_installed(package)


def _asks_in_vain(name: Any, depth: int = 2) -> bool:
    """Whether `name` belongs to torch and the importing package (the first one on the stack that is not import machinery) is denied."""
    if not isinstance(name, str) or name.partition(".")[0] != "torch":
        return False
    frame = sys._getframe(depth)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _BETWEEN:
            return is_denied(package)
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _refused(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named '{name}' (NARU_TORCH_ALIAS_DENY, NARU_TORCH_ALIAS_ALLOW)", name=name)


def _guard(plain: Callable[..., Any], absent: Callable[[str], Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def guarded(name: Any, *args: Any, **kwargs: Any) -> Any:
        if _asks_in_vain(name):
            return absent(name)
        return plain(name, *args, **kwargs)

    return guarded


def _raise(name: str) -> Any:
    raise _refused(name)


def install() -> None:
    """From now on, checks the importing package before torch is found."""
    plain = builtins.__import__

    def guarded(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and name.partition(".")[0] == "torch":
            known = isinstance(globals, dict) and "__name__" in globals
            if is_denied(str(globals["__name__"]).partition(".")[0]) if known else _asks_in_vain(name):
                raise _refused(name)
        return plain(name, globals, locals, fromlist, level)

    builtins.__import__ = guarded
    importlib.import_module = _guard(importlib.import_module, _raise)
    importlib.util.find_spec = _guard(importlib.util.find_spec, lambda name: None)
    from . import distribution

    known = distribution.distributions
    distribution.distributions = lambda name, vision: [] if _asks_in_vain("torch") else known(name, vision)
