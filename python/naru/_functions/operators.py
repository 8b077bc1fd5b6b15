"""User-defined operators by name (`torch.library` registers them here, `torch.ops` finds them)."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

OPERATORS: dict[str, Any] = {}
# Called before an operator counts as unknown: they take what C++ libraries have registered.
LOOKS: list[Callable[[], None]] = []


class CustomOpDef:
    """A user-defined operator, made by `custom_op`: the function `fn` for `device_types`, other functions for other kinds of device, and a
    derivative. `name`: "namespace::operator".

    >>> @naru.library.custom_op("example::thrice", mutates_args=())
    ... def thrice(x: naru.Tensor) -> naru.Tensor:
    ...     return 3 * x
    >>> thrice, thrice(naru.ones(2))
    (<CustomOpDef(example::thrice)>, tensor([3., 3.]))
    """

    def __init__(self, name: str, fn: Callable[..., Any] | None, device_types: Any, signature: inspect.Signature | None = None) -> None:
        self._qualname = self._name = name
        self.__name__ = name.rpartition("::")[2]
        self._kernels: dict[str | None, Callable[..., Any]] = {}
        if fn is not None:
            self.register_kernel(device_types, fn)
        self._autograd: dict[str | None, Callable[..., Any]] = {}
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._signature = signature or inspect.signature(fn)  # type: ignore[arg-type]
        self._opoverload = self
        self._schema: str | None = None
        self._mutates: Any = ()

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None) -> Any:
        """Registers the function for some kinds of device ("cpu", "cuda", a list of them, or None for all); a decorator without `fn`."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            for kind in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                self._kernels[kind] = fn
            return fn

        return register if fn is None else register(fn)

    register_impl = register_kernel

    def register_fake(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """Registers the function for the meta device; a decorator without `fn`."""
        return self.register_kernel("meta", fn)

    register_abstract = register_fake

    def register_vmap(self, func: Any = None) -> Any:
        """Accepted and not needed: vmap calls the function, and the operators in it have batching rules."""
        return (lambda f: f) if func is None else func

    register_torch_dispatch = register_autocast = register_vmap

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """Registers the derivative: `setup_context(ctx, inputs, output)` saves what `backward(ctx, *gradients)` needs. The default is to differentiate `fn`."""
        self._backward, self._setup = backward, setup_context

    def _kernel(self, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any]:
        flat = [v for value in (*args, *kwargs.values()) for v in (value if isinstance(value, (list, tuple)) else [value])]
        kind = next((value.device.type for value in flat if isinstance(value, Tensor)), None)
        # A C++ library's function that records the history itself comes first, but on the meta device.
        recording = self._autograd.get(kind) or self._autograd.get(None)
        if recording is not None and self._backward is None and kind != "meta":
            return recording
        found = self._kernels.get(kind) or self._kernels.get(None)
        if found is None:
            raise NotImplementedError(f"{self._name}: no kernel was registered for {kind}; there are kernels for {sorted(map(str, self._kernels))}")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ..overrides import handle_torch_function, sees_operators

        return handle_torch_function(self, (), *args, **kwargs) if sees_operators() else self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if self._backward is None:
            return self._kernel(args, kwargs)(*args, **kwargs)
        # Only keyword-only parameters stay keywords: `setup_context` gets the others as positional arguments.
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return _differentiable(self, bound.kwargs).apply(*bound.args)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def _differentiable(op: CustomOpDef, kwargs: dict[str, Any]) -> Any:
    from ..autograd import Function

    class Operator(Function):
        @staticmethod
        def forward(*args: Any) -> Any:
            return op._kernel(args, kwargs)(*args, **kwargs)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            if op._setup is not None and kwargs:
                op._setup(ctx, inputs, kwargs, output)
            elif op._setup is not None:
                op._setup(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            assert op._backward is not None
            return op._backward(ctx, *gradients)

    Operator.__name__ = op._name.replace("::", "_")
    return Operator


def known_operator(op: Any) -> CustomOpDef:
    """The operator of that name, or the operator itself. RuntimeError if there is none."""
    if isinstance(op, CustomOpDef):
        return op
    if op not in OPERATORS:
        for look in LOOKS:
            look()
    if op not in OPERATORS:
        raise RuntimeError(f"operator {op} does not exist; the program's own are {sorted(OPERATORS)}")
    return OPERATORS[op]
