"""The implementation of `make_tensor`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import _C
from .._functions.dtype_limits import finfo, iinfo


def _bounds(dtype: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The interval [low, high) clamped to the dtype's range; integers for integer dtypes."""
    name = str(dtype).removeprefix("torch.")
    continuous = dtype.is_floating_point or dtype.is_complex
    if name == "bool":
        least, most, usual = 0, 2, (0, 2)
    elif continuous:
        info = finfo(dtype.to_real())
        least, most, usual = info.min, info.max, (-9, 9)
    else:
        range_of = iinfo(dtype)
        # The upper bound of random integers is an exclusive int64, so that the largest int64 is never drawn.
        least, most, usual = range_of.min, min(range_of.max + 1, 2**63 - 1), (-9, 10)
    low, high = (given if given is not None else default for given, default in zip((low, high), usual))
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and continuous:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated; use torch.full(...) instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {most})"
        )
    low, high = (min(max(bound, least), most) for bound in (low, high))
    return (low, high) if continuous else (math.ceil(low), math.ceil(high))


def _uniform(sizes: list[int], dtype: Any, device: Any, low: float, high: float) -> Any:
    # Interpolating between both ends stays finite even if high - low overflows.
    share = _C.rand(sizes, dtype=_C.float64, device=device)
    return (share * high + (1.0 - share) * low).clamp(low, high).to(dtype)


def made(
    sizes: list[int], dtype: Any, device: Any, low: Any, high: Any, noncontiguous: bool, exclude_zero: bool, memory_format: Any
) -> Any:
    """Random values of `dtype`, in the requested memory layout."""
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor(): `noncontiguous` and `memory_format` are mutually exclusive; give one of them")
    low, high = _bounds(dtype, low, high)
    apart = noncontiguous and math.prod(sizes) > 1
    if apart:
        sizes = [*sizes[:-1], 2 * sizes[-1]]
    if dtype.is_complex:
        part = _C.float64 if dtype == _C.complex128 else _C.float32
        out = _C.complex(_uniform(sizes, part, device, low, high), _uniform(sizes, part, device, low, high)).to(dtype)
    elif dtype.is_floating_point:
        out = _uniform(sizes, dtype, device, low, high)
    else:
        out = _C.randint(low, high, sizes, device=device).to(dtype)
    if apart:
        out = out[..., 1::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    if exclude_zero:
        out[out == 0] = finfo(dtype.to_real()).tiny if dtype.is_floating_point or dtype.is_complex else 1
    return out
