"""`Geometric`: the number of failures before the first success."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._functions.dtype_limits import finfo
from ..nn import functional as F
from . import constraints
from ._binary import OfProbability
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["Geometric"]


class Geometric(OfProbability):
    """The number of failures before the first success, with success probability `probs` (or log odds `logits`).

    Args:
        probs: a tensor, or a number; in [0, 1].
        logits: log odds, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> Geometric(0.5).mean
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            if not (value > 0).all():
                invalid = value.data[~(value > 0)]
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to be positive "
                    f"but found invalid values:\n{invalid}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Geometric, batch_shape, _instance, "probs", "logits")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: _C.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        tiny = finfo(self.probs.dtype).tiny
        with _C.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=_C.contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
