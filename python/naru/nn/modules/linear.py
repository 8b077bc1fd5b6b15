"""Linear and bilinear layers."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

Tensor = _C.Tensor

__all__ = ["Identity", "Linear", "Bilinear"]

_linear = F.linear


class Identity(Module):
    """Returns its input; the constructor accepts and ignores any arguments.

    >>> naru.nn.Identity()(naru.tensor([-2.0, 0.5, 3.0]))
    tensor([-2.0000,  0.5000,  3.0000])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """x · weightᵀ + bias.

    Args:
        in_features: the size of the input's last dimension.
        out_features: the size of the output's last dimension.
        bias: whether there is a bias.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Shapes: (..., in_features) to (..., out_features). weight (out_features, in_features) and bias (out_features,)
    are initialised uniform in ± 1 / sqrt(in_features).

    >>> import naru
    >>> naru.nn.Linear(4, 2)(naru.ones(3, 4)).shape
    torch.Size([3, 2])
    """

    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(_C.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialises weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        params = self._parameters
        try:
            return _linear(input, params["weight"], params["bias"])
        except KeyError:  # a computed weight, not a parameter (pruning, weight norm)
            return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` that quantization tools do not convert; used for attention's output projection."""


class Bilinear(Module):
    """out[..., k] = x1 · weight[k] · x2 + bias[k].

    Shapes: (..., in1_features) and (..., in2_features) to (..., out_features).

    Args:
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> layer = naru.nn.Bilinear(2, 2, 1, bias=False)
    >>> _ = naru.nn.init.ones_(layer.weight)
    >>> layer(naru.tensor([1.0, 2.0]), naru.tensor([3.0, 4.0])).data
    tensor([21.])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got ({in1_features=})")
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(_C.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialises weight and bias."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
