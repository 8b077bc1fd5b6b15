"""Gradient modes; each is a context manager and a decorator. The switch itself is in the core, one for each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar, overload

    from typing_extensions import Self

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]

_switch = _C._set_grad_enabled
_restore = _C._restore_grad_mode


def _decorate(fn: Any, mode: Callable[[], Any]) -> Any:
    """`fn` with every call, and every step of a generator, inside `mode()`."""
    import functools
    import inspect

    if inspect.isclass(fn):
        import warnings

        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To "
            "preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    if inspect.isgeneratorfunction(fn):

        @functools.wraps(fn)
        def generator(*args: Any, **kwargs: Any) -> Any:
            inner = fn(*args, **kwargs)
            send: tuple[str, Any] = ("send", None)
            while True:
                try:
                    with mode():
                        value = getattr(inner, send[0])(send[1])
                except StopIteration as stop:
                    return stop.value
                try:
                    send = ("send", (yield value))
                except GeneratorExit:
                    with mode():
                        inner.close()
                    raise
                except BaseException as error:
                    send = ("throw", error)

        return generator

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with mode():
            return fn(*args, **kwargs)

    return wrapper


class _Mode:
    """Base of the modes that switch to a fixed value."""

    __slots__ = ("_before",)
    _value = False

    if TYPE_CHECKING:

        @overload
        def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]

        @overload
        def __new__(cls, orig_func: None = None) -> Self: ...

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return object.__new__(cls)
        return _decorate(orig_func, cls)  # used as `@no_grad`, without parentheses

    def __enter__(self) -> None:
        self._before = _switch(self._value)

    def __exit__(self, *exc: object) -> None:
        _restore(self._before)

    def __call__(self, fn: F) -> F:
        return _decorate(fn, type(self))

    def clone(self) -> Self:
        """Another of the same kind, for another block."""
        return type(self)()


class no_grad(_Mode):
    """Within it, no history is recorded and results do not require gradients. A decorator too: `orig_func` is the function where it stands
    without parentheses.

    >>> x = naru.ones(1, requires_grad=True)
    >>> with naru.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    __slots__ = ()
    _value = False


class enable_grad(_Mode):
    """Within it, history is recorded, also inside `no_grad`. A decorator too: `orig_func` is the function where it stands without parentheses.

    >>> with naru.no_grad(), naru.enable_grad():
    ...     print(naru.is_grad_enabled())
    True
    """

    __slots__ = ()
    _value = True


class set_grad_enabled:
    """Switches recording on or off, as `mode` says: at once, and back again if used as a context manager.

    >>> with naru.set_grad_enabled(False):
    ...     print(naru.is_grad_enabled())
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._before = _switch(self.mode)

    def __enter__(self) -> None:
        _switch(self.mode)

    def __exit__(self, *exc: object) -> None:
        _restore(self._before)

    def __call__(self, fn: F) -> F:
        _restore(self._before)
        return _decorate(fn, lambda: set_grad_enabled(self.mode))

    def clone(self) -> Self:
        """Another that switches to the same, at once."""
        return type(self)(self.mode)


class set_multithreading_enabled:
    """For PyTorch's sake: whether backward may use several threads, as `mode` says. Here it runs on the calling thread, and devices at the
    same time.

    >>> x = naru.ones(1, requires_grad=True)
    >>> with naru.autograd.set_multithreading_enabled(False):
    ...     (x * 2).backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class inference_mode(_Mode):
    """`no_grad`, and what is made within it is an inference tensor: outside it can be read, but not be written to in place, nor be saved for
    backward, nor require gradients (RuntimeError; a clone can). With mode=False: `enable_grad` within another `inference_mode`.

    >>> import naru
    >>> with naru.inference_mode():
    ...     x = naru.ones(2)
    >>> x.is_inference(), x.clone().is_inference()
    (True, False)
    """

    __slots__ = ("mode", "_scope")

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]

        @overload
        def __new__(cls, mode: bool = True) -> Self: ...

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            self = object.__new__(cls)
            self.mode = mode
            return self
        return _decorate(mode, cls)

    def __enter__(self) -> None:
        self._scope = _C._InferenceScope()
        self._scope.enter(self.mode)

    def __exit__(self, *exc: object) -> None:
        self._scope.leave()

    def __call__(self, fn: F) -> F:
        return _decorate(fn, lambda: inference_mode(self.mode))

    def clone(self) -> Self:
        """Another with the same mode."""
        return type(self)(self.mode)
