"""Dropout as functions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import _C
from .._functions.arguments import takes_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@takes_tensors
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and scales the rest by 1 / (1 - p); the identity when not training.

    Args:
        input: any shape, floating point or complex.
        p: the probability that an element becomes 0, in [0, 1] (ValueError).
        training: False makes it the identity.
        inplace: whether to overwrite `input` and return it.

    >>> x = naru.nn.functional.dropout(naru.ones(1000), p=0.5)
    >>> x.unique()
    tensor([0., 2.])
    >>> naru.nn.functional.dropout(naru.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    if inplace:
        return input.copy_(_C.dropout(input, p, training)) if training and p > 0.0 else input
    return _C.dropout(input, p, training)


def _channel_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Zeroes whole channels (dimension 1, or 0 if `input` has no batch dimension)."""
    _check_probability(p)
    if not training or p == 0.0:
        return input
    out = _C._feature_dropout(input, p, True)
    return input.copy_(out) if inplace else out


@takes_tensors
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, L) or (C, L).

    Args:
        input: shape (N, C, L) or (C, L).
        p: the probability that a channel becomes 0; the others are scaled by 1 / (1 - p).
        training: False makes it the identity.
        inplace: whether to overwrite `input` and return it.

    >>> x = naru.nn.functional.dropout1d(naru.ones(8, 3), p=0.5)
    >>> bool((x == x[:, :1]).all())
    True
    """
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide channel-wise "
            "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 2:
        return _channel_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return _channel_dropout(input, p, training, inplace)


def _warn_of_dimensions(input: Tensor, spatial: int) -> None:
    low, high, name = spatial + 1, spatial + 2, f"dropout{spatial}d"
    if input.dim() not in (low, high):
        warnings.warn(
            f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a future "
            f"release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} exists to "
            f"provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, and an optional batch dimension "
            f"(i.e. {low}D or {high}D inputs).",
            stacklevel=3,
        )


@takes_tensors
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, H, W).

    Args:
        input: shape (N, C, H, W); other shapes are accepted with a warning, as in PyTorch.
        p: the probability that a channel becomes 0; the others are scaled by 1 / (1 - p).
        training: False makes it the identity.
        inplace: whether to overwrite `input` and return it.

    >>> x = naru.nn.functional.dropout2d(naru.ones(2, 8, 2, 2), p=0.5)
    >>> bool((x == x[..., :1, :1]).all())
    True
    """
    _warn_of_dimensions(input, 2)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
            "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch "
            "to using dropout1d instead.",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace)


@takes_tensors
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W).

    Args:
        input: shape (N, C, D, H, W) or (C, D, H, W).
        p: the probability that a channel becomes 0; the others are scaled by 1 / (1 - p).
        training: False makes it the identity.
        inplace: whether to overwrite `input` and return it.

    >>> x = naru.nn.functional.dropout3d(naru.ones(2, 8, 2, 2, 2), p=0.5)
    >>> bool((x == x[..., :1, :1, :1]).all())
    True
    """
    _warn_of_dimensions(input, 3)
    if input.dim() == 4:
        return _channel_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return _channel_dropout(input, p, training, inplace)


def _alpha_dropout(run: Callable[..., Tensor], input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    input.dtype  # noqa: B018  # raises an error if input is not a tensor, training or not
    _check_probability(p)
    if not training or p == 0.0:
        return input
    out = run(input, p, True)
    return input.copy_(out) if inplace else out


@takes_tensors
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of a SELU network's activations.

    Args:
        input: any shape, floating point.
        p: the probability that an element is replaced by SELU's limit at -inf, before all elements are scaled and shifted.
        training: False makes it the identity.
        inplace: whether to overwrite `input` and return it.

    >>> naru.nn.functional.alpha_dropout(naru.ones(1000), p=0.5, training=True).unique()
    tensor([-0.7792,  1.6656])
    """
    return _alpha_dropout(_C._alpha_dropout, input, p, training, inplace)


@takes_tensors
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels: dimension 1 of (N, C, ...).

    Args:
        input: (N, C, ...), floating point.
        p: the probability that a channel is replaced by SELU's limit at -inf.
        training: False makes it the identity.
        inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.feature_alpha_dropout(naru.ones(1, 3), p=0.5, training=False)
    tensor([[1., 1., 1.]])
    """
    return _alpha_dropout(_C._feature_alpha_dropout, input, p, training, inplace)


@takes_tensors
def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The same as `dropout2d`.

    Args:
        input: shape (N, C, ...).
        p: the probability that a channel becomes 0; the others are scaled by 1 / (1 - p).
        training: False makes it the identity.
        inplace: whether to overwrite `input` and return it.

    >>> x = naru.nn.functional.feature_dropout(naru.ones(2, 8, 3), p=0.5)
    >>> bool((x == x[..., :1]).all())
    True
    """
    return _channel_dropout(input, p, training, inplace)
