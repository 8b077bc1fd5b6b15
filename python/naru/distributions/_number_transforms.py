"""Elementwise transforms."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._functions.dtype_limits import finfo
from ..nn import functional as F
from . import constraints
from ._transforms import Transform
from .utils import broadcast_all, lazy_property

Tensor = _C.Tensor


class _Elementwise(Transform):
    """An increasing elementwise transform; equal to any other instance of its class."""

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = True
    sign: Any = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class ExpTransform(_Elementwise):
    """exp(x).

    Args:
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.ExpTransform()
    >>> t(naru.tensor([0.0, 1.0])), t.inv(naru.tensor(1.0))
    (tensor([1.0000, 2.7183]), tensor(0.))
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x ** `exponent`, for positive numbers.

    Args:
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.PowerTransform(naru.tensor(2.0))
    >>> t(naru.tensor([1.0, 3.0])), t.inv(naru.tensor(9.0))
    (tensor([1., 9.]), tensor(3.))
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    sign = lazy_property(lambda self: self.exponent.sign())  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        from ..functional import broadcast_shapes

        return broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(_Elementwise):
    """sigmoid(x), clamped away from 0 and 1.

    Args:
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.SigmoidTransform()
    >>> t(naru.tensor([0.0, 2.0])), t.inv(naru.tensor(0.5))
    (tensor([0.5000, 0.8808]), tensor(0.))
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        limits = finfo(x.dtype)
        return _C.clamp(_C.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Elementwise):
    """log(1 + exp(x)).

    Args:
        cache_size: 1 keeps the last pair.

    >>> naru.distributions.transforms.SoftplusTransform()(naru.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Elementwise):
    """tanh(x).

    Args:
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.TanhTransform()
    >>> x = naru.tensor([0.0, 1.0])
    >>> t(x), t.log_abs_det_jacobian(x, t(x))
    (tensor([0.0000, 0.7616]), tensor([ 0.0000, -0.8676]))
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return _C.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """|x|; the inverse returns the positive number.

    Args:
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.AbsTransform()
    >>> t(naru.tensor([-2.0, 2.0])), t.inv(naru.tensor(2.0))
    (tensor([2., 2.]), tensor(2.))
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """loc + scale * x. event_dim: number of event dimensions.

    Args:
        loc, scale: tensors, or numbers.
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.AffineTransform(1.0, 2.0)
    >>> t(naru.tensor([0.0, 3.0])), t.inv(naru.tensor(7.0))
    (tensor([1., 7.]), tensor(3.))
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The set of inputs."""
        return constraints.real if self.event_dim == 0 else constraints.independent(constraints.real, self.event_dim)

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return all(bool(_C.as_tensor(a == b).all()) for a, b in ((self.loc, other.loc), (self.scale, other.scale)))

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return 1 if float(self.scale) > 0 else -1 if float(self.scale) < 0 else 0

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shape, scale = x.shape, self.scale
        found = _C.log(_C.abs(scale)) if isinstance(scale, Tensor) else _C.full_like(x, math.log(abs(scale)))
        if self.event_dim:
            found = found.view(found.size()[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return found.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        from ..functional import broadcast_shapes

        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape
