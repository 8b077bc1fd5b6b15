"""Points for TensorBoard's PROJECTOR tab, in files next to the event file."""

from __future__ import annotations

import os
from math import ceil, sqrt
from typing import Any
from urllib.parse import quote

from ... import _C
from ..._serialization.atomic_file import atomic_file
from . import _records

Tensor = _C.Tensor


def _write(path: str, content: bytes | str) -> None:
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _sprite(images: Tensor) -> bytes:
    """Images (N, C, H, W), uint8 or from 0 to 1, tiled in one square PNG."""
    count, channels, height, width = images.shape
    pixels = images if images.dtype == _C.uint8 else (images.float() * 255.0).clamp(0, 255).to(_C.uint8)
    across = ceil(sqrt(count))
    grid = _C.zeros((across * across, channels, height, width), dtype=_C.uint8)
    grid[:count] = pixels
    grid = grid.reshape(across, across, channels, height, width).permute(0, 3, 1, 4, 2)
    return _records.png(grid.reshape(across * height, across * width, channels))


def write_points(folder: str, tag: str, step: int, points: Tensor, metadata: Any, header: Any, images: Tensor | None) -> str:
    """Writes the points, one per row, their labels, and their images; returns their entry in the projector's settings."""
    here = f"{step:05d}/{quote(tag, safe='')}"
    os.makedirs(os.path.join(folder, here), exist_ok=True)
    part = f'embeddings {{\ntensor_name: "{tag}:{step:05d}"\ntensor_path: "{here}/tensors.tsv"\n'
    _write(os.path.join(folder, here, "tensors.tsv"), "".join("\t".join(map(str, row)) + "\n" for row in points.tolist()))
    if metadata is not None:
        lines = [str(x) for x in metadata] if not header else ["\t".join(map(str, row)) for row in (header, *metadata)]
        _write(os.path.join(folder, here, "metadata.tsv"), "".join(line + "\n" for line in lines))
        part += f'metadata_path: "{here}/metadata.tsv"\n'
    if images is not None:
        _write(os.path.join(folder, here, "sprite.png"), _sprite(images))
        part += f'sprite {{\nimage_path: "{here}/sprite.png"\nsingle_image_dim: {images.shape[3]}\nsingle_image_dim: {images.shape[2]}\n}}\n'
    return part + "}\n"


def write_settings(folder: str, parts: dict[str, str]) -> None:
    """Writes the settings for all points that were added."""
    _write(os.path.join(folder, "projector_config.pbtxt"), "".join(parts.values()))
