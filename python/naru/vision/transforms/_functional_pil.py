"""The transforms of PIL images."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._pil import pillow
from ._modes import PIL_MODES, InterpolationMode


def as_fill(fill: Any, img: Any, name: str = "fillcolor") -> dict[str, Any]:
    """Pillow's keyword argument for the color of the area outside the image."""
    channels = len(img.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, (int, float)) and channels > 1:
        fill = (fill,) * channels
    if isinstance(fill, (list, tuple)):
        if len(fill) == 1:
            fill = tuple(fill) * channels
        elif len(fill) != channels:
            raise ValueError(
                f"The number of elements in 'fill' does not match the number of channels of the image ({len(fill)} != {channels})"
            )
        fill = tuple(fill) if channels > 1 else fill[0]
    if img.mode != "F":
        fill = tuple(int(f) for f in fill) if isinstance(fill, tuple) else int(fill)
    return {name: fill}


def resize(img: Any, size: list[int], mode: InterpolationMode) -> Any:
    return img.resize((size[1], size[0]), PIL_MODES[mode])


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    return img.crop((left, top, left + width, top + height))


def hflip(img: Any) -> Any:
    return img.transpose(pillow().FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    return img.transpose(pillow().FLIP_TOP_BOTTOM)


def pad(img: Any, sides: list[int], fill: Any, mode: str) -> Any:
    """sides: left, top, right, bottom; negative values crop."""
    left, top, right, bottom = sides
    if mode == "constant":
        colour = as_fill(fill, img, "color")["color"]
        size = (img.width + left + right, img.height + top + bottom)
        out = pillow().new(img.mode, size, colour)
        if img.mode == "P" and img.getpalette() is not None:
            out.putpalette(img.getpalette())
        out.paste(img, (left, top))
        return out
    cut = [max(-side, 0) for side in sides]
    if any(cut):
        img = img.crop((cut[0], cut[1], img.width - cut[2], img.height - cut[3]))
        left, top, right, bottom = (max(side, 0) for side in sides)
    pixels = np.asarray(img)
    widths = ((top, bottom), (left, right), *[(0, 0)] * (pixels.ndim - 2))
    out = pillow().fromarray(np.pad(pixels, widths, mode=mode))
    if img.mode == "P":
        out.putpalette(img.getpalette())
    return out


def affine(img: Any, matrix: list[float], mode: InterpolationMode, fill: Any) -> Any:
    """matrix: the inverse map, in pixels."""
    return img.transform(img.size, pillow().AFFINE, matrix, PIL_MODES[mode], **as_fill(fill, img))


def rotate(img: Any, angle: float, mode: InterpolationMode, expand: bool, center: Any, fill: Any) -> Any:
    return img.rotate(angle, PIL_MODES[mode], expand, center, **as_fill(fill, img))


def perspective(img: Any, coefficients: list[float], mode: InterpolationMode, fill: Any) -> Any:
    return img.transform(img.size, pillow().PERSPECTIVE, coefficients, PIL_MODES[mode], **as_fill(fill, img))


def _enhance(kind: str, img: Any, factor: float) -> Any:
    return getattr(pillow("ImageEnhance"), kind)(img).enhance(factor)


def adjust_brightness(img: Any, factor: float) -> Any:
    return _enhance("Brightness", img, factor)


def adjust_contrast(img: Any, factor: float) -> Any:
    return _enhance("Contrast", img, factor)


def adjust_saturation(img: Any, factor: float) -> Any:
    return _enhance("Color", img, factor)


def adjust_sharpness(img: Any, factor: float) -> Any:
    return _enhance("Sharpness", img, factor)


def adjust_hue(img: Any, factor: float) -> Any:
    if img.mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    # Hue has 256 steps, so uint8 arithmetic wraps around correctly.
    turned = (np.asarray(hue).astype(np.int64) + int(factor * 255)) % 256
    return pillow().merge("HSV", (pillow().fromarray(turned.astype(np.uint8), "L"), saturation, value)).convert(img.mode)


def adjust_gamma(img: Any, gamma: float, gain: float) -> Any:
    mode = img.mode
    table = [int((255 + 1 - 1e-3) * gain * pow(value / 255.0, gamma)) for value in range(256)] * 3
    return img.convert("RGB").point([min(max(value, 0), 255) for value in table]).convert(mode)


def to_grayscale(img: Any, num_output_channels: int) -> Any:
    if num_output_channels == 1:
        return img.convert("L")
    if num_output_channels == 3:
        grey = img.convert("L")
        return pillow().merge("RGB", (grey, grey, grey))
    raise ValueError("num_output_channels should be either 1 or 3")


def invert(img: Any) -> Any:
    return pillow("ImageOps").invert(img)


def posterize(img: Any, bits: int) -> Any:
    return pillow("ImageOps").posterize(img, bits)


def solarize(img: Any, threshold: int) -> Any:
    return pillow("ImageOps").solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    return pillow("ImageOps").autocontrast(img)


def equalize(img: Any) -> Any:
    return pillow("ImageOps").equalize(img)
