"""`LKJCholesky`: Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._functions.dtype_limits import finfo
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` x `dim` correlation matrices. The density of the matrix is proportional to its determinant to the power
    `concentration` - 1 (Lewandowski, Kurowicka and Joe). Sampled by the onion method.

    Args:
        concentration: a tensor, or a number; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> factor = naru.distributions.LKJCholesky(3, 0.5).sample()
    >>> naru.allclose((factor @ factor.T).diagonal(), naru.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        shape = self.concentration.size()
        offset = _C.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = _C.cat([offset.new_zeros((1,)), offset])
        a = offset + 0.5
        b = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2) - 0.5 * offset
        self._beta = Beta(a, b)
        super().__init__(shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand(_C.Size(batch_shape) + (self.dim,))
        return new

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        with _C.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            direction = _C.randn(self._extended_shape(sample_shape), dtype=length.dtype, device=length.device).tril(-1)
            sphere = direction / direction.norm(dim=-1, keepdim=True)
            sphere[..., 0, :].fill_(0.0)
            w = _C.sqrt(length) * sphere
            tiny = finfo(w.dtype).tiny
            diagonal = _C.clamp(1 - _C.sum(w**2, dim=-1), min=tiny).sqrt()
            return w + _C.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        elements = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = _C.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = _C.sum(order * elements.log(), dim=-1)
        dm1 = self.dim - 1
        alpha = self.concentration + 0.5 * dm1
        denominator = _C.lgamma(alpha) * dm1
        numerator = _C.mvlgamma(alpha - 0.5, dm1)
        return unnormalized - (0.5 * dm1 * math.log(math.pi) + numerator - denominator)
