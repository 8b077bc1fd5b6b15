"""Color transforms, and transforms of tensors only."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import naru

from . import functional as F
from ._base import ImageTransform, MaybeTransform, randint, uniform
from ._modes import Tensor, dimensions


class Normalize(ImageTransform):
    """Computes (image - `mean`) / `std` per channel, in place if `inplace`. Raises TypeError for PIL images and integer tensors.

    >>> naru.vision.transforms.Normalize([0.5], [0.5])(naru.tensor([[[0.0, 1.0]]]))
    tensor([[[-1.,  1.]]])
    """

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def _apply_to(self, img: Any, drawn: Any) -> Tensor:
        return F.normalize(img, self.mean, self.std, self.inplace)

    def extra_repr(self) -> str:
        return f"mean={self.mean}, std={self.std}"


def _factors(
    value: Any, name: str, center: float = 1, bound: tuple[float, float] = (0, math.inf), cut: bool = True
) -> tuple[float, float] | None:
    """The range that a factor is drawn from, or None if it is always `center`."""
    if isinstance(value, numbers.Number):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = center - float(value), center + float(value)
        low = max(low, 0.0) if cut else low
    elif isinstance(value, (list, tuple)) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
    return None if low == high == center else (low, high)


class ColorJitter(ImageTransform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Args:
        brightness, contrast, saturation: (low, high), or a number x for (max(0, 1 - x), 1 + x).
        hue: (low, high) within -0.5 .. 0.5, or a number x for (-x, x).

    >>> naru.vision.transforms.ColorJitter(brightness=(2.0, 2.0))(naru.tensor([[[0.25]]]).expand(3, 1, 1)).flatten()
    tensor([0.5000, 0.5000, 0.5000])
    """

    _STEPS = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        self.brightness = _factors(brightness, "brightness")
        self.contrast = _factors(contrast, "contrast")
        self.saturation = _factors(saturation, "saturation")
        self.hue = _factors(hue, "hue", 0, (-0.5, 0.5), cut=False)

    @staticmethod
    def get_params(brightness: Any, contrast: Any, saturation: Any, hue: Any) -> tuple[Any, ...]:
        """Returns (the order of the steps, a factor or None for each)."""
        order = naru.randperm(4)
        return order, *(None if span is None else float(uniform(span[0], span[1])) for span in (brightness, contrast, saturation, hue))

    def _draw(self, img: Any) -> Any:
        return self.get_params(self.brightness, self.contrast, self.saturation, self.hue)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        order, *factors = drawn
        for step in order.tolist():
            if factors[step] is not None:
                img = self._STEPS[step](img, factors[step])
        return img

    def extra_repr(self) -> str:
        return f"brightness={self.brightness}, contrast={self.contrast}, saturation={self.saturation}, hue={self.hue}"


class Grayscale(ImageTransform):
    """Converts to greyscale (luma) with `num_output_channels` (1 or 3).

    >>> naru.vision.transforms.Grayscale()(naru.ones(3, 1, 1))
    tensor([[[0.9999]]])
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def extra_repr(self) -> str:
        return f"num_output_channels={self.num_output_channels}"


class RandomGrayscale(MaybeTransform):
    """Converts to greyscale with the same number of channels, with probability `p`.

    >>> naru.vision.transforms.RandomGrayscale(p=1.0)(naru.ones(3, 1, 1)).flatten()
    tensor([0.9999, 0.9999, 0.9999])
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.rgb_to_grayscale(img, dimensions(img)[0]) if drawn else img


class GaussianBlur(ImageTransform):
    """Gaussian blur. `kernel_size`: an odd integer, or [x, y]; `sigma`: a number, or the range it is drawn from.

    >>> x = naru.zeros(1, 3, 3); x[0, 1, 1] = 1.0
    >>> naru.vision.transforms.GaussianBlur(3, 0.5)(x)[0, 1]
    tensor([0.1676, 0.6193, 0.1676])
    """

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size) * (2 // len(kernel_size))
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        if isinstance(sigma, numbers.Number):
            if sigma <= 0:
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)
        elif not isinstance(sigma, (list, tuple)) or len(sigma) != 2:
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        elif not 0.0 < sigma[0] <= sigma[1]:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {sigma}")
        self.sigma = sigma

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        return uniform(sigma_min, sigma_max)

    def _draw(self, img: Any) -> Any:
        return self.get_params(self.sigma[0], self.sigma[1])

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.gaussian_blur(img, list(self.kernel_size), [drawn, drawn])

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, sigma={self.sigma}"


class RandomInvert(MaybeTransform):
    """Inverts the colors, with probability `p`.

    >>> naru.vision.transforms.RandomInvert(p=1.0)(naru.tensor([[[0, 55]]], dtype=naru.uint8))
    tensor([[[255, 200]]], dtype=torch.uint8)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.invert(img) if drawn else img


class RandomAutocontrast(MaybeTransform):
    """Stretches each channel to the full range from black to white, with probability `p`.

    >>> naru.vision.transforms.RandomAutocontrast(p=1.0)(naru.tensor([[[0.25, 0.5, 0.75]]]))
    tensor([[[0.0000, 0.5000, 1.0000]]])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.autocontrast(img) if drawn else img


class RandomEqualize(MaybeTransform):
    """Equalizes the histogram of each channel, with probability `p`.

    >>> naru.vision.transforms.RandomEqualize(p=1.0)(naru.tensor([[[0, 10], [20, 30]]], dtype=naru.uint8))
    tensor([[[ 0, 10],
             [20, 30]]], dtype=torch.uint8)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.equalize(img) if drawn else img


class RandomPosterize(MaybeTransform):
    """Keeps the `bits` most significant bits of each uint8 value, with probability `p`.

    >>> naru.vision.transforms.RandomPosterize(1, p=1.0)(naru.tensor([[[3, 130, 255]]], dtype=naru.uint8))
    tensor([[[  0, 128, 128]]], dtype=torch.uint8)
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.posterize(img, self.bits) if drawn else img


class RandomSolarize(MaybeTransform):
    """Inverts the values from `threshold` up, with probability `p`.

    >>> naru.vision.transforms.RandomSolarize(128, p=1.0)(naru.tensor([[[50, 200]]], dtype=naru.uint8))
    tensor([[[50, 55]]], dtype=torch.uint8)
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.solarize(img, self.threshold) if drawn else img


class RandomAdjustSharpness(MaybeTransform):
    """Sharpens (`sharpness_factor` above 1) or blurs (below 1), with probability `p`.

    >>> x = naru.zeros(1, 3, 3); x[0, 1, 1] = 1.0
    >>> naru.vision.transforms.RandomAdjustSharpness(0.0, p=1.0)(x)[0, 1]
    tensor([0.0000, 0.3846, 0.0000])
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        return F.adjust_sharpness(img, self.sharpness_factor) if drawn else img


class RandomErasing(ImageTransform):
    """Overwrites a random rectangle of a tensor, with probability `p`.

    Args:
        scale, ratio: ranges of the rectangle's share of the area, and of its aspect ratio.
        value: a number, one per channel, or 'random' for normally distributed values. `inplace`: modify the tensor itself.

    >>> naru.vision.transforms.RandomErasing(p=0.0)(naru.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def __init__(self, p: float = 0.5, scale: Any = (0.02, 0.33), ratio: Any = (0.3, 3.3), value: Any = 0, inplace: bool = False) -> None:
        super().__init__()
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        for name, pair in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(pair, (tuple, list)):
                raise TypeError(f"{name} should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if not 0 <= p <= 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img: Tensor, scale: Any, ratio: Any, value: Any = None) -> tuple[Any, ...]:
        """Returns (top, left, height, width, values to write). After ten attempts that do not fit, the region is the whole image and the values are
        the image itself. value None: random values."""
        channels, height, width = img.shape[-3:]
        low, high = naru.log(naru.tensor([float(r) for r in ratio])).tolist()
        for _ in range(10):
            area = height * width * uniform(scale[0], scale[1])
            aspect = naru.exp(naru.empty(1).uniform_(low, high)).item()
            h, w = int(round(math.sqrt(area * aspect))), int(round(math.sqrt(area / aspect)))
            if not (h < height and w < width):
                continue
            if value is None:
                written = naru.empty([channels, h, w], dtype=naru.float32).normal_()
            else:
                written = naru.tensor([float(v) for v in value]).view([-1, 1, 1])
            top = randint(0, height - h + 1)
            return top, randint(0, width - w + 1), h, w, written
        return 0, 0, height, width, img

    def _draw(self, img: Any) -> Any:
        return None if naru.rand(1).item() >= self.p else self._rectangle(img)

    def _rectangle(self, img: Any) -> Any:
        if not isinstance(img, Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(img)}")
        value = [self.value] if isinstance(self.value, numbers.Number) else None if isinstance(self.value, str) else list(self.value)
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError(f"If value is a sequence, it should have either a single value or {img.shape[-3]} (number of input channels)")
        return self.get_params(img, self.scale, self.ratio, value)

    def _apply_to(self, img: Any, drawn: Any) -> Any:
        if drawn is None:
            return img
        top, left, height, width, written = drawn
        return F.erase(img, top, left, height, width, written.to(img.device, img.dtype), self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, inplace={self.inplace}"


class LinearTransformation(ImageTransform):
    """Computes (flattened image - `mean_vector`) @ `transformation_matrix`, in the image's shape; used for whitening.

    >>> half = naru.vision.transforms.LinearTransformation(0.5 * naru.eye(2), naru.ones(2))
    >>> half(naru.tensor([[[1.0, 3.0]]]))
    tensor([[[0., 1.]]])
    """

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        rows, columns = transformation_matrix.shape
        if rows != columns:
            raise ValueError(f"transformation_matrix should be square. Got {tuple(transformation_matrix.shape)} rectangular matrix.")
        if mean_vector.shape[0] != rows:
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.shape[0]} as any one of the dimensions of the transformation_matrix "
                f"[{tuple(transformation_matrix.shape)}]"
            )
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def _apply_to(self, img: Any, drawn: Any) -> Tensor:
        size = math.prod(img.shape[-3:])
        if size != self.transformation_matrix.shape[0]:
            raise ValueError(
                f"Input tensor and transformation matrix have incompatible shape. [{img.shape[-3]} x {img.shape[-2]} x {img.shape[-1]}] != "
                f"{self.transformation_matrix.shape[0]}"
            )
        flat = img.reshape([-1, size]) - self.mean_vector.to(img.device)
        return (flat @ self.transformation_matrix.to(img.device)).reshape(img.shape)
