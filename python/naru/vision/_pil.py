"""Pillow is an optional dependency: it is imported when an image is first created, read or checked."""

from __future__ import annotations

import sys
from typing import Any


def pillow(part: str = "Image") -> Any:
    """Imports and returns the module `PIL.<part>`. Raises ImportError with installation instructions if Pillow is missing.

    >>> from naru.vision._pil import pillow
    >>> pillow("ImageColor").getrgb("red")
    (255, 0, 0)
    """
    import importlib

    try:
        return importlib.import_module("PIL." + part)
    except ImportError as error:
        raise ImportError(
            f"naru.vision needs Pillow to read, write and change PIL images, and it can't be imported ({error}); "
            "install it with: pip install pillow",
            name="PIL",
        ) from error


def is_pil(image: Any) -> bool:
    """True if `image` is a PIL image. False if Pillow was never imported, since no PIL image can exist then."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(image, module.Image)
