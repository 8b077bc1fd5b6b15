"""`Multinomial`: counts of categories."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """The number of times each category is drawn in `total_count` draws, with probabilities `probs` (any nonnegative weights) or `logits`.

    Args:
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> Multinomial(8, naru.tensor([1.0, 3.0])).mean
    tensor([2., 6.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(_C.Size(batch_shape))
        new._binomial = self._binomial
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    logits = property(lambda self: self._categorical.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self._categorical.probs, doc="The probabilities.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameter.")

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        sample_shape = _C.Size(sample_shape)
        drawn = self._categorical.sample(_C.Size((self.total_count,)) + sample_shape)
        drawn = drawn.permute(list(range(1, drawn.dim())) + [0])
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, _C.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = _C.tensor(float(self.total_count), dtype=self.probs.dtype)
        support = self._binomial.enumerate_support(expand=False)[1:]
        weighted = _C.exp(self._binomial.log_prob(support)) * (support + 1).lgamma()
        return self.total_count * self._categorical.entropy() - _C.lgamma(n + 1) + weighted.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=_C.contiguous_format)
        logits[(value == 0) & (logits == -float("inf"))] = 0
        return _C.lgamma(value.sum(-1) + 1) - _C.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)
