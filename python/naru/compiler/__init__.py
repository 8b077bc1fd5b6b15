"""`torch.compiler`: accepted without effect. naru compiles kernels and fuses consecutive operators by itself."""

from __future__ import annotations

from typing import Any

from .. import _missing

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "list_backends", "reset", "set_stance", "substitute_in_graph",
]  # fmt: skip


def compile(*args: Any, **kwargs: Any) -> Any:
    """`torch.compile`, with its arguments.

    >>> naru.compiler.compile(naru.sin)(naru.zeros(1))
    tensor([0.])
    """
    from ..functional import compile as compile_

    return compile_(*args, **kwargs)


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Returns the function `fn` itself; usable with or without parentheses. `recursive` and the other options are ignored.

    >>> disable(len) is len and disable()(len) is len
    True
    """
    return fn if fn is not None else lambda f: f


def reset() -> None:
    """Does nothing.

    >>> naru.compiler.reset()
    """


def allow_in_graph(fn: Any) -> Any:
    """Returns the function `fn` itself.

    >>> naru.compiler.allow_in_graph(len) is len
    True
    """
    return fn


assume_constant_result = allow_in_graph


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """A decorator that returns its function: `original_fn` is not replaced.

    >>> @naru.compiler.substitute_in_graph(len)
    ... def counted(x):
    ...     return sum(1 for _ in x)
    >>> counted("abc")
    3
    """
    return lambda fn: fn


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The backend names that torch.compile accepts, all equivalent; `exclude_tags` is ignored.

    >>> naru.compiler.list_backends()
    ['cudagraphs', 'inductor']
    """
    return ["cudagraphs", "inductor"]


def is_compiling() -> bool:
    """False: nothing is traced.

    >>> naru.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def cudagraph_mark_step_begin() -> None:
    """Does nothing.

    >>> naru.compiler.cudagraph_mark_step_begin()
    """


class set_stance:
    """Accepted without effect; a context manager and a decorator. `stance`: any string.

    >>> with naru.compiler.set_stance("force_eager"):
    ...     naru.ones(2).sum()
    tensor(2.)
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


__getattr__ = _missing.module_getattr(__name__)
