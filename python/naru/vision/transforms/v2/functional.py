"""`torchvision.transforms.v2.functional`: the v1 functions and the functions new in v2."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

from ... import _names
from ..._pil import is_pil
from ...tv_tensors import Image
from .. import functional as _v1
from .._modes import Tensor
from ..functional import *  # noqa: F403
from ..functional import convert_image_dtype, get_dimensions, get_image_num_channels, hflip, pil_to_tensor, rgb_to_grayscale, vflip
from ._transform import is_pure_tensor

__all__ = [
    *_v1.__all__, "elastic", "get_num_channels", "get_size", "grayscale_to_rgb", "horizontal_flip", "is_pure_tensor", "permute_channels",
    "to_dtype", "to_image", "vertical_flip",
]  # fmt: skip

__getattr__ = _names.module_getattr(__name__)

horizontal_flip, vertical_flip = hflip, vflip
elastic = _v1.elastic_transform
get_num_channels = get_image_num_channels


def get_size(inpt: Any) -> list[int]:
    """Returns [height, width] of `inpt`, a PIL image or a tensor (..., C, H, W).

    >>> naru.vision.transforms.v2.functional.get_size(naru.zeros(3, 20, 10))
    [20, 10]
    """
    return get_dimensions(inpt)[1:]


def to_image(inpt: Any) -> Image:
    """Converts `inpt`, a PIL image, an array (H, W, C) or (H, W), or a tensor, to a `tv_tensors.Image` without changing its values. Raises
    TypeError for anything else.

    >>> type(naru.vision.transforms.v2.functional.to_image(naru.zeros(3, 20, 10))).__name__
    'Image'
    """
    if isinstance(inpt, np.ndarray):
        array = np.atleast_3d(inpt)
        return Image(naru.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1))))
    if is_pil(inpt):
        return Image(pil_to_tensor(inpt))
    if isinstance(inpt, Tensor):
        return inpt if isinstance(inpt, Image) else Image(inpt)
    raise TypeError(f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)} instead.")


def to_dtype(inpt: Tensor, dtype: Any = naru.float32, scale: bool = False) -> Tensor:
    """Converts the tensor `inpt` to `dtype`; with `scale`, white stays white.

    >>> naru.vision.transforms.v2.functional.to_dtype(naru.tensor([[[0, 255]]], dtype=naru.uint8), scale=True)
    tensor([[[0., 1.]]])
    """
    return convert_image_dtype(inpt, dtype) if scale else inpt.to(dtype)


def grayscale_to_rgb(inpt: Any) -> Any:
    """Converts `inpt`, a greyscale image, to three channels; other images are returned unchanged.

    >>> naru.vision.transforms.v2.functional.grayscale_to_rgb(naru.ones(1, 1, 1)).flatten()
    tensor([1., 1., 1.])
    """
    return rgb_to_grayscale(inpt, 3) if get_image_num_channels(inpt) == 1 else inpt


def permute_channels(inpt: Any, permutation: list[int]) -> Any:
    """Reorders the channels of `inpt` by `permutation`.

    >>> naru.vision.transforms.v2.functional.permute_channels(naru.tensor([1, 2, 3]).reshape(3, 1, 1), [2, 1, 0]).flatten()
    tensor([3, 2, 1])
    """
    if isinstance(inpt, Tensor):
        return inpt[..., list(permutation), :, :]
    return _v1.to_pil_image(pil_to_tensor(inpt)[list(permutation)])
