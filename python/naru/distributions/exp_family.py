"""`ExponentialFamily`: distributions whose entropy follows from the log normalizer."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..autograd import grad
from .distribution import Distribution

Tensor = _C.Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with the density exp(t(x) . natural parameters - log normalizer + carrier measure).

    Args:
        batch_shape, event_shape, validate_args: those of `Distribution`.

    >>> issubclass(naru.distributions.Normal, naru.distributions.exp_family.ExponentialFamily)
    True
    >>> naru.distributions.exp_family.ExponentialFamily.entropy(naru.distributions.Gamma(1.0, 1.0))
    tensor(1., grad_fn=<SubBackward0>)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Computed from the gradient of the log normalizer (Bregman divergence)."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients):
            result = result - (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
