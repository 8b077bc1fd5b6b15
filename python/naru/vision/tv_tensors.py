"""`torchvision.tv_tensors`: a tensor that is known to be a picture. What operators make of it is a plain tensor."""

from __future__ import annotations

from typing import Any

import naru
from naru.overrides import PLAIN_RESULTS

from . import _names
from ._pil import is_pil

__all__ = ["Image", "wrap"]

__getattr__ = _names.module_getattr(__name__)


class Image(naru.Tensor):
    """A picture (..., C, H, W), of `data`: a PIL image, a tensor or what `torch.as_tensor` takes; the transforms of `v2` know it from other
    tensors. `dtype`, `device` and `requires_grad`: those of the data without. ValueError for fewer than two dimensions.

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
    """The tensor `wrappee` as what `like` is.

    >>> image = naru.vision.tv_tensors.Image(naru.ones(1, 1, 2))
    >>> type(naru.vision.tv_tensors.wrap(image + 1, like=image)).__name__
    'Image'
    """
    return wrappee.as_subclass(type(like)) if isinstance(like, Image) else wrappee
