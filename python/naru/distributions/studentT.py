"""`StudentT`: Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

Tensor = _C.Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom, location `loc` and `scale`.

    Args:
        df: a tensor, or a number; above 0.
        loc: a tensor, or a number.
        scale: a tensor, or a number; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        m = self.loc.clone(memory_format=_C.contiguous_format)
        m[self.df <= 1] = float("nan")
        return m

    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        m = self.df.clone(memory_format=_C.contiguous_format)
        m[self.df > 2] = self.scale[self.df > 2].pow(2) * self.df[self.df > 2] / (self.df[self.df > 2] - 2)
        m[(self.df <= 2) & (self.df > 1)] = float("inf")
        m[self.df <= 1] = float("nan")
        return m

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(StudentT, batch_shape, _instance, "df", "loc", "scale")
        new._chi2 = self._chi2.expand(_C.Size(batch_shape))
        return new

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        x = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * x * _C.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        z = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + _C.lgamma(0.5 * self.df) - _C.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * _C.log1p(y**2.0 / self.df) - z

    def entropy(self) -> Tensor:
        beta = _C.lgamma(0.5 * self.df) + math.lgamma(0.5) - _C.lgamma(0.5 * (self.df + 1))
        half = 0.5 * (self.df + 1)
        return self.scale.log() + half * (_C.digamma(half) - _C.digamma(0.5 * self.df)) + 0.5 * self.df.log() + beta
