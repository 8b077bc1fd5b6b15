"""SqueezeNet 1.0 and 1.1 (arXiv:1602.07360), with torchvision's parameter names."""

from __future__ import annotations

from typing import Any

import naru

from ...nn import init
from ...nn.modules import AdaptiveAvgPool2d, Conv2d, Dropout, MaxPool2d, Module, ReLU, Sequential
from ..._documentation import show as _show
from .. import _names
from ._api import classification, register, weights_enum

__getattr__ = _names.module_getattr(__name__)

# By version: channels and kernel of the first convolution, then in order what follows it: "pool", or (squeezed, expanded) channels of a Fire.
_LAYOUTS: dict[str, tuple[int, int, tuple[Any, ...]]] = {
    "1_0": (96, 7, ("pool", (16, 64), (16, 64), (32, 128), "pool", (32, 128), (48, 192), (48, 192), (64, 256), "pool", (64, 256))),
    "1_1": (64, 3, ("pool", (16, 64), (16, 64), "pool", (32, 128), (32, 128), "pool", (48, 192), (48, 192), (64, 256), (64, 256))),
}


class Fire(Module):
    """SqueezeNet's block: a 1 x 1 convolution from `inplanes` to `squeeze_planes` channels; of its result, a 1 x 1 and a 3 x 3 convolution to
    `expand1x1_planes` and `expand3x3_planes` channels, side by side.

    >>> naru.vision.models.squeezenet.Fire(4, 2, 3, 5)(naru.ones(1, 4, 6, 6)).shape
    torch.Size([1, 8, 6, 6])
    """

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = ReLU(inplace=True)
        self.expand1x1 = Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = ReLU(inplace=True)
        self.expand3x3 = Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        small = self.squeeze_activation(self.squeeze(x))
        return naru.cat([self.expand1x1_activation(self.expand1x1(small)), self.expand3x3_activation(self.expand3x3(small))], 1)


class SqueezeNet(Module):
    """SqueezeNet: maps (N, 3, H, W), with H and W at least 21 (17 in version 1_1), to (N, `num_classes`). `version` is "1_0" or "1_1"; `dropout`:
    dropout probability in the classifier. ValueError for other versions.

    >>> with naru.device("meta"):
    ...     naru.vision.models.SqueezeNet("1_1", num_classes=10)(naru.empty(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _LAYOUTS:
            raise ValueError(f"SqueezeNet: wanted version '1_0' or '1_1', got {version!r}")
        self.num_classes = num_classes
        channels, kernel, rest = _LAYOUTS[version]
        layers: list[Module] = [Conv2d(3, channels, kernel_size=kernel, stride=2), ReLU(inplace=True)]
        for part in rest:
            if part == "pool":
                layers.append(MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            else:
                squeezed, expanded = part
                layers.append(Fire(channels, squeezed, expanded, expanded))
                channels = 2 * expanded
        self.features = Sequential(*layers)
        last = Conv2d(channels, num_classes, kernel_size=1)
        self.classifier = Sequential(Dropout(p=dropout), last, ReLU(inplace=True), AdaptiveAvgPool2d((1, 1)))
        for layer in self.modules():
            if isinstance(layer, Conv2d):
                if layer is last:
                    init.normal_(layer.weight, mean=0.0, std=0.01)
                else:
                    init.kaiming_uniform_(layer.weight)
                init.zeros_(layer.bias)

    def forward(self, x: Any) -> Any:
        return naru.flatten(self.classifier(self.features(x)), 1)


SqueezeNet1_0_Weights = weights_enum(
    "SqueezeNet1_0_Weights", {"IMAGENET1K_V1": classification("squeezenet1_0-b66bff10.pth")}, "IMAGENET1K_V1", __name__
)
SqueezeNet1_1_Weights = weights_enum(
    "SqueezeNet1_1_Weights", {"IMAGENET1K_V1": classification("squeezenet1_1-b8a52dc0.pth")}, "IMAGENET1K_V1", __name__
)


@register(SqueezeNet1_0_Weights)
def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return SqueezeNet("1_0", **kwargs)


@register(SqueezeNet1_1_Weights)
def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1: as accurate as 1.0, with less than half the computation."""
    return SqueezeNet("1_1", **kwargs)


_show(globals(), "vision_models")
