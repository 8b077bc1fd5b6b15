"""Rules of operators along dimensions: reductions, softmax and similar, normalisation. Dimensions of the components are dimensions of the values;
the ragged dimension is reduced by summing rows of components, or padded with a value that does not change the result."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._stand_in import ALL, DIMS, mapped
from ._elementwise import elementwise
from ._padding import padded, unpadded, without_gaps
from ._tensor import NestedTensor, canonical, is_nested, require_nested, rule, unsupported

Tensor = _C.Tensor

# The padding of the ragged dimension.
_LEAST, _MOST = -math.inf, math.inf
_REDUCED = {"prod": 1, "amax": _LEAST, "amin": _MOST, "max": _LEAST, "min": _MOST, "argmax": _LEAST, "argmin": _MOST, "any": 0, "all": 1, "logsumexp": _LEAST}
_SAME_SIZE = {"softmax": _LEAST, "log_softmax": _LEAST, "cumsum": 0, "cumprod": 1, "logcumsumexp": _LEAST}
_SUMS = ("sum", "mean", "nansum", "count_nonzero")


def _padding(value: float, dtype: Any) -> Any:
    """The padding as a number that the dtype can represent."""
    if not math.isinf(value) or dtype.is_floating_point:
        return value
    if dtype == _C.bool:
        return value > 0
    from .._functions.dtype_limits import iinfo

    return iinfo(dtype).max if value > 0 else iinfo(dtype).min


def _ragged_sum(values: Tensor, x: NestedTensor) -> Tensor:
    """Sums the rows of each component."""
    rows = values.movedim(x._ragged_idx - 1, 0)
    start = rows.new_zeros((x._ragged.batch, *tuple(rows.shape)[1:]))
    return start.index_add(0, x._ragged.rows(rows.shape[0]), rows)


def _sum_along(name: str, x: NestedTensor, keepdim: bool, dtype: Any) -> Tensor:
    """sum, mean, nansum or count_nonzero along the ragged dimension."""
    values = x._values
    if name == "count_nonzero":
        values = values != 0
    elif name == "nansum":
        values = values.nan_to_num(0.0, math.inf, -math.inf)
    floating = values.is_floating_point() or values.is_complex()
    if name == "mean" and dtype is None and not floating:
        raise RuntimeError(f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}")
    dtype = dtype or (values.dtype if floating else _C.int64)
    # 16-bit sums are accumulated in float32 and rounded once.
    out = _ragged_sum(values.to(_C.float32 if dtype in (_C.float16, _C.bfloat16) else dtype), x)
    if name == "mean":
        out = out / x._ragged.offsets.diff().to(out.dtype).reshape((-1,) + (1,) * (out.dim() - 1))
    out = out.to(dtype)
    return out.unsqueeze(x._ragged_idx) if keepdim else out


def _along_ragged(func: Any, name: str, x: NestedTensor, named: dict[str, Any]) -> Any:
    """Reduces only the ragged dimension: the result is a dense tensor."""
    if x._ragged.lengths is not None:
        raise RuntimeError(f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes")
    if name in _SUMS:
        return _sum_along(name, x, named.pop("keepdim", False), named.pop("dtype", None))
    if name not in _REDUCED:
        raise unsupported(name, x, " along its ragged dimension")
    dense = padded(x._values, x._ragged, x._ragged_idx, _padding(_REDUCED[name], x.dtype))
    return func(dense, dim=x._ragged_idx, **named)


def _inner(dims: Any, ragged_idx: int) -> Any:
    """The corresponding dimensions of the values: the batch and the ragged dimension both map to the packed one."""
    if isinstance(dims, int):
        return ragged_idx - 1 if dims == 0 else dims - 1
    return tuple(dict.fromkeys(_inner(d, ragged_idx) for d in dims))


def _whole(func: Any, x: NestedTensor, given: list, named: dict[str, Any]) -> Any:
    """Reduces all elements."""
    x = without_gaps(x) if x._ragged.lengths is not None else x
    keep = named.pop("keepdim", False)
    result = func(x._values, *given, **named)
    return mapped(lambda r: r.reshape((1,) * x.dim()), result) if keep else result


def _taken(name: str, given: list, named: dict[str, Any]) -> tuple[Any, str]:
    """Removes `dim` from the arguments after the tensor, and returns it with its keyword."""
    at, default = DIMS[name]
    key = next((k for k in ("dim", "axis", "dims") if k in named), "dims" if name in ("flip", "roll") else "dim")
    if len(given) > at:
        dim = given.pop(at)
        if name == "flip" and given:
            dim, given[:] = (dim, *given), []
    else:
        dim = named.pop(key, default)
    return dim, "dim" if key == "axis" else key


def _dense_dims(func: Any, name: str, x: NestedTensor, dim: Any, key: str, given: list, named: dict[str, Any]) -> Any:
    """Along dense dimensions of the components: works on the values, whose ragged index decreases if dimensions before it are removed."""
    at, _ = DIMS[name]
    inner = _inner(dim, x._ragged_idx)
    args = [*given[:at], inner, *given[at:]] if at and len(given) >= at else given
    result = func(x._values, *args, **named) if args is not given else func(x._values, *given, **{key: inner}, **named)
    first = next((r for r in ([result] if isinstance(result, Tensor) else result) if isinstance(r, Tensor)), None)
    gone = first is not None and first.dim() < x._values.dim()
    before = sum(d < x._ragged_idx - 1 for d in ((inner,) if isinstance(inner, int) else inner))
    return x.like(result, x._ragged_idx - before if gone else None)


def _behind(name: str, given: list, named: dict[str, Any]) -> None:
    """Turns the positional arguments after `dim` into keyword arguments."""
    for key, value in zip(("keepdim", "dtype") if name in (*_REDUCED, *_SUMS, "nanmean") else (), given):
        named[key] = value
    if name in (*_REDUCED, *_SUMS, "nanmean"):
        given.clear()
    elif name in ("softmax", "log_softmax") and given:
        named["dtype"] = given.pop(0)


@rule(*(name for name in DIMS if name not in ("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_chunk", "unsafe_split", "unbind",
                                              "repeat_interleave", "normalize", "linalg_norm")))  # fmt: skip
def along_dims(func: Any, input: Any, *rest: Any, **named: Any) -> Any:
    """Reductions and operators along a dimension."""
    name = func.__name__.strip("_").removeprefix("special_")
    if name in ("max", "min") and any(is_nested(a) or isinstance(a, Tensor) for a in (*rest, *named.values())):
        return elementwise(func, input, *rest, **named)
    require_nested(name, input)
    given = list(rest)
    dim, key = _taken(name, given, named)
    _behind(name, given, named)
    if dim is ALL or dim is None or dim == () or dim == []:
        if DIMS[name][1] is not ALL or name == "roll":
            raise unsupported(name, input, " without a dimension")
        return _whole(func, input, given, named)
    if isinstance(dim, (tuple, list)) and name in (*_SAME_SIZE, "argmax", "argmin", "max", "min"):
        raise RuntimeError(f"{name}(): not supported for dimensions of type 'tuple' for NestedTensor")
    ndim = input.dim()
    dims = canonical(ndim, dim) if isinstance(dim, int) else tuple(canonical(ndim, d) for d in dim)
    every = {dims} if isinstance(dims, int) else set(dims)
    batch, ragged, others = 0 in every, input._ragged_idx in every, bool(every - {0, input._ragged_idx})
    if not batch and not ragged:
        return _dense_dims(func, name, input, dims, key, given, named)
    if name in _SAME_SIZE:
        return _scan(func, name, input, batch, named)
    if name not in (*_REDUCED, *_SUMS, "nanmean", "var", "std", "norm"):
        raise unsupported(name, input, " along its batch or ragged dimension")
    if not ragged:
        raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors")
    if batch:
        whole = without_gaps(input) if input._ragged.lengths is not None else input
        inner = _inner(dims, input._ragged_idx)
        result = func(whole._values, *given, **{key: inner}, **named)
        return mapped(lambda r: r.unsqueeze(0), result) if named.get("keepdim") else result
    if others:
        raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors")
    return _along_ragged(func, name, input, named)


def _scan(func: Any, name: str, x: NestedTensor, batch: bool, named: dict[str, Any]) -> NestedTensor:
    """softmax or a cumulative operator along the ragged dimension."""
    if batch:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if x._ragged.lengths is not None:
        raise RuntimeError(f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor")
    dense = func(padded(x._values, x._ragged, x._ragged_idx, _padding(_SAME_SIZE[name], x.dtype)), dim=x._ragged_idx, **named)
    return x.like(unpadded(dense, x._ragged, x._ragged_idx, x._values.shape[x._ragged_idx - 1]))


@rule("layer_norm", "rms_norm", "native_layer_norm")
def _normalised(func: Any, input: NestedTensor, normalized_shape: Any, *rest: Any, **named: Any) -> Any:
    """Normalises over dimensions after the ragged one."""
    name = func.__name__.strip("_")
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    if name != "rms_norm" and input.dim() <= 2:
        raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if count >= input.dim():
        raise RuntimeError(f"{name}(): not supported when normalizing over the batch dimension for NestedTensor")
    if count > input.dim() - input._ragged_idx - 1:
        error = ValueError if name == "rms_norm" else RuntimeError
        raise error(f"{name}(): Normalization over the ragged dim not supported for nested tensors; wanted a normalized_shape of the dimensions behind it")
    return input.like(func(input._values, normalized_shape, *rest, **named))


@rule("normalize")
def _to_norm_one(func: Any, input: NestedTensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> NestedTensor:
    """x / max(norm, eps) along a dimension."""
    return input / _C.norm(input, p, dim, keepdim=True).clamp_min(eps)
