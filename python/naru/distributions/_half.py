"""Base class of distributions of absolute values."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .transformed_distribution import TransformedDistribution

Tensor = _C.Tensor


class Half(TransformedDistribution):
    """|x| for x from a distribution with location 0 and a `scale`."""

    scale = property(lambda self: self.base_dist.scale, doc="The normal distribution's standard deviation.")
    mode = property(lambda self: _C.zeros_like(self.scale))

    def log_prob(self, value: Any) -> Tensor:
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
