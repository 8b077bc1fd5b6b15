"""`torchvision.ops`: boxes, regions of interest, losses and layers. They are composed of naru's operators, so they run on every device and have
gradients."""

from __future__ import annotations

from typing import Any

from ..._functions.operators import OPERATORS as _OPERATORS
from .. import _names
from . import boxes, misc
from .boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
    masks_to_boxes,
    nms,
    remove_small_boxes,
)
from .losses import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss, sigmoid_focal_loss
from .misc import MLP, Conv2dNormActivation, Conv3dNormActivation, FrozenBatchNorm2d, Permute, SqueezeExcitation
from .roi_align import RoIAlign, roi_align
from .stochastic_depth import StochasticDepth, stochastic_depth

__all__ = [
    "Conv2dNormActivation", "Conv3dNormActivation", "FrozenBatchNorm2d", "MLP", "Permute", "RoIAlign", "SqueezeExcitation", "StochasticDepth",
    "batched_nms", "box_area", "box_convert", "box_iou", "boxes", "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss",
    "distance_box_iou", "distance_box_iou_loss", "generalized_box_iou", "generalized_box_iou_loss", "masks_to_boxes", "misc", "nms",
    "remove_small_boxes", "roi_align", "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip



def _roi_align_by_sizes(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int = -1, aligned: bool = False
) -> Any:
    return roi_align(input, rois, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned)


# torchvision's operators by the names under which programs call them: torch.ops.torchvision.nms.
_OPERATORS.setdefault("torchvision::nms", nms)
_OPERATORS.setdefault("torchvision::roi_align", _roi_align_by_sizes)

__getattr__ = _names.module_getattr(__name__)
