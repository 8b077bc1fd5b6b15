"""`torchvision.transforms`: deterministic and random transforms of geometry and color, for PIL images and tensors (..., C, H, W) on any device.

Random values are drawn from naru's generator in torchvision's order, except in `RandomOrder` and `RandomChoice`, which use Python's `random`.
"""

from __future__ import annotations

from typing import Any

from .. import _names
from .transforms import *  # noqa: F403

_SUBMODULES = frozenset("autoaugment functional v2".split())
_AUTO = frozenset("AutoAugment AutoAugmentPolicy RandAugment TrivialAugmentWide".split())


def __getattr__(name: str) -> Any:
    import importlib

    if name in _SUBMODULES:
        return importlib.import_module("." + name, __name__)
    if name in _AUTO:
        return getattr(importlib.import_module(".autoaugment", __name__), name)
    _names.fail(__name__, name)
