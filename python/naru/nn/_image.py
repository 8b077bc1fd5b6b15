"""Normalisation per channel, padding and resampling, as functions. The work is done in C++."""

from __future__ import annotations

import reprlib
import warnings
from typing import TYPE_CHECKING, Any

from .. import _C
from .._functions.arguments import takes_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor

pixel_shuffle, pixel_unshuffle, channel_shuffle = _C.pixel_shuffle, _C.pixel_unshuffle, _C.channel_shuffle
native_channel_shuffle = _C.channel_shuffle


@takes_tensors
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel of (N, C, ...) or (N, C).

    Args:
        training: whether to use the input's statistics and update the running ones with weight `momentum`; otherwise the running ones are used.
        running_mean, running_var: (C,), or None.

    >>> naru.nn.functional.batch_norm(naru.arange(4.0).reshape(4, 1), None, None, training=True).flatten()
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    if training and input.dim() >= 2 and input.numel() == input.size(1):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    if eps <= 0 and training:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _C.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@takes_tensors
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel of each sample of (N, C, ...).

    Args:
        input: (N, C, ...), floating point.
        running_mean, running_var: (C,), or None.
        use_input_stats: whether to use the input's statistics; otherwise the running ones.
        momentum: the weight of the input's statistics in the running ones.

    >>> naru.nn.functional.instance_norm(naru.arange(4.0).reshape(1, 1, 4))
    tensor([[[-1.3416, -0.4472,  0.4472,  1.3416]]])
    """
    if use_input_stats:
        positions = 1
        for size in input.shape[2:]:
            positions *= size
        if positions == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return _C.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


@takes_tensors
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) for each of `num_groups` groups of channels of (N, C, ...), then weight and bias of each channel.

    Args:
        input: (N, C, ...), floating point.

    >>> naru.nn.functional.group_norm(naru.arange(4.0).reshape(1, 2, 2), 1)
    tensor([[[-1.3416, -0.4472],
             [ 0.4472,  1.3416]]])
    """
    if input.dim() >= 2 and num_groups > 0 and input.numel() // num_groups == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.size())}")
    return _C.group_norm(input, num_groups, weight, bias, eps)


@takes_tensors
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta, for (N, C, d1...).

    Args:
        input: floating point.

    >>> naru.nn.functional.local_response_norm(naru.tensor([[[1.0], [3.0]]]), 1, alpha=1.0, beta=1.0).flatten()
    tensor([0.5000, 0.3000])
    """
    return _C._local_response_norm(input, size, alpha, beta, k)


@takes_tensors
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads the last dimensions: `pad` is (before, after) for the last one, then for the one before it, and so on; negative amounts crop.

    Args:
        mode: 'constant' (with `value`, 0 if None); or 'reflect', 'replicate', 'circular', for 1 to 3 dimensions after (N, C) or (C).
        input: any shape and dtype.

    >>> naru.nn.functional.pad(naru.tensor([1.0, 2.0]), (1, 2), value=9.0)
    tensor([9., 1., 2., 9., 9.])
    """
    if isinstance(value, complex):  # which constant_pad_nd accepts
        raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
    return _C._pad(input, pad, mode, value)


@takes_tensors
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of (N, C, h, w) as columns: (N, C · kernel_h · kernel_w, positions); N may be omitted.

    Args:
        input: floating point.
        kernel_size: the size of the windows.
        dilation: the spacing between a window's elements.
        padding: zeros on both sides.
        stride: the step between windows.

    >>> naru.nn.functional.unfold(naru.arange(4.0).reshape(1, 1, 2, 2), kernel_size=2).flatten()
    tensor([0., 1., 2., 3.])
    """
    return _C._unfold(input, kernel_size, dilation, padding, stride)


@takes_tensors
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Adds columns (N, C · kernel_h · kernel_w, positions) at the positions where `unfold` reads them: (N, C, *output_size); N may be omitted.

    Args:
        input: floating point.
        kernel_size: the size of the windows.
        dilation: the spacing between a window's elements.
        padding: zeros on both sides.
        stride: the step between windows.

    >>> naru.nn.functional.fold(naru.ones(1, 4, 1), (2, 2), kernel_size=2)
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    return _C._fold(input, output_size, kernel_size, dilation, padding, stride)


def _target_size(input: Tensor, size: Any, scale_factor: Any, recompute: bool) -> tuple[list[int], list[float] | None]:
    """The size to resample to, and the scales to use instead of the ratio of sizes."""
    n = input.dim() - 2
    spatial = list(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * n
        if not all(hasattr(s, "__index__") for s in sizes):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                f"{[type(s) for s in sizes]}"
            )
        if len(sizes) != n:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {spatial} and "
                f"output size of {reprlib.repr(size)}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) "
                "format."
            )
        return sizes, None
    scales = [float(s) for s in scale_factor] if isinstance(scale_factor, (tuple, list)) else [float(scale_factor)] * n
    if len(scales) != n:
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of {spatial} and "
            f"scale_factor of shape {reprlib.repr(scale_factor)}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    if not all(abs(d * s) < 2**63 for d, s in zip(spatial, scales)):
        raise RuntimeError(f"interpolate: scale_factor {reprlib.repr(scale_factor)}: value cannot be converted to type int64_t without overflow")
    sizes = [int(d * s) for d, s in zip(spatial, scales)]
    return sizes, None if recompute else scales


@takes_tensors
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resamples (N, C, d1...) to `size`, or by `scale_factor`.

    Args:
        mode: 'nearest', 'nearest-exact', 'area'; 'linear' (1 dimension), 'bilinear', 'bicubic', 'lanczos' (2), 'trilinear' (3).
        align_corners: whether the centres of the corner elements are aligned; otherwise, their outer edges are. Not for 'nearest' and 'area'.
        recompute_scale_factor: whether to compute the scale from the sizes instead of using `scale_factor`.
        antialias: whether windows grow when downsampling ('bilinear', 'bicubic', 'lanczos').
        input: (N, C, d1...), floating point or uint8.

    >>> import naru
    >>> naru.nn.functional.interpolate(naru.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    sizes, scales = _target_size(input, size, scale_factor, bool(recompute_scale_factor) or (mode == "area" and size is None))
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    given = None if scales is None else _C.tensor(scales, dtype=_C.float64)
    return _C._interpolate(input, sizes, mode, bool(align_corners), given, antialias)


def _deprecated(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """The same as `interpolate`.

    Args:
        input: (N, C, d1...), floating point or uint8.
        size: the sizes of the result.
        scale_factor: the factors of the input's sizes, if `size` is not given.
        mode, align_corners: as in `interpolate`.

    >>> naru.nn.functional.upsample(naru.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode 'nearest'.

    Args:
        input: (N, C, d1...), floating point or uint8.
        size: the sizes of the result.
        scale_factor: the factors of the input's sizes, if `size` is not given.

    >>> naru.nn.functional.upsample_nearest(naru.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode 'bilinear' and align_corners=True.

    Args:
        input: (N, C, d1...), floating point or uint8.
        size: the sizes of the result.
        scale_factor: the factors of the input's sizes, if `size` is not given.

    >>> naru.nn.functional.upsample_bilinear(naru.tensor([[[[0.0, 1.0]]]]), size=(1, 3))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _warn_of_corners(name: str) -> None:
    warnings.warn(
        f"Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the "
        f"old behavior is desired. See the documentation of {name} for details.",
        stacklevel=4,
    )


@takes_tensors
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Samples (N, C, h, w) at the positions in `grid` (N, h', w', 2), x first, where -1 and 1 are the edges; also for three dimensions.

    Args:
        mode: 'bilinear', 'nearest' or 'bicubic' (two dimensions only).
        padding_mode: the values outside of the input: 'zeros', 'border' or 'reflection'.
        align_corners: whether -1 and 1 are the centres of the corner elements, not their outer edges.
        input: (N, C, h, w) or (N, C, d, h, w), floating point.

    >>> naru.nn.functional.grid_sample(naru.arange(4.0).reshape(1, 1, 2, 2), naru.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[1.5000]]]])
    """
    if align_corners is None:
        _warn_of_corners("grid_sample")
    return _C._grid_sample(input, grid, mode, padding_mode, bool(align_corners))


@takes_tensors
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` of affine maps theta: (N, 2, 3) for size (N, C, h, w), or (N, 3, 4) for (N, C, d, h, w).

    Args:
        align_corners: whether -1 and 1 are the centres of the corner pixels; if False or None, their outer edges.

    >>> naru.nn.functional.affine_grid(naru.eye(2, 3)[None], (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if align_corners is None:
        _warn_of_corners("affine_grid")
    if align_corners and 1 in tuple(size)[2:]:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True: an edge of one element has its "
            "place at 0, not at -1. See the documentation of affine_grid for details.",
            stacklevel=3,
        )
    return _C.affine_grid_generator(theta, size, bool(align_corners))
