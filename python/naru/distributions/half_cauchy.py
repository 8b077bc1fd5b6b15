"""`HalfCauchy`: the absolute value of a Cauchy variable."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from ._half import Half
from .cauchy import Cauchy
from .transforms import AbsTransform

Tensor = _C.Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| for x from the Cauchy distribution with location 0.

    Args:
        scale: half width at half maximum.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> HalfCauchy(1.0).mode
    tensor(0.)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    variance = property(lambda self: self.base_dist.variance)

    @property
    def mean(self) -> Tensor:
        return _C.full(self._extended_shape(), float("inf"), dtype=self.scale.dtype, device=self.scale.device)
