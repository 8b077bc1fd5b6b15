"""Layers that image networks are built from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import naru

from ...nn.modules import (
    AdaptiveAvgPool2d,
    BatchNorm2d,
    BatchNorm3d,
    Conv2d,
    Conv3d,
    Dropout,
    Linear,
    Module,
    ReLU,
    Sequential,
    Sigmoid,
)
from .. import _names

if TYPE_CHECKING:
    from collections.abc import Callable

__getattr__ = _names.module_getattr(__name__)


class FrozenBatchNorm2d(Module):
    """BatchNorm2d of `num_features` channels whose statistics and affine parameters are buffers, which training does not change; `eps` is added to
    the variance.

    >>> layer = naru.vision.ops.FrozenBatchNorm2d(1)
    >>> layer(naru.ones(1, 1, 1, 2)), len(list(layer.parameters()))
    (tensor([[[[1.0000, 1.0000]]]]), 0)
    """

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, naru.full([num_features], value))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # A state dict of BatchNorm2d has one entry more.
        state_dict.pop(prefix + "num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Any) -> Any:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.view([1, -1, 1, 1]) + shift.view([1, -1, 1, 1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


class _ConvNormActivation(Sequential):
    def __init__(
        self,
        conv: Any,
        dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Any = None,
        activation_layer: Any = ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            sizes, steps = (list(v) if isinstance(v, (list, tuple)) else [v] * dims for v in (kernel_size, dilation))
            padding = tuple((size - 1) // 2 * step for size, step in zip(sizes, steps))
            padding = padding[0] if isinstance(kernel_size, int) and isinstance(dilation, int) else padding
        bias = norm_layer is None if bias is None else bias
        layers = [conv(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(_ConvNormActivation):
    """Conv2d (which preserves the spatial size unless `padding` is given), followed by a normalization and an activation.

    `in_channels`, `out_channels`, `kernel_size`, `stride`, `groups`, `dilation`, `bias` (by default True only without a normalization): options of
    the convolution. `norm_layer`, `activation_layer`: constructors of the other layers, None to omit them; `inplace`: option of the activation.

    >>> block = naru.vision.ops.Conv2dNormActivation(3, 8, kernel_size=5)
    >>> block(naru.ones(2, 3, 7, 7)).shape, [type(layer).__name__ for layer in block]
    (torch.Size([2, 8, 7, 7]), ['Conv2d', 'BatchNorm2d', 'ReLU'])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Any = BatchNorm2d,
        activation_layer: Any = ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        layers = (norm_layer, activation_layer, dilation, inplace, bias)
        super().__init__(Conv2d, 2, in_channels, out_channels, kernel_size, stride, padding, groups, *layers)


class Conv3dNormActivation(_ConvNormActivation):
    """Conv3d (which preserves the spatial size unless `padding` is given), followed by a normalization and an activation.

    `in_channels`, `out_channels`, `kernel_size`, `stride`, `groups`, `dilation`, `bias` (by default True only without a normalization): options of
    the convolution. `norm_layer`, `activation_layer`: constructors of the other layers, None to omit them; `inplace`: option of the activation.

    >>> block = naru.vision.ops.Conv3dNormActivation(1, 2, norm_layer=None)
    >>> block(naru.ones(1, 1, 3, 3, 3)).shape, [type(layer).__name__ for layer in block]
    (torch.Size([1, 2, 3, 3, 3]), ['Conv3d', 'ReLU'])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Any = BatchNorm3d,
        activation_layer: Any = ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        layers = (norm_layer, activation_layer, dilation, inplace, bias)
        super().__init__(Conv3d, 3, in_channels, out_channels, kernel_size, stride, padding, groups, *layers)


class SqueezeExcitation(Module):
    """Scales each of `input_channels` channels by a factor computed from all channel means: a 1 x 1 convolution to `squeeze_channels`,
    `activation`, a 1 x 1 convolution back, `scale_activation`. The last two are constructors of activation layers.

    >>> layer = naru.vision.ops.SqueezeExcitation(2, 1)
    >>> layer(naru.zeros(1, 2, 1, 1)).flatten()
    tensor([0., 0.], grad_fn=<ViewBackward0>)
    """

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[..., Any] = ReLU,
        scale_activation: Callable[..., Any] = Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = AdaptiveAvgPool2d(1)
        self.fc1 = Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Any) -> Any:
        return input * self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input)))))


class MLP(Sequential):
    """Linear layers, each followed by a normalization, an activation and `dropout`; the last one is followed by dropout only.

    `in_channels`, then the list `hidden_channels`: the layer widths. `norm_layer`, `activation_layer`: constructors of the other layers, None for
    no normalization; `inplace`: option of activations and dropout. `bias`: option of the linear layers.

    >>> naru.vision.ops.MLP(4, [8, 2])(naru.ones(3, 4)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: list[int],
        norm_layer: Any = None,
        activation_layer: Any = ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        how = {} if inplace is None else {"inplace": inplace}
        layers: list[Module] = []
        for size in hidden_channels[:-1]:
            layers.append(Linear(in_channels, size, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(size))
            layers += [activation_layer(**how), Dropout(dropout, **how)]
            in_channels = size
        super().__init__(*layers, Linear(in_channels, hidden_channels[-1], bias=bias), Dropout(dropout, **how))


class Permute(Module):
    """`permute` to the order `dims`, as a layer.

    >>> naru.vision.ops.Permute([1, 0])(naru.tensor([[1, 2, 3]]))
    tensor([[1],
            [2],
            [3]])
    """

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return x.permute(self.dims)
