"""The v2 transforms that v1 lacks or that behave differently there: conversions, containers, random choices."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

from ....nn.modules.module import Module
from ..._pil import is_pil
from ...tv_tensors import Image
from .. import autoaugment as _auto
from .._base import randint
from .._color import RandomErasing as _RandomErasing
from .._geometry import RandomCrop as _RandomCrop
from .._geometry import RandomPerspective as _RandomPerspective
from .._modes import InterpolationMode, as_mode, dimensions
from . import functional as F
from ._transform import MaybeOfV1, OfV1, Transform, doc_of, is_pure_tensor


class Identity(Transform):
    """Returns its input unchanged.

    >>> naru.vision.transforms.v2.Identity()(naru.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class GaussianNoise(Transform):
    """Adds Gaussian noise with `mean` and standard deviation `sigma` to images in 0..1; the result is clamped to 0..1 if `clip`. Raises TypeError
    for PIL images, ValueError for integer tensors.

    >>> naru.vision.transforms.v2.GaussianNoise(mean=1.0, sigma=0.0)(naru.tensor([[[0.5, -0.25]]]))
    tensor([[[1.0000, 0.7500]]])
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not isinstance(inpt, naru.Tensor):
            raise TypeError(f"GaussianNoise takes tensors, not {type(inpt)}: put ToImage and ToDtype before it")
        if not inpt.is_floating_point():
            raise ValueError(f"Input tensor is expected to be in float dtype, got dtype={inpt.dtype}")
        if self.sigma < 0:
            raise ValueError(f"sigma shouldn't be negative. Got {self.sigma}")
        out = inpt + (self.mean + naru.randn_like(inpt) * self.sigma)
        out = out.clamp(0, 1) if self.clip else out
        return Image(out) if isinstance(inpt, Image) else out


class Lambda(Transform):
    """Applies the function `lambd` to each leaf of a sample that is an instance of `types` (any type if none are given).

    >>> naru.vision.transforms.v2.Lambda(lambda x: x + 1, int)({"label": 3, "name": "four"})
    {'label': 4, 'name': 'four'}
    """

    def __init__(self, lambd: Any, *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self._transformed_types = types or (object,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt)


class ToImage(Transform):
    """Converts PIL images, arrays (H, W, C) and tensors to `tv_tensors.Image` without changing their values.

    >>> type(naru.vision.transforms.v2.ToImage()(naru.ones(1, 1, 2))).__name__
    'Image'
    """

    _transformed_types = (is_pure_tensor, is_pil, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Image:
        return F.to_image(inpt)


class ToPureTensor(Transform):
    """Converts `tv_tensors.Image` to plain tensors.

    >>> type(naru.vision.transforms.v2.ToPureTensor()(naru.vision.tv_tensors.Image(naru.ones(1, 1, 2)))).__name__
    'Tensor'
    """

    _transformed_types = (Image,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.as_subclass(naru.Tensor)


class PILToTensor(Transform):
    """Converts PIL images to plain tensors (C, H, W) without changing their values.

    >>> from PIL import Image
    >>> naru.vision.transforms.v2.PILToTensor()(Image.new("L", (2, 1), 7))
    tensor([[[7, 7]]], dtype=torch.uint8)
    """

    _transformed_types = (is_pil,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pil_to_tensor(inpt)


class ToTensor(Transform):
    """Converts PIL images and arrays to tensors; uint8 is scaled to 0..1. torchvision keeps it for v1 programs, and recommends ToImage and ToDtype.

    >>> import numpy as np
    >>> naru.vision.transforms.v2.ToTensor()(np.array([[0, 255]], dtype=np.uint8))
    tensor([[[0., 1.]]])
    """

    _transformed_types = (is_pil, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_tensor(inpt)


class ToPILImage(Transform):
    """Converts tensors (C, H, W) and arrays (H, W, C) to PIL images, in `mode` if the number of channels allows several.

    >>> naru.vision.transforms.v2.ToPILImage()(naru.ones(3, 2, 4)).size
    (4, 2)
    """

    _transformed_types = (is_pure_tensor, Image, np.ndarray)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_pil_image(inpt, self.mode)


class ToDtype(Transform):
    """Converts images that are tensors to another dtype; with `scale`, white stays white.

    Args:
        dtype: a dtype, or a dictionary from a type (`tv_tensors.Image`, `torch.Tensor` or "others") to a dtype; None leaves values of that type unchanged.

    >>> naru.vision.transforms.v2.ToDtype(naru.float32, scale=True)(naru.tensor([[[0, 255]]], dtype=naru.uint8))
    tensor([[[0., 1.]]])
    """

    _transformed_types = (naru.Tensor,)

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, naru.dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        wanted = self.dtype
        if isinstance(wanted, dict):
            if type(inpt) not in wanted and "others" not in wanted:
                raise ValueError(f'No dtype was specified for type {type(inpt)}: name it in the dictionary, or "others" (None for no change)')
            wanted = wanted.get(type(inpt), wanted.get("others"))
        if wanted is None:
            return inpt
        out = F.to_dtype(inpt, wanted, self.scale)
        return Image(out) if isinstance(inpt, Image) else out

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, scale={self.scale}"


class ConvertImageDtype(ToDtype):
    """Converts images to `dtype` and scales them so that white stays white.

    >>> naru.vision.transforms.v2.ConvertImageDtype()(naru.tensor([[[0, 255]]], dtype=naru.uint8))
    tensor([[[0., 1.]]])
    """

    def __init__(self, dtype: Any = naru.float32) -> None:
        super().__init__(dtype, scale=True)


class RGB(Transform):
    """Converts greyscale images to three channels.

    >>> naru.vision.transforms.v2.RGB()(naru.ones(1, 1, 1)).flatten()
    tensor([1., 1., 1.])
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = F.grayscale_to_rgb(inpt)
        return Image(out) if isinstance(inpt, Image) else out


class _Container(Transform):
    def __init__(self, transforms: Any) -> None:
        super().__init__()
        if not isinstance(transforms, (list, tuple)) and not isinstance(transforms, Module):
            raise TypeError("Argument transforms should be a sequence of callables")
        if len(transforms) < 1:
            raise ValueError("Pass at least one transform")
        self.transforms = transforms

    @staticmethod
    def _run(transforms: Any, inputs: tuple[Any, ...]) -> Any:
        several = len(inputs) > 1
        for transform in transforms:
            out = transform(*inputs)
            inputs = out if several else (out,)
        return inputs if several else inputs[0]

    def extra_repr(self) -> str:
        return "\n".join(str(transform) for transform in self.transforms)


class Compose(_Container):
    """Applies `transforms` in order, also to nested samples.

    >>> both = naru.vision.transforms.v2.Compose([naru.vision.transforms.v2.Pad(1), naru.vision.transforms.v2.CenterCrop(1)])
    >>> both((naru.ones(1, 1, 1), "label"))
    (tensor([[[1.]]]), 'label')
    """

    def forward(self, *inputs: Any) -> Any:
        return self._run(self.transforms, inputs)


class RandomApply(_Container):
    """Applies all of `transforms` with probability `p`, else none.

    >>> naru.vision.transforms.v2.RandomApply([naru.vision.transforms.v2.Pad(1)], p=1.0)(naru.ones(1, 1, 1))
    tensor([[[0., 0., 0.],
             [0., 1., 0.],
             [0., 0., 0.]]])
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__(transforms)
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        if naru.rand(1).item() >= self.p:
            return inputs if len(inputs) > 1 else inputs[0]
        return self._run(self.transforms, inputs)


class RandomChoice(_Container):
    """Applies one of `transforms`, drawn with the weights `p`.

    >>> naru.vision.transforms.v2.RandomChoice([lambda x: x + 1, lambda x: x - 1], p=[1.0, 0.0])(naru.zeros(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def __init__(self, transforms: Any, p: Any = None) -> None:
        super().__init__(transforms)
        weights = [1.0] * len(transforms) if p is None else list(p)
        if len(weights) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(weights)} != {len(transforms)}")
        self.p = [weight / sum(weights) for weight in weights]

    def forward(self, *inputs: Any) -> Any:
        return self.transforms[int(naru.multinomial(naru.tensor(self.p), 1).item())](*inputs)


class RandomOrder(_Container):
    """Applies all of `transforms` in random order.

    >>> naru.vision.transforms.v2.RandomOrder([lambda x: x + 1, lambda x: x - 1])(naru.zeros(1, 1, 2))
    tensor([[[0., 0.]]])
    """

    def forward(self, *inputs: Any) -> Any:
        return self._run([self.transforms[place] for place in naru.randperm(len(self.transforms)).tolist()], inputs)


class RandomCrop(OfV1, _RandomCrop):
    __doc__ = doc_of(_RandomCrop)

    def _draw(self, img: Any) -> Any:
        steps, height, width = self._paddings(*dimensions(img)[1:])
        if height < self.size[0] or width < self.size[1]:
            what = "padded input image size" if steps else "input image size"
            raise ValueError(f"Required crop size {tuple(self.size)} is larger than {what} {(height, width)}.")
        # No offset is drawn for a side that fits exactly.
        top = randint(0, height - self.size[0] + 1) if height > self.size[0] else 0
        left = randint(0, width - self.size[1] + 1) if width > self.size[1] else 0
        return steps, (top, left, *self.size)


class RandomPerspective(MaybeOfV1, _RandomPerspective):
    __doc__ = doc_of(_RandomPerspective)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, height, width = dimensions(flat_inputs[0])
        return {"drawn": self.get_params(width, height, self.distortion_scale)}


class RandomErasing(MaybeOfV1, _RandomErasing):
    __doc__ = doc_of(_RandomErasing)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        first = flat_inputs[0] if flat_inputs else None
        return {"drawn": None if first is None else self._rectangle(F.pil_to_tensor(first) if is_pil(first) else first)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if is_pil(inpt):
            return F.to_pil_image(self._apply_to(F.pil_to_tensor(inpt), params["drawn"]), inpt.mode)
        return super().transform(inpt, params)


class RandomChannelPermutation(Transform):
    """Permutes the channels randomly.

    >>> x = naru.tensor([1, 2, 3]).reshape(3, 1, 1)
    >>> naru.vision.transforms.v2.RandomChannelPermutation()(x).flatten().sort().values
    tensor([1, 2, 3])
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": naru.randperm(dimensions(flat_inputs[0])[0]).tolist()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = F.permute_channels(inpt, params["permutation"])
        return Image(out) if isinstance(inpt, Image) else out


class RandomResize(Transform):
    """Resizes the shorter side to a random length from `min_size` to `max_size` - 1. `interpolation` and `antialias` as for `functional.resize`.

    >>> naru.vision.transforms.v2.RandomResize(2, 3)(naru.ones(1, 4, 8)).shape
    torch.Size([1, 2, 4])
    """

    def __init__(self, min_size: int, max_size: int, interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True) -> None:
        super().__init__()
        self.min_size, self.max_size = min_size, max_size
        self.interpolation, self.antialias = as_mode(interpolation), antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": randint(self.min_size, self.max_size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = F.resize(inpt, params["size"], self.interpolation, antialias=self.antialias)
        return Image(out) if isinstance(inpt, Image) else out


def _signed(magnitude: float, signed: bool) -> float:
    return -magnitude if signed and naru.rand([]).item() <= 0.5 else magnitude


def _step(space: dict[str, Any]) -> tuple[str, Any, bool]:
    names = list(space)
    name = names[int(naru.randint(0, len(names), size=[]).item())]
    return name, *space[name]


class AutoAugment(OfV1, _auto.AutoAugment):
    __doc__ = doc_of(_auto.AutoAugment)

    def _draw(self, img: Any) -> list[tuple[str, float]]:
        space, steps = self._magnitudes(img), []
        for name, p, place in self.policies[int(naru.randint(0, len(self.policies), size=[]).item())]:
            if naru.rand([]).item() <= naru.tensor(p).item():
                values, signed = space[name]
                steps.append((name, 0.0 if place is None or values is None else _signed(float(values[place].item()), signed)))
        return steps


class RandAugment(OfV1, _auto.RandAugment):
    __doc__ = doc_of(_auto.RandAugment)

    def _draw(self, img: Any) -> list[tuple[str, float]]:
        space, steps = self._magnitudes(img), []
        for _ in range(self.num_ops):
            name, values, signed = _step(space)
            steps.append((name, 0.0 if values is None else _signed(float(values[self.magnitude].item()), signed)))
        return steps


class TrivialAugmentWide(OfV1, _auto.TrivialAugmentWide):
    __doc__ = doc_of(_auto.TrivialAugmentWide)

    def _draw(self, img: Any) -> list[tuple[str, float]]:
        name, values, signed = _step(self._magnitudes(img))
        if values is None:
            return [(name, 0.0)]
        place = int(naru.randint(0, self.num_magnitude_bins, size=[]).item())
        return [(name, _signed(float(values[place].item()), signed))]
