"""ResNet (arXiv:1512.03385), Wide ResNet (1605.07146) and ResNeXt (1611.05431), with torchvision's parameter names."""

from __future__ import annotations

from typing import Any

import naru

from ...nn import init
from ...nn.modules import AdaptiveAvgPool2d, BatchNorm2d, Conv2d, GroupNorm, Linear, MaxPool2d, Module, ReLU, Sequential
from ..._documentation import show as _show
from .. import _names
from ._api import classification, register, weights_enum

__getattr__ = _names.module_getattr(__name__)


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> Conv2d:
    """A 3 x 3 convolution without bias from `in_planes` to `out_planes` channels in `groups` groups. The padding equals `dilation`, so that only
    `stride` changes the spatial size.

    >>> from naru.vision.models.resnet import conv3x3
    >>> conv3x3(3, 8, stride=2)(naru.ones(1, 3, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """
    return Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=dilation, groups=groups, bias=False, dilation=dilation)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> Conv2d:
    """A 1 x 1 convolution without bias from `in_planes` to `out_planes` channels, with `stride`.

    >>> from naru.vision.models.resnet import conv1x1
    >>> conv1x1(3, 8)(naru.ones(1, 3, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """
    return Conv2d(in_planes, out_planes, kernel_size=1, stride=stride, bias=False)


class BasicBlock(Module):
    """Residual block of two 3 x 3 convolutions, from `inplanes` to `planes` channels; the first has `stride`. The shortcut is the identity, or
    `downsample` of the input. `norm_layer`: constructor of the normalization layers (default BatchNorm2d). Raises ValueError or NotImplementedError
    unless `groups`, `base_width` and `dilation` are 1, 64 and 1.

    >>> naru.vision.models.resnet.BasicBlock(8, 8)(naru.ones(1, 8, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Any) -> Any:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(Module):
    """Bottleneck block of 1 x 1, 3 x 3 (with the `stride`, the `dilation` and the `groups`) and 1 x 1 convolutions, from `inplanes` to 4 * `planes`
    channels, with planes * `base_width` / 64 * groups in between. The shortcut is the identity, or `downsample` of the input. `norm_layer`:
    constructor of the normalization layers (default BatchNorm2d).

    >>> naru.vision.models.resnet.Bottleneck(16, 4)(naru.ones(1, 16, 4, 4)).shape
    torch.Size([1, 16, 4, 4])
    """

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Any) -> Any:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(Module):
    """ResNet: maps (N, 3, H, W) to (N, num_classes).

    Args:
        block, layers: the block class, and the number of blocks at each of the four resolutions.
        num_classes: the number of outputs.
        zero_init_residual: initialize each block to the identity.
        groups, width_per_group: group count and group width of the blocks' 3 x 3 convolutions.
        replace_stride_with_dilation: for each of the last three stages, whether to use dilation in place of a stride.
        norm_layer: constructor of the normalization layers (default BatchNorm2d).

    >>> with naru.device("meta"):
    ...     net = naru.vision.models.resnet.ResNet(naru.vision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10)
    ...     net(naru.empty(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        block: Any,
        layers: list[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self._norm_layer = norm_layer or BatchNorm2d
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(f"replace_stride_with_dilation should be None or a 3-element tuple, got {dilate}")
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, groups, width_per_group
        self.conv1 = Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = ReLU(inplace=True)
        self.maxpool = MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = AdaptiveAvgPool2d((1, 1))
        self.fc = Linear(512 * block.expansion, num_classes)
        self._initialize(zero_init_residual)

    def _initialize(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (BatchNorm2d, GroupNorm)):
                init.constant_(module.weight, 1)
                init.constant_(module.bias, 0)
        if not zero_init_residual:
            return
        for module in self.modules():
            last = module.bn3 if isinstance(module, Bottleneck) else module.bn2 if isinstance(module, BasicBlock) else None
            if last is not None and last.weight is not None:
                init.constant_(last.weight, 0)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> Sequential:
        norm_layer = self._norm_layer
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = Sequential(conv1x1(self.inplanes, planes * block.expansion, stride), norm_layer(planes * block.expansion))
        layers = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before, norm_layer)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(
                block(self.inplanes, planes, groups=self.groups, base_width=self.base_width, dilation=self.dilation, norm_layer=norm_layer)
            )
        return Sequential(*layers)

    def _forward_impl(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(naru.flatten(self.avgpool(x), 1))

    def forward(self, x: Any) -> Any:
        return self._forward_impl(x)


def _weights(name: str, first: str, second: str | None = None) -> Any:
    members = {"IMAGENET1K_V1": classification(first, **({"resize_size": 232} if "64x4d" in first else {}))}
    if second:
        members["IMAGENET1K_V2"] = classification(second, resize_size=232)
    return weights_enum(name, members, list(members)[-1], __name__)


ResNet18_Weights = _weights("ResNet18_Weights", "resnet18-f37072fd.pth")
ResNet34_Weights = _weights("ResNet34_Weights", "resnet34-b627a593.pth")
ResNet50_Weights = _weights("ResNet50_Weights", "resnet50-0676ba61.pth", "resnet50-11ad3fa6.pth")
ResNet101_Weights = _weights("ResNet101_Weights", "resnet101-63fe2227.pth", "resnet101-cd907fc2.pth")
ResNet152_Weights = _weights("ResNet152_Weights", "resnet152-394f9c45.pth", "resnet152-f82ba261.pth")
ResNeXt50_32X4D_Weights = _weights("ResNeXt50_32X4D_Weights", "resnext50_32x4d-7cdf4587.pth", "resnext50_32x4d-1a0047aa.pth")
ResNeXt101_32X8D_Weights = _weights("ResNeXt101_32X8D_Weights", "resnext101_32x8d-8ba56ff5.pth", "resnext101_32x8d-110c445d.pth")
ResNeXt101_64X4D_Weights = _weights("ResNeXt101_64X4D_Weights", "resnext101_64x4d-173b62eb.pth")
Wide_ResNet50_2_Weights = _weights("Wide_ResNet50_2_Weights", "wide_resnet50_2-95faca4d.pth", "wide_resnet50_2-9ba9bcbe.pth")
Wide_ResNet101_2_Weights = _weights("Wide_ResNet101_2_Weights", "wide_resnet101_2-32ee1156.pth", "wide_resnet101_2-d733dc28.pth")


@register(ResNet18_Weights)
def resnet18(**kwargs: Any) -> ResNet:
    """ResNet with 18 layers."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@register(ResNet34_Weights)
def resnet34(**kwargs: Any) -> ResNet:
    """ResNet with 34 layers."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@register(ResNet50_Weights)
def resnet50(**kwargs: Any) -> ResNet:
    """ResNet with 50 layers."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@register(ResNet101_Weights)
def resnet101(**kwargs: Any) -> ResNet:
    """ResNet with 101 layers."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@register(ResNet152_Weights)
def resnet152(**kwargs: Any) -> ResNet:
    """ResNet with 152 layers."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@register(ResNeXt50_32X4D_Weights)
def resnext50_32x4d(**kwargs: Any) -> ResNet:
    """ResNeXt with 50 layers, 32 groups of width 4."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"groups": 32, "width_per_group": 4, **kwargs})


@register(ResNeXt101_32X8D_Weights)
def resnext101_32x8d(**kwargs: Any) -> ResNet:
    """ResNeXt with 101 layers, 32 groups of width 8."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 32, "width_per_group": 8, **kwargs})


@register(ResNeXt101_64X4D_Weights)
def resnext101_64x4d(**kwargs: Any) -> ResNet:
    """ResNeXt with 101 layers, 64 groups of width 4."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 64, "width_per_group": 4, **kwargs})


@register(Wide_ResNet50_2_Weights)
def wide_resnet50_2(**kwargs: Any) -> ResNet:
    """Wide ResNet with 50 layers: its 3 x 3 convolutions are twice as wide."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"width_per_group": 128, **kwargs})


@register(Wide_ResNet101_2_Weights)
def wide_resnet101_2(**kwargs: Any) -> ResNet:
    """Wide ResNet with 101 layers: its 3 x 3 convolutions are twice as wide."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"width_per_group": 128, **kwargs})


_show(globals(), "vision_models")
