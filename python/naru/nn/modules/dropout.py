"""Dropout layers, which act only in training mode."""

from __future__ import annotations

from ... import _C
from .. import functional as F
from .module import Module

Tensor = _C.Tensor

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p` and scales the rest by 1 / (1 - p).

    Args:
        inplace: whether to overwrite the input and return it.

    >>> import naru
    >>> drop = naru.nn.Dropout(0.5).eval()
    >>> drop(naru.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (N, C, L) or (C, L).

    Args:
        p: the probability, in [0, 1] (ValueError).
        inplace: whether to overwrite the input and return it.

    >>> x = naru.nn.Dropout1d(p=0.5)(naru.ones(4, 8, 2))
    >>> x.unique(), bool((x[..., 0] == x[..., 1]).all())
    (tensor([0., 2.]), True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (N, C, H, W).

    Args:
        p: the probability, in [0, 1] (ValueError).
        inplace: whether to overwrite the input and return it.

    >>> x = naru.nn.Dropout2d(p=0.5)(naru.ones(4, 8, 1, 2))
    >>> x.unique(), bool((x[..., 0] == x[..., 1]).all())
    (tensor([0., 2.]), True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W).

    Args:
        p: the probability, in [0, 1] (ValueError).
        inplace: whether to overwrite the input and return it.

    >>> x = naru.nn.Dropout3d(p=0.5)(naru.ones(4, 8, 1, 1, 2))
    >>> x.unique(), bool((x[..., 0] == x[..., 1]).all())
    (tensor([0., 2.]), True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of a SELU network's activations.

    Args:
        p: the probability, in [0, 1] (ValueError).
        inplace: whether to overwrite the input and return it.

    >>> naru.nn.AlphaDropout(p=0.5)(naru.ones(1000)).unique()
    tensor([-0.7792,  1.6656])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels of (N, C, ...).

    Args:
        p: the probability, in [0, 1] (ValueError).
        inplace: whether to overwrite the input and return it.

    >>> x = naru.nn.FeatureAlphaDropout(p=0.5)(naru.ones(4, 8, 2))
    >>> bool((x[..., 0] == x[..., 1]).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
