"""Transforms that contain other transforms or a function, and conversions."""

from __future__ import annotations

import random
from typing import Any

import naru

from ...nn.modules.container import ModuleList
from ...nn.modules.module import Module
from . import functional as F
from ._modes import Tensor


class Compose:
    """Applies `transforms` in order.

    >>> import numpy as np
    >>> to_double = naru.vision.transforms.Compose([naru.vision.transforms.ToTensor(), lambda x: x * 2])
    >>> to_double(np.array([[255]], dtype=np.uint8))
    tensor([[[2.]]])
    """

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}(", *(f"    {transform}" for transform in self.transforms), ")"])


class _Conversion:
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToTensor(_Conversion):
    """Converts a PIL image or an array (H, W, C) to a tensor (C, H, W); uint8 is scaled to 0..1. See `functional.to_tensor`.

    >>> import numpy as np
    >>> naru.vision.transforms.ToTensor()(np.array([[0, 255]], dtype=np.uint8))
    tensor([[[0., 1.]]])
    """

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)


class PILToTensor(_Conversion):
    """Converts a PIL image to a tensor (C, H, W) without changing its values.

    >>> from PIL import Image
    >>> naru.vision.transforms.PILToTensor()(Image.new("L", (2, 1), 7))
    tensor([[[7, 7]]], dtype=torch.uint8)
    """

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)


class ToPILImage:
    """Converts a tensor (C, H, W) or an array (H, W, C) to a PIL image, in `mode` if the number of channels allows several.

    >>> naru.vision.transforms.ToPILImage()(naru.ones(3, 2, 4)).size
    (4, 2)
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(Module):
    """Converts a tensor to `dtype` and scales its values so that white stays white.

    >>> naru.vision.transforms.ConvertImageDtype(naru.uint8)(naru.tensor([[[0.0, 1.0]]]))
    tensor([[[  0, 255]]], dtype=torch.uint8)
    """

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class Lambda:
    """Applies the function `lambd`. Raises TypeError if it is not callable.

    >>> naru.vision.transforms.Lambda(lambda x: x + 1)(naru.zeros(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def __init__(self, lambd: Any) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomApply(Module):
    """Applies all of `transforms` with probability `p`, else none.

    >>> naru.vision.transforms.RandomApply([naru.vision.transforms.Pad(1)], p=1.0)(naru.ones(1, 1, 1))
    tensor([[[0., 0., 0.],
             [0., 1., 0.],
             [0., 0., 0.]]])
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if self.p < naru.rand(1).item():
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def extra_repr(self) -> str:
        return "" if isinstance(self.transforms, ModuleList) else f"p={self.p}, transforms={self.transforms}"


class _Several:
    def __init__(self, transforms: Any) -> None:
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}(", *(f"    {transform}" for transform in self.transforms), ")"])


class RandomOrder(_Several):
    """Applies all of `transforms` in random order, drawn from Python's `random`.

    >>> naru.vision.transforms.RandomOrder([lambda x: x + 1, lambda x: x - 1])(naru.zeros(1, 1, 2))
    tensor([[[0., 0.]]])
    """

    def __call__(self, img: Any) -> Any:
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for place in order:
            img = self.transforms[place](img)
        return img


class RandomChoice(_Several):
    """Applies one of `transforms`, drawn from Python's `random` with the weights `p`.

    >>> naru.vision.transforms.RandomChoice([lambda x: x + 1, lambda x: x - 1], p=[1.0, 0.0])(naru.zeros(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def __init__(self, transforms: Any, p: Any = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, (list, tuple)):
            raise TypeError("Argument p should be a sequence")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        return random.choices(self.transforms, weights=self.p)[0](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"
