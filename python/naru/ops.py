"""`torch.ops`: operators by namespace. `torch.ops.aten.relu` is the function `torch.relu`; other namespaces are those of `torch.library`.

All overloads of an operator (`torch.ops.aten.add.Tensor`) are the same function, which dispatches on its arguments.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from ._functions import compiled
from ._functions.operators import OPERATORS


class OpOverloadPacket:
    """An operator: calls `function`; `default`, `Tensor` and the other overload names are itself. `name`: with its namespace, "aten::add".

    >>> naru.ops.aten.add
    <OpOverloadPacket(op='aten.add')>
    >>> naru.ops.aten.add.Tensor(naru.tensor([1, 2]), 3)
    tensor([4, 5])
    """

    # PyTorch's overload names; naru does not know which of them a given operator has.
    _OVERLOADS = ("default", "Tensor", "Scalar", "List", "ScalarList", "int", "dim", "dim_IntList", "self", "out")

    def __init__(self, name: str, function: Any = None) -> None:
        self._qualified_op_name, self._function = name, function
        self.__name__ = name.rpartition("::")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            by_backward = self.__name__ in _OF_BACKWARD
            why = "it is called by backward, not by a name; nearest: torch.autograd.grad" if by_backward else "naru has no such operator; its name can be registered for"
            raise NotImplementedError(f"{self}: {why}")
        return self._function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverloadPacket) and other._qualified_op_name == self._qualified_op_name

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def overloads(self) -> list[str]:
        """The names of overloads."""
        return list(self._OVERLOADS)

    def __getattr__(self, name: str) -> Any:
        # Which of PyTorch's overloads an operator has is not known here: any name is taken for one.
        if name in self._OVERLOADS or (str(self.__dict__.get("_qualified_op_name")).startswith(("aten::", "_c10d_functional::", "c10d::", "c10d_functional::")) and not name.startswith(("_", "register_"))):
            return self
        found = getattr(self.__dict__.get("_function"), name, None) if name.startswith("register_") else None
        if found is None:
            raise AttributeError(f"The underlying op of '{self.__dict__.get('_qualified_op_name')}' has no overload name '{name}'")
        return found

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


# Called only by backward; `torch.utils.flop_counter` counts them.
_OF_BACKWARD = ("convolution_backward", "scaled_dot_product_attention_backward")


def _may_be_key(space: str, name: str) -> bool:
    """Whether a name stands for an operator of PyTorch's that naru lacks: packages use them as keys of tables."""
    private = name.startswith("_") and not name.startswith("__")
    return (space == "aten" and (private or name in _OF_BACKWARD)) or (space in ("_c10d_functional", "c10d", "c10d_functional") and not name.startswith("__"))


class _OpNamespace(types.ModuleType):
    """The operators of a namespace."""

    def __getattr__(self, name: str) -> Any:
        space = self.__name__.rpartition(".")[2]
        compiled.collect()
        function = OPERATORS.get(f"{space}::{name}")
        if function is None and space in ("aten", "prims") and not name.startswith("__"):
            function = _function(name)
        if function is None and not _may_be_key(space, name):
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        return OpOverloadPacket(f"{space}::{name}", function)


def _slice(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def _to_copy(input: Any, *, dtype: Any = None, device: Any = None, non_blocking: bool = False, memory_format: Any = None, **kwargs: Any) -> Any:
    return input.to(device or input.device, dtype or input.dtype, non_blocking, copy=True)


# Operators that have no function of their name.
_OTHERS = {
    "alias": lambda input: input.view_as(input),
    "index": lambda input, indices: input[tuple(slice(None) if i is None else i for i in indices)],
    "slice": _slice,
    "_to_copy": _to_copy,
}


def _function(name: str) -> Any:
    """naru's function or method for PyTorch's operator `name`."""
    import naru

    if name in _OTHERS:
        return _OTHERS[name]
    found = getattr(naru, name, None)
    if callable(found):
        return found
    for module in (naru.nn.functional, naru.Tensor):
        found = getattr(module, name, None)
        if callable(found):
            return found
    return None


class _Ops(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
        space = _OpNamespace(f"torch.ops.{name}")
        setattr(self, name, space)
        return space

    def load_library(self, path: str) -> None:
        """Loads the shared library at `path`, built with `torch.utils.cpp_extension`: its operators (TORCH_LIBRARY) are then here. OSError if it
        cannot be loaded, for instance because it is built for PyTorch."""
        compiled.load_library(path)

    @property
    def loaded_libraries(self) -> set[str]:
        """The paths of libraries that `load_library` has loaded."""
        return compiled.LOADED


sys.modules[__name__].__class__ = _Ops
