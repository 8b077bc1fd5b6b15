"""Batching rules of operators that C++ has none for: linear algebra, Fourier transforms, random numbers."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import leaves, mapped
from .._stand_in import wrapped as shown
from ._batched import Level, by_loop, drawn, has_batch, opened, random_error, rank, require_batch, rule, value_of, with_batch, wrapped

Tensor = _C.Tensor


def _aligned(x: Any, level: Level, most: int) -> Any:
    """The value with the batch first, padded with dimensions of size 1 to the rank of the result."""
    if not has_batch(x, level):
        return x
    value = value_of(x)
    missing = most - (value.dim() - 1)
    return value.reshape((value.shape[0],) + (1,) * missing + tuple(value.shape)[1:]) if missing > 0 else value


def _elementwise(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    most = max(x.dim() for x in leaves((*args, *kwargs.values())) if isinstance(x, Tensor))
    return wrapped(func(*mapped(lambda x: _aligned(x, level, most), args), **mapped(lambda x: _aligned(x, level, most), kwargs)), level)


rule(
    *(f"special_{kind}_polynomial_{letter}" for kind in ("chebyshev", "shifted_chebyshev") for letter in "tuvw"),
    "special_hermite_polynomial_h", "special_hermite_polynomial_he", "special_laguerre_polynomial_l", "special_legendre_polynomial_p",
)(_elementwise)  # fmt: skip


@rule("linalg_matrix_rank", "linalg_pinv")
def _of_singular_values(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The tolerances may differ between entries."""
    most = args[0].dim() - 2
    return wrapped(func(with_batch(args[0], level), *(_aligned(a, level, most) for a in args[1:]), **{k: _aligned(v, level, most) for k, v in kwargs.items()}), level)


# --- operators that accept any leading batch dimensions


@rule("nn_pad")
def _natural(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if any(has_batch(x, level) for x in leaves((*args[1:], *kwargs.values()))):
        return NotImplemented
    return wrapped(func(opened(args[0], level), *args[1:], **kwargs), level)


@rule(*(f"fft_{kind}{n}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for n in ("", "2", "n")))
def _fourier(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """(input, n or s=None, dim, norm=None): along one dimension, the last by default, or several."""
    x, rest = args[0], list(args[1:])
    of_rank = rank(x, level)
    name = func.__name__
    size = rest[0] if rest else kwargs.get("s" if name[-1] in "2n" else "n")
    dim = rest[1] if len(rest) > 1 else kwargs.get("dim", -1 if name[-1] not in "2n" else (-2, -1) if name[-1] == "2" else None)
    norm = rest[2] if len(rest) > 2 else kwargs.get("norm")
    if of_rank == 0 or kwargs.get("out") is not None:
        return NotImplemented
    if dim is None:
        dim = tuple(range(-len(size), 0)) if size is not None else tuple(range(of_rank))
    return wrapped(func(value_of(x), size, _moved(dim, of_rank), norm), level)


@rule("new_empty_strided")
def _new_strided(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    size, stride = args[1:]
    each = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride))
    return wrapped(func(value_of(args[0]), (level.size, *size), (each, *stride), **kwargs), level)


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
def _new(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if func.__name__ == "new_tensor" or not has_batch(args[0], level):
        return func(opened(args[0], level), *args[1:], **kwargs)
    kwargs = dict(kwargs)
    size, rest = (kwargs.pop("size"), args[1:]) if "size" in kwargs else (args[1], args[2:]) if isinstance(args[1], (tuple, list)) else (args[1:], ())
    return wrapped(func(value_of(args[0]), (level.size, *size), *rest, **kwargs), level)


# Index of the argument that has one dimension less than the matrices.
_OF_LOWER_RANK = {"lu_solve": 2, "linalg_lu_solve": 1, "linalg_householder_product": 1, "ormqr": 1, "linalg_ldl_solve": 1}


@rule(
    "linalg_solve_triangular", "cholesky_solve", "triangular_solve", "linalg_lstsq", "lu_solve", "linalg_lu_solve",
    "linalg_householder_product", "ormqr", "linalg_ldl_solve",
)  # fmt: skip
def _side_by_side(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Functions of several tensors with leading batch dimensions: all tensors get the batch."""
    short = args[_OF_LOWER_RANK[func.__name__]] if func.__name__ in _OF_LOWER_RANK else None
    most = max(rank(x, level) + (x is short) for x in args if isinstance(x, Tensor))

    def prepared(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return _aligned(wrapped(with_batch(x, level), level), level, most - (x is short))

    found = func(*(prepared(a) for a in args), **kwargs)
    if func.__name__ == "linalg_lstsq":  # results that are not computed have shape (0,), whatever the batch
        found = shown(lambda r: r.expand(level.size, 0) if r.shape == (0,) else r, found)
    return wrapped(found, level)


def _moved(dim: Any, of_rank: int) -> Any:
    """The dimension's index with the batch in front."""
    if isinstance(dim, (tuple, list)):
        return tuple(_moved(d, of_rank) for d in dim)
    seen = max(of_rank, 1)
    if not -seen <= dim < seen:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-seen}, {seen - 1}], but got {dim})")
    return dim + 1 if dim >= 0 else dim + seen + 1


@rule("_grad")
def _gradients(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Backward with batched gradients through a graph recorded without the batch: one call for each entry, and the graph is retained."""
    return by_loop(level, func, (*args[:3], True, *args[4:]), kwargs, warn=False)


RANDOM = (
    "bernoulli", "rand_like", "randn_like", "randint_like", "normal", "poisson", "uniform_", "normal_", "exponential_", "bernoulli_", "random_", "cauchy_",
    "log_normal_", "geometric_", "multinomial", "binomial", "standard_gamma",
)  # fmt: skip


@rule(*RANDOM)
def _random(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if level.randomness == "error":
        raise random_error()
    in_place = func.__name__.endswith("_")
    if level.randomness == "different":
        if func.__name__ in ("normal", "binomial"):
            return _elementwise(level, func, args, kwargs)
        if func.__name__ == "multinomial" and args[0].dim() == 2:
            value = value_of(args[0])
            return wrapped(drawn(func, value.flatten(0, 1), *args[1:], **kwargs).reshape(*tuple(value.shape)[:2], -1), level)
        if in_place:
            require_batch(args[0], level, func.__name__)
        result = drawn(func, *(opened(a, level) for a in args), **kwargs)
        return args[0] if in_place else wrapped(result, level)
    if in_place and not any(has_batch(a, level) for a in (*args[1:], *kwargs.values())):
        value_of(args[0]).copy_(drawn(func, value_of(args[0]).select(0, 0).clone(), *args[1:], **kwargs))
        return args[0]
    if not in_place and all(value_of(a).stride(0) == 0 for a in (*args, *kwargs.values()) if has_batch(a, level)):  # the same values for all entries
        return func(*(value_of(a).select(0, 0) if has_batch(a, level) else a for a in args), **kwargs)
    if func.__name__.endswith("_like"):
        return func(value_of(args[0]).select(0, 0), *args[1:], **kwargs)
    raise RuntimeError(f"vmap: Vmap does not currently support same randomness with a batched tensor input to {func.__name__}")
