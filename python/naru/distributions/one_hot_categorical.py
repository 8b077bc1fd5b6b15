"""`OneHotCategorical`: categories as one-hot vectors."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..nn import functional as F
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

Tensor = _C.Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """One-hot vectors of a category drawn with probabilities `probs` (any nonnegative weights) or `logits`.

    Args:
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> OneHotCategorical(naru.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(OneHotCategorical, batch_shape, _instance)
        new._categorical = self._categorical.expand(_C.Size(batch_shape))
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    _param = property(lambda self: self._categorical._param)
    probs = property(lambda self: self._categorical.probs, doc="The probabilities.")
    logits = property(lambda self: self._categorical.logits, doc="Logarithms of the probabilities.")
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self._categorical.probs * (1 - self._categorical.probs))
    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameter.")

    @property
    def mode(self) -> Tensor:
        probs = self._categorical.probs
        return F.one_hot(probs.argmax(dim=-1), num_classes=probs.shape[-1]).to(probs)

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        probs = self._categorical.probs
        return F.one_hot(self._categorical.sample(_C.Size(sample_shape)), self._categorical._num_events).to(probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = _C.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A OneHotCategorical whose samples pass gradients to the probabilities (the straight-through estimator).

    Args:
        probs: weights (..., K); each row is normalized to sum 1. logits: unnormalized log probabilities instead.
        validate_args: whether arguments and values are checked (ValueError).

    >>> p = naru.tensor([0.0, 1.0], requires_grad=True)
    >>> sample = naru.distributions.OneHotCategoricalStraightThrough(probs=p).rsample()
    >>> sample.tolist(), sample.requires_grad
    ([0.0, 1.0], True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())
