"""`torch.nn.functional.scaled_mm`: products of float8 matrices with scales, and the names that stand beside it."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from .. import _C, _missing

# The kinds of scales and of their places in memory.
ScalingType = IntEnum("ScalingType", "TensorWise RowWise BlockWise1x16 BlockWise1x32 BlockWise1x128 BlockWise128x128", start=0)
SwizzleType = IntEnum("SwizzleType", "NO_SWIZZLE SWIZZLE_32_4_4 SWIZZLE_32_8", start=0)
scaled_grouped_mm = _missing.absent_function("nn.functional.scaled_grouped_mm")


def _only(values: Any, name: str) -> Any:
    """The only entry of a list of one, or the value itself: lists of several are for scales of scales, which naru lacks."""
    if not isinstance(values, (list, tuple)):
        return values
    if len(values) != 1:
        raise NotImplementedError(f"scaled_mm: wanted one {name}, got {len(values)}; scales of two levels are not supported")
    return values[0]


def scaled_mm(
    mat_a: Any, mat_b: Any, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any, swizzle_a: Any = None,
    swizzle_b: Any = None, bias: Any = None, output_dtype: Any = _C.bfloat16, contraction_dim: Any = (), use_fast_accum: bool = False,
) -> Any:
    """The product of float8 matrices (m, k) and (k, n) whose elements stand for themselves times float32 scales, in `output_dtype`.

    The scales are one element (`ScalingType.TensorWise`) or one for each row of `mat_a`, (m, 1), and each column of `mat_b`, (1, n)
    (`RowWise`). NotImplementedError for scales of blocks and for swizzled scales.
    """
    for recipe in (_only(scale_recipe_a, "recipe"), _only(scale_recipe_b, "recipe")):
        if recipe not in (ScalingType.TensorWise, ScalingType.RowWise):
            raise NotImplementedError(f"scaled_mm: scales are for a matrix (TensorWise) or its rows (RowWise), got {recipe!r}")
    for swizzle in (_only(swizzle_a, "swizzle"), _only(swizzle_b, "swizzle")):
        if swizzle not in (None, SwizzleType.NO_SWIZZLE):
            raise NotImplementedError(f"scaled_mm: scales must not be swizzled, got {swizzle!r}")
    return _C._scaled_mm(
        mat_a, mat_b, _only(scale_a, "scale"), _only(scale_b, "scale"), bias=bias, out_dtype=output_dtype, use_fast_accum=use_fast_accum
    )
