"""`torchvision.transforms.v2`: the v1 classes for nested samples (lists, tuples, dictionaries), in which they transform the images.

Images are PIL images and `tv_tensors.Image`; if a sample has none, its first tensor is the image. Boxes and masks are not supported yet.
"""

from __future__ import annotations

from typing import Any

from ... import _names
from .. import transforms as _v1
from .._base import MaybeTransform as _MaybeTransform
from .._modes import InterpolationMode
from ..autoaugment import AutoAugmentPolicy
from ._transform import MaybeOfV1 as _MaybeOfV1
from ._transform import OfV1 as _OfV1
from ._transform import doc_of as _doc_of
from ._transform import Transform
from ._types import (
    RGB,
    AutoAugment,
    Compose,
    ConvertImageDtype,
    GaussianNoise,
    Identity,
    Lambda,
    PILToTensor,
    RandAugment,
    RandomApply,
    RandomChannelPermutation,
    RandomChoice,
    RandomCrop,
    RandomErasing,
    RandomOrder,
    RandomPerspective,
    RandomResize,
    ToDtype,
    ToImage,
    ToPILImage,
    ToPureTensor,
    ToTensor,
    TrivialAugmentWide,
)


def _of_v1(name: str) -> Any:
    """The v2 version of the v1 class of that name."""
    base = getattr(_v1, name)
    before = _MaybeOfV1 if issubclass(base, _MaybeTransform) else _OfV1
    return type(name, (before, base), {"__doc__": _doc_of(base), "__module__": __name__})


CenterCrop = _of_v1("CenterCrop")
ColorJitter = _of_v1("ColorJitter")
ElasticTransform = _of_v1("ElasticTransform")
FiveCrop = _of_v1("FiveCrop")
GaussianBlur = _of_v1("GaussianBlur")
Grayscale = _of_v1("Grayscale")
LinearTransformation = _of_v1("LinearTransformation")
Normalize = _of_v1("Normalize")
Pad = _of_v1("Pad")
RandomAdjustSharpness = _of_v1("RandomAdjustSharpness")
RandomAffine = _of_v1("RandomAffine")
RandomAutocontrast = _of_v1("RandomAutocontrast")
RandomEqualize = _of_v1("RandomEqualize")
RandomGrayscale = _of_v1("RandomGrayscale")
RandomHorizontalFlip = _of_v1("RandomHorizontalFlip")
RandomInvert = _of_v1("RandomInvert")
RandomPosterize = _of_v1("RandomPosterize")
RandomResizedCrop = _of_v1("RandomResizedCrop")
RandomRotation = _of_v1("RandomRotation")
RandomSolarize = _of_v1("RandomSolarize")
RandomVerticalFlip = _of_v1("RandomVerticalFlip")
Resize = _of_v1("Resize")
TenCrop = _of_v1("TenCrop")

__all__ = [
    "AutoAugment", "AutoAugmentPolicy", "CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype", "ElasticTransform", "FiveCrop",
    "GaussianBlur", "GaussianNoise", "Grayscale",
    "Identity", "InterpolationMode", "Lambda", "LinearTransformation", "Normalize", "PILToTensor", "Pad", "RGB",
    "RandAugment", "RandomAdjustSharpness", "RandomAffine", "RandomApply", "RandomAutocontrast", "RandomChannelPermutation", "RandomChoice",
    "RandomCrop", "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomOrder",
    "RandomPerspective", "RandomPosterize", "RandomResize", "RandomResizedCrop", "RandomRotation", "RandomSolarize", "RandomVerticalFlip",
    "Resize", "TenCrop", "ToDtype", "ToImage", "ToPILImage", "ToPureTensor", "ToTensor", "Transform", "TrivialAugmentWide",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "functional":
        import importlib

        return importlib.import_module("." + name, __name__)
    _names.fail(__name__, name)
