"""`torch.fx`: naru does not trace, so `wrap` does nothing, and no value is a `Proxy`. The classes exist for comparisons."""

from __future__ import annotations

from typing import Any, TypeVar

from .. import _missing
from ..nn import Module

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "symbolic_trace", "wrap"]

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """Returns the function (or its name) itself, `fn_or_name`: in PyTorch tracers do not enter it. RuntimeError for anything else.

    >>> wrap(abs)(-1)
    1
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(f"Unsupported type for global function! Must be either a callable or string name, got {type(fn_or_name)}")
    return fn_or_name


def has_side_effect(fn: T) -> T:
    """Returns the function `fn` itself: in PyTorch this protects it from dead code elimination.

    >>> has_side_effect(print) is print
    True
    """
    return fn


Graph, Interpreter, Node, Proxy, Tracer, Transformer = (
    _missing.absent_class(f"fx.{name}") for name in ("Graph", "Interpreter", "Node", "Proxy", "Tracer", "Transformer")
)
GraphModule = _missing.absent_class("fx.GraphModule", Module)
symbolic_trace: Any = _missing.absent_function("fx.symbolic_trace")

__getattr__ = _missing.module_getattr(__name__)
