"""`torch.classes`: classes that C++ libraries have declared with `torch::class_`, by namespace: `torch.classes.mine.Stack(...)`.

>>> try:
...     naru.classes.mine.Stack()
... except RuntimeError as error:
...     print(str(error).partition("!")[0])
Tried to instantiate class 'mine.Stack', but it does not exist
"""

from __future__ import annotations

import sys
import types
from typing import Any

from ._functions import compiled


class _ClassNamespace(types.ModuleType):
    """The classes of a namespace."""

    def __getattr__(self, name: str) -> Any:
        space = self.__name__.rpartition(".")[2]
        compiled.collect()
        found = compiled.CLASSES.get(f"{space}::{name}")
        if found is None:
            if name.startswith("__"):
                raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
            raise RuntimeError(
                f"Tried to instantiate class '{space}.{name}', but it does not exist! Ensure that it is registered via torch::class_ in a library that is "
                f"loaded (torch.classes.load_library, torch.utils.cpp_extension.load); there are {sorted(compiled.CLASSES)}"
            )
        return found


class _Classes(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "loaded_libraries":
            return compiled.LOADED
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.classes' has no attribute '{name}'")
        space = _ClassNamespace(f"torch.classes.{name}")
        setattr(self, name, space)
        return space

    def load_library(self, path: str) -> None:
        """Loads the shared library at `path`, whose classes are then here, and whose operators in `torch.ops`. OSError if it cannot be loaded."""
        compiled.load_library(path)


sys.modules[__name__].__class__ = _Classes
