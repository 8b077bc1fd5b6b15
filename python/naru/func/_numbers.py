"""Batching rules for a few functions of numbers and signals; and the errors of functions whose results depend on values."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import broadcast_shape
from ._batched import Level, has_batch, rank, rule, value_of, wrapped
from ._composed import composed

Tensor = _C.Tensor


# --- statistics


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


@composed("linspace")
def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **more: Any) -> Any:
    like = start if isinstance(start, Tensor) else end
    dtype = dtype or _C.get_default_dtype()
    if steps < 2 or not dtype.is_floating_point:
        raise TypeError("for the loop")
    step = (end - start) / (steps - 1)
    n = _C.arange(steps, device=like.device)
    return _C.where(n < steps / 2, start + step * n, end - step * (steps - 1 - n)).to(dtype)


composed("logspace")(lambda start, end, steps, base=10.0, **more: base ** _linspace(start, end, steps, **more))


# --- indexing


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
    value = value_of(args[0])
    if rank(args[0], level) == (1 if func.__name__ == "stft" else 2):
        return wrapped(func(value, *args[1:], **kwargs), level)
    out = func(value.flatten(0, 1), *args[1:], **kwargs)
    return wrapped(out.reshape((level.size, -1, *tuple(out.shape)[1:])), level)


# --- results that depend on values


@rule("unique", "unique_consecutive", "_unique2", "unique_dim")
def _dynamic(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    named = {"unique": "_unique2" if kwargs.get("dim") is None else "unique_dim"}.get(func.__name__, func.__name__)
    raise RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{named}. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature."
    )


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


@rule("item", "tolist", "numpy", "__array__", "__dlpack__")
def _read(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    raise RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to rewrite what "
        "you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug report."
    )


@rule("equal")
def _equal(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    raise RuntimeError(f"Batching rule not implemented for aten::{func.__name__}. We could not generate a fallback.")


@rule("allclose")
def _allclose(level: Level, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    raise RuntimeError("vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.")
