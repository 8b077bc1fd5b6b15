"""Whole modules read as data: what `torch.jit.save` writes, read without a call of anything that the file chooses.

A file may name classes of modules that the program has imported already (nothing is imported for a file, but naru's own), whose objects are
made empty and then get the state that the file has for them, and functions of layers, which stay attributes. Neither is called while it is read.
"""

from __future__ import annotations

import pickletools
import sys
from pickle import UnpicklingError
from types import ModuleType
from typing import IO, Any

from .places import find
from .weights_only import WeightsOnlyUnpickler

MARKER = "naru.jit"
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


def is_marked(file: IO[bytes]) -> bool:
    """Whether an archive's pickle begins as `torch.jit.save` writes it. Only its first instructions are read, and none is carried out."""
    from zipfile import BadZipFile, ZipFile

    start = file.tell()
    try:
        with ZipFile(file) as archive:
            name = next((name for name in archive.namelist() if name.endswith("data.pkl")), None)
            if name is None:
                return False
            with archive.open(name) as pickle:
                head = pickle.read(64)
        for code, argument, _ in pickletools.genops(head):
            if code.name in ("GLOBAL", "STACK_GLOBAL", "REDUCE"):
                return False
            if isinstance(argument, str):
                return argument == MARKER
        return False
    except (BadZipFile, ValueError, EOFError, NotImplementedError, OSError, RuntimeError):
        return False
    finally:
        file.seek(start)


def read_marked(f: Any, map_location: Any, weights_only: bool) -> dict[str, Any]:
    """What `torch.jit.save` has put into a file: "module" and "extra". ValueError where there is no file, RuntimeError for another one."""
    from ..serialization import _opened, load, load_modules

    other = "torch.jit.load: this is no file of naru's torch.jit.save"
    try:
        with _opened(f) as file:
            if not is_marked(file):
                raise RuntimeError(f"{other}; torch.load reads checkpoints, and TorchScript of PyTorch's is not read")
            found = load_modules(file, map_location) if weights_only else load(file, map_location=map_location, weights_only=False)
    except FileNotFoundError as error:
        raise ValueError(f"The provided filename {f} does not exist") from error
    except UnpicklingError as error:
        raise RuntimeError(
            f"torch.jit.load: the file holds more than data and modules of classes that this program has imported. Import them first; or, if you trust "
            f"the file, torch.jit.load(file, weights_only=False). ({error})"
        ) from error
    except RuntimeError:
        raise
    except Exception as error:
        raise RuntimeError(f"{other} ({error}), or it is damaged") from error
    if not (type(found) is dict and found.get(MARKER) == 1 and "module" in found and type(found.get("extra")) is dict):
        raise RuntimeError(other)
    return found
