"""`torch.nn.utils.fusion`: folds batch norms in evaluation into the layer before them."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ... import _C, _missing
from ..parameter import Parameter

Tensor = _C.Tensor
M = TypeVar("M")

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def _fused(w: Tensor, b: Tensor | None, *bn: Any) -> tuple[Parameter, Parameter]:
    weight, bias = _C._fuse_bn(w, b, *bn)
    return Parameter(weight, w.requires_grad), Parameter(bias, False if b is None else b.requires_grad)


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A copy of a convolution with the batch norm that follows it folded in, for evaluation. AssertionError for modules in training mode.

    Args:
        transpose: whether the convolution is a transposed one.
        conv: the convolution. bn: the batch norm, with running statistics.

    >>> conv, bn = naru.nn.Conv1d(1, 2, 3).eval(), naru.nn.BatchNorm1d(2).eval()
    >>> x = naru.ones(1, 1, 5)
    >>> naru.allclose(naru.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5)
    True
    """
    _check(conv, bn)
    fused: Any = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution with a batch norm folded in.

    Args:
        conv_w: the convolution's weight, (O, C / groups, ...). conv_b: its bias, (O,), or None.
        bn_rm, bn_rv: the norm's running mean and variance, (O,). bn_eps: the eps added to variances.
        bn_w, bn_b: the norm's weight and bias, (O,), or None.
        transpose: whether the convolution is a transposed one, whose weight has its outputs in dimension 1.

    >>> w, b = naru.nn.utils.fuse_conv_bn_weights(naru.ones(1, 1, 2), None, naru.tensor([1.0]), naru.tensor([4.0]), 0.0, None, None)
    >>> w.data, b.data
    (tensor([[[0.5000, 0.5000]]]), tensor([-0.5000]))
    """
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_w, bn_b, bn_eps, transpose)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A copy of a linear layer with the batch norm that follows it folded in, for evaluation. AssertionError for modules in training mode, and if the
    norm's number of features is neither the layer's nor 1.

    Args:
        linear: the layer. bn: the batch norm, with running statistics.

    >>> linear, bn = naru.nn.Linear(3, 2).eval(), naru.nn.BatchNorm1d(2).eval()
    >>> x = naru.ones(4, 3)
    >>> naru.allclose(naru.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5)
    True
    """
    _check(linear, bn)
    fused: Any = copy.deepcopy(linear)
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer with a batch norm folded in.

    Args:
        linear_w: the layer's weight, (O, I). linear_b: its bias, (O,), or None.
        bn_rm, bn_rv: the norm's running mean and variance, (O,). bn_eps: the eps added to variances.
        bn_w, bn_b: the norm's weight and bias, (O,).

    >>> one = naru.ones(1)
    >>> w, b = naru.nn.utils.fuse_linear_bn_weights(naru.ones(1, 2), None, one, one * 4, 0.0, one, one * 0)
    >>> w.data, b.data
    (tensor([[0.5000, 0.5000]]), tensor([-0.5000]))
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_w, bn_b, bn_eps, False)


__getattr__ = _missing.module_getattr(__name__)
