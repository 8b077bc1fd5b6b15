"""`Kumaraswamy`: the Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

Tensor = _C.Tensor

__all__ = ["Kumaraswamy"]


def _moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    """The n-th moment: b B(1 + n / a, b)."""
    first = 1 + n / a
    return _C.exp(_C.lgamma(first) + _C.lgamma(b) - _C.lgamma(first + b)) * b


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1] with cdf 1 - (1 - x^a)^b, where a = concentration1, b = concentration0.

    Args:
        concentration1, concentration0: tensors that broadcast, or numbers; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(_C.full_like(self.concentration0, 0), _C.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    mean = property(lambda self: _moment(self.concentration1, self.concentration0, 1))
    variance = property(lambda self: _moment(self.concentration1, self.concentration0, 2) - _C.pow(self.mean, 2))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * (-b).log1p() - (-a * b).log1p()
        log_mode[(b < 1) | (a < 1)] = float("nan")
        return log_mode.exp()

    def entropy(self) -> Tensor:
        t1, t0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        h0 = _C.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * h0 - _C.log(self.concentration1) - _C.log(self.concentration0)
