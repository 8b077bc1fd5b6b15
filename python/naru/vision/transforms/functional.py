"""`torchvision.transforms.functional`: the operations behind the transforms, for PIL images and tensors (..., C, H, W).

Anything else raises TypeError. Tensors are resampled by `naru.nn.functional.interpolate` and `grid_sample`, on their device and with gradients.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import naru

from ..._documentation import show as _show
from .. import _names
from . import _functional_pil as _pil
from . import _functional_tensor as _tensor
from . import _tensor_color as _color
from ._conversion import pil_to_tensor, to_pil_image, to_tensor
from ._modes import PIL_MODES as pil_modes_mapping
from ._modes import InterpolationMode, Tensor, as_mode, dimensions, is_tensor

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation", "adjust_sharpness", "affine",
    "autocontrast", "center_crop", "convert_image_dtype", "crop", "elastic_transform", "equalize", "erase", "five_crop", "gaussian_blur",
    "get_dimensions", "get_image_num_channels", "get_image_size", "hflip", "invert", "normalize", "pad", "perspective", "pil_modes_mapping",
    "pil_to_tensor", "posterize", "resize", "resized_crop", "rgb_to_grayscale", "rotate", "solarize", "ten_crop", "to_grayscale", "to_pil_image",
    "to_tensor", "vflip",
]  # fmt: skip

__getattr__ = _names.module_getattr(__name__)

_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def get_dimensions(img: Any) -> list[int]:
    """Returns [channels, height, width] of `img`, a PIL image or a tensor (..., C, H, W)."""
    return dimensions(img)


def get_image_size(img: Any) -> list[int]:
    """Returns [width, height] of `img`, a PIL image or a tensor (..., C, H, W)."""
    return dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """Returns the number of channels of `img`, a PIL image or a tensor (..., C, H, W)."""
    return dimensions(img)[0]


def convert_image_dtype(image: Tensor, dtype: Any = naru.float32) -> Tensor:
    """Converts the tensor `image` to `dtype` and scales its values so that white stays white. Raises RuntimeError if the dtype can't hold them
    safely.
    """
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    return _color.convert_dtype(image, dtype)


def normalize(tensor: Tensor, mean: Any, std: Any, inplace: bool = False) -> Tensor:
    """Computes (tensor - `mean`) / `std` per channel of `tensor` (..., C, H, W), in place if `inplace`. Raises TypeError for integer tensors,
    ValueError if a std is 0.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    return _color.normalize(tensor, mean, std, inplace)


def _output_size(size: list[int], wanted: list[int] | None, max_size: int | None) -> list[int]:
    """The [height, width] to resize an image of [height, width] `size` to. A single requested number is the length of the shorter side."""
    height, width = size
    if wanted is not None and len(wanted) == 2:
        if max_size is not None:
            raise ValueError(
                "max_size should only be passed if size specifies the length of the smaller edge, "
                "i.e. size should be an int or a sequence of length 1"
            )
        return list(wanted)
    short, long = min(size), max(size)
    if wanted is None:
        # Limit the longer side to max_size.
        assert max_size is not None
        new_short, new_long = int(max_size * short / long), max_size
    else:
        new_short, new_long = wanted[0], int(wanted[0] * long / short)
        if max_size is not None:
            if max_size <= wanted[0]:
                raise ValueError(
                    f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size = {wanted[0]}"
                )
            if new_long > max_size:
                new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if width <= height else [new_short, new_long]


def resize(img: Any, size: Any, interpolation: Any = _BILINEAR, max_size: int | None = None, antialias: bool | None = True) -> Any:
    """Resizes `img` to [height, width] `size`, or so that its shorter side has the integer `size`.

    Args:
        interpolation: an `InterpolationMode`, or Pillow's integer constant.
        max_size: maximum length of the longer side.
        antialias: widen the filter when a tensor is downscaled ('bilinear', 'bicubic'); PIL images are always antialiased.
    """
    mode = as_mode(interpolation)
    if size is not None:
        size = [size] if isinstance(size, int) else list(size)
        if len(size) not in (1, 2):
            raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not a {len(size)} element tuple/list")
    elif max_size is None:
        raise ValueError("max_size must be an integer when size is None, but got None")
    _, height, width = dimensions(img)
    wanted = _output_size([height, width], size, max_size)
    if wanted == [height, width]:
        return img
    return _tensor.resize(img, wanted, mode, antialias) if is_tensor(img) else _pil.resize(img, wanted, mode)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Pads `img`. `padding`: one integer, [left and right, top and bottom], or [left, top, right, bottom]; `padding_mode`: 'constant' (with
    `fill`), 'edge', 'reflect' or 'symmetric'.
    """
    if not isinstance(padding, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(fill, (numbers.Number, str, tuple, list, type(None))):
        raise TypeError("Got inappropriate fill arg")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    sides = [padding] if isinstance(padding, numbers.Number) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(sides)} element tuple")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    sides = [int(side) for side in sides * (4 // len(sides))]
    return (_tensor if is_tensor(img) else _pil).pad(img, sides, fill, padding_mode)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part of `img` with corner (`top`, `left`), `height` by `width`; pixels outside of the image are 0."""
    return (_tensor if is_tensor(img) else _pil).crop(img, top, left, height, width)


def _two(size: Any) -> list[int]:
    values = [int(size)] if isinstance(size, numbers.Number) else list(size)
    return values * 2 if len(values) == 1 else values


def center_crop(img: Any, output_size: Any) -> Any:
    """The center of `img`, [height, width] `output_size`; smaller images are padded with 0."""
    wanted_height, wanted_width = _two(output_size)
    _, height, width = dimensions(img)
    if wanted_width > width or wanted_height > height:
        across, down = max(wanted_width - width, 0), max(wanted_height - height, 0)
        img = pad(img, [across // 2, down // 2, (across + 1) // 2, (down + 1) // 2])
        _, height, width = dimensions(img)
        if (wanted_height, wanted_width) == (height, width):
            return img
    top, left = int(round((height - wanted_height) / 2.0)), int(round((width - wanted_width) / 2.0))
    return crop(img, top, left, wanted_height, wanted_width)


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = _BILINEAR, antialias: bool | None = True
) -> Any:
    """`crop` of `img` to `top`, `left`, `height` and `width`, then `resize` to `size` with `interpolation` and `antialias`."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """Flips `img`, a PIL image or a tensor (..., C, H, W), horizontally."""
    return img.flip(-1) if is_tensor(img) else _pil.hflip(img)


def vflip(img: Any) -> Any:
    """Flips `img`, a PIL image or a tensor (..., C, H, W), vertically."""
    return img.flip(-2) if is_tensor(img) else _pil.vflip(img)


def five_crop(img: Any, size: Any) -> tuple[Any, ...]:
    """Returns the corner crops of `img` (top left, top right, bottom left, bottom right) and the center crop, each of `size`. Raises ValueError if
    the image is smaller.
    """
    size = [size] if isinstance(size, int) else list(size)
    if len(size) not in (1, 2):
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    crop_height, crop_width = _two(size)
    _, height, width = dimensions(img)
    if crop_width > width or crop_height > height:
        raise ValueError(f"Requested crop size {(crop_height, crop_width)} is bigger than input size {(height, width)}")
    corners = [crop(img, top, left, crop_height, crop_width) for top in (0, height - crop_height) for left in (0, width - crop_width)]
    return (*corners, center_crop(img, [crop_height, crop_width]))


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """Returns `five_crop` of `img` and of the flipped image. The flip is horizontal, or vertical if `vertical_flip`. `size`: of each crop."""
    return five_crop(img, size) + five_crop((vflip if vertical_flip else hflip)(img), size)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Converts `img` to greyscale (luma); `num_output_channels` is 1, or 3 for three equal channels."""
    return _color.rgb_to_grayscale(img, num_output_channels) if is_tensor(img) else _pil.to_grayscale(img, num_output_channels)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Converts the PIL image `img` to greyscale with `num_output_channels` (1 or 3). Raises TypeError for tensors: `rgb_to_grayscale` accepts both."""
    if is_tensor(img):
        raise TypeError("Input should be PIL Image; rgb_to_grayscale takes tensors too")
    return _pil.to_grayscale(img, num_output_channels)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Adjusts the brightness of `img`: `brightness_factor` 0 gives black, 1 the original, 2 twice the brightness. Raises ValueError for a tensor
    with a negative factor.
    """
    return _adjusted("brightness", img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Adjusts the contrast of `img`: `contrast_factor` 0 gives uniform grey of the image's mean, 1 the original."""
    return _adjusted("contrast", img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Adjusts the saturation of `img`: `saturation_factor` 0 gives greyscale, 1 the original."""
    return _adjusted("saturation", img, saturation_factor)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Adjusts the sharpness of `img`: `sharpness_factor` 0 gives a blurred image, 1 the original."""
    return _adjusted("sharpness", img, sharpness_factor)


def _adjusted(what: str, img: Any, factor: float) -> Any:
    if not is_tensor(img):
        return getattr(_pil, "adjust_" + what)(img, factor)
    if factor < 0:
        raise ValueError(f"{what}_factor ({factor}) is not non-negative.")
    return getattr(_color, "adjust_" + what)(img, factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Rotates the hues of `img` by `hue_factor` (-0.5 .. 0.5) of the color circle; grey pixels do not change. Raises ValueError for other factors."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return (_color if is_tensor(img) else _pil).adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """Computes `gain` * value ** `gamma` of `img`, for values scaled to 0..1."""
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    return (_color if is_tensor(img) else _pil).adjust_gamma(img, gamma, gain)


def invert(img: Any) -> Any:
    """Inverts the colors of `img`, a PIL image or a tensor (..., C, H, W)."""
    return (_color if is_tensor(img) else _pil).invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Keeps the `bits` (0 .. 8) most significant bits of each uint8 value of `img`."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    return (_color if is_tensor(img) else _pil).posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Inverts the values of `img` from `threshold` up."""
    return (_color if is_tensor(img) else _pil).solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Stretches each channel of `img` to the full range from black to white."""
    return (_color if is_tensor(img) else _pil).autocontrast(img)


def equalize(img: Any) -> Any:
    """Equalizes the histogram of each channel of `img` (uint8 only)."""
    return (_color if is_tensor(img) else _pil).equalize(img)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """Overwrites `h` x `w` pixels of the tensor `img` from (`i`, `j`) with `v`, in place if `inplace`."""
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    out = img if inplace else img.clone()
    out[..., i : i + h, j : j + w] = v
    return out


def inverse_affine_matrix(center: list[float], angle: float, translate: list[float], scale: float, shear: list[float]) -> list[float]:
    """The 2 x 3 matrix, row-major, from output to input coordinates, of the map that shears, rotates (degrees) and scales around `center`, then
    translates."""
    turn, shear_x, shear_y = (math.radians(value) for value in (angle, *shear))
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    # [a b; c d] has determinant 1.
    matrix = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    moved = (-center[0] - translate[0], -center[1] - translate[1])
    matrix[2] = matrix[0] * moved[0] + matrix[1] * moved[1] + center[0]
    matrix[5] = matrix[3] * moved[0] + matrix[4] * moved[1] + center[1]
    return matrix


def _as_numbers(values: Any) -> list[float]:
    return [float(value) for value in values]


def _check_affine(angle: Any, translate: Any, scale: float, shear: Any, center: Any) -> list[float]:
    """Raises for invalid arguments of `affine`; returns both shears."""
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, (list, tuple)):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, (numbers.Number, list, tuple)):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    shears = [float(shear), 0.0] if isinstance(shear, numbers.Number) else _as_numbers(shear)
    if len(shears) == 1:
        shears *= 2
    if len(shears) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")
    return shears


def affine(
    img: Any, angle: float, translate: Any, scale: float, shear: Any, interpolation: Any = _NEAREST, fill: Any = None, center: Any = None
) -> Any:
    """Rotates `img` by `angle` degrees clockwise, shears it (`shear` degrees: along x, or [x, y]) and scales it by `scale` around `center` [x, y],
    then translates it by `translate`. `interpolation`: an `InterpolationMode`; `fill`: the color outside of the image.
    """
    shears = _check_affine(angle, translate, scale, shear, center)
    mode = as_mode(interpolation)
    _, height, width = dimensions(img)
    moved = _as_numbers(translate)
    if is_tensor(img):
        middle = [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]
        return _tensor.affine(img, inverse_affine_matrix(middle, float(angle), moved, scale, shears), mode, fill)
    middle = [width * 0.5, height * 0.5] if center is None else _as_numbers(center)
    return _pil.affine(img, inverse_affine_matrix(middle, float(angle), moved, scale, shears), mode, fill)


def rotate(img: Any, angle: float, interpolation: Any = _NEAREST, expand: bool = False, center: Any = None, fill: Any = None) -> Any:
    """Rotates `img` by `angle` degrees counter-clockwise around `center` [x, y]; with `expand` the result is large enough for the whole image.
    `interpolation`: an `InterpolationMode`; `fill`: the color outside of the image.
    """
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")
    mode = as_mode(interpolation)
    if not is_tensor(img):
        return _pil.rotate(img, angle, mode, expand, center, fill)
    _, height, width = dimensions(img)
    middle = [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]
    return _tensor.rotate(img, inverse_affine_matrix(middle, -float(angle), [0.0, 0.0], 1.0, [0.0, 0.0]), mode, expand, fill)


def perspective_coefficients(startpoints: Any, endpoints: Any) -> list[float]:
    """The eight coefficients of the perspective map from `endpoints` (four of [x, y]) back to `startpoints`."""
    import numpy as np

    rows, right = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    solution = np.linalg.lstsq(np.array(rows, dtype=np.float64), np.array(right, dtype=np.float64), rcond=None)[0]
    return [float(value) for value in solution.astype(np.float32)]


def perspective(img: Any, startpoints: Any, endpoints: Any, interpolation: Any = _BILINEAR, fill: Any = None) -> Any:
    """Maps four corners of `img` (top left, top right, bottom right, bottom left; [x, y]) from `startpoints` to `endpoints`. `interpolation`: an
    `InterpolationMode`; `fill`: the color outside of the image.
    """
    mode = as_mode(interpolation)
    coefficients = perspective_coefficients(startpoints, endpoints)
    return (_tensor if is_tensor(img) else _pil).perspective(img, coefficients, mode, fill)


def _pairs(name: str, value: Any) -> list[Any]:
    values = [value] if isinstance(value, numbers.Number) else list(value)
    if len(values) not in (1, 2):
        raise ValueError(f"If {name} is a sequence its length should be 1 or 2. Got {len(values)}")
    return values * 2 if len(values) == 1 else values


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blurs `img` with a Gaussian. `kernel_size` (odd) and `sigma`: one number for both, or [x, y]; sigma defaults to 0.3 * ((kernel_size - 1) *
    0.5 - 1) + 0.8."""
    sizes = _pairs("kernel_size", kernel_size)
    for size in sizes:
        if size % 2 == 0 or size < 0:
            raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    sigmas = [size * 0.15 + 0.35 for size in sizes] if sigma is None else _pairs("sigma", sigma)
    for value in sigmas:
        if value <= 0.0:
            raise ValueError(f"sigma should have positive values. Got {sigma}")
    if is_tensor(img):
        return _tensor.gaussian_blur(img, sizes, _as_numbers(sigmas))
    return to_pil_image(_tensor.gaussian_blur(pil_to_tensor(img), sizes, _as_numbers(sigmas)), img.mode)


def elastic_transform(img: Any, displacement: Tensor, interpolation: Any = _BILINEAR, fill: Any = None) -> Any:
    """Displaces each pixel of `img` by `displacement` (1, H, W, 2), in units of half the image's sides. `interpolation`: an `InterpolationMode`;
    `fill`: the color outside of the image.
    """
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    mode = as_mode(interpolation)
    tensor = img if is_tensor(img) else pil_to_tensor(img)
    expected = [1, *tensor.shape[-2:], 2]
    if list(displacement.shape) != expected:
        raise ValueError(f"Argument displacement shape should be {tuple(expected)}, but given {tuple(displacement.shape)}")
    out = _tensor.elastic_transform(tensor, displacement, mode, fill)
    return out if tensor is img else to_pil_image(out, img.mode)


_show(globals(), "vision")
