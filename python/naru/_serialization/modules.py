"""Whole modules read as data: what `torch.jit.save` writes, read without a call of anything that the file chooses.

A file may name classes of modules that the program has imported already (nothing is imported for a file, but naru's own), whose objects are
made empty and then get the state that the file has for them, and functions of layers, which stay attributes. Neither is called while it is read.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .places import find
from .weights_only import WeightsOnlyUnpickler

# Of `torch`; those of torch.nn.functional may all be named.
_ACTIVATIONS = frozenset(("celu", "log_softmax", "relu", "rrelu", "selu", "sigmoid", "softmax", "tanh"))


def _imported(module: str, name: str) -> Any:
    found = getattr(sys.modules.get(module), name, None)
    if found is None:
        raise AttributeError(name)
    return found


def _is_plain_module(cls: type) -> bool:
    """Whether no method that the program has added runs when a file gives an object of the class a state, or takes it back."""
    from ..nn import Module

    own = [getattr(cls, name, None) for name in ("__setstate__", "__setattr__", "__getattribute__", "__del__")]
    written = [method for method in own if hasattr(method, "__code__")]
    return issubclass(cls, Module) and all(method.__module__.partition(".")[0] == "naru" for method in written)


class ModulesUnpickler(WeightsOnlyUnpickler):
    """Reads one pickle as data in which there may be modules."""

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
