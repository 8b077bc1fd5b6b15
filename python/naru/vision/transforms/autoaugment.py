"""Transforms that apply other transforms at random: AutoAugment (arXiv:1805.09501), RandAugment (1909.13719), TrivialAugment (2103.10158)."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import naru

from .. import _names
from . import functional as F
from ._base import ImageTransform, fill_for
from ._modes import InterpolationMode, dimensions

__all__ = ["AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]

__getattr__ = _names.module_getattr(__name__)

_NEAREST = InterpolationMode.NEAREST

# The policies from the paper. Each has two steps: (operation, probability, index of one of ten magnitudes).
_IMAGENET = """
    Posterize 0.4 8 + Rotate 0.6 9; Solarize 0.6 5 + AutoContrast 0.6 -; Equalize 0.8 - + Equalize 0.6 -
    Posterize 0.6 7 + Posterize 0.6 6; Equalize 0.4 - + Solarize 0.2 4; Equalize 0.4 - + Rotate 0.8 8
    Solarize 0.6 3 + Equalize 0.6 -; Posterize 0.8 5 + Equalize 1.0 -; Rotate 0.2 3 + Solarize 0.6 8
    Equalize 0.6 - + Posterize 0.4 6; Rotate 0.8 8 + Color 0.4 0; Rotate 0.4 9 + Equalize 0.6 -
    Equalize 0.0 - + Equalize 0.8 -; Invert 0.6 - + Equalize 1.0 -; Color 0.6 4 + Contrast 1.0 8
    Rotate 0.8 8 + Color 1.0 2; Color 0.8 8 + Solarize 0.8 7; Sharpness 0.4 7 + Invert 0.6 -
    ShearX 0.6 5 + Equalize 1.0 -; Color 0.4 0 + Equalize 0.6 -; Equalize 0.4 - + Solarize 0.2 4
    Solarize 0.6 5 + AutoContrast 0.6 -; Invert 0.6 - + Equalize 1.0 -; Color 0.6 4 + Contrast 1.0 8
    Equalize 0.8 - + Equalize 0.6 -
"""
_CIFAR10 = """
    Invert 0.1 - + Contrast 0.2 6; Rotate 0.7 2 + TranslateX 0.3 9; Sharpness 0.8 1 + Sharpness 0.9 3
    ShearY 0.5 8 + TranslateY 0.7 9; AutoContrast 0.5 - + Equalize 0.9 -; ShearY 0.2 7 + Posterize 0.3 7
    Color 0.4 3 + Brightness 0.6 7; Sharpness 0.3 9 + Brightness 0.7 9; Equalize 0.6 - + Equalize 0.5 -
    Contrast 0.6 7 + Sharpness 0.6 5; Color 0.7 7 + TranslateX 0.5 8; Equalize 0.3 - + AutoContrast 0.4 -
    TranslateY 0.4 3 + Sharpness 0.2 6; Brightness 0.9 6 + Color 0.2 8; Solarize 0.5 2 + Invert 0.0 -
    Equalize 0.2 - + AutoContrast 0.6 -; Equalize 0.2 - + Equalize 0.6 -; Color 0.9 9 + Equalize 0.6 -
    AutoContrast 0.8 - + Solarize 0.2 8; Brightness 0.1 3 + Color 0.7 0; Solarize 0.4 5 + AutoContrast 0.9 -
    TranslateY 0.9 9 + TranslateY 0.7 9; AutoContrast 0.9 - + Solarize 0.8 3; Equalize 0.8 - + Invert 0.1 -
    TranslateY 0.7 9 + AutoContrast 0.9 -
"""
_SVHN = """
    ShearX 0.9 4 + Invert 0.2 -; ShearY 0.9 8 + Invert 0.7 -; Equalize 0.6 - + Solarize 0.6 6
    Invert 0.9 - + Equalize 0.6 -; Equalize 0.6 - + Rotate 0.9 3; ShearX 0.9 4 + AutoContrast 0.8 -
    ShearY 0.9 8 + Invert 0.4 -; ShearY 0.9 5 + Solarize 0.2 6; Invert 0.9 - + AutoContrast 0.8 -
    Equalize 0.6 - + Rotate 0.9 3; ShearX 0.9 4 + Solarize 0.3 3; ShearY 0.8 8 + Invert 0.7 -
    Equalize 0.9 - + TranslateY 0.6 6; Invert 0.9 - + Equalize 0.6 -; Contrast 0.3 3 + Rotate 0.8 4
    Invert 0.8 - + TranslateY 0.0 2; ShearY 0.7 6 + Solarize 0.4 8; Invert 0.6 - + Rotate 0.8 4
    ShearY 0.3 7 + TranslateX 0.9 3; ShearX 0.1 6 + Invert 0.6 -; Solarize 0.7 2 + TranslateY 0.6 7
    ShearY 0.8 4 + Invert 0.8 -; ShearX 0.7 9 + TranslateY 0.8 3; ShearY 0.8 5 + AutoContrast 0.7 -
    ShearX 0.7 2 + Invert 0.1 -
"""

class AutoAugmentPolicy(Enum):
    """The dataset that a policy was found on.

    >>> [policy.value for policy in naru.vision.transforms.AutoAugmentPolicy]
    ['imagenet', 'cifar10', 'svhn']
    """

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


_TABLES = {AutoAugmentPolicy.IMAGENET: _IMAGENET, AutoAugmentPolicy.CIFAR10: _CIFAR10, AutoAugmentPolicy.SVHN: _SVHN}


def _policies(table: str) -> list[list[tuple[str, float, int | None]]]:
    found = []
    for line in table.replace(";", "\n").split("\n"):
        if line.strip():
            steps = (step.split() for step in line.split("+"))
            found.append([(name, float(p), None if place == "-" else int(place)) for name, p, place in steps])
    return found


def apply_step(img: Any, name: str, magnitude: float, interpolation: Any, fill: Any) -> Any:
    """Applies the operation `name`."""
    if name in ("ShearX", "ShearY", "TranslateX", "TranslateY"):
        shear, moved = [0.0, 0.0], [0, 0]
        axis = 0 if name.endswith("X") else 1
        if name.startswith("Shear"):
            shear[axis] = math.degrees(math.atan(magnitude))
        else:
            moved[axis] = int(magnitude)
        center = [0, 0] if name.startswith("Shear") else None
        return F.affine(img, 0.0, moved, 1.0, shear, interpolation, fill, center)
    if name == "Rotate":
        return F.rotate(img, magnitude, interpolation, fill=fill)
    if name in _FACTORS:
        return _FACTORS[name](img, 1.0 + magnitude)
    if name == "Posterize":
        return F.posterize(img, int(magnitude))
    if name == "Solarize":
        white = 255 if getattr(img, "dtype", naru.uint8) == naru.uint8 else 1
        return F.solarize(img, magnitude * white / 255)
    return _PLAIN[name](img)


_FACTORS = {"Brightness": F.adjust_brightness, "Color": F.adjust_saturation, "Contrast": F.adjust_contrast, "Sharpness": F.adjust_sharpness}
_PLAIN = {"AutoContrast": F.autocontrast, "Equalize": F.equalize, "Invert": F.invert, "Identity": lambda img: img}


def _space(bins: int, shear: float, across: float, down: float, turn: float, factor: float, bits: float, invert: bool) -> dict[str, Any]:
    """For each operation its magnitudes (None if it has none), and whether their sign is random."""

    def rising(top: float) -> Any:
        return naru.linspace(0.0, top, bins), True

    space: dict[str, Any] = {} if invert else {"Identity": (None, False)}
    space |= {"ShearX": rising(shear), "ShearY": rising(shear), "TranslateX": rising(across), "TranslateY": rising(down), "Rotate": rising(turn)}
    space |= dict.fromkeys(_FACTORS, rising(factor))
    space["Posterize"] = (8 - (naru.arange(bins) / ((bins - 1) / bits)).round().int(), False)
    space["Solarize"] = (naru.linspace(255.0, 0.0, bins), False)
    space |= dict.fromkeys(("AutoContrast", "Equalize", "Invert") if invert else ("AutoContrast", "Equalize"), (None, False))
    return space


class _Chosen(ImageTransform):
    """Base class: draws a list of (operation, magnitude)."""

    def __init__(self, interpolation: Any, fill: Any) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        for name, magnitude in drawn:
            img = apply_step(img, name, magnitude, self.interpolation, None if self.fill is None else fill_for(img, self.fill))
        return img


class AutoAugment(_Chosen):
    """Applies a random sub-policy of `policy` to uint8 images. `interpolation`: for rotations and shears; `fill`: the color outside of the image.

    >>> x = naru.full((3, 8, 8), 128, dtype=naru.uint8)
    >>> naru.vision.transforms.AutoAugment()(x).shape
    torch.Size([3, 8, 8])
    """

    def __init__(self, policy: Any = AutoAugmentPolicy.IMAGENET, interpolation: Any = _NEAREST, fill: Any = None) -> None:
        super().__init__(interpolation, fill)
        if policy not in _TABLES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self.policy = policy
        self.policies = _policies(_TABLES[policy])

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Any, Any]:
        """Returns (sub-policy index, a number in 0..1 for each step, a sign for each step)."""
        return int(naru.randint(transform_num, (1,)).item()), naru.rand((2,)), naru.randint(2, (2,))

    def _magnitudes(self, img: Any) -> dict[str, Any]:
        _, height, width = dimensions(img)
        return _space(10, 0.3, 150.0 / 331.0 * width, 150.0 / 331.0 * height, 30.0, 0.9, 4, True)

    def _draw(self, img: Any) -> list[tuple[str, float]]:
        which, chances, signs = self.get_params(len(self.policies))
        space, steps = self._magnitudes(img), []
        for (name, p, place), chance, sign in zip(self.policies[which], chances.tolist(), signs.tolist()):
            if chance <= naru.tensor(p).item():
                values, signed = space[name]
                magnitude = 0.0 if place is None else float(values[place].item())
                steps.append((name, -magnitude if signed and sign == 0 else magnitude))
        return steps

    def extra_repr(self) -> str:
        return f"policy={self.policy}, fill={self.fill}"


class RandAugment(_Chosen):
    """Applies `num_ops` random operations of magnitude `magnitude` out of `num_magnitude_bins`. `interpolation`: for rotations and shears; `fill`:
    the color outside of the image.

    >>> x = naru.full((3, 8, 8), 128, dtype=naru.uint8)
    >>> naru.equal(naru.vision.transforms.RandAugment(num_ops=0)(x), x)
    True
    """

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Any = _NEAREST, fill: Any = None
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def _magnitudes(self, img: Any) -> dict[str, Any]:
        _, height, width = dimensions(img)
        return _space(self.num_magnitude_bins, 0.3, 150.0 / 331.0 * width, 150.0 / 331.0 * height, 30.0, 0.9, 4, False)

    def _draw(self, img: Any) -> list[tuple[str, float]]:
        space, steps = self._magnitudes(img), []
        names = list(space)
        for _ in range(self.num_ops):
            name = names[int(naru.randint(len(names), (1,)).item())]
            values, signed = space[name]
            magnitude = 0.0 if values is None else float(values[self.magnitude].item())
            steps.append((name, -magnitude if signed and naru.randint(2, (1,)).item() else magnitude))
        return steps

    def extra_repr(self) -> str:
        return f"num_ops={self.num_ops}, magnitude={self.magnitude}, num_magnitude_bins={self.num_magnitude_bins}, fill={self.fill}"


class TrivialAugmentWide(_Chosen):
    """Applies one random operation with a random magnitude out of `num_magnitude_bins`. `interpolation`: for rotations and shears; `fill`: the
    color outside of the image.

    >>> x = naru.full((3, 8, 8), 128, dtype=naru.uint8)
    >>> naru.vision.transforms.TrivialAugmentWide()(x).shape
    torch.Size([3, 8, 8])
    """

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = _NEAREST, fill: Any = None) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _magnitudes(self, img: Any) -> dict[str, Any]:
        return _space(self.num_magnitude_bins, 0.99, 32.0, 32.0, 135.0, 0.99, 6, False)

    def _draw(self, img: Any) -> list[tuple[str, float]]:
        space = self._magnitudes(img)
        names = list(space)
        name = names[int(naru.randint(len(names), (1,)).item())]
        values, signed = space[name]
        magnitude = 0.0 if values is None else float(values[naru.randint(len(values), (1,)).item()].item())
        return [(name, -magnitude if signed and naru.randint(2, (1,)).item() else magnitude)]

    def extra_repr(self) -> str:
        return f"num_magnitude_bins={self.num_magnitude_bins}, fill={self.fill}"
