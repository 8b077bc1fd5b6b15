"""Packages for which there is no torch under `naru run`.

NARU_TORCH_ALIAS_DENY=a,b names packages that find no torch at all: `import torch` within them is a ModuleNotFoundError, `importlib.util.find_spec`
gives None, `importlib.metadata` knows no such package. NARU_TORCH_ALIAS_ALLOW=c names the only installed packages that find it; what lies beside the
script always does. A package that would find half of what it wants finds nothing.
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

# Those through which others ask.
_BETWEEN = frozenset(("importlib", "importlib_metadata", "naru", "functools", "_frozen_importlib", "_frozen_importlib_external"))


def _names(variable: str) -> frozenset[str]:
    return frozenset(name.strip().replace("-", "_") for name in os.environ.get(variable, "").split(",") if name.strip())


@functools.cache
def _is_installed(package: str) -> bool:
    """Whether it lies in a folder of installed packages."""
    module = sys.modules.get(package)
    path = getattr(module, "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def is_denied(package: str) -> bool:
    """Whether the package (a top-level name) finds no torch."""
    if package in _names("NARU_TORCH_ALIAS_DENY"):
        return True
    allowed = _names("NARU_TORCH_ALIAS_ALLOW")
    return bool(allowed) and package not in allowed and package != "__main__" and _is_installed(package)


def _asks_in_vain(name: Any, depth: int = 2) -> bool:
    """Whether `name` is torch's, and the package that asks for it (the first on the stack that is no library of imports) is denied."""
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
    """Asks, from now on, who wants torch before it is given."""
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
    distribution.distributions = lambda name: [] if _asks_in_vain("torch") else known(name)
