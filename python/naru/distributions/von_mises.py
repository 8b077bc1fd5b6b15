"""`VonMises`: an analogue of the normal distribution on the circle."""

from __future__ import annotations

import math
from typing import Any

from .. import _C, special
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

Tensor = _C.Tensor

__all__ = ["VonMises"]


def _log_bessel(order: int, x: Tensor) -> Tensor:
    """The logarithm of the modified Bessel function of order 0 or 1."""
    return _C.log(special.i0e(x) if order == 0 else special.i1e(x)) + x


class VonMises(Distribution):
    """Angles concentrated around `loc`, more tightly the larger `concentration` is. loc: any angle, modulo 2 pi. Samples are in [-pi, pi).

    Args:
        loc: a tensor, or a number.
        concentration: a tensor, or a number; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> naru.distributions.VonMises(naru.tensor(0.0), naru.tensor(4.0)).log_prob(naru.tensor(0.0))
    tensor(-0.2628)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        found = self.concentration * _C.cos(value - self.loc)
        return found - math.log(2 * math.pi) - _log_bessel(0, self.concentration)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self.concentration.to(_C.double)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        return _C.where(kappa < 1e-5, 1 / kappa + kappa, exact)

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        """Rejection sampling with a wrapped Cauchy proposal (Best and Fisher)."""
        with _C.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, kappa, r = self.loc.double(), self.concentration.double().expand(shape), self._proposal_r.expand(shape)
            x = _C.empty(shape, dtype=_C.double, device=loc.device)
            done = _C.zeros(shape, dtype=_C.bool, device=loc.device)
            while not done.all():
                u1, u2, u3 = _C.rand((3, *shape), dtype=_C.double, device=loc.device).unbind()
                z = _C.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = _C.where(accept, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.loc.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=self.__dict__.get("_validate_args"))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - (_log_bessel(1, self.concentration) - _log_bessel(0, self.concentration)).exp()
