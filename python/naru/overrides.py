"""`torch.overrides`: `__torch_function__` of other classes, subclasses of `Tensor`, and modes, which intercept calls of naru's functions.

For a class that is not a tensor, the check happens when such an argument reaches a function that expects a tensor. Tensor subclasses that define
`__torch_function__`, and modes, are checked before each call; this costs nothing while none of them exists.
"""

from __future__ import annotations

import importlib
import threading
import types
from typing import TYPE_CHECKING, Any

from . import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Tensor = _C.Tensor

__all__ = [
    "get_default_nowrap_functions", "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function", "TorchFunctionMode", "BaseTorchFunctionMode",
    "get_overridable_functions",
]  # fmt: skip


# The reflected operators, called if the tensor is the right operand.
_REFLECTED = {
    "add": "__radd__", "sub": "__rsub__", "mul": "__rmul__", "div": "__rtruediv__", "pow": "__rpow__", "remainder": "__rmod__",
    "matmul": "__rmatmul__", "__floordiv__": "__rfloordiv__", "__and__": "__rand__", "__or__": "__ror__", "__xor__": "__rxor__",
    "__lshift__": "__rlshift__", "__rshift__": "__rrshift__",
}  # fmt: skip


class _Local(threading.local):
    def __init__(self) -> None:
        self.modes: list[TorchFunctionMode] = []
        self.subclasses_off = 0
        self.off = 0


_here = _Local()
_lock = threading.Lock()
_watched = {"modes": 0, "subclasses": False}


def _watch(modes: int = 0, subclasses: bool = False) -> None:
    with _lock:
        _watched["modes"] += modes
        _watched["subclasses"] |= subclasses
        _C._watch_overrides(bool(_watched["modes"]), bool(_watched["subclasses"]), PLAIN_RESULTS)


def _plain(func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _plain_results(func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_function__` of classes whose results are plain tensors: the core does not call it."""
    return _plain(func, types, args, kwargs)


PLAIN_RESULTS = staticmethod(_plain_results)  # a single object, so that the core recognizes classes whose __torch_function__ it can skip


def _of_subclass(cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Calls `func`; resulting tensors are of the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    result = _plain(func, types, args, kwargs)
    if func in get_default_nowrap_functions() or getattr(func, "__name__", "") == "as_subclass":
        return result

    def converted(value: Any) -> Any:
        if isinstance(value, Tensor) and type(value) is Tensor and cls is not Tensor:
            return value.as_subclass(cls)
        if isinstance(value, (tuple, list)) and any(isinstance(v, (Tensor, tuple, list)) for v in value):
            return type(value)([converted(v) for v in value])
        return value

    return converted(result)


def _overrides(kind: type) -> bool:
    found = getattr(kind, "__torch_function__", None)
    return found is not None and found is not _plain_results and kind is not Tensor


def _takers(values: Iterable[Any]) -> list[Any]:
    """One object per class that overrides `__torch_function__`, subclasses before their base classes."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if not _overrides(kind) or (isinstance(value, Tensor) and issubclass(kind, Tensor) and _here.subclasses_off):
            continue
        if any(type(other) is kind for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(at, value)
    return found


def _flat(args: tuple, kwargs: dict[str, Any]) -> Iterable[Any]:
    for value in (*args, *kwargs.values()):
        if type(value) in (tuple, list):
            yield from value
        else:
            yield value


def _asked(func: Callable[..., Any], takers: list[Any], mode_first: bool, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of the innermost mode, if it may intercept, else of the first of `takers` that handles the call; NotImplemented if none does."""
    types = tuple(type(t) for t in takers)
    if mode_first:
        mode = _here.modes.pop()
        try:
            result = mode.__torch_function__(func, types, args, kwargs)
        finally:
            _here.modes.append(mode)
        if result is not NotImplemented:
            return result
    for taker in takers:
        result = type(taker).__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def _unclaimed(name: str, takers: list[Any]) -> TypeError:
    kinds = [type(t).__name__ for t in takers]
    return TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {kinds}")


def _call(func: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Called by the core: the result of the mode or class that handles the call, or NotImplemented."""
    if _here.off:
        return NotImplemented
    if len(args) == 2 and not isinstance(args[0], Tensor) and not hasattr(type(args[0]), "__torch_function__"):
        reflected = _REFLECTED.get(getattr(func, "__name__", ""))
        if reflected is not None and getattr(Tensor, func.__name__, None) is func:
            func, args = getattr(Tensor, reflected), (args[1], args[0])
    takers = _takers(_flat(args, kwargs))
    name = getattr(func, "__name__", "")
    # Modes do not see private functions, unless the innermost mode opts in.
    modes = _here.modes and (not name.startswith("_") or name.endswith("__") or getattr(_here.modes[-1], "_sees_all", False))
    if not takers and not modes:
        return NotImplemented
    result = _asked(func, takers, bool(modes), args, kwargs)
    if result is NotImplemented and takers:
        raise _unclaimed(f"{getattr(func, '__module__', '')}.{name or func}", takers)
    return result


class TorchFunctionMode:
    """Within `with mode:`, each function call on this thread goes to `mode.__torch_function__(func, types, args, kwargs)`.

    >>> import naru
    >>> class Names(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     _ = naru.ones(2)
    ones
    """

    inner: TorchFunctionMode
    _sees_operators = True  # whether it sees operators of `torch.library`; otherwise it sees the calls inside them

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _here.modes.append(self)
        _watch(modes=1)
        return self

    def __exit__(self, *exc: object) -> None:
        _here.modes.pop()
        _watch(modes=-1)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes an instance, for `with`."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that intercepts nothing.

    >>> with naru.overrides.BaseTorchFunctionMode():
    ...     naru.ones(2) + 1
    tensor([2., 2.])
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """Within it, `__torch_function__` of Tensor subclasses is not called on this thread."""

    def __enter__(self) -> None:
        _here.subclasses_off += 1

    def __exit__(self, *exc: object) -> None:
        _here.subclasses_off -= 1


class DisableTorchFunction:
    """Within it, no `__torch_function__` is called on this thread, including those of modes."""

    def __enter__(self) -> None:
        _here.off += 1

    def __exit__(self, *exc: object) -> None:
        _here.off -= 1


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results stay plain tensors for all subclasses.

    >>> naru.Tensor.__dict__["grad"] in naru.overrides.get_default_nowrap_functions()
    True
    """
    return {Tensor.__dict__[name] for name in ("grad", "_grad", "_base") if name in Tensor.__dict__}


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a tensor, or its class has `__torch_function__`.

    >>> is_tensor_like(3)
    False
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(args: Iterable[Any]) -> bool:
    """Whether the class of one of the arguments `args` overrides `__torch_function__`, or a mode is active.

    >>> class Mine:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} of mine"
    >>> naru.overrides.has_torch_function((Mine(), naru.ones(1))), naru.exp(Mine())
    (True, 'exp of mine')
    """
    return bool(_here.modes) or bool(_takers(args))


def sees_operators() -> bool:
    """Whether the active mode sees operators of `torch.library`.

    >>> sees_operators()
    False
    """
    return bool(_here.modes) and _here.modes[-1]._sees_operators


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` for one argument, `arg`.

    >>> naru.overrides.has_torch_function_unary(naru.ones(1))
    False
    """
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` for its arguments.

    >>> naru.overrides.has_torch_function_variadic(naru.ones(1), 2.0)
    False
    """
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Dispatches a call of `public_api` with the remaining arguments to the classes of `relevant_args`, for functions written in Python.
    TypeError if all of them return NotImplemented.

    >>> class Mine:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} of {len(args)}"
    >>> def join(a, b):
    ...     return naru.overrides.handle_torch_function(join, (a, b), a, b)
    >>> join(Mine(), 2)
    'join of 2'
    """
    takers = _takers(relevant_args)
    result = _asked(public_api, takers, bool(_here.modes), args, kwargs)
    if result is NotImplemented:
        raise _unclaimed(f"{public_api.__module__}.{public_api.__name__}", takers)
    return result


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function so that classes with `__torch_function__` can override it; `dispatcher` returns its relevant arguments.

    >>> class Mine:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return "taken over"
    >>> @naru.overrides.wrap_torch_function(lambda x: (x,))
    ... def twice(x):
    ...     return 2 * x
    >>> twice(3), twice(Mine())
    (6, 'taken over')
    """
    import functools

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func`, as passed to `__torch_function__`, is a method or property of Tensor.

    >>> naru.overrides.is_tensor_method_or_property(naru.Tensor.add), naru.overrides.is_tensor_method_or_property(naru.add)
    (True, False)
    """
    name = getattr(func, "__name__", "")
    return getattr(Tensor, name, None) is func or name == "__get__"


def resolve_name(f: Any) -> str | None:
    """The qualified name of `f`, a function of naru; None for other functions.

    >>> naru.overrides.resolve_name(naru.Tensor.add), naru.overrides.resolve_name(len)
    ('torch.Tensor.add', None)
    """
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    if is_tensor_method_or_property(f):
        return f"torch.Tensor.{name}"
    return f"torch.{name}" if getattr(_C, name, None) is f else None


def _takes_tensors(value: Any) -> bool:
    if isinstance(value, type(_C.add)):
        return "Tensor" in (value.__doc__ or "").split("->")[0].replace("Tensor out = None", "")
    return isinstance(value, types.FunctionType) and any(a in ("Tensor", Tensor) for name, a in value.__annotations__.items() if name != "return")


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that ask `__torch_function__`, by the namespace that has them: modules of naru, and `Tensor` for its methods.

    >>> import naru
    >>> found = naru.overrides.get_overridable_functions()
    >>> naru.add in found[naru], naru.Tensor.add in found[naru.Tensor], naru.is_grad_enabled in found[naru]
    (True, True, False)
    """
    found: dict[Any, list[Callable[..., Any]]] = {}
    for name in ("", ".functional", ".nn.functional", ".linalg", ".fft", ".special"):
        module = importlib.import_module(__package__ + name)
        values = [getattr(module, public) for public in dir(module) if not public.startswith("_")]
        found[module] = [v for v in values if _takes_tensors(v)]
    methods = [getattr(Tensor, name, None) for name in dir(Tensor) if not name.startswith("__")]
    found[Tensor] = [v for v in methods if isinstance(v, type(Tensor.add))]
    return found


__getattr__ = _missing.module_getattr(__name__)
