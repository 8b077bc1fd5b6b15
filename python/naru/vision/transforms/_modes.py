"""How images are resampled, and what is known of a picture without looking at its pixels."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ... import _C
from .._pil import is_pil

Tensor = _C.Tensor


class InterpolationMode(Enum):
    """How values between pixels are made. BOX, HAMMING and LANCZOS are of PIL images alone.

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


# Pillow's numbers.
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
    """The mode that an argument names: itself, or one of Pillow's numbers; a TypeError of anything else."""
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    if isinstance(interpolation, int) and int(interpolation) in _OF_PIL:
        return _OF_PIL[int(interpolation)]
    raise TypeError(f"Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant, got {interpolation!r}")


def is_tensor(image: Any) -> bool:
    """Whether it is a tensor; a TypeError where it is no PIL image either."""
    if isinstance(image, Tensor):
        if image.dim() < 2:
            raise TypeError("Tensor is not a torch image: it needs two dimensions or more, (..., height, width)")
        return True
    if is_pil(image):
        return False
    raise TypeError(f"img should be PIL Image or Tensor. Got {type(image)}")


def dimensions(image: Any) -> list[int]:
    """[channels, height, width] of a PIL image or a tensor (..., C, H, W)."""
    if is_tensor(image):
        shape = list(image.shape)
        return [1 if image.dim() == 2 else shape[-3], shape[-2], shape[-1]]
    return [len(image.getbands()), image.height, image.width]
