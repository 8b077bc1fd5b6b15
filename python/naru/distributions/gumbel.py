"""`Gumbel`: the Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._functions.dtype_limits import finfo
from . import constraints
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all, euler_constant

Tensor = _C.Tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution with location `loc` and `scale`.

    Args:
        loc: a tensor, or a number.
        scale: a tensor, or a number; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> Gumbel(1.0, 2.0).mode
    tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        base = Uniform(_C.full_like(self.loc, limits.tiny), _C.full_like(self.loc, 1 - limits.eps), validate_args=validate_args)
        transforms = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-_C.ones_like(self.scale)), ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
