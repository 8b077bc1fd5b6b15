"""The package metadata of torch under `naru run`: `importlib.metadata` reports it as installed, in the version whose semantics naru has."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import Any

from ..torch_version import __version__


class TorchDistribution(importlib.metadata.Distribution):
    """An installed distribution named torch, without files of its own."""

    def read_text(self, filename: str) -> str | None:
        """The contents of a file in the metadata folder."""
        texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\nSummary: naru, by PyTorch's name\n",
            "top_level.txt": "torch\n",
        }
        return texts.get(filename)

    def locate_file(self, path: Any) -> Path:
        """The path of a file of the package."""
        return Path(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) / path


def distributions(name: str | None) -> list[importlib.metadata.Distribution]:
    """naru's distributions of that name (None: of any name)."""
    return [TorchDistribution()] if name is None or name.lower() == "torch" else []
