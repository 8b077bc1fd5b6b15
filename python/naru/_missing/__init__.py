"""PyTorch names that naru lacks: errors that say so, and suggest the nearest replacement.

`names.txt` has the public names of PyTorch 2.15 (written by tools/pytorch_names.py); `nearest.py` has replacements for some, `elsewhere.py` the modules
of naru that have an object PyTorch has in several modules, and `whole.py` the parts that are lacking as a whole. For any other name Python's own error
is raised.
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
    """The public names of each module (and of some classes) of PyTorch, by module name without `torch.`."""
    found: dict[str, list[str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "names.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("torch"):
                words = found.setdefault(line.rstrip(":\n").removeprefix("torch").removeprefix("."), [])
            elif line.startswith(" "):
                words += line.split()
    return {module: frozenset(words) for module, words in found.items()}


def is_pytorchs(qualified: str) -> bool:
    """Whether `qualified` (without `torch.`) is a public name of PyTorch: a module, or a name in one."""
    module, _, name = qualified.rpartition(".")
    return qualified in names() or name in names().get(module, ())


def covers(qualified: str) -> bool:
    """Whether a module (without `torch.`) that naru lacks has a placeholder (whole.py)."""
    from .whole import LISTED, WHOLE

    parts = qualified.split(".")
    if any(".".join(parts[:n]) in WHOLE for n in range(1, len(parts) + 1)):
        return True
    if parts[0] in LISTED and any(part.startswith("_") for part in parts):
        return True
    return parts[0] in ("distributed", *LISTED) and qualified in names()


def said(qualified: str, hint: bool = True) -> str:
    """The error message for a name (without `torch.`) that PyTorch has and naru lacks."""
    from .nearest import nearest_to

    nearest = nearest_to(qualified)
    return (
        f"torch.{qualified} is in PyTorch {VERSION} but not in naru yet"
        + (f"; nearest: {nearest}" if nearest else "")
        + (f"; {HINT}" if hint else "")
    )


def _is_from_import(depth: int) -> bool:
    """Whether the caller's caller is a `from module import name` statement, which replaces the message of an AttributeError."""
    import opcode

    frame = sys._getframe(depth + 1)
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def fail(module: str, name: str, depth: int = 1) -> None:
    """Raises AttributeError (ImportError in `from module import name`) if PyTorch's `module` (without `torch.`) has the name.

    Returns if PyTorch does not have it either. depth: the number of calls between this one and the access.
    """
    qualified = f"{module}.{name}" if module else name
    if name.startswith("_") or not is_pytorchs(qualified):
        return
    refuse(said(qualified), f"torch.{module}" if module else "torch", name, depth + 1)


def refuse(text: str, module: str, name: str, depth: int = 1) -> None:
    """Raises AttributeError (ImportError in `from module import name`) with `text` about a name of `module`. depth: as in `fail`."""
    if _is_from_import(depth + 1):
        raise ImportError(text, name=module)
    # With a name and obj=None, Python does not add suggestions of similar names.
    raise AttributeError(text, name=name, obj=None)


def unknown(module: str, name: str, depth: int = 1) -> None:
    """Raises AttributeError for a name that PyTorch's `module` (without `torch.`) has not either; in `from module import name` an ImportError, with the
    nearest name. depth: as in `fail`."""
    full, own = (f"{package}.{module}" if module else package for package in ("torch", "naru"))
    if not _is_from_import(depth + 1) or {f"{full}.{name}", f"{own}.{name}"} & sys.modules.keys():  # the statement takes a module from there
        raise AttributeError(f"module '{full}' has no attribute '{name}'")
    import difflib

    here = sys.modules[own]
    close = difflib.get_close_matches(name, [other for other in dir(here) if other.startswith("_") == name.startswith("_")], 1)
    raise ImportError(f"cannot import name '{name}' from '{full}': naru has nothing of that name" + (f"; nearest: {full}.{close[0]}" if close else ""), name=full)


def module_getattr(module: str) -> Callable[[str], Any]:
    """The `__getattr__` for a naru module, by its `__name__`: resolves names that PyTorch has there and naru has elsewhere."""
    from importlib import import_module

    mine = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        if not name.startswith("_") and (found := from_elsewhere(mine, name)) is not None:
            return found
        if f"{mine}.{name}" in names() and covers(f"{mine}.{name}"):
            return import_module(f"naru.{mine}.{name}")
        fail(mine, name)
        unknown(mine, name)

    return __getattr__


def _owner(module: str) -> ModuleType:
    """The naru module that has the objects of PyTorch's `module`."""
    import importlib

    from .elsewhere import SAME

    return importlib.import_module("naru." + SAME[module] if SAME[module] else "naru")


def is_elsewhere(module: str, name: str) -> bool:
    """Whether `name` is a public, non-module name of PyTorch's `module` that naru has in another module (elsewhere.py)."""
    from .elsewhere import SAME

    if module not in SAME or not is_pytorchs(f"{module}.{name}"):
        return False
    if {f"{SAME[module]}.{name}".lstrip("."), f"{module}.{name}"} & names().keys():
        return False
    return hasattr(_owner(module), name)


def from_elsewhere(module: str, name: str) -> Any:
    """`name` of `module`, taken from another module: an object, or a module of such objects; None if there is none."""
    return getattr(_owner(module), name) if is_elsewhere(module, name) else provided(f"{module}.{name}")


def provided(qualified: str) -> ModuleType | None:
    """The module of that name, naru's own or one created on first use; None if elsewhere.py does not list it."""
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
    """Makes modules of elsewhere.py, and placeholders, importable as submodules of a naru module that is not a package."""
    from .elsewhere import SAME
    from .whole import WHOLE

    inner = module.__name__.partition(".")[2] + "."
    if not hasattr(module, "__path__") and any(row.startswith(inner) for row in (*SAME, *WHOLE)):
        module.__path__ = []


class Absent:
    """Placeholder in a class for a name that PyTorch's class has: reading it raises AttributeError. Users may set it."""

    __slots__ = ("qualified",)

    def __init__(self, qualified: str) -> None:
        self.qualified = qualified

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise AttributeError(said(self.qualified), name=self.qualified.rpartition(".")[2], obj=None)


def absent_function(qualified: str) -> Callable[..., Any]:
    """Placeholder in a module for a function that programs import but may never call: calling it raises NotImplementedError. `naru check` recognizes it."""

    def absent(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(said(qualified))

    absent.__name__ = absent.__qualname__ = qualified.rpartition(".")[2]
    absent.__module__ = "torch." + qualified.rpartition(".")[0]
    absent.__doc__ = f"Not there yet: NotImplementedError. {said(qualified, hint=False)}."
    absent.__naru_lacks__ = qualified  # type: ignore[attr-defined]
    return absent


class _Lacking(type):
    """Metaclass of missing classes: their attributes are missing, too, with the same message."""

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(said(f"{cls.__naru_lacks__}.{name}"), name=name, obj=None)


def absent_class(qualified: str, *bases: type) -> type:
    """Placeholder for a class: it can be compared with and subclassed, but not instantiated. bases: those that programs rely on."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(said(qualified))

    module, _, name = qualified.rpartition(".")
    doc = f"Not there yet: NotImplementedError. {said(qualified, hint=False)}."
    return _Lacking(name, bases, {"__new__": __new__, "__module__": ("torch." + module).rstrip("."), "__doc__": doc, "__naru_lacks__": qualified})


def is_absent(found: Any, qualified: str) -> bool:
    """Whether naru's object for a name is an `absent_function` or `absent_class`."""
    return getattr(found, "__naru_lacks__", None) == qualified


def mark_absent(cls: type, qualified: str, wanted: str) -> None:
    """Adds an `Absent` to `cls` for each of `wanted` (names separated by spaces) that it lacks."""
    for name in wanted.split():
        if not hasattr(cls, name):
            setattr(cls, name, Absent(f"{qualified}.{name}"))
