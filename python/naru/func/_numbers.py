"""Batching rules for statistics, norms, indexing and signal transforms; and the errors of functions whose results depend on values."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._stand_in import broadcast_shape, leaves, sizes_of
from ._batched import Level, has_batch, is_batched, rank, rule, with_batch, wrapped
from ._composed import _copy_of, composed
from ._layers import _arranged
from ._rules import _aligned, _elementwise, _moved, _with_dim

Tensor = _C.Tensor

composed("linalg_cond")(lambda x, p=None: _condition(x, p))
composed("corrcoef")(lambda x: _correlation(_cov(x)))
composed("pdist")(lambda x, p=2: _C.linalg_vector_norm(_pair(x, 0) - _pair(x, 1), p, -1))
composed("fill")(lambda x, value: x.clone().fill_(value) if is_batched(x) else (value + _C.zeros_like(x)).to(x.dtype))
composed("broadcast_tensors")(lambda *tensors: _broadcast(sizes_of(tensors)))
composed("combinations")(lambda x, r=2, with_replacement=False: x[_C.combinations(_C.arange(len(x), device=x.device), r, with_replacement)])
composed("linalg_tensorinv")(lambda x, ind=2: _C.linalg_inv(x.reshape(math.prod(x.shape[:ind]), -1)).reshape((*x.shape[ind:], *x.shape[:ind])))
composed("logspace")(lambda start, end, steps, base=10.0, **more: base ** _linspace(start, end, steps, **more))


# --- statistics


@composed("cov")
def _cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    rows = x.reshape(1, -1) if x.dim() < 2 else x
    rows = rows if rows.is_floating_point() or rows.is_complex() else rows.to(_C.get_default_dtype())
    weights = [w for w in (fweights, aweights) if w is not None]
    if not weights:
        centered = rows - rows.mean(1, keepdim=True)
        found = _C.matmul(centered, centered.transpose(0, 1).conj()) / max(rows.shape[1] - correction, 0)
    else:
        w = weights[0] * weights[1] if len(weights) == 2 else weights[0]
        total = w.sum()
        centered = rows - (rows * w).sum(1, keepdim=True) / total
        norm = total - (correction if aweights is None else correction * (w * weights[-1]).sum() / total)
        found = _C.matmul(centered * w, centered.transpose(0, 1).conj()) / norm.clamp(min=0)
    return found.squeeze()


def _correlation(c: Any) -> Any:
    if c.dim() == 0:
        return c / c
    deviations = c.diagonal().sqrt()
    found = c / deviations.unsqueeze(1) / deviations.unsqueeze(0)
    return found if found.is_complex() else found.clamp(-1, 1)


@composed("histc")
def _histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    if bins < 1 or max < min or x.numel() == 0 or not x.is_floating_point():
        raise TypeError("for the loop")
    flat = x.detach().reshape(-1)
    if min == max:
        low, high = (flat.amin(), flat.amax()) if min == 0 else (min, max)
        even = low == high
        low, high = (_C.where(even, low - 1, low), _C.where(even, high + 1, high)) if min == 0 else (min - 1, max + 1)
    else:
        low, high = min, max
    inside = (flat >= low) & (flat <= high)
    place = ((flat - low) * (bins / (high - low))).to(_C.int64).clamp(0, bins - 1)
    return (place.unsqueeze(0) == _C.arange(bins, device=x.device).unsqueeze(1)).logical_and(inside).sum(1).to(x.dtype)


@composed("isin")
def _isin(elements: Any, tests: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    tests = tests.reshape(-1) if isinstance(tests, Tensor) else tests
    found = (elements.unsqueeze(-1) == tests).any(-1) if isinstance(tests, Tensor) and isinstance(elements, Tensor) else (elements == tests)
    found = found.any() if not isinstance(elements, Tensor) else found
    return ~found if invert else found


def _pair(x: Any, which: int) -> Any:
    return x[_C.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)[which]]


# --- matrices


def _condition(x: Any, p: Any) -> Any:
    if p in (None, 2, -2):
        s = _C.linalg_svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return _C.linalg_matrix_norm(x, p) * _C.linalg_matrix_norm(_C.linalg_inv(x), p)


@rule("linalg_matrix_norm")
def _matrix_norm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    given, named = list(args[1:]), dict(kwargs)
    dim = given.pop(1) if len(given) > 1 else named.pop("dim", None)
    if len(given) > 1:
        named["keepdim"] = given.pop()
    return wrapped(func(args[0].value, *given, dim=_moved((-2, -1) if dim is None else tuple(dim), rank(args[0], level)), **named), level)


@rule("linalg_matrix_rank", "linalg_pinv")
def _of_singular_values(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The tolerances may differ between entries."""
    most = rank(args[0], level) - 2
    return wrapped(func(with_batch(args[0], level), *(_aligned(a, level, most) for a in args[1:]), **{k: _aligned(v, level, most) for k, v in kwargs.items()}), level)


@rule("norm")
def _norm(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    kind = args[1] if len(args) > 1 else kwargs.get("p", "fro")
    if kind == "nuc" and len(args) < 3 and kwargs.get("dim") is None:
        return wrapped(func(args[0].value, "nuc", dim=_moved((0, 1), rank(args[0], level)), **{k: v for k, v in kwargs.items() if k == "keepdim"}), level)
    return _with_dim(level, func, args, kwargs)


@composed("linalg_tensorsolve")
def _tensorsolve(a: Any, b: Any, dims: Any = None) -> Any:
    if dims is not None:
        moved = [d % a.dim() for d in dims]
        a = a.permute([d for d in range(a.dim()) if d not in moved] + moved)
    rest = tuple(a.shape)[b.dim() :]
    return _C.linalg_solve(a.reshape(math.prod(b.shape), -1), b.reshape(-1)).reshape(rest)


@composed("_tensordot")
def _tensordot(a: Any, b: Any, first: Any, second: Any = None) -> Any:
    if second is None:
        first, second = list(range(a.dim() - first, a.dim())), list(range(first))
    left, right = ([d % t.dim() for d in ([dims] if isinstance(dims, int) else dims)] for t, dims in ((a, first), (b, second)))
    rows, columns = [d for d in range(a.dim()) if d not in left], [d for d in range(b.dim()) if d not in right]
    n = math.prod(a.shape[d] for d in left)
    shape = [a.shape[d] for d in rows] + [b.shape[d] for d in columns]
    product = _C.matmul(a.permute(rows + left).reshape(math.prod(shape[: len(rows)]), n), b.permute(right + columns).reshape(n, math.prod(shape[len(rows) :])))
    return product.reshape(shape)


# --- shapes


def _broadcast(tensors: tuple) -> Any:
    shape = broadcast_shape(*(t.shape for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


@composed("_cartesian_prod")
def _cartesian_prod(tensors: Any) -> Any:
    if len(tensors) == 1:
        return tensors[0].clone()
    return _C.stack([g.reshape(-1) for g in _C.meshgrid(*tensors, indexing="ij")], 1)


@composed("sum_to_size")
def _sum_to_size(x: Any, *sizes: Any, size: Any = None) -> Any:
    wanted = tuple(size) if size is not None else sizes_of(sizes)
    before = x.dim() - len(wanted)
    dims = [*range(before), *(before + i for i, n in enumerate(wanted) if n == 1 and x.shape[before + i] != 1)]
    return (x.sum(dims, keepdim=True) if dims else x if x.dim() else x.sum()).reshape(wanted)


@rule("as_strided")
def _as_strided(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Applies size and stride within each entry, from the offset of the first."""
    given = {**dict(zip(("size", "stride", "storage_offset"), args[1:])), **kwargs}
    if len(given["size"]) != len(given["stride"]):
        raise RuntimeError(f"vmap: as_strided: size and stride must have the same length! Got size {given['size']} and stride {given['stride']}.")
    value, offset = args[0].value, given.get("storage_offset")
    first, last = value.storage_offset(), (_reach(value.shape[1:], value.stride()[1:]))
    begins = first if offset is None else offset
    if begins < first or begins + _reach(given["size"], given["stride"]) > first + last:
        raise RuntimeError(
            f"vmap: as_strided: size {given['size']}, stride {given['stride']} and storage_offset {offset} reach outside of an entry. This is not "
            "supported inside of vmap; rewrite it by views that stay within, or by slices and reshapes."
        )
    of_all = (level.size, *given["size"]), (value.stride(0), *given["stride"])
    return wrapped(func(value, *of_all, begins), level)


def _reach(size: Any, stride: Any) -> int:
    """The offset of the last element from the first, plus 1."""
    return 0 if 0 in tuple(size) else 1 + sum((n - 1) * step for n, step in zip(size, stride))


@rule("gradient")
def _slopes(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    dim, of_rank = kwargs.get("dim"), rank(args[0], level)
    if len(args) > 1 or of_rank == 0 or any(is_batched(v) for v in leaves(kwargs.values())):
        return NotImplemented
    return wrapped(func(args[0].value, **{**kwargs, "dim": list(range(1, of_rank + 1)) if dim is None else _moved(dim, of_rank)}), level)


@composed("linspace")
def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **more: Any) -> Any:
    like = start if isinstance(start, Tensor) else end
    dtype = dtype or _C.get_default_dtype()
    if steps < 2 or not dtype.is_floating_point:
        raise TypeError("for the loop")
    step = (end - start) / (steps - 1)
    n = _C.arange(steps, device=like.device)
    return _C.where(n < steps / 2, start + step * n, end - step * (steps - 1 - n)).to(dtype)


# --- indexing


@composed("index_reduce")
def _index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    if x.dim() == 0:
        return _index_reduce(x.reshape(1), dim, index.reshape(1), source.reshape(1), reduce, include_self=include_self).reshape(())
    places = index.to(_C.int64).reshape([-1 if d == dim % x.dim() else 1 for d in range(x.dim())]).expand(source.shape)
    return x.scatter_reduce(dim, places, source, reduce, include_self=include_self)


@composed("put")
def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    places = index.reshape(-1)
    places = _C.where(places < 0, places + x.numel(), places)
    flat, given = x.reshape(-1), source.reshape(-1)
    return (flat.scatter_add(0, places, given) if accumulate else flat.scatter(0, places, given)).reshape(x.shape)


@rule("index_put")
def _index_put(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, key, values = args[:3]
    if any(i is None or i.dtype is _C.bool for i in key) or not isinstance(values, Tensor):
        return NotImplemented
    x = _copy_of(level, x)
    parts = _arranged(level, x, tuple(wrapped(with_batch(i, level), level) for i in key))[0]
    return wrapped(func(x.value, parts, _aligned(wrapped(with_batch(values, level), level), level, x.value[parts].dim() - 1), *args[3:], **kwargs), level)


@composed("masked_scatter")
def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    if mask.dtype is not _C.bool or source.numel() < x.numel():
        raise TypeError("for the loop")  # fall back to the loop, whose operator raises the error
    mask = mask.expand(broadcast_shape(x.shape, mask.shape))
    order = mask.reshape(-1).to(_C.int64).cumsum(0) - 1
    taken = source.reshape(-1).gather(0, order.clamp(min=0)).reshape(mask.shape)
    return _C.where(mask, taken, x)


# --- signal transforms, of one signal or a batch


@rule("stft", "istft")
def _short_time(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if any(has_batch(a, level) for a in (*args[1:], *kwargs.values())):
        return NotImplemented
    value = args[0].value
    if rank(args[0], level) == (1 if func.__name__ == "stft" else 2):
        return wrapped(func(value, *args[1:], **kwargs), level)
    out = func(value.flatten(0, 1), *args[1:], **kwargs)
    return wrapped(out.reshape((level.size, -1, *tuple(out.shape)[1:])), level)


# --- results that depend on values


@rule("nonzero", "unique", "unique_consecutive", "_unique2", "unique_dim")
def _dynamic(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    named = {"unique": "_unique2" if kwargs.get("dim") is None else "unique_dim"}.get(func.__name__, func.__name__)
    raise RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{named}. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature."
    )


@rule("where")
def _where(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return _dynamic(level, func, args, kwargs) if len(args) == 1 and not kwargs else _elementwise(level, func, args, kwargs)


@rule("masked_select")
def _masked_select(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x, mask = args
    if has_batch(mask, level):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this would return a "
            "differently shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    shape = broadcast_shape(x.shape, mask.shape)
    places = mask.expand(shape).reshape(-1).nonzero().reshape(-1)
    return x.expand(shape).reshape(-1).index_select(0, places)


@rule("equal")
def _equal(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    raise RuntimeError(f"Batching rule not implemented for aten::{func.__name__}. We could not generate a fallback.")


@rule("allclose")
def _allclose(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    raise RuntimeError("vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.")

