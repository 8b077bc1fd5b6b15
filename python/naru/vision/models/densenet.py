"""DenseNet (arXiv:1608.06993), with torchvision's parameter names."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import naru

from ...nn import init
from ...nn.functional import adaptive_avg_pool2d, dropout, relu
from ...nn.modules import AvgPool2d, BatchNorm2d, Conv2d, Linear, MaxPool2d, Module, ModuleDict, ReLU, Sequential
from ..._documentation import show as _show
from .. import _names
from ._api import classification, register, weights_enum

__getattr__ = _names.module_getattr(__name__)


_OLD = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.(?=[12]\.)")  # in the files of weights


def _renamed(state_dict: dict[str, Any], *args: Any) -> None:
    """Gives the tensors of files the names that the layers have."""
    for name in [name for name in state_dict if _OLD.search(name)]:
        state_dict[_OLD.sub(r"\1", name)] = state_dict.pop(name)


class _DenseLayer(Module):
    """A bottleneck and a convolution, of all that came before."""

    def __init__(self, num_input_features: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool = False) -> None:
        super().__init__()
        self.norm1 = BatchNorm2d(num_input_features)
        self.relu1 = ReLU(inplace=True)
        self.conv1 = Conv2d(num_input_features, bn_size * growth_rate, kernel_size=1, stride=1, bias=False)
        self.norm2 = BatchNorm2d(bn_size * growth_rate)
        self.relu2 = ReLU(inplace=True)
        self.conv2 = Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, stride=1, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def _bottleneck(self, *features: Any) -> Any:
        return self.conv1(self.relu1(self.norm1(naru.cat(features, 1))))

    def forward(self, input: Any) -> Any:
        features = [input] if isinstance(input, naru.Tensor) else list(input)
        if self.memory_efficient and any(x.requires_grad for x in features):
            narrow = naru.utils.checkpoint.checkpoint(self._bottleneck, *features, use_reentrant=False)
        else:
            narrow = self._bottleneck(*features)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new


class _DenseBlock(ModuleDict):
    """Layers, each of which gets what all before it gave."""

    def __init__(self, num_layers: int, num_input_features: int, bn_size: int, growth_rate: int, drop_rate: float, memory_efficient: bool = False) -> None:
        super().__init__()
        for i in range(num_layers):
            self.add_module(f"denselayer{i + 1}", _DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient))

    def forward(self, init_features: Any) -> Any:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return naru.cat(features, 1)


class _Transition(Sequential):
    """Half of the size, and other channels."""

    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = BatchNorm2d(num_input_features)
        self.relu = ReLU(inplace=True)
        self.conv = Conv2d(num_input_features, num_output_features, kernel_size=1, stride=1, bias=False)
        self.pool = AvgPool2d(kernel_size=2, stride=2)


class DenseNet(Module):
    """DenseNet: maps (N, 3, H, W) to (N, num_classes).

    Args:
        growth_rate: the channels that each layer adds.
        block_config: the layers of each block.
        num_init_features: the channels of the first convolution.
        bn_size: the channels of the bottlenecks, in multiples of `growth_rate`.
        drop_rate: dropout probability after each layer.
        num_classes: the number of outputs.
        memory_efficient: recomputes the bottlenecks in backward.

    >>> with naru.device("meta"):
    ...     naru.vision.models.DenseNet(4, (2, 2), 8, num_classes=10)(naru.empty(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: tuple[int, ...] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        first = [
            ("conv0", Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False)), ("norm0", BatchNorm2d(num_init_features)),
            ("relu0", ReLU(inplace=True)), ("pool0", MaxPool2d(kernel_size=3, stride=2, padding=1)),
        ]  # fmt: skip
        self.features = Sequential(OrderedDict(first))
        channels = num_init_features
        for i, layers in enumerate(block_config):
            self.features.add_module(f"denseblock{i + 1}", _DenseBlock(layers, channels, bn_size, growth_rate, drop_rate, memory_efficient))
            channels += layers * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", BatchNorm2d(channels))
        self.classifier = Linear(channels, num_classes)
        self._register_load_state_dict_pre_hook(_renamed)
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight)
            elif isinstance(module, Linear):
                init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(naru.flatten(adaptive_avg_pool2d(relu(self.features(x), inplace=True), (1, 1)), 1))


def _weights(depth: int, file: str) -> Any:
    return weights_enum(f"DenseNet{depth}_Weights", {"IMAGENET1K_V1": classification(file)}, "IMAGENET1K_V1", __name__)


DenseNet121_Weights = _weights(121, "densenet121-a639ec97.pth")
DenseNet161_Weights = _weights(161, "densenet161-8d451a50.pth")
DenseNet169_Weights = _weights(169, "densenet169-b2777c0a.pth")
DenseNet201_Weights = _weights(201, "densenet201-c1103571.pth")


@register(DenseNet121_Weights)
def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet with 121 layers."""
    return DenseNet(32, (6, 12, 24, 16), 64, **kwargs)


@register(DenseNet161_Weights)
def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet with 161 layers."""
    return DenseNet(48, (6, 12, 36, 24), 96, **kwargs)


@register(DenseNet169_Weights)
def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet with 169 layers."""
    return DenseNet(32, (6, 12, 32, 32), 64, **kwargs)


@register(DenseNet201_Weights)
def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet with 201 layers."""
    return DenseNet(32, (6, 12, 48, 32), 64, **kwargs)


_show(globals(), "vision_models")
