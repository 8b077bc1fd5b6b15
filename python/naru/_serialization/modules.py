"""Reads whole modules as data: files of `torch.jit.save`, without calling anything that the file chooses.

A file may refer to module classes that the program has already imported (nothing is imported for a file, except naru's own), whose objects are
created empty and then given the state in the file, and to functions of layers, which stay attributes. Neither is called during reading.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .places import find
from .weights_only import WeightsOnlyUnpickler

# Allowed names of `torch`; all of torch.nn.functional is allowed.
_ACTIVATIONS = frozenset(("celu", "log_softmax", "relu", "rrelu", "selu", "sigmoid", "softmax", "tanh"))


def _imported(module: str, name: str) -> Any:
    found = getattr(sys.modules.get(module), name, None)
    if found is None:
        raise AttributeError(name)
    return found


def _is_plain_module(cls: type) -> bool:
    """Whether the class has no user-defined method that would run when its objects are given a state or deleted."""
    from ..nn import Module

    own = [getattr(cls, name, None) for name in ("__setstate__", "__setattr__", "__getattribute__", "__del__")]
    written = [method for method in own if hasattr(method, "__code__")]
    return issubclass(cls, Module) and all(method.__module__.partition(".")[0] == "naru" for method in written)


class ModulesUnpickler(WeightsOnlyUnpickler):
    """Reads one pickle as data that may contain modules."""

    def _mentioned(self, module: str, name: str) -> Any:
        try:
            known = find(module, name, _imported) if module == "torch" or module.startswith("torch.") else _imported(module, name)
        except (AttributeError, ImportError):
            return None
        if isinstance(known, type):
            if not _is_plain_module(known):
                return None
            self._bare[id(known)] = known
            return known
        is_function = callable(known) and not isinstance(known, ModuleType)
        return known if is_function and (module == "torch.nn.functional" or (module == "torch" and name in _ACTIVATIONS)) else None
