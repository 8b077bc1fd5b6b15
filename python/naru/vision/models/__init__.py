"""`torchvision.models`: definitions of well-known networks, with torchvision's parameter names.

naru downloads nothing: load a torchvision weights file with `model.load_state_dict(torch.load(file))`, or use `weights=` if the file is already in
PyTorch's hub folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _names
from . import densenet, mobilenetv2, resnet, squeezenet, vgg
from ._api import Weights, WeightsEnum, get_model, get_model_builder, get_model_weights, get_weight, list_models
from .alexnet import AlexNet, AlexNet_Weights, alexnet
from .densenet import (
    DenseNet,
    DenseNet121_Weights,
    DenseNet161_Weights,
    DenseNet169_Weights,
    DenseNet201_Weights,
    densenet121,
    densenet161,
    densenet169,
    densenet201,
)
from .mobilenetv2 import MobileNet_V2_Weights, MobileNetV2, mobilenet_v2
from .resnet import (
    ResNet,
    ResNet18_Weights,
    ResNet34_Weights,
    ResNet50_Weights,
    ResNet101_Weights,
    ResNet152_Weights,
    ResNeXt50_32X4D_Weights,
    ResNeXt101_32X8D_Weights,
    ResNeXt101_64X4D_Weights,
    Wide_ResNet50_2_Weights,
    Wide_ResNet101_2_Weights,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext101_32x8d,
    resnext101_64x4d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from .squeezenet import SqueezeNet, SqueezeNet1_0_Weights, SqueezeNet1_1_Weights, squeezenet1_0, squeezenet1_1
from .vgg import (
    VGG,
    VGG11_BN_Weights,
    VGG11_Weights,
    VGG13_BN_Weights,
    VGG13_Weights,
    VGG16_BN_Weights,
    VGG16_Weights,
    VGG19_BN_Weights,
    VGG19_Weights,
    vgg11,
    vgg11_bn,
    vgg13,
    vgg13_bn,
    vgg16,
    vgg16_bn,
    vgg19,
    vgg19_bn,
)

if not TYPE_CHECKING:
    __all__ = [name for name in globals() if not name.startswith("_") and name not in ("annotations", "TYPE_CHECKING", "densenet", "mobilenetv2", "resnet", "squeezenet", "vgg")]

__getattr__ = _names.module_getattr(__name__)
