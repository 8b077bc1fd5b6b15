"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ... import _C
from .. import functional as F
from ..parameter import Parameter
from ._activation_bases import _Along, _Alpha, _Inplace, _Lambda
from .module import Module

Tensor = _C.Tensor

__all__ = [
    "Threshold", "ReLU", "ReLU6", "LeakyReLU", "RReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid",
    "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink", "Softshrink", "Tanhshrink", "Softplus", "Softsign",
    "LogSigmoid", "GLU", "Softmax", "Softmin", "LogSoftmax", "Softmax2d",
]  # fmt: skip


class ReLU(_Inplace):
    """max(x, 0); `inplace` writes it into the input.

    >>> import naru
    >>> naru.nn.ReLU()(naru.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.relu_() if self.inplace else input.relu()


class SELU(_Inplace):
    """Scaled ELU that keeps mean 0 and variance 1; `inplace` writes it into the input.

    >>> naru.nn.SELU()(naru.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """x · sigmoid(x); `inplace` writes it into the input.

    >>> naru.nn.SiLU()(naru.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """x · tanh(softplus(x)); `inplace` writes it into the input.

    >>> naru.nn.Mish()(naru.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """min(max(x + 3, 0), 6) / 6; `inplace` writes it into the input.

    >>> naru.nn.Hardsigmoid()(naru.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """x · hardsigmoid(x); `inplace` writes it into the input.

    >>> naru.nn.Hardswish()(naru.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class RReLU(Module):
    """x where x > 0, else x times a slope: drawn from [lower, upper] for each element in training, else their mean; `inplace` writes it into the input.

    >>> naru.nn.RReLU(0.1, 0.1)(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.2000,  0.5000,  3.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """x where x > threshold, else value; `inplace` writes it into the input.

    >>> naru.nn.Threshold(1.0, 20.0)(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([20., 20.,  3.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """x clamped to [min_val, max_val]; `inplace` writes it into the input.

    >>> naru.nn.Hardtanh()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6); `inplace` writes it into the input.

    >>> naru.nn.ReLU6()(naru.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """x where x > 0, else negative_slope · x; `inplace` writes it into the input.

    >>> naru.nn.LeakyReLU()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.0200,  0.5000,  3.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x where x > 0, else weight · x with learned weights, one for all channels or one for each

    Args:
        num_parameters: 1, or the number of channels.
        init: the initial value of the weights.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> naru.nn.PReLU()(naru.tensor([-2.0, 0.5, 3.0])).detach()
    tensor([-0.5000,  0.5000,  3.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(_C.full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Resets the weight to its initial value."""
        with _C.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class ELU(_Alpha):
    """x where x > 0, else alpha · (exp(x) - 1); `inplace` writes it into the input.

    >>> naru.nn.ELU()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.8647,  0.5000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """x where x > 0, else alpha · (exp(x / alpha) - 1); `inplace` writes it into the input.

    >>> naru.nn.CELU()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.8647,  0.5000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """x · Φ(x); approximate is "none" or "tanh"

    >>> naru.nn.GELU()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.0455,  0.3457,  2.9960])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """tanh(x)

    >>> naru.nn.Tanh()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.9640,  0.4621,  0.9951])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class Sigmoid(Module):
    """1 / (1 + exp(-x))

    >>> naru.nn.Sigmoid()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.1192, 0.6225, 0.9526])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class LogSigmoid(Module):
    """log(sigmoid(x))

    >>> naru.nn.LogSigmoid()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-2.1269, -0.4741, -0.0486])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)

    >>> naru.nn.Softsign()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-0.6667,  0.3333,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)

    >>> naru.nn.Tanhshrink()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0360,  0.0379,  2.0049])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Hardshrink(_Lambda):
    """x where |x| > lambd, else 0

    >>> naru.nn.Hardshrink()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-2.,  0.,  3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Lambda):
    """x shrunk towards 0 by lambd, 0 within lambd of it

    >>> naru.nn.Softshrink()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.5000,  0.0000,  2.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold

    >>> naru.nn.Softplus()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([0.1269, 0.9741, 3.0486])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(_Along):
    """exp(x) / sum(exp(x)) along `dim`

    >>> import naru
    >>> naru.nn.Softmax(dim=-1)(naru.zeros(2, 2))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(_Along):
    """softmax(-x) along `dim`

    >>> naru.nn.Softmin(dim=0)(naru.tensor([1.0, 2.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(_Along):
    """log(softmax(x)) along `dim`

    >>> naru.nn.LogSoftmax(dim=0)(naru.tensor([1.0, 2.0]))
    tensor([-1.3133, -0.3133])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)

    >>> naru.nn.Softmax2d()(naru.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class GLU(Module):
    """first half · sigmoid(second half), the halves along `dim`

    >>> naru.nn.GLU()(naru.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
