"""Batching rules of operators, by families: each is a line or a function."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import ALL, BROADCAST, DIMS, IN_PLACE, UNARY, leaves, mapped, sizes_of
from .._stand_in import wrapped as shown
from ._batched import Level, by_loop, drawn, has_batch, is_batched, opened, random_error, rank, require_batch, rule, with_batch, wrapped

Tensor = _C.Tensor

# --- elementwise: shapes are aligned from the right, so the batch stays the first dimension.


def _category(dtype: Any) -> int:
    return 0 if dtype is _C.bool else 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


def _aligned(x: Any, level: Level, most: int) -> Any:
    """The value with the batch first, padded with dimensions of size 1 to the rank of the result."""
    if not has_batch(x, level):
        return x
    value = x.value
    missing = most - (value.dim() - 1)
    return value.reshape((value.shape[0],) + (1,) * missing + tuple(value.shape)[1:]) if missing > 0 else value


def _elementwise(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    tensors = [x for x in leaves((*args, *kwargs.values())) if isinstance(x, Tensor)]
    most = max(rank(x, level) for x in tensors)
    # For type promotion, tensors that are 0-d to the function count as 0-d, although their batch gives them a dimension.
    deciding = [x for x in tensors if rank(x, level) > 0]
    strongest = max((_category(x.dtype) for x in deciding), default=-1)

    def prepared(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if has_batch(x, level) and rank(x, level) == 0 and strongest >= _category(x.dtype) and all(x.dtype is not d.dtype for d in deciding):
            x = wrapped(x.value.to(next(d.dtype for d in deciding if _category(d.dtype) == strongest)), level)
        return _aligned(x, level, most)

    return wrapped(func(*mapped(prepared, args), **mapped(prepared, kwargs)), level)


def _in_place(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    target = args[0]
    require_batch(target, level, func.__name__)
    most = rank(target, level)
    if func.__name__ == "fill_" and isinstance(args[1], Tensor):
        if rank(args[1], level):
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {rank(args[1], level)} dimensions.")
        target.value.copy_(_aligned(args[1], level, most))
        return target
    func(target.value, *mapped(lambda x: _aligned(x, level, most), args[1:]), **mapped(lambda x: _aligned(x, level, most), kwargs))
    return target


rule(*UNARY, *BROADCAST)(_elementwise)
rule(*IN_PLACE)(_in_place)


@rule(
    "is_floating_point", "is_complex", "is_signed", "is_contiguous", "element_size", "stride", "storage_offset", "get_device", "is_inference", "is_conj",
    "is_neg", "is_same_size", "is_pinned", "is_shared",
)  # fmt: skip
def _of_entry(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Properties that are the same for all entries."""
    return func(*(a.value.select(0, 0) if has_batch(a, level) else a for a in args), **kwargs)


# --- operators that accept any leading batch dimensions


@rule(
    "clone", "contiguous", "detach", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cpu", "cuda", "tril",
    "triu", "inverse", "det", "logdet", "slogdet", "cholesky", "cholesky_inverse", "pinverse", "matrix_exp", "svd", "qr", "linalg_inv", "linalg_det", "linalg_slogdet",
    "linalg_cholesky", "linalg_cholesky_ex", "linalg_eigh", "linalg_eigvalsh", "linalg_eig", "linalg_eigvals", "linalg_svd", "linalg_svdvals",
    "linalg_qr", "linalg_matrix_power", "linalg_inv_ex", "linalg_lu", "linalg_matrix_exp", "matrix_power", "adjoint", "view_as_real", "view_as_complex",
    "zeros_like", "ones_like", "empty_like", "full_like", "resolve_conj", "resolve_neg", "requires_grad_", "detach_", "nn_pad", "vander",
    "linalg_vander", "cfloat", "cdouble", "chalf", "linalg_lu_factor", "linalg_lu_factor_ex", "geqrf", "linalg_ldl_factor", "linalg_ldl_factor_ex",
    "lu_with_info", "linalg_matrix_sqrth", "linalg_polar",
)  # fmt: skip
def _natural(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if any(has_batch(x, level) for x in leaves((*args[1:], *kwargs.values()))) or (func.__name__ == "linalg_vander" and rank(args[0], level) == 0):
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
    return wrapped(func(x.value, size, _moved(dim, of_rank), norm), level)


@rule("diag_embed")
def _diag_embed(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    offset, first, second = (*args[1:], *([0, -2, -1][len(args) - 1 :]))
    dims = _moved((kwargs.get("dim1", first), kwargs.get("dim2", second)), rank(args[0], level) + 1)
    return wrapped(args[0].value.diag_embed(kwargs.get("offset", offset), *dims), level)


@rule("renorm")
def _renorm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Renormalises the slices of all entries as slices of one tensor; each is scaled separately."""
    if len(args) != 4 or kwargs:
        return NotImplemented
    x, p, dim, most = args
    value = x.value.movedim(_moved(dim, rank(x, level)), 1)
    out = func(value.flatten(0, 1), p, 0, most).reshape(value.shape)
    return wrapped(out.movedim(1, _moved(dim, rank(x, level))), level)


@rule("masked_fill")
def _masked_fill(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    value = args[2] if len(args) > 2 else kwargs.get("value")
    if has_batch(value, level) and rank(value, level) == 0:
        return _C.where(args[1], value.to(args[0].dtype), args[0])
    return _elementwise(level, func, args, kwargs)


@rule("prelu")
def _prelu(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, weight = (*args, *kwargs.values())
    of_rank, slopes = rank(x, level), weight
    if weight.numel() == 1:
        slopes = weight.reshape(())
    elif of_rank > 1 and weight.dim() == 1 and weight.shape[0] == x.shape[1]:
        slopes = weight.reshape((-1,) + (1,) * (of_rank - 2))
    else:
        return NotImplemented
    return _C.where(x >= 0, x, slopes * x)


@rule("to", "type_as")
def _to(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not has_batch(args[0], level):
        return args[0].to(args[1].device, args[1].dtype)
    return wrapped(func(args[0].value, *(opened(a, level) for a in args[1:]), **kwargs), level)


@rule("new_empty_strided")
def _new_strided(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    size, stride = args[1:]
    each = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride))
    return wrapped(func(args[0].value, (level.size, *size), (each, *stride), **kwargs), level)


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
def _new(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if func.__name__ == "new_tensor" or not has_batch(args[0], level):
        return func(opened(args[0], level), *args[1:], **kwargs)
    kwargs = dict(kwargs)
    size, rest = (kwargs.pop("size"), args[1:]) if "size" in kwargs else (args[1], args[2:]) if isinstance(args[1], (tuple, list)) else (args[1:], ())
    return wrapped(func(args[0].value, (level.size, *size), *rest, **kwargs), level)


# Index of the argument that has one dimension less than the matrices.
_OF_LOWER_RANK = {"lu_solve": 2, "linalg_lu_solve": 1, "linalg_householder_product": 1, "ormqr": 1, "linalg_ldl_solve": 1, "lu_unpack": 1}


@rule(
    "linalg_solve", "linalg_solve_ex", "linalg_solve_triangular", "cholesky_solve", "linalg_cross", "triangular_solve", "linalg_lstsq", "lu_solve", "linalg_lu_solve",
    "cdist", "linalg_householder_product", "ormqr", "linalg_ldl_solve", "lu_unpack",
)  # fmt: skip
def _side_by_side(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Functions of several tensors with leading batch dimensions: all tensors get the batch."""
    short = args[_OF_LOWER_RANK[func.__name__]] if func.__name__ in _OF_LOWER_RANK else None
    most = max(rank(x, level) + (x is short) for x in args if isinstance(x, Tensor))

    def prepared(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return _aligned(wrapped(with_batch(x, level), level), level, most - (x is short))

    if func.__name__ in ("linalg_solve", "linalg_solve_ex") and rank(args[1], level) == 1 and rank(args[0], level) == 2:
        solved = func(prepared(args[0]), with_batch(args[1], level).unsqueeze(-1), **kwargs)
        return wrapped(shown(lambda t: t.squeeze(-1) if t.dim() > 1 else t, solved), level)
    if kwargs.get("dim", -1) >= 0:  # linalg_cross: count from the end, which the batch does not shift
        kwargs = {**kwargs, "dim": kwargs["dim"] - most}
    found = func(*(prepared(a) for a in args), **kwargs)
    if func.__name__ == "linalg_lstsq":  # results that are not computed have shape (0,), whatever the batch
        found = shown(lambda r: r.expand(level.size, 0) if r.shape == (0,) else r, found)
    return wrapped(found, level)


# --- operators along a dimension, whose index is shifted by one


def _moved(dim: Any, of_rank: int) -> Any:
    """The dimension's index with the batch in front."""
    if isinstance(dim, (tuple, list)):
        return tuple(_moved(d, of_rank) for d in dim)
    seen = max(of_rank, 1)
    if not -seen <= dim < seen:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-seen}, {seen - 1}], but got {dim})")
    return dim + 1 if dim >= 0 else dim + seen + 1


def _with_dim(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    name = func.__name__.strip("_")
    at, default = DIMS[name]
    x, rest, named = args[0], list(args[1:]), dict(kwargs)
    if any(isinstance(a, Tensor) for a in rest) or any(is_batched(v) for v in named.values()):
        return _elementwise(level, func, args, kwargs) if name in ("max", "min") else NotImplemented
    if not has_batch(x, level):
        return NotImplemented
    value, of_rank = x.value, rank(x, level)
    if name in ("std", "var", "std_mean", "var_mean") and rest and isinstance(rest[0], bool):
        named["unbiased"] = rest.pop(0)
    dim = rest[at] if len(rest) > at else named.pop("dim", named.pop("axis", named.pop("dims", default)))
    if name == "repeat_interleave" and dim is None:
        value, of_rank, dim = value.flatten(1), 1, 0
    key = "dims" if name in ("roll", "flip") else "dim"
    if of_rank == 0:
        value = value.unsqueeze(1)
    if dim is ALL or dim is None and default is ALL or dim == () and default is ALL:
        if name == "roll":
            flat = func(value.flatten(1), *rest[:at], dims=1)
            return wrapped(flat.reshape(value.shape), level)
        keep = named.pop("keepdim", False)
        result = func(value.flatten(1), *rest[:at], dim=1, **named)
        if name in ("max", "min", "median", "nanmedian"):
            result = result[0]
        made = wrapped(result, level)
        return shown(lambda r: r.reshape((1,) * of_rank), made) if keep else made
    if dim is None:
        return NotImplemented
    moved = _moved(dim, of_rank)
    if len(rest) > at:
        rest[at] = moved
    else:
        named[key] = moved
    result = wrapped(func(value, *rest, **named), level)
    return shown(lambda r: r.squeeze(0) if r.shape == (1,) else r, result) if of_rank == 0 else result


rule(*DIMS)(_with_dim)


@rule(*(f"_masked_{name}" for name in "sum prod amax amin mean logsumexp argmax argmin median var std norm cumsum cumprod softmax softmin log_softmax normalize".split()))
def _masked(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """naru.masked: the arguments are the tensor, its mask, and then a dimension."""
    x, mask, rest = args[0], args[1], list(args[2:])
    of_rank = rank(x, level)
    at = 1 if func.__name__ in ("_masked_norm", "_masked_normalize") else 0
    whole = rest[at] is None or rest[at] == ()
    if (whole and "arg" in func.__name__ and of_rank > 1) or any(is_batched(a) for a in rest):
        return NotImplemented
    if of_rank == 0:  # treat as a vector of one element
        out = _masked(level, func, (x.reshape(1), mask if mask is None else mask.reshape(1), *rest[:at], 0, *rest[at + 1 :]), kwargs)
        return out.reshape(())
    rest[at] = tuple(range(1, of_rank + 1)) if whole else _moved(rest[at], of_rank)
    return wrapped(func(with_batch(x, level), _aligned(mask, level, of_rank), *rest), level)


rule("_masked_logaddexp")(_elementwise)


# --- views


@rule("view", "reshape")
def _view(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    sizes = sizes_of(args[1:]) or tuple(kwargs.get("shape", kwargs.get("size", ())))
    value = args[0].value
    if len(args) == 2 and not isinstance(args[1], (int, tuple, list)):
        return wrapped(func(value, args[1]), level)
    return wrapped(value.reshape((level.size, *sizes)) if func.__name__ == "reshape" else value.view((level.size, *sizes)), level)


@rule("view_as", "reshape_as", "expand_as")
def _like(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return getattr(args[0], func.__name__.removesuffix("_as"))(tuple(args[1].shape))


@rule("expand", "broadcast_to")
def _expand(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    sizes = sizes_of(args[1:])
    return wrapped(_aligned(args[0], level, len(sizes)).expand((level.size, *sizes)), level)


@rule("permute")
def _permute(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    dims = sizes_of(args[1:]) if len(args) > 1 else tuple(kwargs["dims"])
    return wrapped(args[0].value.permute((0, *_moved(dims, rank(args[0], level)))), level)


@rule("transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "select", "narrow", "unflatten", "unfold", "select_copy")
def _first_dims(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Operators whose first arguments after the tensor are dimensions: two of them, or one."""
    count = 2 if func.__name__ in ("transpose", "swapaxes", "swapdims", "movedim", "moveaxis") else 1
    x, of_rank = args[0], rank(args[0], level)
    if kwargs or any(is_batched(a) for a in args[1:]):
        return NotImplemented
    if of_rank == 0 and func.__name__ in ("transpose", "swapaxes", "swapdims") and all(d in (0, -1) for d in args[1:3]):
        return x
    dims = [_moved(d, of_rank) for d in args[1 : 1 + count]]
    return wrapped(func(x.value, *dims, *args[1 + count :]), level)


@rule("t")
def _t(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return wrapped(args[0].value.transpose(1, 2), level) if rank(args[0], level) == 2 else args[0]


@rule("squeeze")
def _squeeze(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    value = args[0].value
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if dim is None:
        dims = [i for i, n in enumerate(value.shape) if i and n == 1]
    else:
        dims = _moved(dim, rank(args[0], level))
        dims = dims if rank(args[0], level) else []
    return wrapped(value.view_as(value) if dims == [] else value.squeeze(dims), level)


@rule("unsqueeze")
def _unsqueeze(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    dim = args[1] if len(args) > 1 else kwargs["dim"]
    return wrapped(args[0].value.unsqueeze(_moved(dim, rank(args[0], level) + 1)), level)


@rule("flatten", "ravel")
def _flatten(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    given = list(args[1:])
    start = given[0] if given else kwargs.get("start_dim", 0)
    end = given[1] if len(given) > 1 else kwargs.get("end_dim", -1)
    of_rank = rank(args[0], level)
    if of_rank == 0:
        return wrapped(args[0].value.unsqueeze(1), level)
    return wrapped(args[0].value.flatten(_moved(start, of_rank), _moved(end, of_rank)), level)


@rule("repeat", "tile")
def _repeat(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    times = sizes_of(args[1:])
    most = max(len(times), rank(args[0], level))
    value = _aligned(args[0], level, most)
    return wrapped(value.repeat((1,) * (1 + most - len(times)) + tuple(times)), level)


@rule("diagonal", "linalg_diagonal")
def _diagonal(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    offset, first, second = (*args[1:], *([0, 0, 1][len(args) - 1 :]))
    of_rank = rank(args[0], level)
    dims = _moved((kwargs.get("dim1", first), kwargs.get("dim2", second)), of_rank)
    return wrapped(args[0].value.diagonal(kwargs.get("offset", offset), *dims), level)


@rule("diag")
def _diag(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    offset = args[1] if len(args) > 1 else kwargs.get("diagonal", 0)
    if rank(args[0], level) == 1:
        return wrapped(args[0].value.diag_embed(offset), level)
    return wrapped(args[0].value.diagonal(offset, 1, 2), level)


@rule("trace")
def _trace(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return wrapped(args[0].value.diagonal(0, 1, 2).sum(-1), level)


@rule("cat", "stack", "concat", "concatenate")
def _joined(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    tensors = list(args[0] if args else kwargs["tensors"])
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    of_rank = max(rank(x, level) for x in tensors) + (name == "stack")
    if name != "stack" and of_rank > 1:  # cat ignores empty vectors among tensors of more dimensions
        tensors = [x for x in tensors if rank(x, level) != 1 or x.numel()]
    return wrapped(func([with_batch(x, level) for x in tensors], _moved(dim, of_rank)), level)


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
            value = args[0].value
            return wrapped(drawn(func, value.flatten(0, 1), *args[1:], **kwargs).reshape(*tuple(value.shape)[:2], -1), level)
        if in_place:
            require_batch(args[0], level, func.__name__)
        result = drawn(func, *(opened(a, level) for a in args), **kwargs)
        return args[0] if in_place else wrapped(result, level)
    if in_place and not any(has_batch(a, level) for a in (*args[1:], *kwargs.values())):
        args[0].value.copy_(drawn(func, args[0].value.select(0, 0).clone(), *args[1:], **kwargs))
        return args[0]
    if not in_place and all(a.value.stride(0) == 0 for a in (*args, *kwargs.values()) if has_batch(a, level)):  # the same values for all entries
        return func(*(a.value.select(0, 0) if has_batch(a, level) else a for a in args), **kwargs)
    if func.__name__.endswith("_like"):
        return func(args[0].value.select(0, 0), *args[1:], **kwargs)
    raise RuntimeError(f"vmap: Vmap does not currently support same randomness with a batched tensor input to {func.__name__}")
