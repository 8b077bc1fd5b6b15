"""`torch.autograd.functional`: Jacobians, Hessians, and products with them. The work is done in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]


def _as_tuple(value: Any, what: str, name: str) -> tuple:
    items = value if isinstance(value, tuple) else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"value at index {i}" if isinstance(value, tuple) else f"given {what}"
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {where} has type {type(item)}.")
    return items


class _Of:
    """Wraps the user's function for the core, and notes whether it returned a tuple."""

    def __init__(self, func: Callable[..., Any], name: str) -> None:
        self.func = func
        self.name = name
        self.gives_tuple = False

    def __call__(self, inputs: tuple) -> tuple:
        result = self.func(*inputs)
        self.gives_tuple = isinstance(result, tuple)
        return _as_tuple(result, "outputs of the user-provided function", self.name)


def _one(values: tuple, is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def _product(name: str, like_inputs: bool, func: Any, inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple[Any, Any]:
    of = _Of(func, name)
    given = _as_tuple(inputs, "inputs", name)
    direction = None if v is None else _as_tuple(v, "v", name)
    outputs, product = getattr(_C, "_" + name)(of, given, direction, create_graph, strict)
    return _one(outputs, of.gives_tuple), _one(product, isinstance(inputs, tuple) if like_inputs else of.gives_tuple)


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), `v` times its Jacobian). `v` has the form of the outputs of `func`, and may be omitted for one element. `inputs`: a tensor or
    a tuple.

    `create_graph`: makes the results differentiable. `strict`: RuntimeError if an output does not depend on an input. TypeError for values that
    are not tensors.

    >>> naru.autograd.functional.vjp(lambda x: x * x, naru.tensor([1.0, 2.0]), naru.tensor([1.0, 1.0]))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    return _product("vjp", True, func, inputs, v, create_graph, strict)


def jvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), its Jacobian times `v`). `v` has the form of the `inputs` of `func`, and may be omitted for one element. `create_graph` and
    `strict`: as in `vjp`.

    >>> naru.autograd.functional.jvp(lambda x: x * x, naru.tensor([1.0, 2.0]), naru.tensor([1.0, 0.0]))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    return _product("jvp", False, func, inputs, v, create_graph, strict)


def vhp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), `v` times its Hessian), for a function `func` that returns one element. `v` has the form of the `inputs`. `create_graph` and
    `strict`: as in `vjp`.

    >>> naru.autograd.functional.vhp(lambda x: (x**3).sum(), naru.tensor([1.0, 2.0]), naru.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _product("vhp", True, func, inputs, v, create_graph, strict)


def hvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), its Hessian times `v`), for a function `func` that returns one element. `v` has the form of the `inputs`. `create_graph` and
    `strict`: as in `vjp`.

    >>> naru.autograd.functional.hvp(lambda x: (x**3).sum(), naru.tensor([1.0, 2.0]), naru.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _product("hvp", True, func, inputs, v, create_graph, strict)


def _check_strategy(name: str, vectorize: bool, strict: bool, mode: str, create_graph: bool) -> None:
    """Checks `vectorize` and the strategy. They do not change the result: rows are always computed one at a time."""
    if mode not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
            '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if mode == "forward-mode" and create_graph and name == "jacobian":
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please either '
            'set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if mode == "forward-mode" and strict:
        raise RuntimeError(f'torch.autograd.functional.{name}: `strict=True` and `strategy="forward-mode"` are not supported together (yet).')
    if mode == "forward-mode" and not vectorize:
        raise NotImplementedError(
            f'Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`. (torch.autograd.functional.{name})'
        )
    if vectorize and strict:
        raise RuntimeError(
            f"torch.autograd.functional.{name}: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` "
            "or `vectorize=False`."
        )


def jacobian(
    func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
) -> Any:
    """The derivatives of the outputs of `func` by its `inputs`. Each has the output's shape followed by the input's; tuples if func returns
    or accepts tuples.

    `create_graph` and `strict`: as in `vjp`. `vectorize` and `strategy` ("reverse-mode" or "forward-mode") change how PyTorch computes;
    naru computes rows one at a time. RuntimeError or NotImplementedError for options that exclude each other.

    >>> naru.autograd.functional.jacobian(lambda x: x * x, naru.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy("jacobian", vectorize, strict, strategy, create_graph)
    of = _Of(func, "jacobian")
    rows = _C._jacobian(of, _as_tuple(inputs, "inputs", "jacobian"), create_graph, strict)
    return _one(tuple(_one(row, isinstance(inputs, tuple)) for row in rows), of.gives_tuple)


def hessian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of `func`, which returns one element, by its `inputs`; tuples if it accepts a tuple. `create_graph`, `strict` and
    `vectorize`: as in `jacobian`. `outer_jacobian_strategy`: as its strategy.

    >>> naru.autograd.functional.hessian(lambda x: (x**3).sum(), naru.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy("hessian", vectorize, strict, outer_jacobian_strategy, create_graph)
    rows = _C._hessian(_Of(func, "hessian"), _as_tuple(inputs, "inputs", "hessian"), create_graph, strict)
    is_tuple = isinstance(inputs, tuple)
    return _one(tuple(_one(row, is_tuple) for row in rows), is_tuple)

__getattr__ = _missing.module_getattr(__name__)
