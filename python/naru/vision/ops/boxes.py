"""Box operators. A box is a row (x1, y1, x2, y2) with 0 <= x1 < x2 and 0 <= y1 < y2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import naru

from .. import _names

__getattr__ = _names.module_getattr(__name__)

_FORMATS = ("xyxy", "xywh", "cxcywh")


def _check(name: str, boxes: Any) -> None:
    if boxes.dim() != 2 or boxes.shape[-1] != 4:
        raise RuntimeError(f"boxes should be a 2d tensor of shape (N, 4), got {tuple(boxes.shape)} ({name})")


def _greedy(boxes: Any, scores: Any, groups: Any, threshold: float) -> Any:
    """Greedy non-maximum suppression: indices of the kept boxes, best first. A box is dropped if its IoU with a kept box of its group exceeds
    `threshold`.

    Runs on the host: each decision depends on the boxes kept before it."""
    _check("nms", boxes)
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D (nms)")
    if boxes.shape[0] != scores.shape[0]:
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {boxes.shape[0]} and {scores.shape[0]} (nms)"
        )
    half = boxes.dtype in (naru.float16, naru.bfloat16)
    order = naru.argsort(scores.detach(), descending=True, stable=True).cpu().numpy()
    table = (boxes.float() if half else boxes).detach().cpu().numpy()[order]
    group = None if groups is None else groups.detach().cpu().numpy()[order]
    left, top, right, bottom = table.T
    areas = (right - left) * (bottom - top)
    kept = []
    rest = np.arange(len(order))
    while len(rest):
        best, rest = rest[0], rest[1:]
        kept.append(order[best])
        width = np.maximum(np.minimum(right[best], right[rest]) - np.maximum(left[best], left[rest]), 0)
        height = np.maximum(np.minimum(bottom[best], bottom[rest]) - np.maximum(top[best], top[rest]), 0)
        common = width * height
        with np.errstate(divide="ignore", invalid="ignore"):
            gone = common / (areas[best] + areas[rest] - common) > threshold
        if group is not None:
            gone &= group[rest] == group[best]
        rest = rest[~gone]
    return naru.tensor([int(place) for place in kept], dtype=naru.int64, device=boxes.device)


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Non-maximum suppression: the indices of the kept boxes, highest score first. A box is dropped if its IoU with a kept one exceeds
    `iou_threshold`.

    `boxes` (N, 4), `scores` (N); returns int64 indices. Raises RuntimeError for other shapes. Computed on the host.

    >>> nms(naru.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]]), naru.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2])
    """
    return _greedy(boxes, scores, None, iou_threshold)


def batched_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """`nms` of `boxes` (N, 4) with `scores` (N) and `iou_threshold`, separately for each class; `idxs` (N): the class of each box.

    >>> boxes = naru.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9]])
    >>> naru.vision.ops.batched_nms(boxes, naru.tensor([0.5, 0.9]), naru.tensor([0, 1]), 0.5)
    tensor([1, 0])
    """
    return _greedy(boxes, scores, idxs, iou_threshold)


def remove_small_boxes(boxes: Any, min_size: float) -> Any:
    """The indices of the `boxes` (N, 4) whose sides are both at least `min_size`.

    >>> naru.vision.ops.remove_small_boxes(naru.tensor([[0.0, 0, 1, 9], [0, 0, 3, 3]]), 2)
    tensor([1])
    """
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return naru.where((width >= min_size) & (height >= min_size))[0]


def clip_boxes_to_image(boxes: Any, size: tuple[int, int]) -> Any:
    """The `boxes` (..., 4) clipped to an image of `size` (height, width).

    >>> naru.vision.ops.clip_boxes_to_image(naru.tensor([[-1.0, 2, 9, 3]]), (4, 5))
    tensor([[0., 2., 5., 3.]])
    """
    height, width = size
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return naru.stack([x, y], -1).reshape(boxes.shape)


def box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
    """Converts `boxes` (..., 4) from `in_fmt` to `out_fmt`; both are 'xyxy', 'xywh' (corner and size) or 'cxcywh' (center and size). Raises
    ValueError for other formats.

    >>> box_convert(naru.tensor([[1.0, 2, 3, 6]]), "xyxy", "cxcywh")
    tensor([[2., 4., 2., 4.]])
    """
    if in_fmt not in _FORMATS or out_fmt not in _FORMATS:
        raise ValueError(f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}: only {', '.join(_FORMATS)} are")
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        c, d = a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        c, d = c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return naru.stack([a, b, c, d], -1)


def _computable(boxes: Any) -> Any:
    """Converts boxes to a dtype in which areas do not overflow."""
    if boxes.dtype.is_floating_point:
        return boxes if boxes.dtype in (naru.float32, naru.float64) else boxes.float()
    return boxes if boxes.dtype in (naru.int32, naru.int64) else boxes.int()


def box_area(boxes: Any, fmt: str = "xyxy") -> Any:
    """Returns (N): width times height of `boxes` (N, 4) in the format `fmt`.

    >>> naru.vision.ops.box_area(naru.tensor([[1.0, 2, 3, 6]]))
    tensor([8.])
    """
    boxes = _computable(boxes)
    if fmt == "xyxy":
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    if fmt in _FORMATS:
        return boxes[..., 2] * boxes[..., 3]
    raise ValueError(f"Unsupported Bounding Box area for given format {fmt}: only {', '.join(_FORMATS)} are")


def _inter_union(boxes1: Any, boxes2: Any) -> tuple[Any, Any]:
    """Intersection and union areas, (..., N, M) each."""
    areas1, areas2 = box_area(boxes1), box_area(boxes2)
    boxes1, boxes2 = _computable(boxes1), _computable(boxes2)
    low = naru.maximum(boxes1[..., None, :2], boxes2[..., None, :, :2])
    high = naru.minimum(boxes1[..., None, 2:], boxes2[..., None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    return inter, areas1[..., None] + areas2[..., None, :] - inter


def box_iou(boxes1: Any, boxes2: Any, fmt: str = "xyxy") -> Any:
    """Returns (N, M): intersection over union of each of `boxes1` (N, 4) with each of `boxes2` (M, 4). `fmt`: the format of both, as for
    `box_convert`.

    >>> naru.vision.ops.box_iou(naru.tensor([[0.0, 0, 2, 2]]), naru.tensor([[0.0, 0, 2, 1], [5, 5, 6, 6]]))
    tensor([[0.5000, 0.0000]])
    """
    if fmt != "xyxy":
        boxes1, boxes2 = box_convert(boxes1, fmt, "xyxy"), box_convert(boxes2, fmt, "xyxy")
    inter, union = _inter_union(boxes1, boxes2)
    return inter / union


def _hull(boxes1: Any, boxes2: Any) -> Any:
    """Returns (..., N, M, 2): sides of the smallest box that encloses each pair."""
    low = naru.minimum(boxes1[..., None, :2], boxes2[..., None, :, :2])
    high = naru.maximum(boxes1[..., None, 2:], boxes2[..., None, :, 2:])
    return (high - low).clamp(min=0)


def generalized_box_iou(boxes1: Any, boxes2: Any) -> Any:
    """Returns (N, M): box_iou of `boxes1` (N, 4) and `boxes2` (M, 4), minus the fraction of the smallest enclosing box that neither covers.

    >>> naru.vision.ops.generalized_box_iou(naru.tensor([[0.0, 0, 1, 1]]), naru.tensor([[0.0, 0, 1, 1], [3, 0, 4, 1]]))
    tensor([[ 1.0000, -0.5000]])
    """
    inter, union = _inter_union(boxes1, boxes2)
    area = _hull(_computable(boxes1), _computable(boxes2)).prod(-1)
    return inter / union - (area - union) / area


def _distance(boxes1: Any, boxes2: Any, eps: float) -> Any:
    boxes1, boxes2 = _computable(boxes1), _computable(boxes2)
    diagonal = (_hull(boxes1, boxes2) ** 2).sum(-1) + eps
    middle1, middle2 = (boxes1[..., :2] + boxes1[..., 2:]) / 2, (boxes2[..., :2] + boxes2[..., 2:]) / 2
    return ((middle1[..., None, :] - middle2[..., None, :, :]) ** 2).sum(-1) / diagonal


def distance_box_iou(boxes1: Any, boxes2: Any, eps: float = 1e-7) -> Any:
    """Returns (N, M): box_iou of `boxes1` (N, 4) and `boxes2` (M, 4), minus the squared distance of the centers over the squared diagonal of the
    smallest enclosing box (plus `eps`).

    >>> naru.vision.ops.distance_box_iou(naru.tensor([[0.0, 0, 1, 1]]), naru.tensor([[0.0, 0, 1, 1], [1, 1, 2, 2]]))
    tensor([[ 1.0000, -0.2500]])
    """
    return box_iou(boxes1, boxes2) - _distance(boxes1, boxes2, eps)


def complete_box_iou(boxes1: Any, boxes2: Any, eps: float = 1e-7) -> Any:
    """Returns (N, M): distance_box_iou of `boxes1` (N, 4) and `boxes2` (M, 4), minus a term for the difference in aspect ratio. `eps` avoids
    division by 0.

    >>> naru.vision.ops.complete_box_iou(naru.tensor([[0.0, 0, 2, 2]]), naru.tensor([[0.0, 0, 2, 1]]))
    tensor([[0.4655]])
    """
    iou = box_iou(boxes1, boxes2)
    angles = [naru.atan((boxes[..., 2] - boxes[..., 0]) / (boxes[..., 3] - boxes[..., 1])) for boxes in (boxes1, boxes2)]
    v = 4 / math.pi**2 * (angles[0][..., None] - angles[1][..., None, :]) ** 2
    with naru.no_grad():
        alpha = v / (1 - iou + v + eps)
    return iou - _distance(boxes1, boxes2, eps) - alpha * v


def masks_to_boxes(masks: Any) -> Any:
    """Returns (N, 4) float32: the bounding boxes of `masks` (N, H, W). x2 and y2 are the last pixel inside, not one past it.

    >>> naru.vision.ops.masks_to_boxes(naru.tensor([[[0, 1, 1], [0, 0, 1]]]))
    tensor([[1., 0., 2., 1.]])
    """
    if masks.numel() == 0:
        return naru.zeros([0, 4], device=masks.device)
    rows = []
    for mask in masks.unbind(0):
        y, x = naru.where(mask != 0)
        rows.append(naru.stack([x.min(), y.min(), x.max(), y.max()]))
    return naru.stack(rows).float()
