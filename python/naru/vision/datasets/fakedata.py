"""A dataset of random noise images."""

from __future__ import annotations

from typing import Any

import naru

from .. import _names
from ..transforms.functional import to_pil_image
from .vision import StandardTransform, VisionDataset

__getattr__ = _names.module_getattr(__name__)


class FakeData(VisionDataset):
    """Pairs of (PIL image of normally distributed noise, class). An index always gives the same image, whatever was drawn before.

    `size`: number of images; `image_size`: shape (C, H, W) of each; `num_classes`: number of classes; `transform`, `target_transform`: applied to
    image and class; `random_offset`: added to the index to get the random seed.

    >>> data = naru.vision.datasets.FakeData(size=4, image_size=(3, 8, 8), num_classes=2)
    >>> len(data), data[1][0].size, data[1][1] == data[1][1]
    (4, (8, 8), True)
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: Any = (3, 224, 224),
        num_classes: int = 10,
        transform: Any = None,
        target_transform: Any = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes, self.random_offset = size, image_size, num_classes, random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        before = naru.get_rng_state()
        try:
            naru.manual_seed(index + self.random_offset)
            image = naru.randn(*self.image_size)
            target = int(naru.randint(0, self.num_classes, size=(1,)).item())
        finally:
            naru.set_rng_state(before)
        image = to_pil_image(image)
        return StandardTransform(self.transform, self.target_transform)(image, target)

    def __len__(self) -> int:
        return self.size
