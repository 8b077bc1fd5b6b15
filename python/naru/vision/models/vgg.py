"""VGG networks (arXiv:1409.1556), with torchvision's parameter names."""

from __future__ import annotations

from typing import Any

import naru

from ...nn import init
from ...nn.modules import AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Dropout, Linear, MaxPool2d, Module, ReLU, Sequential
from ..._documentation import show as _show
from .. import _names
from ._api import classification, register, weights_enum

__getattr__ = _names.module_getattr(__name__)


class VGG(Module):
    """The convolutional part `features`, followed by three linear layers with `dropout`: maps (N, 3, H, W) to (N, `num_classes`). If `init_weights`
    is false, the layers keep their default initialization.

    >>> with naru.device("meta"):
    ...     naru.vision.models.VGG(naru.nn.Conv2d(3, 512, 3), num_classes=10)(naru.empty(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, features: Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = features
        self.avgpool = AdaptiveAvgPool2d((7, 7))
        self.classifier = Sequential(
            Linear(512 * 7 * 7, 4096),
            ReLU(True),
            Dropout(p=dropout),
            Linear(4096, 4096),
            ReLU(True),
            Dropout(p=dropout),
            Linear(4096, num_classes),
        )
        if init_weights:
            self._initialize()

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    init.constant_(module.bias, 0)
            elif isinstance(module, BatchNorm2d):
                init.constant_(module.weight, 1)
                init.constant_(module.bias, 0)
            elif isinstance(module, Linear):
                init.normal_(module.weight, 0, 0.01)
                init.constant_(module.bias, 0)

    def forward(self, x: Any) -> Any:
        return self.classifier(naru.flatten(self.avgpool(self.features(x)), 1))


def make_layers(cfg: list[Any], batch_norm: bool = False) -> Sequential:
    """Builds 3 x 3 convolutions with the widths in `cfg`, with max pooling for each 'M', and with batch normalization if `batch_norm`.

    >>> from naru.vision.models.vgg import make_layers
    >>> [type(layer).__name__ for layer in make_layers([8, "M"], batch_norm=True)]
    ['Conv2d', 'BatchNorm2d', 'ReLU', 'MaxPool2d']
    """
    layers: list[Module] = []
    channels = 3
    for width in cfg:
        if width == "M":
            layers.append(MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(Conv2d(channels, width, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(BatchNorm2d(width))
        layers.append(ReLU(inplace=True))
        channels = width
    return Sequential(*layers)


def _widths(*counts: int) -> list[Any]:
    """The list of layer widths, given the number of convolutions at each of five resolutions."""
    found: list[Any] = []
    for count, width in zip(counts, (64, 128, 256, 512, 512)):
        found += [width] * count + ["M"]
    return found


cfgs = {"A": _widths(1, 1, 2, 2, 2), "B": _widths(2, 2, 2, 2, 2), "D": _widths(2, 2, 3, 3, 3), "E": _widths(2, 2, 4, 4, 4)}


def _weights(name: str, file: str) -> Any:
    return weights_enum(name, {"IMAGENET1K_V1": classification(file)}, "IMAGENET1K_V1", __name__)


VGG11_Weights = _weights("VGG11_Weights", "vgg11-8a719046.pth")
VGG11_BN_Weights = _weights("VGG11_BN_Weights", "vgg11_bn-6002323d.pth")
VGG13_Weights = _weights("VGG13_Weights", "vgg13-19584684.pth")
VGG13_BN_Weights = _weights("VGG13_BN_Weights", "vgg13_bn-abd245e5.pth")
VGG16_Weights = _weights("VGG16_Weights", "vgg16-397923af.pth")
VGG16_BN_Weights = _weights("VGG16_BN_Weights", "vgg16_bn-6c64b313.pth")
VGG19_Weights = _weights("VGG19_Weights", "vgg19-dcbb9e9d.pth")
VGG19_BN_Weights = _weights("VGG19_BN_Weights", "vgg19_bn-c79401a0.pth")


@register(VGG11_Weights)
def vgg11(**kwargs: Any) -> VGG:
    """VGG with 11 layers."""
    return VGG(make_layers(cfgs["A"]), **kwargs)


@register(VGG11_BN_Weights)
def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG with 11 layers and batch normalization."""
    return VGG(make_layers(cfgs["A"], True), **kwargs)


@register(VGG13_Weights)
def vgg13(**kwargs: Any) -> VGG:
    """VGG with 13 layers."""
    return VGG(make_layers(cfgs["B"]), **kwargs)


@register(VGG13_BN_Weights)
def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG with 13 layers and batch normalization."""
    return VGG(make_layers(cfgs["B"], True), **kwargs)


@register(VGG16_Weights)
def vgg16(**kwargs: Any) -> VGG:
    """VGG with 16 layers."""
    return VGG(make_layers(cfgs["D"]), **kwargs)


@register(VGG16_BN_Weights)
def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG with 16 layers and batch normalization."""
    return VGG(make_layers(cfgs["D"], True), **kwargs)


@register(VGG19_Weights)
def vgg19(**kwargs: Any) -> VGG:
    """VGG with 19 layers."""
    return VGG(make_layers(cfgs["E"]), **kwargs)


@register(VGG19_BN_Weights)
def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG with 19 layers and batch normalization."""
    return VGG(make_layers(cfgs["E"], True), **kwargs)


_show(globals(), "vision_models")
