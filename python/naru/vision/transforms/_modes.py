"""Interpolation modes, and image properties that need no access to pixels."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ... import _C
from .._pil import is_pil

Tensor = _C.Tensor


class InterpolationMode(Enum):
    """How values between pixels are interpolated. BOX, HAMMING and LANCZOS are for PIL images only.

    >>> naru.vision.transforms.InterpolationMode("bilinear")
    <InterpolationMode.BILINEAR: 'bilinear'>
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's integer constants.
PIL_MODES = {
    InterpolationMode.NEAREST: 0,
    InterpolationMode.NEAREST_EXACT: 0,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
    InterpolationMode.LANCZOS: 1,
}
_OF_PIL = {number: mode for mode, number in PIL_MODES.items() if mode is not InterpolationMode.NEAREST_EXACT}


def as_mode(interpolation: Any) -> InterpolationMode:
    """The mode for an argument: an InterpolationMode or one of Pillow's integers. Raises TypeError for anything else."""
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    if isinstance(interpolation, int) and int(interpolation) in _OF_PIL:
        return _OF_PIL[int(interpolation)]
    raise TypeError(f"Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant, got {interpolation!r}")


def is_tensor(image: Any) -> bool:
    """True for a tensor, False for a PIL image. Raises TypeError for anything else."""
    if isinstance(image, Tensor):
        if image.dim() < 2:
            raise TypeError("Tensor is not a torch image: it needs two dimensions or more, (..., height, width)")
        return True
    if is_pil(image):
        return False
    raise TypeError(f"img should be PIL Image or Tensor. Got {type(image)}")


def dimensions(image: Any) -> list[int]:
    """Returns [channels, height, width] of a PIL image or a tensor (..., C, H, W)."""
    if is_tensor(image):
        shape = list(image.shape)
        return [1 if image.dim() == 2 else shape[-3], shape[-2], shape[-1]]
    return [len(image.getbands()), image.height, image.width]
