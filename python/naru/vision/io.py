"""`torchvision.io` for pictures, by Pillow."""

from __future__ import annotations

import io
from enum import Enum
from typing import Any

import naru

from .._serialization.atomic_file import atomic_file
from . import _names
from ._pil import pillow
from .transforms.functional import pil_to_tensor, to_pil_image

__all__ = [
    "ImageReadMode", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "read_file", "read_image", "write_file",
    "write_jpeg", "write_png",
]  # fmt: skip

__getattr__ = _names.module_getattr(__name__)


class ImageReadMode(Enum):
    """In which channels a picture is read: as it is, or converted."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {ImageReadMode.GRAY: "L", ImageReadMode.GRAY_ALPHA: "LA", ImageReadMode.RGB: "RGB", ImageReadMode.RGB_ALPHA: "RGBA"}


def read_file(path: Any) -> Any:
    """The bytes of a file, uint8."""
    with open(path, "rb") as file:
        return naru.frombuffer(bytearray(file.read()), dtype=naru.uint8)


def write_file(filename: Any, data: Any) -> None:
    """Writes a tensor of bytes to a file."""
    with atomic_file(filename) as file:
        file.write(data.cpu().numpy().tobytes())


def decode_image(input: Any, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Any:
    """(C, H, W), uint8, of a file's path or of its bytes as a tensor. RuntimeError where Pillow can't read it."""
    wanted = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    source = io.BytesIO(input.cpu().numpy().tobytes()) if isinstance(input, naru.Tensor) else input
    try:
        picture = pillow().open(source)
        picture.load()
    except pillow().UnidentifiedImageError as error:
        raise RuntimeError(f"this is no picture that Pillow can read: {error}") from None
    if apply_exif_orientation:
        picture = pillow("ImageOps").exif_transpose(picture)
    if wanted is not ImageReadMode.UNCHANGED:
        picture = picture.convert(_MODES[wanted])
    elif picture.mode == "P":
        picture = picture.convert("RGB")
    return pil_to_tensor(picture)


def read_image(path: Any, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Any:
    """(C, H, W), uint8, of a file."""
    return decode_image(path, mode, apply_exif_orientation)


decode_png = decode_jpeg = decode_image


def _encoded(input: Any, format: str, **options: Any) -> Any:
    if input.dtype != naru.uint8 or input.dim() != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(f"a picture of bytes (1 or 3, H, W) is needed, got {input.dtype}, {list(input.shape)} ({format})")
    out = io.BytesIO()
    to_pil_image(input).save(out, format=format, **options)
    return naru.frombuffer(bytearray(out.getvalue()), dtype=naru.uint8)


def encode_png(input: Any, compression_level: int = 6) -> Any:
    """The bytes of a PNG file of (1 or 3, H, W), uint8."""
    return _encoded(input, "png", compress_level=compression_level)


def encode_jpeg(input: Any, quality: int = 75) -> Any:
    """The bytes of a JPEG file of (1 or 3, H, W), uint8."""
    return _encoded(input, "jpeg", quality=quality)


def write_png(input: Any, filename: Any, compression_level: int = 6) -> None:
    """Writes (1 or 3, H, W), uint8, to a PNG file."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Any, filename: Any, quality: int = 75) -> None:
    """Writes (1 or 3, H, W), uint8, to a JPEG file."""
    write_file(filename, encode_jpeg(input, quality))
