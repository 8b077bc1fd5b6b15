"""Resampling of regions of interest."""

from __future__ import annotations

from typing import Any

import naru

from ...nn.modules import Module
from .. import _names

__getattr__ = _names.module_getattr(__name__)


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def as_rois(boxes: Any) -> Any:
    """Returns `boxes` as (K, 5), with the image index in the first column. Accepts such a tensor, or a list of (L, 4) tensors, one per image.
    Raises ValueError or TypeError for anything else.

    >>> from naru.vision.ops.roi_align import as_rois
    >>> as_rois([naru.tensor([[0.0, 0, 1, 1]]), naru.tensor([[2.0, 2, 3, 3]])])
    tensor([[0., 0., 0., 1., 1.],
            [1., 2., 2., 3., 3.]])
    """
    if isinstance(boxes, (list, tuple)):
        if any(b.dim() != 2 or b.shape[1] != 4 for b in boxes):
            raise ValueError("The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]].")
        numbers = [naru.full([b.shape[0], 1], float(i), dtype=b.dtype, device=b.device) for i, b in enumerate(boxes)]
        return naru.cat([naru.cat([n, b], 1) for n, b in zip(numbers, boxes)], 0)
    if not isinstance(boxes, naru.Tensor):
        raise TypeError("boxes is expected to be a Tensor[L, 5] or a List[Tensor[K, 4]]")
    if boxes.dim() != 2 or boxes.shape[1] != 5:
        raise ValueError("The boxes tensor shape is not correct as Tensor[K, 5]")
    return boxes


def _weights(place: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """Linear interpolation along one axis: the two neighbors of each position and their weights, which are 0 more than one pixel outside."""
    inside = (place >= -1.0) & (place <= size)
    place = place.clamp(min=0)
    low = place.floor().clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    share = naru.where(low >= size - 1, naru.zeros_like(place), place - low)
    return low.long(), high.long(), (1.0 - share) * inside, share * inside


def _sampled(pixels: Any, image: Any, y: Any, x: Any, counts: tuple[int, int]) -> Any:
    """pixels (N, H, W, C); y (K, h * counts[0]), x (K, w * counts[1]); returns (K, C, h, w), the mean of the samples in each bin."""
    y_low, y_high, wy_low, wy_high = _weights(y, pixels.shape[1])
    x_low, x_high, wx_low, wx_high = _weights(x, pixels.shape[2])
    total = 0.0
    for rows, by_row in ((y_low, wy_low), (y_high, wy_high)):
        for columns, by_column in ((x_low, wx_low), (x_high, wx_high)):
            values = pixels[image[:, None, None], rows[:, :, None], columns[:, None, :]]
            total = total + values * (by_row[:, :, None] * by_column[:, None, :]).unsqueeze(-1)
    k, height, width, channels = total.shape
    parts = total.reshape([k, height // counts[0], counts[0], width // counts[1], counts[1], channels])
    return parts.mean([2, 4]).permute([0, 3, 1, 2])


def roi_align(
    input: Any, boxes: Any, output_size: Any, spatial_scale: float = 1.0, sampling_ratio: int = -1, aligned: bool = False
) -> Any:
    """Returns (K, C, h, w): each region of `input` (N, C, H, W) is divided into bins, and each bin is the mean of bilinear samples.

    Args:
        boxes: (K, 5), with the image index in the first column, or a list of (L, 4) tensors, one per image.
        output_size: (h, w), or an integer for both.
        spatial_scale: multiplies the box coordinates to get pixels of `input`.
        sampling_ratio: samples per bin side. If not positive, one sample per pixel; the host then has to read the boxes.
        aligned: shift coordinates by half a pixel, so that they refer to pixel centers.

    >>> x = naru.arange(16.0).reshape(1, 1, 4, 4)
    >>> naru.vision.ops.roi_align(x, [naru.tensor([[0.0, 0, 2, 2]])], 1, sampling_ratio=1)
    tensor([[[[5.]]]])
    """
    rois = as_rois(boxes)
    bins = _pair(output_size)
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        )
    if rois.shape[0] == 0:
        return input.new_zeros([0, input.shape[1], *bins]) + 0.0 * input.sum()
    image = rois[:, 0].long()
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)).unbind(1)
    width, height = x2 - x1, y2 - y1
    if not aligned:
        width, height = width.clamp(min=1.0), height.clamp(min=1.0)
    pixels = input.permute([0, 2, 3, 1])

    def of(chosen: Any, counts: tuple[int, int]) -> Any:
        places = []
        for start, side, number, count in ((y1, height, bins[0], counts[0]), (x1, width, bins[1], counts[1])):
            steps = (naru.arange(number * count, dtype=rois.dtype, device=rois.device) + 0.5) / count
            places.append(start[chosen, None] + steps * (side[chosen, None] / number))
        return _sampled(pixels, image[chosen], *places, counts)

    if sampling_ratio > 0:
        return of(slice(None), (sampling_ratio, sampling_ratio))
    counts = naru.stack([(height / bins[0]).ceil(), (width / bins[1]).ceil()], 1).clamp(min=0).long().tolist()
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (down, across) in enumerate(counts):
        groups.setdefault((down, across), []).append(place)
    # Bins without samples are 0.
    parts = [
        of(naru.tensor(places, device=rois.device), count)
        if min(count) > 0
        else input.new_zeros([len(places), input.shape[1], *bins])
        for count, places in groups.items()
    ]
    back = naru.argsort(naru.tensor([place for places in groups.values() for place in places]))
    return naru.cat(parts, 0)[back.to(input.device)]


class RoIAlign(Module):
    """`roi_align` as a layer, with `output_size`, `spatial_scale`, `sampling_ratio` and `aligned`.

    >>> x = naru.arange(16.0).reshape(1, 1, 4, 4)
    >>> naru.vision.ops.RoIAlign(1, 1.0, 1)(x, [naru.tensor([[0.0, 0, 2, 2]])])
    tensor([[[[5.]]]])
    """

    def __init__(self, output_size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def forward(self, input: Any, rois: Any) -> Any:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def extra_repr(self) -> str:
        names = ("output_size", "spatial_scale", "sampling_ratio", "aligned")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)
