"""Losses for boxes and for imbalanced classes."""

from __future__ import annotations

import math
from typing import Any

import naru

from ...nn.functional import binary_cross_entropy_with_logits


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', 'mean', 'sum'")


def sigmoid_focal_loss(inputs: Any, targets: Any, alpha: float = 0.25, gamma: float = 2, reduction: str = "none") -> Any:
    """Binary cross entropy of logits, `inputs`, that gives less weight to well-classified examples (arXiv:1708.02002).

    Args:
        targets: 0 or 1, same shape as `inputs`.
        alpha: weight of the ones; the zeros weigh 1 - alpha. Negative disables weighting. ValueError above 1.
        gamma: focusing exponent: the larger, the less well-classified examples weigh.
        reduction: "none", "mean" or "sum".

    >>> naru.vision.ops.sigmoid_focal_loss(naru.tensor([0.0, 4.0]), naru.tensor([1.0, 1.0]))
    tensor([4.3322e-02, 1.4679e-06])
    """
    if not (0 <= alpha <= 1) and alpha != -1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    p = naru.sigmoid(inputs)
    loss = binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    right = p * targets + (1 - p) * (1 - targets)
    loss = loss * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return _reduced(loss, reduction)


def _pairs(boxes1: Any, boxes2: Any, eps: float) -> tuple[Any, Any, Any]:
    """For corresponding rows of boxes: IoU, union, and the sides of the enclosing boxes (..., 2)."""
    boxes1, boxes2 = (boxes if boxes.dtype.is_floating_point else boxes.float() for boxes in (boxes1, boxes2))
    sides = naru.minimum(boxes1[..., 2:], boxes2[..., 2:]) - naru.maximum(boxes1[..., :2], boxes2[..., :2])
    inter = naru.where((sides > 0).all(-1), sides.prod(-1), naru.zeros_like(sides[..., 0]))
    areas = [(boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]) for boxes in (boxes1, boxes2)]
    union = areas[0] + areas[1] - inter
    hull = naru.maximum(boxes1[..., 2:], boxes2[..., 2:]) - naru.minimum(boxes1[..., :2], boxes2[..., :2])
    return inter / (union + eps), union, hull


def generalized_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """1 - generalized IoU of corresponding rows of `boxes1` and `boxes2` (..., 4). `reduction`: "none", "mean" or "sum". `eps` avoids division by
    0.

    >>> naru.vision.ops.generalized_box_iou_loss(naru.tensor([[0.0, 0, 1, 1]]), naru.tensor([[3.0, 0, 4, 1]]))
    tensor([1.5000])
    """
    iou, union, hull = _pairs(boxes1, boxes2, eps)
    area = hull.prod(-1)
    return _reduced(1 - (iou - (area - union) / (area + eps)), reduction)


def _distance_loss(boxes1: Any, boxes2: Any, eps: float) -> tuple[Any, Any]:
    iou, _, hull = _pairs(boxes1, boxes2, eps)
    middles = [(boxes[..., :2] + boxes[..., 2:]) / 2 for boxes in (boxes1, boxes2)]
    return 1 - iou + ((middles[0] - middles[1]) ** 2).sum(-1) / ((hull**2).sum(-1) + eps), iou


def distance_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """1 - distance IoU of corresponding rows of `boxes1` and `boxes2` (..., 4) (arXiv:1911.08287). `reduction`: "none", "mean" or "sum". `eps`
    avoids division by 0.

    >>> naru.vision.ops.distance_box_iou_loss(naru.tensor([[0.0, 0, 1, 1]]), naru.tensor([[1.0, 1, 2, 2]]))
    tensor([1.2500])
    """
    return _reduced(_distance_loss(boxes1, boxes2, eps)[0], reduction)


def complete_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """1 - complete IoU of corresponding rows of `boxes1` and `boxes2` (..., 4) (arXiv:1911.08287). `reduction`: "none", "mean" or "sum". `eps`
    avoids division by 0.

    >>> naru.vision.ops.complete_box_iou_loss(naru.tensor([[0.0, 0, 2, 2]]), naru.tensor([[0.0, 0, 2, 1]]))
    tensor([0.5345])
    """
    loss, iou = _distance_loss(boxes1, boxes2, eps)
    angles = [naru.atan((boxes[..., 2] - boxes[..., 0]) / (boxes[..., 3] - boxes[..., 1])) for boxes in (boxes1, boxes2)]
    v = 4 / math.pi**2 * (angles[1] - angles[0]) ** 2
    with naru.no_grad():
        alpha = v / (1 - iou + v + eps)
    return _reduced(loss + alpha * v, reduction)
