"""`torchvision.utils`: image grids, image files and annotations."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import naru

from .._serialization.atomic_file import atomic_file
from . import _names
from ._pil import pillow
from .transforms.functional import pil_to_tensor, to_pil_image

__all__ = ["draw_bounding_boxes", "draw_segmentation_masks", "make_grid", "save_image"]

__getattr__ = _names.module_getattr(__name__)


def _as_images(tensor: Any) -> Any:
    """Converts one image, a batch, or a list of images to (N, C, H, W); greyscale images get three channels."""
    if not isinstance(tensor, naru.Tensor):
        if not isinstance(tensor, (list, tuple)):
            raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
        for image in tensor:
            if not isinstance(image, naru.Tensor):
                raise TypeError(f"tensor or list of tensors expected, got a list containing {type(image)}")
        tensor = naru.stack(list(tensor), 0)
    if tensor.dim() == 2:
        tensor = tensor.unsqueeze(0)
    if tensor.dim() == 3:
        tensor = tensor.unsqueeze(0)
    return naru.cat([tensor] * 3, 1) if tensor.dim() == 4 and tensor.shape[1] == 1 else tensor


def _spread(image: Any, value_range: Any) -> Any:
    low, high = value_range if value_range is not None else (image.min().item(), image.max().item())
    return (image.clamp(low, high) - low) / max(high - low, 1e-5)


@naru.no_grad()
def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """Arranges `tensor` (N, C, H, W), or a list of (C, H, W), into one image (C, H, W) with `nrow` images per row, separated by `padding` pixels of
    `pad_value`.

    Args:
        normalize: scale values to 0..1 from `value_range` (low, high) or, if None, from the minimum and maximum.
        scale_each: normalize each image separately.

    >>> naru.vision.utils.make_grid(naru.ones(2, 1, 1, 1), padding=1)[0]
    tensor([[0., 0., 0., 0., 0.],
            [0., 1., 0., 1., 0.],
            [0., 0., 0., 0., 0.]])
    """
    images = _as_images(tensor)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        images = naru.stack([_spread(image, value_range) for image in images.unbind(0)]) if scale_each else _spread(images, value_range)
    count, channels, height, width = images.shape
    if count == 1:
        return images.squeeze(0)
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = images.new_full([channels, height * rows + padding, width * columns + padding], pad_value)
    for place in range(count):
        top, left = place // columns * height + padding, place % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = images[place]
    return grid


@naru.no_grad()
def save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """Writes `tensor`, an image with values in 0..1 or a batch as a grid, to `fp`, a file object or a path; `kwargs` are passed to `make_grid`.
    `format` defaults to the file name's extension (ValueError if that is missing or unknown).

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.png")
    ...     naru.vision.utils.save_image(naru.ones(1, 1, 2), path)
    ...     naru.vision.io.read_image(path, mode="GRAY")
    tensor([[[255, 255]]], dtype=torch.uint8)
    """
    grid = make_grid(tensor, **kwargs)
    pixels = (grid * 255 + 0.5).clamp(0, 255).permute([1, 2, 0]).to("cpu", naru.uint8).contiguous().numpy()
    image = pillow().fromarray(pixels)
    if hasattr(fp, "write"):
        image.save(fp, format=format)
        return
    suffix = os.path.splitext(os.fspath(fp))[1].lower()
    format = format or pillow().registered_extensions().get(suffix)
    if format is None:
        raise ValueError(f"unknown file extension: {suffix}")
    with atomic_file(fp) as file:
        image.save(file, format=format)


def _palette(count: int) -> list[tuple[int, ...]]:
    return [tuple(i * step % 255 for step in (2**25 - 1, 2**15 - 1, 2**21 - 1)) for i in range(count)]


def _colors(colors: Any, count: int) -> list[tuple[int, ...]]:
    """Expands a color specification (None, one color, or a list) to `count` colors."""
    if colors is None:
        return _palette(count)
    if isinstance(colors, list):
        if len(colors) < count:
            raise ValueError(f"Number of colors must be equal or larger than the number of objects, but got {len(colors)} < {count}.")
    elif not isinstance(colors, (tuple, str)):
        raise ValueError("colors must be a tuple or a string, or a list thereof")
    elif isinstance(colors, tuple) and len(colors) != 3:
        raise ValueError("If passed as tuple, colors should be an RGB triplet")
    else:
        colors = [colors] * count
    return [pillow("ImageColor").getrgb(color) if isinstance(color, str) else color for color in colors[:count]]


def _check_picture(image: Any) -> None:
    if not isinstance(image, naru.Tensor):
        raise TypeError(f"Tensor expected, got {type(image)}")
    if not (image.dtype == naru.uint8 or image.is_floating_point()):
        raise ValueError(f"The image dtype must be uint8 or float, got {image.dtype}")
    if image.dim() != 3:
        raise ValueError("Pass individual images, not batches")


def _font(path: str | None, size: int | None) -> Any:
    fonts = pillow("ImageFont")
    if path is None:
        if size is not None:
            warnings.warn("Argument 'font_size' will be ignored since 'font' is not set.", stacklevel=3)
        return fonts.load_default()
    return fonts.truetype(font=path, size=size or 10)


@naru.no_grad()
def draw_bounding_boxes(
    image: Any,
    boxes: Any,
    labels: list[str] | None = None,
    colors: Any = None,
    fill: bool | None = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
    label_colors: Any = None,
) -> Any:
    """Draws `boxes` (N, 4), rows of (x1, y1, x2, y2), on the `image` (1 or 3, H, W; uint8, or floating point in 0..1). Returns an image with three
    channels.

    Args:
        labels: a text for each box, or None for none.
        colors: color names or RGB triplets, one for all boxes or a list; None: a palette.
        fill: fill the boxes with a translucent color.
        width: line width, in pixels.
        font, font_size: a TrueType file, and the font size.
        label_colors: colors of the labels, given like `colors`; None: those of the boxes.

    >>> x = naru.zeros(1, 4, 4, dtype=naru.uint8)
    >>> naru.vision.utils.draw_bounding_boxes(x, naru.tensor([[0, 0, 2, 2]]), colors="red")[0]
    tensor([[255, 255, 255,   0],
            [255,   0, 255,   0],
            [255, 255, 255,   0],
            [  0,   0,   0,   0]], dtype=torch.uint8)
    """
    _check_picture(image)
    if image.shape[0] not in (1, 3):
        raise ValueError("Only grayscale and RGB images are supported")
    if boxes.numel() and ((boxes[:, 0] > boxes[:, 2]).any() or (boxes[:, 1] > boxes[:, 3]).any()):
        raise ValueError("Boxes need to be in (xmin, ymin, xmax, ymax) format. Use torchvision.ops.box_convert to convert them")
    count = boxes.shape[0]
    if count == 0:
        warnings.warn("boxes doesn't contain any box. No box was drawn", stacklevel=2)
        return image
    if labels is not None and len(labels) != count:
        raise ValueError(f"The number of boxes ({count}) and labels ({len(labels)}) mismatch. Please specify labels for each box.")
    texts = [None] * count if labels is None else labels
    chosen = _colors(colors, count)
    inks = _colors(label_colors, count) if label_colors is not None else chosen
    floating = image.is_floating_point()
    picture = to_pil_image(image if not floating else image.clamp(0, 1)).convert("RGB")
    draw = pillow("ImageDraw").Draw(picture, "RGBA" if fill else None)
    face = _font(font, font_size) if labels is not None else None
    for box, color, ink, text in zip(boxes.long().tolist(), chosen, inks, texts):
        draw.rectangle(box, width=width, outline=color, fill=(*color, 100) if fill else None)
        if text is not None:
            draw.text((box[0] + width + 1, box[1] + width + 1), text, fill=ink, font=face)
    out = pil_to_tensor(picture).to(image.device)
    return out.to(image.dtype) / 255 if floating else out


@naru.no_grad()
def draw_segmentation_masks(image: Any, masks: Any, alpha: float = 0.8, colors: Any = None) -> Any:
    """Draws bool `masks` (H, W) or (N, H, W) over the `image` (3, H, W; uint8, or floating point in 0..1). Pixels in several masks are black.
    `alpha` 0 shows only the image, 1 only the masks. `colors`: color names or RGB triplets, one for all masks or a list; None: a palette.

    >>> mask = naru.tensor([[True, False]])
    >>> naru.vision.utils.draw_segmentation_masks(naru.zeros(3, 1, 2), mask, alpha=1.0, colors="red")[:, 0, 0]
    tensor([1., 0., 0.])
    """
    _check_picture(image)
    if image.shape[0] != 3:
        raise ValueError("Pass an RGB image. Other Image formats are not supported")
    masks = masks[None] if masks.dim() == 2 else masks
    if masks.dim() != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype != naru.bool:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("The image and the masks must have the same height and width")
    floating = image.is_floating_point()
    layer = image.clone()
    for mask, color in zip(masks.unbind(0), _colors(colors, masks.shape[0])):
        ink = naru.tensor(color, dtype=naru.float32, device=image.device).view([3, 1, 1])
        layer = naru.where(mask, (ink / 255 if floating else ink).to(image.dtype).expand(image.shape), layer)
    layer = naru.where(masks.sum(0) > 1, naru.zeros_like(layer), layer)
    return (image * (1 - alpha) + layer * alpha).to(image.dtype)
