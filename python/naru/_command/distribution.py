"""The package metadata of torch under `naru run`: `importlib.metadata` reports it as installed, in the version whose semantics naru has.

It reports torchvision, too, where naru.vision is in its place.
"""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import Any

from ..torch_version import TORCHVISION_VERSION, __version__


class TorchDistribution(importlib.metadata.Distribution):
    """An installed distribution named torch (or torchvision), without files of its own."""

    def __init__(self, name: str = "torch", version: str = __version__) -> None:
        self._name, self._version = name, version

    def read_text(self, filename: str) -> str | None:
        """The contents of a file in the metadata folder."""
        texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {self._version}\nSummary: naru, by PyTorch's name\n",
            "top_level.txt": f"{self._name}\n",
        }
        return texts.get(filename)

    def locate_file(self, path: Any) -> Path:
        """The path of a file of the package."""
        return Path(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) / path


def distributions(name: str | None, vision: bool) -> list[importlib.metadata.Distribution]:
    """naru's distributions of that name (None: of any name). vision: whether naru.vision is in torchvision's place."""
    found = [TorchDistribution()] if name is None or name.lower() == "torch" else []
    if vision and (name is None or name.lower() == "torchvision"):
        found.append(TorchDistribution("torchvision", TORCHVISION_VERSION))
    return list(found)
