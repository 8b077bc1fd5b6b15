"""Layers that pad, resample and rearrange images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from .. import functional as F
from .module import Module

Tensor = _C.Tensor

_DIMS = (1, 2, 3)
if not TYPE_CHECKING:
    __all__ = [
        *(f"{kind}{n}d" for kind in ("ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad") for n in _DIMS),
        "Upsample",
        "UpsamplingNearest2d",
        "UpsamplingBilinear2d",
        "PixelShuffle",
        "PixelUnshuffle",
        "ChannelShuffle",
        "Fold",
        "Unfold",
    ]


class _Pad(Module):
    """Pads the last dimensions: `padding` is (before, after) for the last one, then for the one before it, and so on; or one number for all."""

    _dims = 0
    _mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        if self._mode == "circular" and input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    """Pads with `value`."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    """Pads with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    """Pads with the elements as seen from the edge."""


class _ReplicationPadNd(_Pad):
    """Pads with the element at the edge."""


class _CircularPadNd(_Pad):
    """Pads with the elements of the other end."""


def _pads(base: type, kind: str, mode: str, what: str, shown: str) -> None:
    """Defines kind1d, kind2d and kind3d; `shown` is the example [1, 2, 3] padded by one at either end."""
    for n in _DIMS:
        padding, left, right = ", ".join("11" + "00" * (n - 1)), "[" * (n + 1), "]" * (n + 1)
        doc = f"""Pads the last {n} dimension{"s" if n > 1 else ""} {what}: `padding` is (in front, behind), the last dimension first, or one number.

        >>> naru.nn.{kind}{n}d(({padding}){", 7" if kind == "ConstantPad" else ""})(naru.tensor({left}1, 2, 3{right}))
        tensor({left}{shown}{right})
        """
        body = {"_dims": n, "_mode": mode, "__doc__": doc, "__module__": __name__}
        bases = (base, globals()[f"ConstantPad{n}d"]) if kind == "ZeroPad" else (base,)
        globals()[f"{kind}{n}d"] = type(f"{kind}{n}d", bases, body)


_pads(_ConstantPadNd, "ConstantPad", "constant", "with a value", "7, 1, 2, 3, 7")
_pads(_ZeroPad, "ZeroPad", "constant", "with zeros", "0, 1, 2, 3, 0")
_pads(_ReflectionPadNd, "ReflectionPad", "reflect", "with the elements as seen from the edge, which is not repeated", "2, 1, 2, 3, 2")
_pads(_ReplicationPadNd, "ReplicationPad", "replicate", "with the element at the edge", "1, 1, 2, 3, 3")
_pads(_CircularPadNd, "CircularPad", "circular", "with the elements of the other end", "3, 1, 2, 3, 1")

if TYPE_CHECKING:

    class ConstantPad1d(_ConstantPadNd): ...

    class ConstantPad2d(_ConstantPadNd): ...

    class ConstantPad3d(_ConstantPadNd): ...

    class ZeroPad1d(_ZeroPad, ConstantPad1d): ...

    class ZeroPad2d(_ZeroPad, ConstantPad2d): ...

    class ZeroPad3d(_ZeroPad, ConstantPad3d): ...

    class ReflectionPad1d(_ReflectionPadNd): ...

    class ReflectionPad2d(_ReflectionPadNd): ...

    class ReflectionPad3d(_ReflectionPadNd): ...

    class ReplicationPad1d(_ReplicationPadNd): ...

    class ReplicationPad2d(_ReplicationPadNd): ...

    class ReplicationPad3d(_ReplicationPadNd): ...

    class CircularPad1d(_CircularPadNd): ...

    class CircularPad2d(_CircularPadNd): ...

    class CircularPad3d(_CircularPadNd): ...


class Upsample(Module):
    """Resamples (N, C, d1...) to `size`, or by `scale_factor`; see `torch.nn.functional.interpolate`.

    Args:
        mode: 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'.
        align_corners: whether the centres of the corner elements are aligned; otherwise, their outer edges are.
        recompute_scale_factor: whether to compute the scale from the sizes instead of using `scale_factor`.

    >>> import naru
    >>> naru.nn.Upsample(scale_factor=2)(naru.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        of = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{of}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of (N, C, H, W) with mode 'nearest'.

    Args:
        size: the sizes of the result.
        scale_factor: the factors of the input's sizes, if `size` is not given.

    >>> naru.nn.UpsamplingNearest2d(scale_factor=2)(naru.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of (N, C, H, W) with mode 'bilinear' and align_corners=True.

    Args:
        size: the sizes of the result.
        scale_factor: the factors of the input's sizes, if `size` is not given.

    >>> naru.nn.UpsamplingBilinear2d(size=(1, 3))(naru.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """(..., C · r², H, W) to (..., C, H · r, W · r), where r is `upscale_factor` (Shi et al., 2016).

    >>> naru.nn.PixelShuffle(2)(naru.arange(4).reshape(4, 1, 1))
    tensor([[[0, 1],
             [2, 3]]])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(..., C, H · r, W · r) to (..., C · r², H, W), where r is `downscale_factor`.

    >>> naru.nn.PixelUnshuffle(2)(naru.arange(4).reshape(1, 2, 2)).flatten(1)
    tensor([[0],
            [1],
            [2],
            [3]])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Reorders channels from (groups, C / groups) to (C / groups, groups).

    >>> naru.nn.ChannelShuffle(2)(naru.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Fold(Module):
    """Adds columns (N, C · kernel_h · kernel_w, positions) at the positions of their windows: (N, C, *output_size). The inverse of `Unfold` up to overlaps.

    Args:
        kernel_size: the size of the windows.
        dilation: the spacing between a window's elements.
        padding: zeros on both sides.
        stride: the step between windows.

    >>> naru.nn.Fold((2, 2), kernel_size=2)(naru.ones(1, 4, 1))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Unfold(Module):
    """The windows of (N, C, H, W) as columns (N, C · kernel_h · kernel_w, positions).

    Args:
        kernel_size: the size of the windows.
        dilation: the spacing between a window's elements.
        padding: zeros on both sides.
        stride: the step between windows.

    >>> naru.nn.Unfold(2)(naru.arange(6.0).reshape(1, 1, 2, 3))
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
