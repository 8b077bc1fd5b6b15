"""`torch._dynamo`: what public programs set or call. Nothing is traced; kernels are compiled without being asked."""

from __future__ import annotations

from typing import Any

from ..compiler import disable, reset
from . import config
from .eval_frame import OptimizedModule, is_dynamo_supported

__all__ = ["OptimizedModule", "config", "disable", "explain", "list_backends", "mark_dynamic", "optimize", "reset"]


def optimize(*args: Any, **kwargs: Any) -> Any:
    """A decorator that returns its function."""
    return lambda fn: fn


def mark_dynamic(*args: Any, **kwargs: Any) -> None:
    """Taken, and not needed: a kernel serves all sizes."""


mark_static = maybe_mark_dynamic = mark_dynamic


def list_backends(*args: Any) -> list[str]:
    """The names that torch.compile takes as a backend, all for the same."""
    return ["cudagraphs", "eager", "inductor"]


def explain(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Not there yet: NotImplementedError."""
    raise NotImplementedError("torch._dynamo.explain is not in naru yet; nearest: naru.count_syncs, which shows where a program waits for a device")


def is_compiling() -> bool:
    """Whether a compiler traces: never."""
    return False


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


assume_constant_result = disallow_in_graph = forbid_in_graph = nonstrict_trace = allow_in_graph
mark_static_address = mark_unbacked = decorate_unbacked = mark_dynamic
graph_break = mark_dynamic
