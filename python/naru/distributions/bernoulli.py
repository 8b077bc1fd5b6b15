"""`Bernoulli`: 1 with a probability, else 0."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..nn import functional as F
from . import constraints
from ._binary import OfProbability
from .exp_family import ExponentialFamily
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["Bernoulli"]


class Bernoulli(OfProbability, ExponentialFamily):
    """1 with probability `probs` (or log odds `logits`), else 0.

    Args:
        probs: a tensor, or a number; in [0, 1].
        logits: log odds, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> Bernoulli(naru.tensor(0.25)).log_prob(naru.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Bernoulli, batch_shape, _instance, "probs", "logits")

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = float("nan")
        return mode

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with _C.no_grad():
            return _C.bernoulli(self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _C.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (_C.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return _C.log(1 + _C.exp(x))
