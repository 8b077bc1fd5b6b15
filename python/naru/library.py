"""`torch.library`: user-defined operators registered as `namespace::operator`, found through `torch.ops`.

>>> import naru
>>> @custom_op("example::twice", mutates_args=())
... def twice(x: naru.Tensor) -> naru.Tensor:
...     return x * 2
>>> naru.ops.example.twice(naru.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _missing
from ._functions import compiled as compiled
from ._functions.libraries import Library, define, impl, infer_schema, opcheck
from ._functions.operators import OPERATORS, CustomOpDef, known_operator

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "infer_schema", "opcheck", "register_autograd", "register_fake", "register_kernel",
    "register_vmap",
]  # fmt: skip


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None, tags: Any = None
) -> Any:
    """Registers a function `fn` as the operator `name`, "namespace::operator"; a decorator without `fn`.

    `device_types`: the kinds of device it supports (all by default). `mutates_args` (the arguments it writes to), `schema` and `tags` are
    accepted and not checked. ValueError if the name has no namespace.

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
        found._schema, found._mutates = schema, mutates_args
        return found

    return make if fn is None else make(fn)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = True) -> Any:
    """Registers `func` as the meta implementation of an operator `op` (its name, or the result of `custom_op`); a decorator without `func`. `lib`
    and `allow_override` are ignored. RuntimeError for an unknown operator.

    >>> @naru.library.custom_op("example::double_a", mutates_args=())
    ... def double_a(x: naru.Tensor) -> naru.Tensor:
    ...     return 2 * x
    >>> _ = naru.library.register_fake("example::double_a", lambda x: naru.empty_like(x))
    >>> double_a(naru.empty(2, 3, device="meta"))
    tensor(..., device='meta', size=(2, 3))
    """
    return known_operator(op).register_fake(func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Registers `func` as the implementation of an operator `op` (its name, or the result of `custom_op`) for some kinds of device,
    `device_types`; a decorator without func. `lib` is ignored. RuntimeError for an unknown operator.

    >>> @naru.library.custom_op("example::double_b", mutates_args=(), device_types="cuda")
    ... def double_b(x: naru.Tensor) -> naru.Tensor:
    ...     return 2 * x
    >>> _ = naru.library.register_kernel(double_b, "cpu", lambda x: x + x)
    >>> double_b(naru.ones(2))
    tensor([2., 2.])
    """
    return known_operator(op).register_kernel(device_types, func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None) -> None:
    """Registers the derivative of an operator `op` (its name, or the result of `custom_op`): `backward`(ctx, *gradients), with what
    `setup_context`(ctx, inputs, output) has saved. `lib` is ignored. RuntimeError for an unknown operator.

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
    known_operator(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Accepted and not needed: vmap calls the function of the operator `op`, and the operators in it have batching rules. Returns `func`;
    `lib` is ignored.

    >>> @naru.library.custom_op("example::double_c", mutates_args=())
    ... def double_c(x: naru.Tensor) -> naru.Tensor:
    ...     return 2 * x
    >>> _ = naru.library.register_vmap(double_c, lambda info, dims, x: (2 * x, 0))
    >>> naru.vmap(double_c)(naru.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return known_operator(op).register_vmap(func)


__getattr__ = _missing.module_getattr(__name__)
