"""Jacobians and Hessians, computed as products with all unit vectors in one batch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .. import _C
from ..utils._pytree import tree_flatten, tree_unflatten
from ._batched import WrittenWithoutBatchError
from ._transforms import _argnums, _replaced, jvp, vjp
from ._vmap import vmap

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def _basis(tensors: list[Tensor]) -> list[Tensor]:
    """The unit vectors over the elements of all tensors together, for each tensor: (number of all elements, *its shape)."""
    total = sum(t.numel() for t in tensors)
    found, start = [], 0
    for t in tensors:
        one = _C.zeros((total, t.numel()), dtype=t.dtype, device=t.device)
        one[start : start + t.numel()] = _C.eye(t.numel(), dtype=t.dtype, device=t.device)
        found.append(one.reshape((total, *t.shape)))
        start += t.numel()
    return found


def _split(x: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """Splits the first dimension of `x` into the elements of each tensor, with its shape."""
    return [part.reshape((*t.shape, *tuple(x.shape)[1:])) for part, t in zip(x.split([t.numel() for t in tensors], 0), tensors)]


def _one_by_one(f: Callable[..., Any], batch: list[Tensor]) -> Any:
    """The same result as vmap of f, with one call for each entry."""
    each = [tree_flatten(f(*one)) for one in zip(*batch)]
    return tree_unflatten([_C.stack(list(column)) for column in zip(*(leaves for leaves, _ in each))], each[0][1])


def _require_real(api: str, what: str, tree: Any) -> None:
    for x in tree_flatten(tree)[0]:
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{api}: Expected all {what} to be real but received complex tensor of dtype {x.dtype}; take view_as_real")


def jacrev(
    func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None, _preallocate_and_copy: bool = False
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by its arguments `argnums`, computed with backward: a batch of rows, one for each output element.
    `has_aux`: func returns (output, aux), and the result is (Jacobian, aux).

    The function runs once for its outputs and once more for the batch of rows. `chunk_size`: the number of rows to compute at
    a time; with 1, rows are computed without vmap.

    >>> jacrev(naru.sin)(naru.tensor([0.0, 0.0]))
    tensor([[1., 0.],
            [0., 1.]])
    """

    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: `chunk_size` should be greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers, single = _argnums(argnums, args)
        picked = tuple(args[n] for n in numbers)
        _require_real("jacrev", "inputs", picked)

        def of(*values: Any) -> Any:
            return func(*_replaced(args, numbers, values), **kwargs)

        state = _C.default_generator.get_state()
        found = vjp(of, *picked, has_aux=has_aux)
        output, aux = found[0], found[2] if has_aux else None
        flat, out_spec = tree_flatten(output)
        _require_real("jacrev", "outputs", flat)

        def row(*cotangents: Any) -> Any:
            _C.default_generator.set_state(state)  # the same random numbers as in the first run
            return vjp(of, *picked, has_aux=has_aux)[1](tree_unflatten(list(cotangents), out_spec))

        try:
            if chunk_size == 1:  # without vmap, which avoids its restrictions
                raise WrittenWithoutBatchError
            rows = vmap(row, randomness="same", chunk_size=chunk_size)(*_basis(flat))
        except WrittenWithoutBatchError:  # the function writes to a tensor that is not one of its inputs
            rows = _one_by_one(lambda *one: found[1](tree_unflatten(list(one), out_spec)), _basis(flat))
        grads, in_spec = tree_flatten(rows)
        columns = [_split(g, flat) for g in grads]
        per_output = [tree_unflatten([c[i] for c in columns], in_spec) for i in range(len(flat))]
        if single:
            per_output = [p[0] for p in per_output]
        result = tree_unflatten(per_output, out_spec)
        return (result, aux) if has_aux else result

    return wrapper


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by its arguments `argnums`, computed with `jvp`: a batch of columns, one for each input element.
    `has_aux`: func returns (output, aux), and the result is (Jacobian, aux). `randomness`: the mode of random operators, as for `vmap`.

    >>> jacfwd(naru.sin)(naru.tensor([0.0, 0.0]))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers, single = _argnums(argnums, args)
        picked = tuple(args[n] for n in numbers)
        flat, in_spec = tree_flatten(picked)
        _require_real("jacfwd", "inputs", flat)

        def of(*values: Any) -> Any:
            return func(*_replaced(args, numbers, values), **kwargs)

        def column(*tangents: Any) -> Any:
            found = jvp(of, picked, tree_unflatten(list(tangents), in_spec), has_aux=has_aux)
            _require_real("jacfwd", "outputs", found[0])
            return (found[1], found[2]) if has_aux else found[1]

        try:
            columns = vmap(column, randomness=randomness)(*_basis(flat))
        except WrittenWithoutBatchError:
            columns = _one_by_one(column, _basis(flat))
        aux = None
        if has_aux:
            columns, aux = columns
            aux = _first(aux)
        outs, out_spec = tree_flatten(columns)
        per_output = []
        for o in outs:
            parts = [p.movedim(tuple(range(t.dim())), tuple(range(o.dim() - 1, o.dim() - 1 + t.dim()))) for p, t in zip(_split(o, flat), flat)]
            per_output.append(tree_unflatten(parts, in_spec))
        if single:
            per_output = [p[0] for p in per_output]
        result = tree_unflatten(per_output, out_spec)
        return (result, aux) if has_aux else result

    return wrapper


def _first(tree: Any) -> Any:
    flat, spec = tree_flatten(tree)
    return tree_unflatten([x.select(0, 0) for x in flat], spec)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func` by its arguments `argnums`: jacfwd(jacrev(func)).

    >>> hessian(lambda x: (x**3).sum())(naru.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
