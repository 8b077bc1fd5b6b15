"""`MultivariateNormal`: normal vectors."""

from __future__ import annotations

import math
from typing import Any

from .. import _C, linalg
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

Tensor = _C.Tensor

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Batched matrix-vector product, with broadcasting."""
    return _C.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(tril: Tensor, x: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x, batched, with broadcasting."""
    shape = _C.broadcast_tensors(tril[..., 0], x)[0].shape
    solved = linalg.solve_triangular(tril.expand(shape + tril.shape[-1:]), x.expand(shape).unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a matrix."""
    flipped = linalg.cholesky(_C.flip(precision, (-2, -1)))
    upper = _C.transpose(_C.flip(flipped, (-2, -1)), -2, -1)
    identity = _C.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(upper, identity.expand(precision.shape), upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors with mean `loc` and one of covariance_matrix, precision_matrix (its inverse) and scale_tril (its Cholesky factor).

    Args:
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> MultivariateNormal(naru.zeros(2), naru.eye(2)).log_prob(naru.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, value),) = given.items()
        if value.dim() < 2:
            raise ValueError(
                f"{name} {'matrix ' if name == 'scale_tril' else ''}must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = _shape_of(value.shape[:-2], loc.shape[:-1])
        setattr(self, name, value.expand(batch + value.shape[-2:]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = value
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(value) if name == "covariance_matrix" else _precision_to_scale_tril(value)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(MultivariateNormal, batch_shape, _instance)
        shape = _C.Size(batch_shape) + self.event_shape
        new.loc = self.loc.expand(shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape + self.event_shape))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _full(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._full(_C.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._full(_C.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        m = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + m) - self._half_log_det()

    def entropy(self) -> Tensor:
        found = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return found if len(self._batch_shape) == 0 else found.expand(self._batch_shape)


def _shape_of(*shapes: Any) -> _C.Size:
    from ..functional import broadcast_shapes

    return broadcast_shapes(*shapes)
