"""Operators and classes that C++ libraries register by name (TORCH_LIBRARY): they become operators of `torch.ops`, classes of `torch.classes`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .. import _C
from .libraries import define
from .operators import LOOKS, OPERATORS, CustomOpDef

if TYPE_CHECKING:
    import inspect

# Keys whose function runs without recording history: those of kinds of device, and CompositeExplicitAutograd.
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "XPU": "xpu", "MPS": "mps", "Meta": "meta", "HIP": "rocm"}
_RECORDING = ("CompositeImplicitAutograd", "")

# Functions of operators that no library has declared yet: a library may be loaded before the one that declares them.
_waiting: dict[str, list[tuple[str, Any]]] = {}
# Classes by name, "space::Class".
CLASSES: dict[str, type] = {}
LOADED: set[str] = set()


class _CompiledKernel:
    """A C++ function of an operator, called with Python's arguments."""

    def __init__(self, name: str, signature: inspect.Signature, function: Any, recording: bool) -> None:
        self.name, self.signature, self.function, self.recording = name, signature, function, recording

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}; its schema has the parameters {self.signature}") from None
        bound.apply_defaults()
        values = (*bound.args, *bound.kwargs.values())
        if self.recording:
            return self.function.call(self.name, values)
        before = _C._set_grad_enabled(False)
        try:
            return self.function.call(self.name, values)
        finally:
            _C._restore_grad_mode(before)


class ScriptObject:
    """An object of a class that a C++ library has declared with `torch::class_`."""

    _cpp_object: Any
    _cpp_name: str
    _cpp_functions: dict[str, Any] = {}

    def __new__(cls, *args: Any) -> Any:
        make = cls._cpp_functions.get("__init__")
        if make is None:
            raise RuntimeError(f"{cls._cpp_name} has no constructor: its C++ class declares no torch::init<...>()")
        return make.call(f"{cls._cpp_name}.__init__", args)

    def __init__(self, *args: Any) -> None:
        pass

    def __reduce__(self) -> Any:
        get = self._cpp_functions.get("__getstate__")
        if get is None:
            raise RuntimeError(f"cannot pickle an object of {self._cpp_name}: its C++ class declares no def_pickle")
        return _from_state, (self._cpp_name, get.call(f"{self._cpp_name}.__getstate__", (self,)))

    def __repr__(self) -> str:
        return f"<torch.ScriptObject of {self._cpp_name.replace('::', '.')}>"


def _from_state(name: str, state: Any) -> Any:
    return CLASSES[name]._cpp_functions["__setstate__"].call(f"{name}.__setstate__", (state,))  # type: ignore[attr-defined]


def _instance(name: str, capsule: Any) -> Any:
    if name not in CLASSES:
        collect()
    made = object.__new__(CLASSES[name])
    made._cpp_object = capsule
    return made


_C._set_instance_maker(_instance)


def _add_class(name: str) -> None:
    short = name.rpartition("::")[2]
    CLASSES[name] = type(short, (ScriptObject,), {"_cpp_name": name, "_cpp_functions": {}, "__module__": "torch.classes"})


def _add_method(name: str, method: str, function: Any, static: bool) -> None:
    made: Any = CLASSES[name]
    made._cpp_functions[method] = function
    called = f"{name}.{method}"
    kind, _, attribute = method.partition(" ")
    if attribute:
        functions = made._cpp_functions

        def write(self: Any, value: Any) -> None:
            functions[f"set {attribute}"].call(called, (self, value))

        read = functions.get(f"get {attribute}", function)
        setattr(made, attribute, property(lambda self: read.call(called, (self,)), write if kind == "set" else None))
    elif static and method not in ("__init__", "__setstate__"):
        setattr(made, method, staticmethod(lambda *args: function.call(called, args)))
    elif not static:
        setattr(made, method, lambda self, *args: function.call(called, (self, *args)))


def _add_kernel(name: str, key: str, function: Any) -> None:
    op = OPERATORS.get(name)
    if not isinstance(op, CustomOpDef):
        _waiting.setdefault(name, []).append((key, function))
        return
    kernel = _CompiledKernel(name, op._signature, function, key in _RECORDING or key.startswith("Autograd"))
    if key.startswith("Autograd"):
        op._autograd[_DEVICES.get(key.removeprefix("Autograd"))] = kernel
    else:
        op.register_kernel(_DEVICES.get(key), kernel)


def collect() -> None:
    """Takes what C++ libraries have registered since the last call. RuntimeError for what they should not have."""
    fresh = _C._take_registrations()
    if not fresh:
        return
    errors = []
    for kind, name, text, function, static in fresh:
        if kind == "operator":
            try:
                define(name, text)
            except RuntimeError as error:
                errors.append(str(error))
            for key, waiting in _waiting.pop(name, []):
                _add_kernel(name, key, waiting)
        elif kind == "kernel":
            _add_kernel(name, text, function)
        elif kind == "class":
            _add_class(name)
        elif kind == "method":
            _add_method(name, text, function, static)
        else:
            errors.append(text)
    if errors:
        raise RuntimeError("\n".join(errors))


LOOKS.append(collect)


def load_library(path: Any) -> None:
    """Loads a shared library that registers operators or classes. OSError if it cannot be loaded."""
    import ctypes

    path = os.path.realpath(os.fspath(path))
    try:
        ctypes.CDLL(path)
    except OSError as error:
        more = ""
        if "libtorch" in str(error) or "libc10" in str(error) or "c10" in str(error):
            more = "; it is built for PyTorch: build it again from its sources with torch.utils.cpp_extension, over naru"
        raise OSError(f"Could not load this library: {path}: {error}{more}") from error
    LOADED.add(path)
    collect()
