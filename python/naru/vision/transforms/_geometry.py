"""Geometric transforms."""

from __future__ import annotations

import math
import warnings
from typing import Any

import naru

from ..._documentation import show
from . import functional as F
from ._base import ImageTransform, MaybeTransform, as_angles, as_size, check_sequence, fill_for, randint, uniform
from ._modes import InterpolationMode, as_mode, dimensions, is_tensor

_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


class Resize(ImageTransform):
    """Resizes to [height, width] `size`, or so that the shorter side is the integer `size` and the longer one at most `max_size`. `interpolation`
    and `antialias` as for `functional.resize`.
    """

    def __init__(self, size: Any, interpolation: Any = _BILINEAR, max_size: int | None = None, antialias: bool | None = True) -> None:
        super().__init__()
        if not isinstance(size, (int, list, tuple, type(None))):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, (list, tuple)) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = as_mode(interpolation)
        self.antialias = antialias

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def extra_repr(self) -> str:
        return f"size={self.size}, interpolation={self.interpolation.value}, max_size={self.max_size}, antialias={self.antialias}"


class CenterCrop(ImageTransform):
    """Crops the center to `size`; images smaller than that are padded with 0."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = as_size(size)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.center_crop(img, self.size)

    def extra_repr(self) -> str:
        return f"size={self.size}"


class Pad(ImageTransform):
    """Pads the image. `padding`: one integer, (left and right, top and bottom), or (left, top, right, bottom); `padding_mode`: 'constant' (with
    `fill`), 'edge', 'reflect' or 'symmetric'.
    """

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        if not isinstance(padding, (int, float, tuple, list)):
            raise TypeError("Got inappropriate padding arg")
        if not isinstance(fill, (int, float, str, tuple, list, type(None))):
            raise TypeError("Got inappropriate fill arg")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if isinstance(padding, (tuple, list)) and len(padding) not in (1, 2, 4):
            raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple")
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode}"


class _Crops(ImageTransform):
    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = as_size(size)

    def extra_repr(self) -> str:
        return f"size={self.size}"


class FiveCrop(_Crops):
    """Returns a tuple of the four corner crops and the center crop, each of `size`."""

    def _apply_to(self, img: Any, drawn: Any) -> tuple[Any, ...]:
        return F.five_crop(img, self.size)


class TenCrop(_Crops):
    """Returns a tuple of ten: `FiveCrop` with `size` of the image and of the flipped image. The flip is horizontal, or vertical if `vertical_flip`."""

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def _apply_to(self, img: Any, drawn: Any) -> tuple[Any, ...]:
        return F.ten_crop(img, self.size, self.vertical_flip)

    def extra_repr(self) -> str:
        return f"size={self.size}, vertical_flip={self.vertical_flip}"


class RandomHorizontalFlip(MaybeTransform):
    """Flips horizontally, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.hflip(img) if drawn else img


class RandomVerticalFlip(MaybeTransform):
    """Flips vertically, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.vflip(img) if drawn else img


def _place(height: int, width: int, crop_height: int, crop_width: int) -> tuple[int, int, int, int]:
    if height < crop_height or width < crop_width:
        raise ValueError(f"Required crop size {(crop_height, crop_width)} is larger than input image size {(height, width)}")
    if (height, width) == (crop_height, crop_width):
        return 0, 0, height, width
    top = randint(0, height - crop_height + 1)
    return top, randint(0, width - crop_width + 1), crop_height, crop_width


class RandomCrop(ImageTransform):
    """Crops a random part of `size`, after padding: `padding`, `fill` and `padding_mode` as for `Pad`. Raises ValueError if the image is too small,
    unless `pad_if_needed`.
    """

    def __init__(self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.size = as_size(size)
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Returns (top, left, height, width) of a random part."""
        return _place(*dimensions(img)[1:], *output_size)

    def _paddings(self, height: int, width: int) -> tuple[list[Any], int, int]:
        """The arguments of the successive calls of `pad`, and the size that results."""
        steps: list[Any] = []
        if self.padding is not None:
            steps.append(self.padding)
            values = [self.padding] if isinstance(self.padding, (int, float)) else list(self.padding)
            left, top, right, bottom = (values * (4 // len(values)))[:4]
            height, width = height + top + bottom, width + left + right
        if self.pad_if_needed and width < self.size[1]:
            steps.append([self.size[1] - width, 0])
            width += 2 * (self.size[1] - width)
        if self.pad_if_needed and height < self.size[0]:
            steps.append([0, self.size[0] - height])
            height += 2 * (self.size[0] - height)
        return steps, height, width

    def _draw(self, img: Any) -> Any:
        steps, height, width = self._paddings(*dimensions(img)[1:])
        return steps, _place(height, width, *self.size)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        for padding in drawn[0]:
            img = F.pad(img, padding, self.fill, self.padding_mode)
        return F.crop(img, *drawn[1])

    def extra_repr(self) -> str:
        return f"size={self.size}, padding={self.padding}"


class RandomResizedCrop(ImageTransform):
    """Crops a random part, with a random share of the area (`scale`) and a random aspect ratio (`ratio`), and resizes it to `size`. `interpolation`
    and `antialias` as for `functional.resize`.
    """

    def __init__(
        self,
        size: Any,
        scale: Any = (0.08, 1.0),
        ratio: Any = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = _BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = as_size(size)
        for name, value in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"{name} should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.interpolation = as_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any) -> tuple[int, int, int, int]:
        """Returns (top, left, height, width) of a random part; of the center part after ten attempts that do not fit."""
        _, height, width = dimensions(img)
        area = height * width
        low, high = naru.log(naru.tensor([float(r) for r in ratio])).tolist()
        for _ in range(10):
            wanted = area * uniform(scale[0], scale[1])
            aspect = naru.exp(naru.empty(1).uniform_(low, high)).item()
            part_width, part_height = int(round(math.sqrt(wanted * aspect))), int(round(math.sqrt(wanted / aspect)))
            if 0 < part_width <= width and 0 < part_height <= height:
                top = randint(0, height - part_height + 1)
                return top, randint(0, width - part_width + 1), part_height, part_width
        part_width, part_height = width, height
        if width / height < min(ratio):
            part_height = int(round(width / min(ratio)))
        elif width / height > max(ratio):
            part_width = int(round(height * max(ratio)))
        return (height - part_height) // 2, (width - part_width) // 2, part_height, part_width

    def _draw(self, img: Any) -> Any:
        return self.get_params(img, self.scale, self.ratio)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.resized_crop(img, *drawn, self.size, self.interpolation, antialias=self.antialias)

    def extra_repr(self) -> str:
        scale, ratio = (tuple(round(v, 4) for v in values) for values in (self.scale, self.ratio))
        return f"size={self.size}, scale={scale}, ratio={ratio}, interpolation={self.interpolation.value}, antialias={self.antialias}"


class RandomRotation(ImageTransform):
    """Rotates by a random angle in `degrees`: (low, high), or a number for (-degrees, degrees). `interpolation`, `expand`, `center` and `fill` as
    for `functional.rotate`.
    """

    def __init__(self, degrees: Any, interpolation: Any = _NEAREST, expand: bool = False, center: Any = None, fill: Any = 0) -> None:
        super().__init__()
        self.degrees = as_angles(degrees, "degrees")
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center
        self.interpolation = as_mode(interpolation)
        self.expand = expand
        if fill is not None and not isinstance(fill, (int, float, list, tuple)):
            raise TypeError("Fill should be either a sequence or a number.")
        self.fill = 0 if fill is None else fill

    @staticmethod
    def get_params(degrees: Any) -> float:
        return float(uniform(float(degrees[0]), float(degrees[1])))

    def _draw(self, img: Any) -> Any:
        return self.get_params(self.degrees)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.rotate(img, drawn, self.interpolation, self.expand, self.center, fill_for(img, self.fill))

    def extra_repr(self) -> str:
        return f"degrees={self.degrees}, interpolation={self.interpolation.value}, expand={self.expand}, center={self.center}, fill={self.fill}"


class RandomAffine(ImageTransform):
    """Applies a random affine map: rotation by `degrees`, translation (`translate`: maximum fractions of width and height), scaling (`scale`: low,
    high) and shear (`shear`: degrees), each drawn from its range. `interpolation`, `fill` and `center` as for `functional.affine`.
    """

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        interpolation: Any = _NEAREST,
        fill: Any = 0,
        center: Any = None,
    ) -> None:
        super().__init__()
        self.degrees = as_angles(degrees, "degrees")
        if translate is not None:
            check_sequence(translate, "translate", (2,))
            if any(not 0.0 <= share <= 1.0 for share in translate):
                raise ValueError("translation values should be between 0 and 1")
        if scale is not None:
            check_sequence(scale, "scale", (2,))
            if any(factor <= 0 for factor in scale):
                raise ValueError("scale values should be positive")
        if center is not None:
            check_sequence(center, "center", (2,))
        self.translate, self.scale, self.center = translate, scale, center
        self.shear = None if shear is None else as_angles(shear, "shear", (2, 4))
        self.interpolation = as_mode(interpolation)
        if fill is not None and not isinstance(fill, (int, float, list, tuple)):
            raise TypeError("Fill should be either a sequence or a number.")
        self.fill = 0 if fill is None else fill

    @staticmethod
    def get_params(degrees: Any, translate: Any, scale_ranges: Any, shears: Any, img_size: Any) -> tuple[Any, ...]:
        """Returns (angle, (x, y), scale, (shear x, shear y)); img_size: [width, height]."""
        angle = float(uniform(float(degrees[0]), float(degrees[1])))
        moved = (0, 0)
        if translate is not None:
            moved = tuple(int(round(uniform(-float(share * side), float(share * side)))) for share, side in zip(translate, img_size))
        scale = 1.0 if scale_ranges is None else float(uniform(scale_ranges[0], scale_ranges[1]))
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = float(uniform(shears[0], shears[1]))
            if len(shears) == 4:
                shear_y = float(uniform(shears[2], shears[3]))
        return angle, moved, scale, (shear_x, shear_y)

    def _draw(self, img: Any) -> Any:
        return self.get_params(self.degrees, self.translate, self.scale, self.shear, F.get_image_size(img))

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.affine(img, *drawn, interpolation=self.interpolation, fill=fill_for(img, self.fill), center=self.center)

    def extra_repr(self) -> str:
        names = ("degrees", "translate", "scale", "shear")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names if getattr(self, name) is not None)


class RandomPerspective(MaybeTransform):
    """Moves the corners inwards by a random distance, at most `distortion_scale` of half the sides, with probability `p`. `interpolation` and
    `fill` as for `functional.perspective`.
    """

    def __init__(self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Any = _BILINEAR, fill: Any = 0) -> None:
        super().__init__(p)
        self.interpolation = as_mode(interpolation)
        self.distortion_scale = distortion_scale
        if fill is not None and not isinstance(fill, (int, float, list, tuple)):
            raise TypeError("Fill should be either a sequence or a number.")
        self.fill = 0 if fill is None else fill

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[Any, Any]:
        """Returns the four corners before and after."""
        x, y = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        top_left = [randint(0, x + 1), randint(0, y + 1)]
        top_right = [randint(width - x - 1, width), randint(0, y + 1)]
        bottom_right = [randint(width - x - 1, width), randint(height - y - 1, height)]
        bottom_left = [randint(0, x + 1), randint(height - y - 1, height)]
        start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return start, [top_left, top_right, bottom_right, bottom_left]

    def _draw(self, img: Any) -> Any:
        if not super()._draw(img):
            return None
        _, height, width = dimensions(img)
        return self.get_params(width, height, self.distortion_scale)

    def forward(self, img: Any) -> Any:
        return self._apply_to(img, self._draw(img))

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return img if drawn is None else F.perspective(img, *drawn, self.interpolation, fill_for(img, self.fill))


class ElasticTransform(ImageTransform):
    """Displaces each pixel by a smooth random field with amplitude `alpha` and smoothness `sigma` (a number for both, or [x, y]). `interpolation`
    and `fill` as for `functional.elastic_transform`.
    """

    def __init__(self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = _BILINEAR, fill: Any = 0) -> None:
        super().__init__()
        pairs = ([v] if isinstance(v, (int, float)) else list(v) for v in (alpha, sigma))
        self.alpha, self.sigma = ([float(v) for v in pair] * (2 // len(pair)) for pair in pairs)
        self.interpolation = as_mode(interpolation)
        self.fill = fill

    @staticmethod
    def get_params(alpha: Any, sigma: Any, size: Any) -> Any:
        """Returns the displacement (1, H, W, 2), x before y; size: [height, width]."""
        parts = []
        for amount, width, side in zip(alpha, sigma, (size[1], size[0])):
            field = naru.rand([1, 1, *size]) * 2 - 1
            if width > 0.0:
                kernel = int(8 * width + 1)
                field = F.gaussian_blur(field, [kernel + (kernel % 2 == 0)] * 2, list(sigma))
            parts.append(field * amount / side)
        return naru.cat(parts, 1).permute([0, 2, 3, 1])

    def _draw(self, img: Any) -> Any:
        return self.get_params(self.alpha, self.sigma, dimensions(img)[1:])

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.elastic_transform(img, drawn, self.interpolation, fill_for(img, self.fill) if is_tensor(img) else self.fill)


show(globals(), "vision")
