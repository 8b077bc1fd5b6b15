"""Base classes of image transforms, which first draw their random parameters and then apply them. v1 and v2 differ in what happens between these
two steps."""

from __future__ import annotations

import numbers
from typing import Any

import naru

from ...nn.modules.module import Module
from ._modes import Tensor, dimensions, is_tensor


class ImageTransform(Module):
    """A transform of one image (a PIL image or a tensor (..., C, H, W)) to another."""

    def _draw(self, img: Any) -> Any:
        """Draws the random parameters for an image of this size; None if the transform has none."""
        return None

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        raise NotImplementedError

    def forward(self, img: Any) -> Any:
        return self._apply_to(img, self._draw(img))


class MaybeTransform(ImageTransform):
    """A transform that is applied with probability `p`."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def _draw(self, img: Any) -> bool:
        return naru.rand(1).item() < self.p

    def forward(self, img: Any) -> Any:
        return self._apply_to(img, True) if self._draw(img) else img

    def extra_repr(self) -> str:
        return f"p={self.p}"


def uniform(low: float, high: float) -> float:
    return naru.empty(1).uniform_(low, high).item()


def randint(low: int, high: int) -> int:
    return int(naru.randint(low, high, size=(1,)).item())


def as_size(size: Any, message: str = "Please provide only two dimensions (h, w) for size.") -> tuple[int, int]:
    """(height, width), given an integer or a sequence of one or two."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(message)
    return tuple(size)


def check_sequence(value: Any, name: str, lengths: tuple[int, ...]) -> None:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} should be a sequence of length {' or '.join(map(str, lengths))}.")
    if len(value) not in lengths:
        raise ValueError(f"{name} should be a sequence of length {' or '.join(map(str, lengths))}.")


def as_angles(value: Any, name: str, lengths: tuple[int, ...] = (2,)) -> list[float]:
    """(-value, value) for a non-negative number; a sequence is returned unchanged."""
    if isinstance(value, numbers.Number):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        return [-float(value), float(value)]
    check_sequence(value, name, lengths)
    return [float(v) for v in value]


def fill_for(img: Any, fill: Any) -> Any:
    """The fill color for an image; for tensors, one number per channel."""
    if not is_tensor(img):
        return fill
    channels = dimensions(img)[0]
    return [float(fill)] * channels if isinstance(fill, (int, float)) else [float(value) for value in fill]


__all__ = ["ImageTransform", "MaybeTransform", "Tensor", "as_angles", "as_size", "check_sequence", "fill_for", "randint", "uniform"]
