"""`Wishart`: the Wishart distribution, of scatter matrices of normal samples."""

from __future__ import annotations

import math
from typing import Any

from .. import _C, linalg
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _precision_to_scale_tril
from .utils import _standard_normal, lazy_property

Tensor = _C.Tensor

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Positive definite matrices: sums of outer products of `df` normal vectors whose covariance is given by one of covariance_matrix,
    precision_matrix (its inverse) and scale_tril (its Cholesky factor).

    Args:
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> Wishart(naru.tensor(3.0), naru.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None
    ) -> None:
        given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, param),) = given.items()
        if param.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if not isinstance(df, Tensor):
            df = _C.tensor(df, dtype=param.dtype, device=param.device)
        batch = _C.broadcast_tensors(df, param[..., 0, 0])[0].shape
        event = param.shape[-2:]
        self.df = df.expand(batch)
        if self.df.le(event[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        setattr(self, name, param.expand(batch + event))
        self.arg_constraints = {**type(self).arg_constraints, "df": constraints.greater_than(event[-1] - 1)}
        super().__init__(batch, event, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = param
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(param) if name == "covariance_matrix" else _precision_to_scale_tril(param)
        self._chi2 = Chi2(df=self.df.unsqueeze(-1) - _C.arange(event[-1], dtype=param.dtype, device=param.device).expand(batch + (-1,)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        new.arg_constraints = self.arg_constraints
        new = self._expanded(Wishart, batch_shape, new, "df")
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(_C.Size(batch_shape) + self.event_shape))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        new._chi2 = self._chi2.expand(_C.Size(batch_shape) + self.event_shape[-1:])
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return (self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return _C.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    mean = property(lambda self: self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = _C.where(factor <= 0, float("nan"), factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Any = _C.Size(), max_try_correction: int | None = None) -> Tensor:
        """Uses the Bartlett decomposition."""
        if _C._draws_as_pytorch():
            self._drawn(_C.Size(sample_shape))  # PyTorch 2.15 discards a regular sample and draws again
        return self._drawn(_C.Size(sample_shape))

    def _drawn(self, sample_shape: _C.Size) -> Tensor:
        p = self._event_shape[-1]
        noise = self._chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        row, column = _C.tril_indices(p, p, offset=-1)
        noise[..., row, column] = _standard_normal((*sample_shape, *self._batch_shape, p * (p - 1) // 2), noise.dtype, noise.device)
        chol = self._unbroadcasted_scale_tril @ noise
        return chol @ chol.mT

    def _log_det(self) -> Tensor:
        return 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        trace = _C.cholesky_solve(value, self._unbroadcasted_scale_tril.expand(value.shape)).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (p * math.log(2.0) + self._log_det()) / 2
            - _C.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        steps = _C.arange(p, dtype=nu.dtype, device=nu.device)
        psi = _C.digamma((nu.unsqueeze(-1) - steps) / 2).sum(-1)
        return (p + 1) * (p * math.log(2.0) + self._log_det()) / 2 + _C.mvlgamma(nu / 2, p) - (nu - p - 1) / 2 * psi + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-linalg.slogdet(-2 * x).logabsdet + math.log(2.0) * p) + _C.mvlgamma(half, p)
