"""Conversions between images and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

from .._pil import is_pil, pillow
from ._modes import Tensor

# The PIL modes whose pixels are not uint8, with the NumPy dtype of their arrays.
_WIDE = {"I": np.int32, "I;16": np.uint16, "F": np.float32}


def _pixels(pic: Any) -> np.ndarray:
    """The pixels of a PIL image as (H, W, C): uint8, or the dtype of its mode."""
    array = np.array(pic, dtype=_WIDE.get(pic.mode), copy=True)
    if pic.mode == "1":
        array = array.astype(np.uint8) * 255
    return array.reshape(pic.height, pic.width, -1)


def _from_pixels(array: np.ndarray) -> Tensor:
    """Converts (H, W, C) to contiguous (C, H, W)."""
    array = np.ascontiguousarray(array.transpose(2, 0, 1))
    if array.dtype == np.uint16:
        array = array.astype(np.int32)
    return naru.from_numpy(array)


def to_tensor(pic: Any) -> Tensor:
    """Converts `pic`, a PIL image or an array (H, W, C) or (H, W), to a tensor (C, H, W). uint8 becomes 0..1 in the default dtype; other dtypes are
    kept.

    >>> import numpy as np
    >>> to_tensor(np.array([[0, 255]], dtype=np.uint8))
    tensor([[[0., 1.]]])
    """
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        tensor = _from_pixels(pic.reshape(*pic.shape[:2], -1))
    elif is_pil(pic):
        tensor = _from_pixels(_pixels(pic))
    else:
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    return tensor.to(naru.get_default_dtype()).div(255) if tensor.dtype == naru.uint8 else tensor


def pil_to_tensor(pic: Any) -> Tensor:
    """Converts `pic`, a PIL image, to a tensor (C, H, W) without changing its values.

    >>> from PIL import Image
    >>> naru.vision.transforms.functional.pil_to_tensor(Image.new("L", (2, 1), 7))
    tensor([[[7, 7]]], dtype=torch.uint8)
    """
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return _from_pixels(_pixels(pic))


# The mode of a single-channel image, by dtype.
_ONE_CHANNEL = {"uint8": "L", "int16": "I;16", "uint16": "I;16", "int32": "I", "float32": "F"}
# The default mode, and the modes that may be requested, by number of channels.
_OF_CHANNELS = {2: ("LA", ("LA",)), 3: ("RGB", ("RGB", "YCbCr", "HSV")), 4: ("RGBA", ("RGBA", "CMYK", "RGBX"))}


def _picture_array(pic: Any) -> np.ndarray:
    """Converts a tensor (C, H, W) or (H, W), or an array, to an array (H, W, C); floating-point values in 0..1 become uint8."""
    if not isinstance(pic, (Tensor, np.ndarray)):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    if isinstance(pic, Tensor):
        if pic.ndim == 2:
            pic = pic.unsqueeze(0)
        if pic.shape[-3] > 4:
            raise ValueError(f"pic should not have > 4 channels. Got {pic.shape[-3]} channels.")
        return pic.detach().cpu().permute([1, 2, 0]).contiguous().numpy()
    if pic.ndim == 2:
        pic = pic[:, :, None]
    if pic.shape[-1] > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {pic.shape[-1]} channels.")
    return pic


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """Converts `pic`, a tensor (C, H, W) or an array (H, W, C), to a PIL image. Floating-point tensors must hold 0..1, and are truncated to uint8.

    Raises ValueError if `mode` does not fit the number of channels, TypeError for dtypes that PIL images cannot have.

    >>> naru.vision.transforms.functional.to_pil_image(naru.ones(1, 2, 3)).getpixel((0, 0))
    255
    """
    array = _picture_array(pic)
    if isinstance(pic, Tensor) and array.dtype.kind == "f" and mode != "F":
        array = (array * 255).astype(np.uint8)
    channels = array.shape[-1]
    if channels == 1:
        expected = _ONE_CHANNEL.get(str(array.dtype))
        if mode is not None and mode != expected:
            raise ValueError(f"Incorrect mode ({mode}) supplied for input type {array.dtype}. Should be {expected}")
        if expected is None:
            raise TypeError(f"Input type {array.dtype} is not supported")
        array = array[:, :, 0].astype(np.uint16) if expected == "I;16" else array[:, :, 0]
        return pillow().fromarray(np.ascontiguousarray(array))
    default, allowed = _OF_CHANNELS[channels]
    if mode is not None and mode not in allowed:
        raise ValueError(
            f"Only modes {list(allowed)} are supported for {channels}D inputs"
            if len(allowed) > 1
            else f"Only mode {default} is supported for {channels}D inputs"
        )
    if array.dtype != np.uint8:
        raise TypeError(f"Input type {array.dtype} is not supported")
    image = pillow().frombytes(mode or default, (array.shape[1], array.shape[0]), np.ascontiguousarray(array).tobytes())
    return image
