"""Base class of distributions parameterized by a probability or by its log odds."""

from __future__ import annotations

from typing import Any

from .. import _C
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

Tensor = _C.Tensor


class OfProbability(Distribution):
    """Has `probs` and `logits`: one is given, the other is computed on first access."""

    def _take(self, probs: Any, logits: Any, total_count: Any = None) -> _C.Size:
        """Stores the parameter and, if given, a count that broadcasts with it; returns their shape. Raises ValueError unless exactly one of probs
        and logits is given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        if total_count is None:
            (self._param,) = broadcast_all(given)
        else:
            total_count, self._param = broadcast_all(total_count, given)
            self.total_count = total_count.type_as(self._param)
        setattr(self, name, self._param)
        return self._param.size()

    def _expanded(self, *arguments: Any) -> Any:
        new = super()._expanded(*arguments)
        new._param = new.__dict__.get("probs", new.__dict__.get("logits"))
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> _C.Size:
        """The shape of the parameter."""
        return self._param.size()
