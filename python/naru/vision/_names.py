"""What torchvision has and naru.vision lacks: errors that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _missing

if TYPE_CHECKING:
    from collections.abc import Callable

HINT = "docs/vision.md lists what is"


def said(qualified: str) -> str:
    """The sentence about a name (with `torchvision.`) that naru.vision lacks."""
    return f"{qualified} is not in naru.vision yet; {HINT}"


def fail(module: str, name: str, depth: int = 1) -> None:
    """Raises the AttributeError (in `from module import name`: the ImportError) about a name that `module`, by its `__name__`, lacks.

    depth: how many calls lie between this and the access.
    """
    public = "torchvision" + module.removeprefix("naru.vision")
    if not name.startswith("_"):
        _missing.refuse(said(f"{public}.{name}"), public, name, depth + 1)
    raise AttributeError(f"module '{public}' has no attribute '{name}'", name=name, obj=None)


def module_getattr(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of naru.vision, by its `__name__`."""

    def __getattr__(name: str) -> Any:
        fail(module, name)

    return __getattr__
