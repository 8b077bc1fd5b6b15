"""`HalfCauchy`: the absolute values of Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

Tensor = _C.Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """|x| for x of Cauchy's distribution around 0.

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

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: _C.zeros_like(self.scale))
    variance = property(lambda self: self.base_dist.variance)

    @property
    def mean(self) -> Tensor:
        return _C.full(self._extended_shape(), float("inf"), dtype=self.scale.dtype, device=self.scale.device)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = _C.as_tensor(value, dtype=self.base_dist.scale.dtype, device=self.base_dist.scale.device)
        found = self.base_dist.log_prob(value) + math.log(2)
        return _C.where(value >= 0, found, -float("inf"))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
