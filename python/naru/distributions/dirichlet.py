"""`Dirichlet`: the Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._functions.dtype_limits import finfo
from ..nn import functional as F
from . import constraints
from .exp_family import ExponentialFamily

Tensor = _C.Tensor

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors on the simplex; the last dimension of `concentration` holds the parameters.

    Args:
        concentration: (..., K), above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> Dirichlet(naru.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Dirichlet, batch_shape, _instance)
        new.concentration = self.concentration.expand(_C.Size(batch_shape) + self.event_shape)
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self.concentration
        # Drawn in float64: in float32 all components would underflow to 0 for a small concentration.
        drawn = _C._standard_gamma(shape.double().expand(self._extended_shape(sample_shape))) + finfo(_C.float64).tiny
        value = (drawn / drawn.sum(-1, keepdim=True)).to(shape.dtype)
        limits = finfo(shape.dtype)
        value.detach().clamp_(min=limits.tiny, max=1 - limits.eps / 2)  # 0 and 1 are outside of the density's support
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return _C.xlogy(a - 1.0, value).sum(-1) + _C.lgamma(a.sum(-1)) - _C.lgamma(a).sum(-1)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        at_corner = (self.concentration < 1).all(dim=-1)
        corner = F.one_hot(mode[at_corner].argmax(dim=-1), above.shape[-1]).to(mode)
        mode[at_corner] = corner
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k, a = self.concentration.size(-1), self.concentration
        a0 = a.sum(-1)
        return _C.lgamma(a).sum(-1) - _C.lgamma(a0) - (k - a0) * _C.digamma(a0) - ((a - 1.0) * _C.digamma(a)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - _C.lgamma(x.sum(-1))
