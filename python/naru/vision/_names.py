"""Error messages for names that torchvision has and naru.vision lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _missing

if TYPE_CHECKING:
    from collections.abc import Callable

HINT = "docs/vision.md lists what is"


def said(qualified: str) -> str:
    """The message for a name (with its `torchvision.` prefix) that naru.vision lacks."""
    return f"{qualified} is not in naru.vision yet; {HINT}"


def fail(module: str, name: str, depth: int = 1) -> None:
    """Raises AttributeError (ImportError for `from module import name`) for a name that the module named `module` lacks.

    depth: the number of stack frames between this function and the access.
    """
    public = "torchvision" + module.removeprefix("naru.vision")
    if not name.startswith("_"):
        _missing.refuse(said(f"{public}.{name}"), public, name, depth + 1)
    raise AttributeError(f"module '{public}' has no attribute '{name}'", name=name, obj=None)


def module_getattr(module: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` for a module of naru.vision, given the module's `__name__`."""

    def __getattr__(name: str) -> Any:
        fail(module, name)

    return __getattr__
