"""`torchvision.io` for images, by means of Pillow."""

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
    """The color channels in which an image is read: unchanged, or converted.

    >>> naru.vision.io.ImageReadMode["GRAY"].value
    1
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {ImageReadMode.GRAY: "L", ImageReadMode.GRAY_ALPHA: "LA", ImageReadMode.RGB: "RGB", ImageReadMode.RGB_ALPHA: "RGBA"}


def read_file(path: Any) -> Any:
    """Returns the contents of the file `path` as a uint8 tensor.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.bin")
    ...     naru.vision.io.write_file(path, naru.tensor([1, 2], dtype=naru.uint8))
    ...     naru.vision.io.read_file(path)
    tensor([1, 2], dtype=torch.uint8)
    """
    with open(path, "rb") as file:
        return naru.frombuffer(bytearray(file.read()), dtype=naru.uint8)


def write_file(filename: Any, data: Any) -> None:
    """Writes `data`, a uint8 tensor, to the file `filename`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.bin")
    ...     naru.vision.io.write_file(path, naru.tensor([1, 2], dtype=naru.uint8))
    ...     os.path.getsize(path)
    2
    """
    with atomic_file(filename) as file:
        file.write(data.cpu().numpy().tobytes())


def decode_image(input: Any, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Any:
    """Decodes `input`, a file path or the file's bytes as a tensor, to a (C, H, W) uint8 tensor. `mode`: an `ImageReadMode` or its name.
    `apply_exif_orientation`: rotates the image as its EXIF data says. Raises RuntimeError if Pillow can't read it.

    >>> file = naru.vision.io.encode_png(naru.tensor([[[0, 7]]], dtype=naru.uint8))
    >>> naru.vision.io.decode_image(file)
    tensor([[[0, 7]]], dtype=torch.uint8)
    """
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
    """Reads the image file `path` into a (C, H, W) uint8 tensor; `mode` and `apply_exif_orientation` as for `decode_image`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.png")
    ...     naru.vision.io.write_png(naru.tensor([[[0, 7]]], dtype=naru.uint8), path)
    ...     naru.vision.io.read_image(path)
    tensor([[[0, 7]]], dtype=torch.uint8)
    """
    return decode_image(path, mode, apply_exif_orientation)


decode_png = decode_jpeg = decode_image


def _encoded(input: Any, format: str, **options: Any) -> Any:
    if input.dtype != naru.uint8 or input.dim() != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(f"a picture of bytes (1 or 3, H, W) is needed, got {input.dtype}, {list(input.shape)} ({format})")
    out = io.BytesIO()
    to_pil_image(input).save(out, format=format, **options)
    return naru.frombuffer(bytearray(out.getvalue()), dtype=naru.uint8)


def encode_png(input: Any, compression_level: int = 6) -> Any:
    """Encodes `input`, uint8 (1 or 3, H, W), as PNG; returns the file's bytes. `compression_level`: 0 to 9.

    >>> bytes(naru.vision.io.encode_png(naru.zeros(1, 2, 2, dtype=naru.uint8))[1:4].tolist())
    b'PNG'
    """
    return _encoded(input, "png", compress_level=compression_level)


def encode_jpeg(input: Any, quality: int = 75) -> Any:
    """Encodes `input`, uint8 (1 or 3, H, W), as JPEG; returns the file's bytes. `quality`: 1 to 100.

    >>> naru.vision.io.encode_jpeg(naru.zeros(1, 2, 2, dtype=naru.uint8))[:2]
    tensor([255, 216], dtype=torch.uint8)
    """
    return _encoded(input, "jpeg", quality=quality)


def write_png(input: Any, filename: Any, compression_level: int = 6) -> None:
    """Writes `input`, uint8 (1 or 3, H, W), to the PNG file `filename`. `compression_level`: 0 to 9.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.png")
    ...     naru.vision.io.write_png(naru.full((3, 1, 1), 200, dtype=naru.uint8), path)
    ...     naru.vision.io.read_image(path, mode="GRAY")
    tensor([[[200]]], dtype=torch.uint8)
    """
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Any, filename: Any, quality: int = 75) -> None:
    """Writes `input`, uint8 (1 or 3, H, W), to the JPEG file `filename`. `quality`: 1 to 100.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.jpg")
    ...     naru.vision.io.write_jpeg(naru.zeros(1, 2, 2, dtype=naru.uint8), path)
    ...     naru.vision.io.read_image(path)
    tensor([[[0, 0],
             [0, 0]]], dtype=torch.uint8)
    """
    write_file(filename, encode_jpeg(input, quality))
