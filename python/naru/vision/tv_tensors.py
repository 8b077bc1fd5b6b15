"""`torchvision.tv_tensors`: tensors marked as images. Operators return plain tensors."""

from __future__ import annotations

from typing import Any

import naru
from naru.overrides import PLAIN_RESULTS

from . import _names
from ._pil import is_pil

__all__ = ["Image", "wrap"]

__getattr__ = _names.module_getattr(__name__)


class Image(naru.Tensor):
    """An image (..., C, H, W) made from `data`: a PIL image, a tensor or anything that `torch.as_tensor` accepts. The `v2` transforms treat it as
    an image. `dtype`, `device` and `requires_grad` default to those of the data. Raises ValueError for fewer than two dimensions.

    >>> image = naru.vision.tv_tensors.Image([[0.0, 1.0]])
    >>> image.shape, type(image).__name__, type(image + 1).__name__
    (torch.Size([1, 1, 2]), 'Image', 'Tensor')
    """

    __torch_function__ = PLAIN_RESULTS

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        if is_pil(data):
            from .transforms.functional import pil_to_tensor

            data = pil_to_tensor(data)
        tensor = naru.as_tensor(data, dtype=dtype, device=device)
        if tensor.dim() < 2:
            raise ValueError(f"a picture has two dimensions or more, got {tensor.dim()}")
        tensor = tensor.unsqueeze(0) if tensor.dim() == 2 else tensor
        made = tensor.detach().as_subclass(cls)
        return made.requires_grad_(bool(requires_grad) if requires_grad is not None else tensor.requires_grad)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


def wrap(wrappee: Any, *, like: Any, **kwargs: Any) -> Any:
    """Converts the tensor `wrappee` to the type of `like`.

    >>> image = naru.vision.tv_tensors.Image(naru.ones(1, 1, 2))
    >>> type(naru.vision.tv_tensors.wrap(image + 1, like=image)).__name__
    'Image'
    """
    return wrappee.as_subclass(type(like)) if isinstance(like, Image) else wrappee
