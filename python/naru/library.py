"""`torch.library`: operators of a program's own under a name, `namespace::operator`, which `torch.ops` finds again.

>>> import naru
>>> @custom_op("example::twice", mutates_args=())
... def twice(x: naru.Tensor) -> naru.Tensor:
...     return x * 2
>>> naru.ops.example.twice(naru.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from . import _C, _missing
from ._functions.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel", "register_vmap"]


class CustomOpDef:
    """An operator of the program's own, what `custom_op` makes: the function `fn` for `device_types`, others for kinds of devices, and a
    derivative. `name`: "namespace::operator".

    >>> @naru.library.custom_op("example::thrice", mutates_args=())
    ... def thrice(x: naru.Tensor) -> naru.Tensor:
    ...     return 3 * x
    >>> thrice, thrice(naru.ones(2))
    (<CustomOpDef(example::thrice)>, tensor([3., 3.]))
    """

    def __init__(self, name: str, fn: Callable[..., Any], device_types: Any) -> None:
        self._qualname = self._name = name
        self._kernels: dict[str | None, Callable[..., Any]] = {}
        for kind in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
            self._kernels[kind] = fn
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._init_fn = fn
        self._opoverload = self
        self._schema: str | None = None

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None) -> Any:
        """The function for tensors of some kinds of devices ("cpu", "cuda", a list of them, or None for all); a decorator without `fn`."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            for kind in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                self._kernels[kind] = fn
            return fn

        return register if fn is None else register(fn)

    register_impl = register_kernel

    def register_fake(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """What the operator gives for tensors of the device "meta"; a decorator without `fn`."""
        return self.register_kernel("meta", fn)

    register_abstract = register_fake

    def register_vmap(self, func: Any = None) -> Any:
        """Taken, and not needed: vmap calls the function, whose operators have rules."""
        return (lambda f: f) if func is None else func

    register_torch_dispatch = register_autocast = register_vmap

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """The derivative: `setup_context(ctx, inputs, output)` saves what `backward(ctx, *gradients)` wants. Without one the operators within have theirs."""
        self._backward, self._setup = backward, setup_context

    def _kernel(self, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any]:
        flat = [v for value in (*args, *kwargs.values()) for v in (value if isinstance(value, (list, tuple)) else [value])]
        kind = next((value.device.type for value in flat if isinstance(value, Tensor)), None)
        found = self._kernels.get(kind) or self._kernels.get(None)
        if found is None:
            raise NotImplementedError(f"{self._name}: no kernel was registered for {kind}; there are kernels for {sorted(map(str, self._kernels))}")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._backward is None:
            return self._kernel(args, kwargs)(*args, **kwargs)
        # Only parameters that must be named stay so: `setup_context` is told of the others by their places.
        bound = inspect.signature(self._init_fn).bind(*args, **kwargs)
        bound.apply_defaults()
        return _differentiable(self, bound.kwargs).apply(*bound.args)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def _differentiable(op: CustomOpDef, kwargs: dict[str, Any]) -> Any:
    from .autograd import Function

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


def _of(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in OPERATORS:
        raise RuntimeError(f"operator {op} does not exist; the program's own are {sorted(OPERATORS)}")
    return OPERATORS[op]


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None, tags: Any = None
) -> Any:
    """Makes a function `fn` the operator `name`, "namespace::operator"; a decorator without `fn`.

    `device_types`: the kinds of devices that it is for (all by default). What it writes into (`mutates_args`), its `schema` and `tags` are
    taken and not checked. ValueError where the name has no namespace.

    >>> @naru.library.custom_op("example::half_of", mutates_args=())
    ... def half_of(x: naru.Tensor) -> naru.Tensor:
    ...     return x / 2
    >>> naru.ops.example.half_of(naru.ones(2))
    tensor([0.5000, 0.5000])
    """
    if name.count("::") != 1:
        raise ValueError(f"Expected `name` to be in the form of namespace::name, got {name}")

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        OPERATORS[name] = found = CustomOpDef(name, fn, device_types)
        found._schema = schema
        return found

    return make if fn is None else make(fn)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = True) -> Any:
    """What an operator `op` (its name, or what `custom_op` gave) gives for tensors of the device "meta": `func`; a decorator without. `lib`
    and `allow_override` are taken. RuntimeError for an operator that is not there.

    >>> @naru.library.custom_op("example::double_a", mutates_args=())
    ... def double_a(x: naru.Tensor) -> naru.Tensor:
    ...     return 2 * x
    >>> _ = naru.library.register_fake("example::double_a", lambda x: naru.empty_like(x))
    >>> double_a(naru.empty(2, 3, device="meta"))
    tensor(..., device='meta', size=(2, 3))
    """
    return _of(op).register_fake(func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """The function `func` of an operator `op` (its name, or what `custom_op` gave) for some kinds of devices, `device_types`; a decorator
    without func. `lib` is taken. RuntimeError for an operator that is not there.

    >>> @naru.library.custom_op("example::double_b", mutates_args=(), device_types="cuda")
    ... def double_b(x: naru.Tensor) -> naru.Tensor:
    ...     return 2 * x
    >>> _ = naru.library.register_kernel(double_b, "cpu", lambda x: x + x)
    >>> double_b(naru.ones(2))
    tensor([2., 2.])
    """
    return _of(op).register_kernel(device_types, func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None) -> None:
    """The derivative of an operator `op` (its name, or what `custom_op` gave): `backward`(ctx, *gradients), with what `setup_context`(ctx,
    inputs, output) has saved. `lib` is taken. RuntimeError for an operator that is not there.

    >>> @naru.library.custom_op("example::square_of", mutates_args=())
    ... def square_of(x: naru.Tensor) -> naru.Tensor:
    ...     return x.square()
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> naru.library.register_autograd(square_of, lambda ctx, g: g * 2 * ctx.saved_tensors[0], setup_context=setup_context)
    >>> x = naru.tensor(3.0, requires_grad=True)
    >>> square_of(x).backward(); x.grad
    tensor(6.)
    """
    _of(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Taken, and not needed: vmap calls the function of the operator `op`, whose operators have rules. `func` is given back, and `lib` is
    taken.

    >>> @naru.library.custom_op("example::double_c", mutates_args=())
    ... def double_c(x: naru.Tensor) -> naru.Tensor:
    ...     return 2 * x
    >>> _ = naru.library.register_vmap(double_c, lambda info, dims, x: (2 * x, 0))
    >>> naru.vmap(double_c)(naru.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return _of(op).register_vmap(func)


Library: Any = _missing.absent_class("library.Library")

__getattr__ = _missing.module_getattr(__name__)
