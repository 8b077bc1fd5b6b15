"""Transforms of vectors and matrices, and transforms applied to slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._functions.dtype_limits import finfo
from ..nn import functional as F
from . import constraints
from ._transforms import Transform
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


class CorrCholeskyTransform(Transform):
    """Maps vectors of n (n - 1) / 2 numbers to Cholesky factors of n x n correlation matrices, through tanh.

    Args:
        cache_size: 1 keeps the last pair.

    >>> factor = naru.distributions.transforms.CorrCholeskyTransform()(naru.tensor([1.0]))
    >>> factor, factor @ factor.T
    (tensor([[1.0000, 0.0000],
            [0.7616, 0.6481]]), tensor([[1.0000, 0.7616],
            [0.7616, 1.0000]]))
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = _C.tanh(x)
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + _C.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - _C.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        stick = 0.5 * left.log().sum(-1)
        through_tanh = -2 * (x + F.softplus(-2 * x) - 0.6931471805599453).sum(dim=-1)
        return stick + through_tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class _OfClass(Transform):
    """Equal to any other instance of its class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class SoftmaxTransform(_OfClass):
    """Maps vectors to the simplex by softmax; the logarithm serves as the inverse.

    Args:
        cache_size: 1 keeps the last pair.

    >>> naru.distributions.transforms.SoftmaxTransform()(naru.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_OfClass):
    """Maps vectors to a simplex of one dimension more, by stick breaking.

    Args:
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.StickBreakingTransform()
    >>> t(naru.tensor([0.0, 0.0])), t.inv(naru.tensor([0.5, 0.25, 0.25])).shape
    (tensor([0.3333, 0.3333, 0.3333]), torch.Size([2]))
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offset(self, x: Tensor) -> Tensor:
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(x - self._offset(x).log())
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        offset = y.shape[-1] - y.new_ones(cropped.shape[-1]).cumsum(-1)
        left = _C.clamp(1 - cropped.cumsum(-1), min=finfo(y.dtype).tiny)
        return cropped.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] - 1,)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    limits = finfo(x.dtype)
    return _C.clamp(_C.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class LowerCholeskyTransform(_OfClass):
    """Maps square matrices to lower triangular ones with a positive diagonal, by exp of the diagonal.

    Args:
        cache_size: 1 keeps the last pair.

    >>> naru.distributions.transforms.LowerCholeskyTransform()(naru.tensor([[0.0, 5.0], [2.0, 1.0]]))
    tensor([[1.0000, 0.0000],
            [2.0000, 2.7183]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfClass):
    """Maps square matrices to positive definite ones.

    Args:
        cache_size: 1 keeps the last pair.

    >>> naru.distributions.transforms.PositiveDefiniteTransform()(naru.tensor([[0.0, 5.0], [2.0, 0.0]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(_C.linalg_cholesky(y))


class CatTransform(Transform):
    """Applies each transform to a piece of the input along a dimension, with the given lengths.

    Args:
        tseq: transforms, one for each piece.
        dim: the dimension that is split.
        lengths: lengths of the pieces; 1 each if None.
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms
    >>> t.CatTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0)], lengths=[1, 2])(naru.tensor([0.0, 1.0, 2.0]))
    tensor([1., 2., 4.])
    """

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        assert all(isinstance(t, Transform) for t in tseq)
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms)
        self.dim = dim

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms), doc="How many dimensions a value has.")
    length = property(lambda self: sum(self.lengths), doc="The size of all pieces together.")
    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        assert -x.dim() <= self.dim < x.dim()
        assert x.size(self.dim) == self.length
        return list(x.split(self.lengths, self.dim))

    def _call(self, x: Tensor) -> Tensor:
        return _C.cat([t(part) for t, part in zip(self.transforms, self._pieces(x))], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return _C.cat([t.inv(part) for t, part in zip(self.transforms, self._pieces(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        from .utils import _sum_rightmost

        found = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y)):
            one = t.log_abs_det_jacobian(a, b)
            found.append(_sum_rightmost(one, self.event_dim - t.event_dim) if t.event_dim < self.event_dim else one)
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return _C.cat(found, dim=dim) if dim < 0 else sum(found[1:], found[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        """The set of inputs."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The set of outputs."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Applies each transform to one slice along a dimension.

    Args:
        tseq: transforms, one for each slice.
        dim: the dimension of the slices.
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms
    >>> t.StackTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0)], dim=0)(naru.tensor([0.0, 1.0]))
    tensor([1., 2.])
    """

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        assert all(isinstance(t, Transform) for t in tseq)
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, z: Tensor) -> list[Tensor]:
        assert -z.dim() <= self.dim < z.dim()
        assert z.size(self.dim) == len(self.transforms)
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _call(self, x: Tensor) -> Tensor:
        return _C.stack([t(part) for t, part in zip(self.transforms, self._slices(x))], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return _C.stack([t.inv(part) for t, part in zip(self.transforms, self._slices(y))], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slices(x), self._slices(y))
        return _C.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The set of inputs."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The set of outputs."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cdf of a distribution: maps its values to [0, 1].

    Args:
        distribution: a distribution with `cdf`, `icdf` and `log_prob`.
        cache_size: 1 keeps the last pair.

    >>> t = naru.distributions.transforms.CumulativeDistributionTransform(naru.distributions.Normal(0.0, 1.0))
    >>> t(naru.tensor([0.0, 1.0])), t.inv(naru.tensor(0.5))
    (tensor([0.5000, 0.8413]), tensor(0.))
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1  # type: ignore[assignment]

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
