"""MobileNetV2 (arXiv:1801.04381), with torchvision's parameter names."""

from __future__ import annotations

from typing import Any

import naru

from ...nn import init
from ...nn.functional import adaptive_avg_pool2d
from ...nn.modules import BatchNorm2d, Conv2d, Dropout, GroupNorm, Linear, Module, ReLU6, Sequential
from ..._documentation import show as _show
from .. import _names
from ..ops.misc import Conv2dNormActivation
from ._api import classification, register, weights_enum
from ._utils import _make_divisible

__getattr__ = _names.module_getattr(__name__)

# (expansion factor, channels, blocks, stride of the first block)
_SETTING = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


class InvertedResidual(Module):
    """Inverted residual block: expand `inp` channels by `expand_ratio`, depthwise convolution with `stride` (1 or 2, else ValueError), project to
    `oup` channels. The input is added if the shapes match. `norm_layer`: constructor of the normalization layers (default BatchNorm2d).

    >>> naru.vision.models.mobilenetv2.InvertedResidual(4, 8, 2, 6)(naru.ones(1, 4, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Any = None) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or BatchNorm2d
        self.stride = stride
        hidden = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        how = {"norm_layer": norm_layer, "activation_layer": ReLU6}
        layers: list[Module] = [Conv2dNormActivation(inp, hidden, kernel_size=1, **how)] if expand_ratio != 1 else []
        layers += [
            Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **how),
            Conv2d(hidden, oup, 1, 1, 0, bias=False),
            norm_layer(oup),
        ]
        self.conv = Sequential(*layers)
        self.out_channels = oup
        self._is_cn = stride > 1

    def forward(self, x: Any) -> Any:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(Module):
    """MobileNetV2: maps (N, 3, H, W) to (N, num_classes).

    Args:
        num_classes: the number of outputs.
        width_mult: multiplies all widths, which are rounded to multiples of `round_nearest`.
        inverted_residual_setting: rows of (expansion factor, channels, blocks, stride of the first block).
        block: constructor of the blocks (default InvertedResidual).
        norm_layer: constructor of the normalization layers (default BatchNorm2d).
        dropout: dropout probability in the classifier.

    >>> with naru.device("meta"):
    ...     naru.vision.models.MobileNetV2(num_classes=10, width_mult=0.25)(naru.empty(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None,
        round_nearest: int = 8,
        block: Any = None,
        norm_layer: Any = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or BatchNorm2d
        setting = _SETTING if inverted_residual_setting is None else inverted_residual_setting
        if len(setting) == 0 or len(setting[0]) != 4:
            raise ValueError(f"inverted_residual_setting should be non-empty or a 4-element list, got {setting}")
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        how = {"norm_layer": norm_layer, "activation_layer": ReLU6}
        features: list[Module] = [Conv2dNormActivation(3, channels, stride=2, **how)]
        for widening, width, blocks, stride in setting:
            out = _make_divisible(width * width_mult, round_nearest)
            for i in range(blocks):
                features.append(block(channels, out, stride if i == 0 else 1, expand_ratio=widening, norm_layer=norm_layer))
                channels = out
        features.append(Conv2dNormActivation(channels, self.last_channel, kernel_size=1, **how))
        self.features = Sequential(*features)
        self.classifier = Sequential(Dropout(p=dropout), Linear(self.last_channel, num_classes))
        self._initialize()

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out")
                if module.bias is not None:
                    init.zeros_(module.bias)
            elif isinstance(module, (BatchNorm2d, GroupNorm)):
                init.ones_(module.weight)
                init.zeros_(module.bias)
            elif isinstance(module, Linear):
                init.normal_(module.weight, 0, 0.01)
                init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(naru.flatten(adaptive_avg_pool2d(self.features(x), (1, 1)), 1))


MobileNet_V2_Weights = weights_enum(
    "MobileNet_V2_Weights",
    {
        "IMAGENET1K_V1": classification("mobilenet_v2-b0353104.pth"),
        "IMAGENET1K_V2": classification("mobilenet_v2-7ebf99e0.pth", resize_size=232),
    },
    "IMAGENET1K_V2",
    __name__,
)


@register(MobileNet_V2_Weights)
def mobilenet_v2(**kwargs: Any) -> MobileNetV2:
    """MobileNetV2."""
    return MobileNetV2(**kwargs)


_show(globals(), "vision_models")
