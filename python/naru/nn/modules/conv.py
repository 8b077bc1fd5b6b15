"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

Tensor = _C.Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _each(value: Any, n: int) -> tuple[int, ...]:
    """Expands a value to one number for each of n dimensions."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _ConvNd(Module):
    """Base of all convolutions: weight, bias, and the window's parameters (tuples with a number for each dimension)."""

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.transposed, self.output_padding = transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._reversed_padding_repeated_twice = tuple(self._padding_of_pad())
        self._make_parameters(bias, device, dtype)
        self.reset_parameters()

    def _padding_of_pad(self) -> list[int]:
        """The padding in the format of F.pad: before and after, the last dimension first."""
        if not isinstance(self.padding, str):
            return [p for p in reversed(self.padding) for _ in range(2)]
        amounts = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            amounts += [total // 2, total - total // 2]
        return amounts

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        return (first, second // self.groups, *self.kernel_size)

    def _make_parameters(self, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = Parameter(_C.empty(self._weight_shape(), device=device, dtype=dtype))
        value = Parameter(_C.empty(self.out_channels, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", value)

    def reset_parameters(self) -> None:
        """Reinitialises weight and bias, uniform in ± 1 / sqrt(elements of a window)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.numel() // self.weight.size(0) if self.weight.size(0) else 0
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution; the class defines the number of dimensions."""

    _dims = 0
    _function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each(kernel_size, n),
            _each(stride, n),
            padding if isinstance(padding, str) else _each(padding, n),
            _each(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return type(self)._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution: sums of products of `weight` and each window of the input, plus `bias`.

    Args:
        in_channels, out_channels: the numbers of channels of the input and of the result.
        kernel_size, stride, dilation: the window's size, its step, and the spacing between its elements.
        padding: zeros on both sides; 'same' keeps the length (stride 1), 'valid' adds none.
        groups: the number of groups of channels; each is convolved separately.
        bias: whether there is a bias.
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Shapes: (N, in_channels, L) or (in_channels, L) to (N, out_channels, L'), with
    L' = (L + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down.
    weight (out_channels, in_channels / groups, kernel_size) and bias (out_channels) are initialised uniform in ± 1 / sqrt(elements of a window).

    >>> conv = naru.nn.Conv1d(1, 1, 2, bias=False)
    >>> _ = naru.nn.init.ones_(conv.weight)
    >>> conv(naru.tensor([[1.0, 2.0, 3.0]])).data
    tensor([[3., 5.]])
    >>> naru.nn.Conv1d(2, 3, 5, padding="same")(naru.ones(1, 2, 9)).shape
    torch.Size([1, 3, 9])
    """

    _dims = 1
    _function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """`Conv1d` for two dimensions: (N, in_channels, H, W) or (in_channels, H, W).

    Args:
        out_channels, groups, bias, padding_mode: as in `Conv1d`.
        kernel_size, stride, padding, dilation: as in `Conv1d`, with a number for each dimension, or one for all.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> import naru
    >>> naru.nn.Conv2d(3, 8, 3, stride=2, padding=1)(naru.ones(1, 3, 32, 32)).shape
    torch.Size([1, 8, 16, 16])
    """

    _dims = 2
    _function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """`Conv1d` for three dimensions: (N, in_channels, D, H, W) or (in_channels, D, H, W).

    Args:
        out_channels, groups, bias, padding_mode: as in `Conv1d`.
        kernel_size, stride, padding, dilation: as in `Conv1d`, with a number for each dimension, or one for all.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> naru.nn.Conv3d(1, 2, kernel_size=2)(naru.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    _dims = 3
    _function = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution, the gradient of a convolution by its input; the class defines the number of dimensions."""

    _dims = 0
    _function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each(kernel_size, n),
            _each(stride, n),
            _each(padding, n),
            _each(dilation, n),
            True,
            _each(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The output padding that gives the result the size `output_size`."""
        if output_size is None:
            return self.output_padding
        n = self._dims
        lead = 2 if input.dim() == n + 2 else 1
        wanted = list(output_size)
        if len(wanted) == lead + n:
            wanted = wanted[lead:]
        if len(wanted) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {lead + n} elements (got {len(wanted)})"
            )
        for name in ("kernel_size", "stride", "padding", "dilation"):
            if len(given := getattr(self, name)) != n:
                raise RuntimeError(
                    f"expected {name} to be a single integer value or a list of {n} values to match the convolution dimensions, "
                    f"but got {name}={list(given)}"
                )
        least = [
            (input.size(d + lead) - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        most = [v + s - 1 for v, s in zip(least, self.stride)]
        if any(not lo <= v <= hi for v, lo, hi in zip(wanted, least, most)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an input of {input.size()[2:]})"
            )
        return tuple(v - lo for v, lo in zip(wanted, least))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return type(self)._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Adds `weight` times each element of the input to a window of the result, plus `bias`: the gradient of `Conv1d` by its input.

    Args:
        padding: removed from both sides of the result. output_padding: added at the end of the result. The others as in `Conv1d`.
        padding_mode: 'zeros'; ValueError for others.
        device, dtype: the parameters' device and dtype; the defaults if None.

    Shapes: (N, in_channels, L) or (in_channels, L) to (N, out_channels, L'), with
    L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1; the argument `output_size` of a call chooses among the sizes that
    are possible with a stride. weight (in_channels, out_channels / groups, kernel_size), bias (out_channels).

    >>> conv = naru.nn.ConvTranspose1d(1, 1, 2, stride=2, bias=False)
    >>> _ = naru.nn.init.ones_(conv.weight)
    >>> conv(naru.tensor([[1.0, 2.0]])).data
    tensor([[1., 1., 2., 2.]])
    """

    _dims = 1
    _function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """`ConvTranspose1d` for two dimensions: (N, in_channels, H, W) or (in_channels, H, W).

    Args:
        out_channels: the number of channels of the result.
        kernel_size: the size of the window.
        stride: the step of the window.
        padding: removed from both sides of the result.
        output_padding: added at the end of the result.
        groups: the number of groups of channels; each is convolved separately.
        bias: whether there is a bias.
        dilation: the spacing between a window's elements.
        padding_mode: 'zeros'; ValueError for others.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> conv = naru.nn.ConvTranspose2d(1, 1, 2, bias=False)
    >>> _ = naru.nn.init.ones_(conv.weight)
    >>> conv(naru.tensor([[[1.0, 2.0]]])).data
    tensor([[[1., 3., 2.],
             [1., 3., 2.]]])
    """

    _dims = 2
    _function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """`ConvTranspose1d` for three dimensions: (N, in_channels, D, H, W) or (in_channels, D, H, W).

    Args:
        out_channels: the number of channels of the result.
        kernel_size: the size of the window.
        stride: the step of the window.
        padding: removed from both sides of the result.
        output_padding: added at the end of the result.
        groups: the number of groups of channels; each is convolved separately.
        bias: whether there is a bias.
        dilation: the spacing between a window's elements.
        padding_mode: 'zeros'; ValueError for others.
        device, dtype: the parameters' device and dtype; the defaults if None.

    >>> conv = naru.nn.ConvTranspose3d(1, 1, (1, 1, 2), bias=False)
    >>> _ = naru.nn.init.ones_(conv.weight)
    >>> conv(naru.tensor([[[[1.0, 2.0]]]])).data
    tensor([[[[1., 3., 2.]]]])
    """

    _dims = 3
    _function = staticmethod(F.conv_transpose3d)
