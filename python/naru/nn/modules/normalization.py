"""Normalisation over the last dimensions, over groups of channels, and over neighbouring channels."""

from __future__ import annotations

from typing import Any

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

Tensor = _C.Tensor
_layer_norm = _C.layer_norm

__all__ = ["LayerNorm", "RMSNorm", "GroupNorm", "LocalResponseNorm", "CrossMapLRN2d"]


def _shape_of(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        return (normalized_shape,)
    if isinstance(normalized_shape, _C.Tensor):  # its elements are tensors, not ints
        raise TypeError(f"normalized_shape must be int or a sequence of ints, not Tensor of shape {list(normalized_shape.shape)}")
    return tuple(normalized_shape)


class _Affine(Module):
    """Base of normalisations with an optional weight and bias."""

    def _make_affine(self, size: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(_C.empty(size, device=device, dtype=dtype)) if wanted else None)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(var + eps) · weight + bias over the last dimensions.

    Args:
        normalized_shape: the sizes of the last dimensions, which are normalised together, or one size.
        elementwise_affine: whether there is a weight (initially 1).
        bias: whether there is a bias (initially 0), given elementwise_affine.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> naru.nn.LayerNorm(3)(naru.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-1.2247,  0.0000,  1.2247]], grad_fn=<NativeLayerNormBackward0>)
    """

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        params = self._parameters
        try:
            given = input, self.normalized_shape, params["weight"], params["bias"], self.eps
        except KeyError:  # a computed weight, not a parameter
            given = input, self.normalized_shape, self.weight, self.bias, self.eps
        return _layer_norm(*given) if type(input) is Tensor else F.layer_norm(*given)

    def extra_repr(self) -> str:
        text = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return text + f", bias={self.bias is not None}"


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) · weight over the last dimensions.

    Args:
        normalized_shape: the sizes of the last dimensions, or one size.
        elementwise_affine: whether there is a weight (initially 1).
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> naru.nn.RMSNorm(2)(naru.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        value = Parameter(_C.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """(x - mean) / sqrt(var + eps) for each of `num_groups` groups of neighbouring channels of (N, num_channels, ...), then weight · x + bias.

    Args:
        affine: whether there are a weight (initially 1) and a bias (initially 0) for each channel.
        bias: whether there is a bias, given affine.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> naru.nn.GroupNorm(1, 2)(naru.ones(1, 2, 2)).shape
    torch.Size([1, 2, 2])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta, for (N, C, d1...).

    >>> naru.nn.LocalResponseNorm(1, alpha=1.0, beta=1.0)(naru.tensor([[[1.0], [3.0]]])).flatten()
    tensor([0.5000, 0.3000])
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm of (N, C, H, W) only, with equally many neighbours on either side. An even `size` gives an odd window, but divides the sum.

    PyTorch's version wrongly keeps the first channel in the sums of all channels after it; this one does not.

    Args:
        alpha, beta, k: as in `LocalResponseNorm`.

    >>> naru.nn.CrossMapLRN2d(3, alpha=1.0, beta=1.0)(naru.tensor([1.0, 3.0]).reshape(1, 2, 1, 1)).flatten()
    tensor([0.2308, 0.6923])
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        seen = (self.size + 1) // 2 * 2 - 1
        return F.local_response_norm(input, seen, self.alpha * seen / self.size, self.beta, self.k)
