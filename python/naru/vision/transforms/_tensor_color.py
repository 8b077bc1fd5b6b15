"""Color transforms of tensors (..., C, H, W), RGB or greyscale. White is 1 for floating-point dtypes, else the maximum of the dtype."""

from __future__ import annotations

from typing import Any

import naru

from ...nn.functional import conv2d
from ._functional_tensor import _as_batch
from ._modes import Tensor, dimensions

_MAXIMA = {naru.uint8: 255, naru.int8: 127, naru.int16: 32767, naru.int32: 2147483647, naru.int64: 9223372036854775807}


def max_value(dtype: Any) -> int:
    """The value of white: 1 for floating-point images, the maximum of the dtype for others."""
    return _MAXIMA.get(dtype, 1)


def check_channels(img: Tensor, allowed: tuple[int, ...]) -> None:
    channels = dimensions(img)[0]
    if channels not in allowed:
        raise TypeError(f"Input image tensor permitted channel values are {list(allowed)}, but found {channels}")


def convert_dtype(img: Tensor, dtype: Any) -> Tensor:
    """Converts the image to another dtype and scales its values so that white stays white."""
    source = img.dtype
    if source == dtype:
        return img
    if source.is_floating_point:
        if dtype.is_floating_point:
            return img.to(dtype)
        if (source == naru.float32 and dtype in (naru.int32, naru.int64)) or (source == naru.float64 and dtype == naru.int64):
            raise RuntimeError(f"The cast from {source} to {dtype} cannot be performed safely.")
        # Values are truncated, so each integer gets an equal share of 0..1.
        return (img * (max_value(dtype) + 1.0 - 1e-3)).to(dtype)
    white, wanted = max_value(source), max_value(dtype)
    if dtype.is_floating_point:
        return img.to(dtype) / white
    if white > wanted:
        return naru.div(img, (white + 1) // (wanted + 1), rounding_mode="floor").to(dtype)
    return img.to(dtype) * ((wanted + 1) // (white + 1))


def _blend(img: Tensor, other: Any, ratio: float) -> Tensor:
    mixed = ratio * img.to(naru.float32 if not img.dtype.is_floating_point else img.dtype) + (1.0 - ratio) * other
    return mixed.clamp(0, max_value(img.dtype)).to(img.dtype)


def rgb_to_grayscale(img: Tensor, num_output_channels: int = 1) -> Tensor:
    """The luma of ITU-R 601; integer images are truncated."""
    if img.dim() < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.dim()}")
    check_channels(img, (1, 3))
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if img.shape[-3] == 3:
        red, green, blue = img.unbind(-3)
        img = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    if num_output_channels == 3:
        return img.expand([*img.shape[:-3], 3, *img.shape[-2:]])
    return img.clone()


def adjust_brightness(img: Tensor, factor: float) -> Tensor:
    check_channels(img, (1, 3))
    return _blend(img, 0.0, factor)


def adjust_contrast(img: Tensor, factor: float) -> Tensor:
    check_channels(img, (1, 3))
    grey = rgb_to_grayscale(img) if dimensions(img)[0] == 3 else img
    dtype = img.dtype if img.dtype.is_floating_point else naru.float32
    mean = grey.to(dtype).mean(tuple(range(-min(img.dim(), 3), 0)), keepdim=True)
    return _blend(img, mean, factor)


def adjust_saturation(img: Tensor, factor: float) -> Tensor:
    check_channels(img, (1, 3))
    if dimensions(img)[0] == 1:
        return img
    return _blend(img, rgb_to_grayscale(img), factor)


def adjust_hue(img: Tensor, factor: float) -> Tensor:
    check_channels(img, (1, 3))
    if dimensions(img)[0] == 1:
        return img
    hue, saturation, value = _rgb_to_hsv(convert_dtype(img, naru.float32))
    return convert_dtype(_hsv_to_rgb((hue + factor) % 1.0, saturation, value), img.dtype)


def _rgb_to_hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    red, green, blue = img.unbind(-3)
    high, low = img.amax(-3), img.amin(-3)
    spread = high - low
    grey = high == low
    one = naru.ones_like(high)
    saturation = spread / naru.where(grey, one, high)
    divisor = naru.where(grey, one, spread)
    to_red, to_green, to_blue = (high - red) / divisor, (high - green) / divisor, (high - blue) / divisor
    is_red = high == red
    is_green = (high == green) & ~is_red
    sector = naru.where(is_red, to_blue - to_green, naru.where(is_green, 2.0 + to_red - to_blue, 4.0 + to_green - to_red))
    # A grey pixel has no hue. It becomes 0 here, since all its differences are 0.
    hue = naru.where(grey, naru.zeros_like(sector), sector)
    return (hue / 6.0 + 1.0) % 1.0, saturation, high


def _hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    sector = naru.floor(hue * 6.0)
    rest = hue * 6.0 - sector
    p = (value * (1.0 - saturation)).clamp(0.0, 1.0)
    q = (value * (1.0 - saturation * rest)).clamp(0.0, 1.0)
    t = (value * (1.0 - saturation * (1.0 - rest))).clamp(0.0, 1.0)
    index = (sector.to(naru.int64) % 6).unsqueeze(0)
    # Red, green and blue for each sector of the color circle.
    of_sector = ((value, q, p, p, t, value), (t, value, value, q, p, p), (p, p, t, value, value, q))
    return naru.stack([naru.stack(channel).gather(0, index).squeeze(0) for channel in of_sector], -3)


def adjust_gamma(img: Tensor, gamma: float, gain: float) -> Tensor:
    check_channels(img, (1, 3))
    floating = img if img.dtype.is_floating_point else convert_dtype(img, naru.float32)
    return convert_dtype((gain * floating**gamma).clamp(0, 1), img.dtype)


def adjust_sharpness(img: Tensor, factor: float) -> Tensor:
    check_channels(img, (1, 3))
    if min(img.shape[-2:]) <= 2:
        return img
    batch, undo = _as_batch(img, (naru.float32, naru.float64))
    kernel = naru.ones([3, 3], dtype=batch.dtype, device=batch.device)
    kernel[1, 1] = 5.0
    kernel = (kernel / kernel.sum()).expand([batch.shape[1], 1, 3, 3])
    smooth = batch.clone()
    # Edge pixels have no complete window and stay unchanged.
    smooth[..., 1:-1, 1:-1] = conv2d(batch, kernel, groups=batch.shape[1])
    return _blend(img, undo(smooth), factor)


def invert(img: Tensor) -> Tensor:
    check_channels(img, (1, 3))
    return max_value(img.dtype) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    check_channels(img, (1, 3))
    if img.dtype != naru.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    return img & (256 - (1 << (8 - bits)))


def solarize(img: Tensor, threshold: float) -> Tensor:
    check_channels(img, (1, 3))
    if threshold > max_value(img.dtype):
        raise TypeError("Threshold should be less than bound of img.")
    return naru.where(img >= threshold, max_value(img.dtype) - img, img)


def autocontrast(img: Tensor) -> Tensor:
    check_channels(img, (1, 3))
    white = max_value(img.dtype)
    dtype = img.dtype if img.dtype.is_floating_point else naru.float32
    low, high = img.amin((-2, -1), keepdim=True).to(dtype), img.amax((-2, -1), keepdim=True).to(dtype)
    flat = low == high
    scale = white / naru.where(flat, naru.full_like(high, white), high - low)
    return ((img - naru.where(flat, naru.zeros_like(low), low)) * scale).clamp(0, white).to(img.dtype)


def equalize(img: Tensor) -> Tensor:
    check_channels(img, (1, 3))
    if img.dtype != naru.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    planes = img.reshape([-1, *img.shape[-2:]])
    return naru.stack([_equalize_plane(plane) for plane in planes.unbind(0)]).reshape(img.shape)


def _equalize_plane(plane: Tensor) -> Tensor:
    counts = naru.bincount(plane.reshape([-1]).to(naru.int64), minlength=256)
    used = counts[counts != 0]
    step = int(used[:-1].sum().item()) // 255
    if step == 0:
        return plane
    table = (counts.cumsum(0) + step // 2) // step
    table = naru.cat([naru.zeros([1], dtype=table.dtype, device=table.device), table[:-1]]).clamp(0, 255)
    return table[plane.to(naru.int64)].to(naru.uint8)


def normalize(img: Tensor, mean: Any, std: Any, inplace: bool) -> Tensor:
    if not img.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {img.dtype}.")
    if img.dim() < 3:
        raise ValueError(f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {img.size()}")
    mean, std = (naru.as_tensor(values, dtype=img.dtype, device=img.device) for values in (mean, std))
    if (std == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {img.dtype}, leading to division by zero.")
    mean, std = (values.view([-1, 1, 1]) if values.dim() == 1 else values for values in (mean, std))
    if inplace:
        return img.sub_(mean).div_(std)
    return (img - mean) / std
