"""The geometric transforms of tensors (..., C, H, W). Color transforms are in `_tensor_color.py`."""

from __future__ import annotations

import math
from typing import Any

import naru

from ...nn.functional import conv2d, grid_sample
from ...nn.functional import interpolate as _interpolate
from ._modes import InterpolationMode, Tensor

_RESIZES = (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)


def _as_batch(img: Tensor, dtypes: tuple[Any, ...]) -> tuple[Tensor, Any]:
    """Returns the image as (N, C, H, W) in one of `dtypes` (the first, if it has another), and a function that undoes both and rounds for integer
    images."""
    shape, dtype = list(img.shape), img.dtype
    batch = img.reshape([math.prod(shape[:-3]), *([1] * (img.dim() == 2)), *shape[-3:]])
    if dtype not in dtypes:
        batch = batch.to(dtypes[0])

    def undo(out: Tensor) -> Tensor:
        if dtype not in dtypes:
            if not dtype.is_floating_point:
                out = out.round()
            out = out.to(dtype)
        return out.reshape([*shape[:-2], *out.shape[-2:]])

    return batch, undo


def resize(img: Tensor, size: list[int], interpolation: InterpolationMode, antialias: bool | None) -> Tensor:
    """Resizes to (height, width) `size`. Integer images are computed in float32 and rounded."""
    if interpolation not in _RESIZES:
        raise ValueError("This interpolation mode is unsupported with Tensor input: only nearest, nearest-exact, bilinear and bicubic are")
    smooth = interpolation in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)
    batch, undo = _as_batch(img, (naru.float32, naru.float64))
    out = _interpolate(
        batch, size, mode=interpolation.value, align_corners=False if smooth else None, antialias=bool(antialias) and smooth
    )
    if interpolation is InterpolationMode.BICUBIC and img.dtype == naru.uint8:
        out = out.clamp(0, 255)
    return undo(out)


def _places(size: int, before: int, after: int, mode: str) -> list[int]:
    """For each index along a padded dimension, the source index."""
    if mode == "reflect" and max(before, after) >= size:
        raise ValueError(f"Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at {size}")
    if mode == "symmetric" and max(before, after) > size:
        raise ValueError(f"Padding size should be at most the corresponding input dimension, but got: padding ({before}, {after}) at {size}")
    places = []
    for place in range(-before, size + after):
        if place < 0:
            place = {"edge": 0, "reflect": -place, "symmetric": -place - 1}[mode]
        elif place >= size:
            place = {"edge": size - 1, "reflect": 2 * size - 2 - place, "symmetric": 2 * size - 1 - place}[mode]
        places.append(place)
    return places


def pad(img: Tensor, sides: list[int], fill: Any, mode: str) -> Tensor:
    """sides: left, top, right, bottom; negative values crop."""
    height, width = img.shape[-2:]
    left, top, right, bottom = (max(side, 0) for side in sides)
    cut = [max(-side, 0) for side in sides]
    img = img[..., cut[1] : height - cut[3], cut[0] : width - cut[2]]
    if not (left or top or right or bottom):
        return img
    height, width = img.shape[-2:]
    if mode != "constant":
        for dim, size, before, after in ((-2, height, top, bottom), (-1, width, left, right)):
            if before or after:
                img = img.index_select(dim, naru.tensor(_places(size, before, after, mode), device=img.device))
        return img
    shape = [*img.shape[:-2], height + top + bottom, width + left + right]
    out = naru.zeros(shape, dtype=img.dtype, device=img.device)
    if fill is not None and fill != 0:
        out = out + fill_values(fill, img)
    out[..., top : top + height, left : left + width] = img
    return out


def fill_values(fill: Any, img: Tensor) -> Tensor:
    """A number, or one per channel, as a tensor that broadcasts over the image."""
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    channels = img.shape[-3] if img.dim() > 2 else 1
    if len(values) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    made = naru.tensor(values, dtype=img.dtype, device=img.device)
    return made.view([-1, 1, 1]) if img.dim() > 2 else made.view([1, 1])


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """A part of the image; pixels outside of the image are 0."""
    full_height, full_width = img.shape[-2:]
    part = img[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    sides = [max(-left, 0), max(-top, 0), max(left + width - max(full_width, left), 0), max(top + height - max(full_height, top), 0)]
    return pad(part, [min(sides[0], width), min(sides[1], height), *sides[2:]], 0, "constant") if any(sides) else part


def sample(img: Tensor, grid: Tensor, mode: InterpolationMode, fill: Any) -> Tensor:
    """Samples the image at the coordinates `grid` (1, h, w, 2); outside it is `fill`, or 0 if that is None."""
    batch, undo = _as_batch(img, (naru.float32, naru.float64))
    grid = grid.to(batch.dtype).expand([batch.shape[0], *grid.shape[1:]])
    if fill is None:
        return undo(grid_sample(batch, grid, mode=mode.value, padding_mode="zeros", align_corners=False))
    # The fraction of each sample that comes from inside the image.
    inside = naru.ones([batch.shape[0], 1, *batch.shape[2:]], dtype=batch.dtype, device=batch.device)
    both = grid_sample(naru.cat([batch, inside], 1), grid, mode=mode.value, padding_mode="zeros", align_corners=False)
    out, inside = both[:, :-1], both[:, -1:]
    values = fill_values(fill, batch)
    if mode is InterpolationMode.NEAREST:
        return undo(naru.where(inside < 0.5, values.expand(out.shape), out))
    return undo(out * inside + (1.0 - inside) * values)


def _check_sampling(mode: InterpolationMode, allowed: tuple[InterpolationMode, ...]) -> None:
    if mode not in allowed:
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")


_NEAREST_OR_LINEAR = (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)


def _affine_grid(theta: list[float], width: int, height: int, out_width: int, out_height: int, like: Tensor) -> Tensor:
    """The source coordinates of each output pixel, for a map (2 x 3, row-major) of pixel coordinates relative to the center."""
    device, dtype = like.device, like.dtype if like.dtype.is_floating_point else naru.float32
    x = naru.linspace(-out_width * 0.5 + 0.5, out_width * 0.5 - 0.5, out_width, dtype=dtype, device=device)
    y = naru.linspace(-out_height * 0.5 + 0.5, out_height * 0.5 - 0.5, out_height, dtype=dtype, device=device)
    size = [out_height, out_width]
    base = naru.stack([x.expand(size), y.view([-1, 1]).expand(size), naru.ones(size, dtype=dtype, device=device)], -1)
    matrix = naru.tensor(theta, dtype=dtype, device=device).view([2, 3])
    scale = naru.tensor([0.5 * width, 0.5 * height], dtype=dtype, device=device)
    return (base.view([-1, 3]) @ (matrix.t() / scale)).view([1, out_height, out_width, 2])


def affine(img: Tensor, matrix: list[float], mode: InterpolationMode, fill: Any) -> Tensor:
    """matrix: the inverse map, from output to input coordinates, relative to the center."""
    _check_sampling(mode, _NEAREST_OR_LINEAR)
    height, width = img.shape[-2:]
    return sample(img, _affine_grid(matrix, width, height, width, height, img), mode, fill)


def expanded_size(matrix: list[float], width: int, height: int) -> tuple[int, int]:
    """(width, height) of the smallest image that contains all of a rotated one."""
    corners = [(x * width * 0.5, y * height * 0.5) for x in (-1, 1) for y in (-1, 1)]
    xs = [matrix[0] * x + matrix[1] * y + matrix[2] + width * 0.5 for x, y in corners]
    ys = [matrix[3] * x + matrix[4] * y + matrix[5] + height * 0.5 for x, y in corners]

    def span(values: list[float]) -> int:
        # Differences below a ten-thousandth of a pixel are rounding errors.
        low, high = (math.trunc(round(v, 5) * 1e4) / 1e4 for v in (min(values), max(values)))
        return math.ceil(high) - math.floor(low)

    return span(xs), span(ys)


def rotate(img: Tensor, matrix: list[float], mode: InterpolationMode, expand: bool, fill: Any) -> Tensor:
    """As `affine`; with `expand` the result is large enough for the whole image."""
    _check_sampling(mode, _NEAREST_OR_LINEAR)
    height, width = img.shape[-2:]
    out = expanded_size(matrix, width, height) if expand else (width, height)
    return sample(img, _affine_grid(matrix, width, height, *out, img), mode, fill)


def perspective(img: Tensor, coefficients: list[float], mode: InterpolationMode, fill: Any) -> Tensor:
    """Output pixel (x, y) is taken from ((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1))."""
    _check_sampling(mode, _NEAREST_OR_LINEAR)
    height, width = img.shape[-2:]
    dtype = img.dtype if img.dtype.is_floating_point else naru.float32
    a, b, c, d, e, f, g, h = coefficients
    x = naru.arange(width, dtype=dtype, device=img.device) + 0.5
    y = (naru.arange(height, dtype=dtype, device=img.device) + 0.5).view([-1, 1])
    below = g * x + h * y + 1.0
    grid = naru.stack([(a * x + b * y + c) / (0.5 * width) / below - 1.0, (d * x + e * y + f) / (0.5 * height) / below - 1.0], -1)
    return sample(img, grid.unsqueeze(0), mode, fill)


def elastic_transform(img: Tensor, displacement: Tensor, mode: InterpolationMode, fill: Any) -> Tensor:
    """displacement: (1, H, W, 2), in `grid_sample` coordinates."""
    _check_sampling(mode, _NEAREST_OR_LINEAR)
    height, width = img.shape[-2:]
    x = naru.linspace(-1 + 1 / width, 1 - 1 / width, width, device=img.device).expand([height, width])
    y = naru.linspace(-1 + 1 / height, 1 - 1 / height, height, device=img.device).view([-1, 1]).expand([height, width])
    grid = naru.stack([x, y], -1).unsqueeze(0) + displacement.to(img.device)
    return sample(img, grid, mode, fill)


def _bell(size: int, sigma: float, like: Tensor) -> Tensor:
    half = (size - 1) * 0.5
    x = naru.linspace(-half, half, size, dtype=like.dtype, device=like.device)
    weights = naru.exp(-0.5 * (x / sigma) ** 2)
    return weights / weights.sum()


def gaussian_blur(img: Tensor, kernel_size: list[int], sigma: list[float]) -> Tensor:
    """kernel_size and sigma: [x, y]. Edges are reflected."""
    batch, undo = _as_batch(img, (naru.float32, naru.float64, naru.float16, naru.bfloat16))
    kernel = _bell(kernel_size[1], sigma[1], batch).view([-1, 1]) * _bell(kernel_size[0], sigma[0], batch)
    x, y = kernel_size[0] // 2, kernel_size[1] // 2
    padded = pad(batch, [x, y, x, y], None, "reflect")
    channels = batch.shape[1]
    return undo(conv2d(padded, kernel.expand([channels, 1, *kernel.shape]), groups=channels))
