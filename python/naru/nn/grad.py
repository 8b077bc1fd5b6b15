"""`torch.nn.grad`: the gradients of convolutions with respect to their input and their weight, as functions."""

from __future__ import annotations

from typing import Any

from .. import _C, _missing
from ..autograd import grad
from ..autograd.grad_mode import enable_grad

Tensor = _C.Tensor

_CONVOLUTIONS = {1: _C.conv1d, 2: _C.conv2d, 3: _C.conv3d}


def _gradient(n: int, by: int, operands: list[Any], grad_output: Tensor, rest: tuple) -> Tensor:
    """The gradient by operand `by`. Only that operand's size is needed, as a convolution is linear in each operand."""
    other: Tensor = operands[1 - by]
    with enable_grad():
        leaf = _C.zeros(tuple(operands[by]), dtype=other.dtype, device=other.device).requires_grad_()
        operands[by] = leaf
        stride, padding, dilation, groups = rest
        out = _CONVOLUTIONS[n](operands[0], operands[1], None, stride, padding, dilation, groups)
    history = _C.is_grad_enabled() and (grad_output.requires_grad or other.requires_grad)
    return grad(out, leaf, grad_output, create_graph=history)[0]


def conv1d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv1d with respect to its input, given the gradient of its result.

    Args:
        input_size: (N, C, L), the shape of the gradient.
        weight: shape (O, C / groups, k).
        grad_output: the gradient of conv1d's result, (N, O, length).
        stride, padding, dilation, groups: the arguments of conv1d.

    >>> naru.nn.grad.conv1d_input((1, 1, 4), naru.tensor([[[1.0, 2.0]]]), naru.ones(1, 1, 3))
    tensor([[[1., 3., 3., 2.]]])
    """
    return _gradient(1, 0, [input_size, weight], grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv2d with respect to its input, given the gradient of its result.

    Args:
        input_size: (N, C, H, W), the shape of the gradient.
        weight: shape (O, C / groups, h, w).
        grad_output: the gradient of conv2d's result, (N, O, height, width).
        stride, padding, dilation, groups: the arguments of conv2d.

    >>> naru.nn.grad.conv2d_input((1, 1, 2, 3), naru.ones(1, 1, 1, 2), naru.ones(1, 1, 2, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    return _gradient(2, 0, [input_size, weight], grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv3d with respect to its input, given the gradient of its result.

    Args:
        input_size: (N, C, D, H, W), the shape of the gradient.
        weight: shape (O, C / groups, d, h, w).
        grad_output: the gradient of conv3d's result, (N, O, depth, height, width).
        stride, padding, dilation, groups: the arguments of conv3d.

    >>> naru.nn.grad.conv3d_input((1, 1, 1, 1, 3), naru.ones(1, 1, 1, 1, 2), naru.ones(1, 1, 1, 1, 2)).flatten()
    tensor([1., 2., 1.])
    """
    return _gradient(3, 0, [input_size, weight], grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv1d with respect to its weight, given the gradient of its result.

    Args:
        input: shape (N, C, L).
        weight_size: (O, C / groups, k), the shape of the gradient.
        grad_output: the gradient of conv1d's result, (N, O, length).
        stride, padding, dilation, groups: the arguments of conv1d.

    >>> naru.nn.grad.conv1d_weight(naru.arange(4.0).reshape(1, 1, 4), (1, 1, 2), naru.ones(1, 1, 3))
    tensor([[[3., 6.]]])
    """
    return _gradient(1, 1, [input, weight_size], grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv2d with respect to its weight, given the gradient of its result.

    Args:
        input: shape (N, C, H, W).
        weight_size: (O, C / groups, h, w), the shape of the gradient.
        grad_output: the gradient of conv2d's result, (N, O, height, width).
        stride, padding, dilation, groups: the arguments of conv2d.

    >>> naru.nn.grad.conv2d_weight(naru.arange(6.0).reshape(1, 1, 2, 3), (1, 1, 1, 2), naru.ones(1, 1, 2, 2))
    tensor([[[[ 8., 12.]]]])
    """
    return _gradient(2, 1, [input, weight_size], grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv3d with respect to its weight, given the gradient of its result.

    Args:
        input: shape (N, C, D, H, W).
        weight_size: (O, C / groups, d, h, w), the shape of the gradient.
        grad_output: the gradient of conv3d's result, (N, O, depth, height, width).
        stride, padding, dilation, groups: the arguments of conv3d.

    >>> naru.nn.grad.conv3d_weight(naru.arange(3.0).reshape(1, 1, 1, 1, 3), (1, 1, 1, 1, 2), naru.ones(1, 1, 1, 1, 2)).flatten()
    tensor([1., 3.])
    """
    return _gradient(3, 1, [input, weight_size], grad_output, (stride, padding, dilation, groups))


__getattr__ = _missing.module_getattr(__name__)
