"""Names of `torch.nn.functional` for matrices in float8, which naru lacks: packages for quantization import them."""

from __future__ import annotations

from enum import IntEnum

from .. import _missing

# The kinds of scales and of their places in memory.
ScalingType = IntEnum("ScalingType", "TensorWise RowWise BlockWise1x16 BlockWise1x32 BlockWise1x128 BlockWise128x128", start=0)
SwizzleType = IntEnum("SwizzleType", "NO_SWIZZLE SWIZZLE_32_4_4 SWIZZLE_32_8", start=0)
scaled_mm, scaled_grouped_mm = (_missing.absent_function(f"nn.functional.{name}") for name in ("scaled_mm", "scaled_grouped_mm"))
