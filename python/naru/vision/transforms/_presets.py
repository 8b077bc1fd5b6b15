"""Image preprocessing for networks."""

from __future__ import annotations

from typing import Any

import naru

from ...nn.modules.module import Module
from . import functional as F
from ._modes import InterpolationMode, Tensor


class ImageClassification(Module):
    """Resizes, crops the center, and normalizes a PIL image or a tensor."""

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: Any = (0.485, 0.456, 0.406),
        std: Any = (0.229, 0.224, 0.225),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std = list(mean), list(std)
        self.interpolation, self.antialias = interpolation, antialias

    def forward(self, img: Any) -> Tensor:
        img = F.center_crop(F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias), self.crop_size)
        if not isinstance(img, Tensor):
            img = F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img, naru.float32), self.mean, self.std)
