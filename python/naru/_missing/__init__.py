"""What PyTorch has and naru lacks: errors that say so, and name what comes nearest.

`names.txt` holds the public names of PyTorch 2.15 (tools/pytorch_names.py writes it); `nearest.py` says what to use instead of some, and `elsewhere.py`
in which other module naru has what is the same object in PyTorch. A name that is in none is nobody's, and Python's own error stands.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

VERSION = "2.15"
HINT = "naru check SCRIPT lists all"


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """The public names of each module (and of some classes) of PyTorch, by the module's name without `torch.`."""
    found: dict[str, list[str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "names.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("torch"):
                words = found.setdefault(line.rstrip(":\n").removeprefix("torch").removeprefix("."), [])
            elif line.startswith(" "):
                words += line.split()
    return {module: frozenset(words) for module, words in found.items()}


def is_pytorchs(qualified: str) -> bool:
    """Whether `qualified` (without `torch.`) is a public name of PyTorch's: a module, or a name of one."""
    module, _, name = qualified.rpartition(".")
    return qualified in names() or name in names().get(module, ())


def said(qualified: str, hint: bool = True) -> str:
    """The sentence about a name (without `torch.`) that PyTorch has and naru lacks."""
    from .nearest import nearest_to

    nearest = nearest_to(qualified)
    return (
        f"torch.{qualified} is in PyTorch {VERSION} but not in naru yet"
        + (f"; nearest: {nearest}" if nearest else "")
        + (f"; {HINT}" if hint else "")
    )


def _is_from_import(depth: int) -> bool:
    """Whether the caller's caller is at `from module import name`, which shows its own words for an AttributeError."""
    import opcode

    frame = sys._getframe(depth + 1)
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def fail(module: str, name: str, depth: int = 1) -> None:
    """Raises the AttributeError (in `from module import name`: the ImportError) where `module` of PyTorch (without `torch.`) has the name.

    Returns where PyTorch has none such either. depth: how many calls lie between this and the access.
    """
    qualified = f"{module}.{name}" if module else name
    if name.startswith("_") or not is_pytorchs(qualified):
        return
    refuse(said(qualified), f"torch.{module}" if module else "torch", name, depth + 1)


def refuse(text: str, module: str, name: str, depth: int = 1) -> None:
    """Raises the AttributeError (in `from module import name`: the ImportError) `text` about a name of `module`. depth: as of `fail`."""
    if _is_from_import(depth + 1):
        raise ImportError(text, name=module)
    # With a name and no object of its own Python looks for no names that are alike.
    raise AttributeError(text, name=name, obj=None)


def module_getattr(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of naru's, by its `__name__`: what PyTorch has there and naru elsewhere is that."""
    mine = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        if not name.startswith("_") and (found := from_elsewhere(mine, name)) is not None:
            return found
        fail(mine, name)
        raise AttributeError(f"module 'torch.{mine}' has no attribute '{name}'")

    return __getattr__


def _owner(module: str) -> ModuleType:
    """naru's module that has what PyTorch's `module` has, too."""
    import importlib

    from .elsewhere import SAME

    return importlib.import_module("naru." + SAME[module] if SAME[module] else "naru")


def is_elsewhere(module: str, name: str) -> bool:
    """Whether `name` is a public name of PyTorch's `module` that naru has in another one (elsewhere.py), and no module itself."""
    from .elsewhere import SAME

    if module not in SAME or not is_pytorchs(f"{module}.{name}"):
        return False
    if {f"{SAME[module]}.{name}".lstrip("."), f"{module}.{name}"} & names().keys():
        return False
    return hasattr(_owner(module), name)


def from_elsewhere(module: str, name: str) -> Any:
    """What `module` has of that name by another module: an object, or a module of such objects; None where there is none."""
    return getattr(_owner(module), name) if is_elsewhere(module, name) else provided(f"{module}.{name}")


def provided(qualified: str) -> ModuleType | None:
    """The module of that name, naru's own or one made at the first use; None for one that elsewhere.py does not list."""
    import importlib

    from .elsewhere import SAME

    if qualified not in SAME:
        return None
    provided(qualified.rpartition(".")[0])
    full = "naru." + qualified
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
    made = type(sys)(full, f"Names of `{('torch.' + SAME[qualified]).rstrip('.')}`, where PyTorch has them in a module of their own.")
    made.__all__ = [name for name in sorted(names()[qualified]) if is_elsewhere(qualified, name)]  # type: ignore[attr-defined]
    made.__getattr__ = module_getattr(full)  # type: ignore[method-assign]
    sys.modules[full] = made
    open_to_submodules(made)
    return made


def open_to_submodules(module: ModuleType) -> None:
    """Lets `import` look for modules of elsewhere.py within one of naru's that is no package."""
    from .elsewhere import SAME

    inner = module.__name__.partition(".")[2] + "."
    if not hasattr(module, "__path__") and any(row.startswith(inner) for row in SAME):
        module.__path__ = []


class Absent:
    """Stands in a class for a name of PyTorch's class: to ask for it is an AttributeError. A user may set one of that name."""

    __slots__ = ("qualified",)

    def __init__(self, qualified: str) -> None:
        self.qualified = qualified

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise AttributeError(said(self.qualified), name=self.qualified.rpartition(".")[2], obj=None)


def absent_function(qualified: str) -> Callable[..., Any]:
    """Stands in a module for a function that programs import and need not call: NotImplementedError where they do. `naru check` knows it."""

    def absent(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(said(qualified))

    absent.__name__ = absent.__qualname__ = qualified.rpartition(".")[2]
    absent.__module__ = "torch." + qualified.rpartition(".")[0]
    absent.__doc__ = f"Not there yet: NotImplementedError. {said(qualified, hint=False)}."
    absent.__naru_lacks__ = qualified  # type: ignore[attr-defined]
    return absent


class _Lacking(type):
    """The class of classes that are not there: what is asked of them is not there either, in the same words."""

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(said(f"{cls.__naru_lacks__}.{name}"), name=name, obj=None)


def absent_class(qualified: str) -> type:
    """The same for a class: things can be compared with it, classes derived from it, and none can be made."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(said(qualified))

    module, _, name = qualified.rpartition(".")
    doc = f"Not there yet: NotImplementedError. {said(qualified, hint=False)}."
    return _Lacking(name, (), {"__new__": __new__, "__module__": ("torch." + module).rstrip("."), "__doc__": doc, "__naru_lacks__": qualified})


def is_absent(found: Any, qualified: str) -> bool:
    """Whether what naru has under a name is an `absent_function` or `absent_class`."""
    return getattr(found, "__naru_lacks__", None) == qualified


def mark_absent(cls: type, qualified: str, wanted: str) -> None:
    """Puts an `Absent` into `cls` for each of `wanted` (names, with spaces between) that it has not."""
    for name in wanted.split():
        if not hasattr(cls, name):
            setattr(cls, name, Absent(f"{qualified}.{name}"))
