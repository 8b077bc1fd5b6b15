"""The one-column variant of AlexNet (arXiv:1404.5997), with torchvision's parameter names."""

from __future__ import annotations

from typing import Any

import naru

from ...nn.modules import AdaptiveAvgPool2d, Conv2d, Dropout, Linear, MaxPool2d, Module, ReLU, Sequential
from ..._documentation import show as _show
from .. import _names
from ._api import classification, register, weights_enum

__getattr__ = _names.module_getattr(__name__)


class AlexNet(Module):
    """AlexNet: maps (N, 3, H, W), with H and W at least 63, to (N, `num_classes`). `dropout`: dropout probability in the classifier.

    >>> with naru.device("meta"):
    ...     naru.vision.models.AlexNet(num_classes=10)(naru.empty(2, 3, 63, 63)).shape
    torch.Size([2, 10])
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = Sequential(
            Conv2d(3, 64, kernel_size=11, stride=4, padding=2),
            ReLU(inplace=True),
            MaxPool2d(kernel_size=3, stride=2),
            Conv2d(64, 192, kernel_size=5, padding=2),
            ReLU(inplace=True),
            MaxPool2d(kernel_size=3, stride=2),
            Conv2d(192, 384, kernel_size=3, padding=1),
            ReLU(inplace=True),
            Conv2d(384, 256, kernel_size=3, padding=1),
            ReLU(inplace=True),
            Conv2d(256, 256, kernel_size=3, padding=1),
            ReLU(inplace=True),
            MaxPool2d(kernel_size=3, stride=2),
        )
        self.avgpool = AdaptiveAvgPool2d((6, 6))
        self.classifier = Sequential(
            Dropout(p=dropout),
            Linear(256 * 6 * 6, 4096),
            ReLU(inplace=True),
            Dropout(p=dropout),
            Linear(4096, 4096),
            ReLU(inplace=True),
            Linear(4096, num_classes),
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(naru.flatten(self.avgpool(self.features(x)), 1))


AlexNet_Weights = weights_enum(
    "AlexNet_Weights", {"IMAGENET1K_V1": classification("alexnet-owt-7be5be79.pth")}, "IMAGENET1K_V1", __name__
)


@register(AlexNet_Weights)
def alexnet(**kwargs: Any) -> AlexNet:
    """AlexNet."""
    return AlexNet(**kwargs)


_show(globals(), "vision_models")
