"""Activation functions of `torch.nn.functional`.

Each accepts a tensor of any shape and returns one of the same shape. `inplace=True` writes into the argument.
Most are functions of the core; the others are expressions in its operators.
"""

from __future__ import annotations

from .. import _C
from .._functions.arguments import takes_tensors

Tensor = _C.Tensor


def _finish(input: Tensor, out: Tensor, inplace: bool) -> Tensor:
    return input.copy_(out) if inplace else out


def _apart(input: Tensor, inplace: bool) -> Tensor:
    """The operand of an in-place function: a copy if history is recorded, as the write would change the saved tensor."""
    return input.clone() if inplace and input.requires_grad and _C.is_grad_enabled() else input


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)

    Args:
        input: any shape, any real dtype. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.relu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return _C.relu_(input) if inplace else _C.relu(input)


def relu_(input: Tensor) -> Tensor:
    """max(x, 0), in place

    Args:
        input: any shape, any real dtype.

    >>> naru.nn.functional.relu_(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return _C.relu_(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.sigmoid(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.1192, 0.6225, 0.9526])
    """
    return _C.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(x)

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.tanh(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.9640,  0.4621,  0.9951])
    """
    return _C.tanh(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)

    Args:
        input: any shape, any real dtype. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.relu6(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return _C.relu6_(input) if inplace else _C.relu6(input)


@takes_tensors
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x clamped to [min_val, max_val]; no gradient at or beyond the limits

    Args:
        input: any shape, any real dtype. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.hardtanh(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return _finish(input, _C._hardtanh(_apart(input, inplace), min_val, max_val), inplace)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, in place

    Args:
        input: any shape, any real dtype.
        min_val: the lower limit.
        max_val: the upper limit.

    >>> naru.nn.functional.hardtanh_(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return hardtanh(input, min_val, max_val, True)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.hardsigmoid(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.1667, 0.5833, 1.0000])
    """
    return _C.hardsigmoid_(input) if inplace else _C.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · hardsigmoid(x)

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.hardswish(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.3333,  0.2917,  3.0000])
    """
    return _C.hardswish_(input) if inplace else _C.hardswish(input)


@takes_tensors
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x where |x| > lambd, else 0

    Args:
        input: any shape, floating point. out: the output tensor.

    >>> naru.nn.functional.hardshrink(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-2.,  0.,  3.])
    """
    return _C._hardshrink(input, lambd, out=out)


@takes_tensors
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x shrunk towards 0 by lambd, 0 within lambd of it

    Args:
        input: any shape, floating point. out: the output tensor.

    >>> naru.nn.functional.softshrink(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.5000,  0.0000,  2.5000])
    """
    return _C._softshrink(input, lambd, out=out)


@takes_tensors
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.tanhshrink(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0360,  0.0379,  2.0049])
    """
    return _C._tanhshrink(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.softsign(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.6667,  0.3333,  0.7500])
    """
    return _C.softsign(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value

    Args:
        input: any shape, any real dtype. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.threshold(naru.tensor([-2.0, 0.5, 3.0]), 1.0, 20.0)
    tensor([20., 20.,  3.])
    """
    return _C.threshold_(input, threshold, value) if inplace else _C.threshold(input, threshold, value)


@takes_tensors
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """The function `threshold`, in place

    Args:
        input: any shape, any real dtype.
        value: replaces elements up to the threshold.

    >>> naru.nn.functional.threshold_(naru.tensor([-2.0, 0.5, 3.0]), 1.0, 20.0)
    tensor([20., 20.,  3.])
    """
    return _C.threshold_(input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.leaky_relu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.0200,  0.5000,  3.0000])
    """
    return _C.leaky_relu_(input, negative_slope) if inplace else _C.leaky_relu(input, negative_slope)


@takes_tensors
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, in place

    Args:
        input: any shape, floating point.
        negative_slope: the factor for negative values.

    >>> naru.nn.functional.leaky_relu_(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.0200,  0.5000,  3.0000])
    """
    return leaky_relu(input, negative_slope, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (exp(x) - 1)

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.elu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.8647,  0.5000,  3.0000])
    """
    return _C.elu_(input, alpha) if inplace else _C.elu(input, alpha)


@takes_tensors
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, in place

    Args:
        input: any shape, floating point.
        alpha: the scale for negative values.

    >>> naru.nn.functional.elu_(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.8647,  0.5000,  3.0000])
    """
    return elu(input, alpha, True)


@takes_tensors
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (exp(x / alpha) - 1)

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.celu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.8647,  0.5000,  3.0000])
    """
    return _finish(input, _C._celu(_apart(input, inplace), alpha), inplace)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, in place

    Args:
        input: any shape, floating point.
        alpha: the scale for negative values.

    >>> naru.nn.functional.celu_(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.8647,  0.5000,  3.0000])
    """
    return celu(input, alpha, True)


@takes_tensors
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale · elu(x, alpha) with the constants that keep mean 0 and variance 1

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.selu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.5202,  0.5254,  3.1521])
    """
    return _finish(input, _C._selu(_apart(input, inplace)), inplace)


def selu_(input: Tensor) -> Tensor:
    """`selu`, in place

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.selu_(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.5202,  0.5254,  3.1521])
    """
    return selu(input, True)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x · Φ(x), where Φ is the standard normal distribution function; approximate="tanh" uses its tanh approximation

    Args:
        input: any shape, floating point. out: the output tensor.

    >>> naru.nn.functional.gelu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.0455,  0.3457,  2.9960])
    """
    return _C.gelu(input, approximate=approximate, out=out)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.silu(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.2384,  0.3112,  2.8577])
    """
    return _C.silu_(input) if inplace else _C.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x))

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.mish(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.2525,  0.3752,  2.9865])
    """
    return _C.mish_(input) if inplace else _C.mish(input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold

    Args:
        input: any shape, floating point. out: the output tensor.

    >>> naru.nn.functional.softplus(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.1269, 0.9741, 3.0486])
    """
    return _C.softplus(input, beta, threshold, out=out)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(x)), without overflow

    Args:
        input: any shape, floating point. out: the output tensor.

    >>> naru.nn.functional.logsigmoid(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-2.1269, -0.4741, -0.0486])
    """
    return _C.logsigmoid(input, out=out)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight · x; weight has one element, or one for each channel (dimension 1)

    Args:
        input: any shape, floating point.

    >>> naru.nn.functional.prelu(naru.tensor([-2.0, 0.5, 3.0]), naru.tensor([0.1]))
    tensor([-0.2000,  0.5000,  3.0000])
    """
    return _C.prelu(input, weight)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x where x > 0, else x times a number between `lower` and `upper`: drawn for each element in training, else their mean

    Args:
        input: any shape, floating point. inplace: whether to overwrite the input and return it.

    >>> naru.nn.functional.rrelu(naru.tensor([-2.0, 0.5, 3.0]), 0.1, 0.1)
    tensor([-0.2000,  0.5000,  3.0000])
    """
    return _C.rrelu_(input, lower, upper, training) if inplace else _C.rrelu(input, lower, upper, training)


rrelu_ = _C.rrelu_
