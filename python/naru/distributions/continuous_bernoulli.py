"""`ContinuousBernoulli`: the continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from ..nn import functional as F
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits

Tensor = _C.Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ExponentialFamily):
    """Numbers in [0, 1] with density proportional to probs^x (1 - probs)^(1 - x). For probs within `lims`, where the formulas lose precision,
    Taylor expansions are used.

    Args:
        probs: a tensor, or a number; in [0, 1].
        logits: log odds, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        new = self._expanded(ContinuousBernoulli, batch_shape, new, "probs", "logits")
        new._param = new.__dict__.get("probs", new.__dict__.get("logits"))
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return _C.where(self._outside(), self.probs, self._lims[0] * _C.ones_like(self.probs))

    def _log_norm(self) -> Tensor:
        """The logarithm of the normalizing constant of the density."""
        cut = self._cut()
        below = _C.where(cut <= 0.5, cut, _C.zeros_like(cut))
        above = _C.where(cut >= 0.5, cut, _C.ones_like(cut))
        norm = _C.log(_C.abs(_C.log1p(-cut) - _C.log(cut))) - _C.where(cut <= 0.5, _C.log1p(-2.0 * below), _C.log(2.0 * above - 1.0))
        x = (self.probs - 0.5).pow(2)
        return _C.where(self._outside(), norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        cut = self._cut()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (_C.log1p(-cut) - _C.log(cut))
        x = self.probs - 0.5
        return _C.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        cut = self._cut()
        exact = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / (_C.log1p(-cut) - _C.log(cut)).pow(2)
        x = (self.probs - 0.5).pow(2)
        return _C.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    stddev = property(lambda self: _C.sqrt(self.variance))

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> _C.Size:
        """The shape of the parameter."""
        return self._param.size()

    def _uniform(self, sample_shape: Any) -> Tensor:
        return _C.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        with _C.no_grad():
            return self.icdf(self._uniform(sample_shape))

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut()
        exact = (_C.pow(cut, value) * _C.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = _C.where(self._outside(), exact, value)
        return _C.where(value <= 0.0, _C.zeros_like(value), _C.where(value >= 1.0, _C.ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut()
        exact = (_C.log1p(-cut + value * (2.0 * cut - 1.0)) - _C.log1p(-cut)) / (_C.log(cut) - _C.log1p(-cut))
        return _C.where(self._outside(), exact, value)

    def entropy(self) -> Tensor:
        log0, log1 = _C.log1p(-self.probs), _C.log(self.probs)
        return self.mean * (log0 - log1) - self._log_norm() - log0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = _C.where(outside, x, (self._lims[0] - 0.5) * _C.ones_like(x))
        exact = _C.log(_C.abs(_C.expm1(cut))) - _C.log(_C.abs(cut))
        return _C.where(outside, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
