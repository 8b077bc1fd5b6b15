"""Pooling layers."""

from __future__ import annotations

from typing import Any

from ... import _C
from .. import functional as F
from ._pooling_bases import _AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd, _LPPoolNd, _MaxPoolNd, _MaxUnpoolNd
from .module import Module

Tensor = _C.Tensor

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
]


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (N, C, L) or (C, L).

    Args:
        kernel_size, stride, dilation: the window's size, its step (kernel_size if None), and the spacing between its elements.
        padding: added on both sides; it never is the maximum.
        return_indices: whether to return also the elements' indices within their channel (int64), which max unpooling needs.
        ceil_mode: whether output sizes are rounded up instead of down.

    >>> naru.nn.MaxPool1d(2)(naru.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size, stride, dilation: the window's size, its step (kernel_size if None), and the spacing between its elements.
        padding: added on both sides; it never is the maximum.
        return_indices: whether to return also the elements' indices within their channel (int64), which max unpooling needs.
        ceil_mode: whether output sizes are rounded up instead of down.

    >>> import naru
    >>> naru.nn.MaxPool2d(2)(naru.arange(8.0).reshape(1, 2, 4))
    tensor([[[5., 7.]]])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size, stride, dilation: the window's size, its step (kernel_size if None), and the spacing between its elements.
        padding: added on both sides; it never is the maximum.
        return_indices: whether to return also the elements' indices within their channel (int64), which max unpooling needs.
        ceil_mode: whether output sizes are rounded up instead of down.

    >>> naru.nn.MaxPool3d(2)(naru.arange(16.0).reshape(1, 2, 2, 4))
    tensor([[[[13., 15.]]]])
    """

    _function = staticmethod(F.max_pool3d)


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts elements (N, C, L) back to the indices where `MaxPool1d` with return_indices found them; the rest is zeros.

    Args:
        kernel_size, stride, padding: as in the pooling; stride is kernel_size if None.

    Call it with the elements, their indices (int64) and, if the sizes are ambiguous, output_size.

    >>> pool = naru.nn.MaxPool1d(2, return_indices=True)
    >>> naru.nn.MaxUnpool1d(2)(*pool(naru.tensor([[1.0, 5.0, 2.0, 3.0]])))
    tensor([[0., 5., 0., 3.]])
    """

    _dims = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts elements (N, C, H, W) back to the indices where `MaxPool2d` with return_indices found them; the rest is zeros.

    Args:
        kernel_size, stride, padding: as in the pooling; stride is kernel_size if None.

    Call it with the elements, their indices (int64) and, if the sizes are ambiguous, output_size.

    >>> pool = naru.nn.MaxPool2d(2, return_indices=True)
    >>> naru.nn.MaxUnpool2d(2)(*pool(naru.arange(8.0).reshape(1, 2, 4)))
    tensor([[[0., 0., 0., 0.],
             [0., 5., 0., 7.]]])
    """

    _dims = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts elements (N, C, D, H, W) back to the indices where `MaxPool3d` with return_indices found them; the rest is zeros.

    Args:
        kernel_size, stride, padding: as in the pooling; stride is kernel_size if None.

    Call it with the elements, their indices (int64) and, if the sizes are ambiguous, output_size.

    >>> pool = naru.nn.MaxPool3d((1, 2, 2), return_indices=True)
    >>> naru.nn.MaxUnpool3d((1, 2, 2))(*pool(naru.arange(4.0).reshape(1, 1, 2, 2)))
    tensor([[[[0., 0.],
              [0., 3.]]]])
    """

    _dims = 3
    _function = staticmethod(F.max_unpool3d)


class AvgPool1d(Module):
    """The mean of each window of (N, C, L) or (C, L). See `AvgPool2d`.

    Args:
        kernel_size: the size of the windows.
        stride: the step between windows; kernel_size if None.
        padding: zeros on both sides.
        ceil_mode: whether output sizes are rounded up instead of down.
        count_include_pad: whether the zeros of the padding count in the divisor.

    >>> naru.nn.AvgPool1d(2)(naru.arange(4.0).reshape(1, 1, 4))
    tensor([[[0.5000, 2.5000]]])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()

        def single(value: Any) -> tuple[int, ...]:
            return tuple(value) if isinstance(value, (tuple, list)) else (value,)

        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size, stride: the window's size and its step (kernel_size if None).
        padding: zeros on both sides.
        ceil_mode: whether output sizes are rounded up instead of down.
        count_include_pad: whether the zeros of the padding count in the divisor.
        divisor_override: the divisor to use instead of the number of elements.

    >>> import naru
    >>> naru.nn.AvgPool2d(2)(naru.arange(8.0).reshape(1, 2, 4))
    tensor([[[2.5000, 4.5000]]])
    """

    _function: Any = staticmethod(F.avg_pool2d)

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool3d(AvgPool2d):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W). See `AvgPool2d`.

    Args:
        kernel_size: the size of the windows.
        stride: the step between windows; kernel_size if None.
        padding: zeros on both sides.
        ceil_mode: whether output sizes are rounded up instead of down.
        count_include_pad: whether the zeros of the padding count in the divisor.
        divisor_override: the divisor to use instead of the number of elements.

    >>> naru.nn.AvgPool3d(2)(naru.arange(8.0).reshape(1, 1, 2, 2, 2))
    tensor([[[[[3.5000]]]]])
    """

    _function = staticmethod(F.avg_pool3d)


class FractionalMaxPool2d(Module):
    """The maxima of windows at random positions of (N, C, H, W) or (C, H, W) (Graham, 2015).

    Args:
        kernel_size: the size of the windows.
        output_size: the number of windows; alternatively output_ratio, in (0, 1): that number relative to the input's size.
        return_indices: whether to return also the elements' indices within their channel (int64).

    >>> naru.nn.FractionalMaxPool2d(2, output_size=2)(naru.arange(16.0).reshape(1, 4, 4))[..., -1, -1]
    tensor([15.])
    """

    _dims = 2
    _function: Any = staticmethod(F.fractional_max_pool2d)

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()

        def each(value: Any) -> Any:
            return value if value is None or isinstance(value, (tuple, list)) else (value,) * self._dims

        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size)
        self.output_ratio = each(output_ratio)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return type(self)._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=self._random_samples
        )


class FractionalMaxPool3d(FractionalMaxPool2d):
    """The maxima of windows at random positions of (N, C, D, H, W) or (C, D, H, W). See `FractionalMaxPool2d`.

    Args:
        kernel_size: the size of the windows.
        output_size: the number of windows.
        output_ratio: in (0, 1), the number of windows relative to the input's size, instead of output_size.
        return_indices: whether to return also the elements' indices within their channel (int64).

    >>> naru.nn.FractionalMaxPool3d(2, output_size=2)(naru.arange(64.0).reshape(1, 4, 4, 4))[..., -1, -1, -1]
    tensor([63.])
    """

    _dims = 3
    _function = staticmethod(F.fractional_max_pool3d)


class LPPool1d(_LPPoolNd):
    """(sum of x^norm_type)^(1 / norm_type) of each window of (N, C, L) or (C, L).

    Args:
        kernel_size: the size of the windows.
        stride: the step between windows; kernel_size if None.
        ceil_mode: whether output sizes are rounded up instead of down.

    >>> naru.nn.LPPool1d(2, 2)(naru.arange(4.0).reshape(1, 1, 4))
    tensor([[[1.0000, 3.6056]]])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """(sum of x^norm_type)^(1 / norm_type) of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the size of the windows.
        stride: the step between windows; kernel_size if None.
        ceil_mode: whether output sizes are rounded up instead of down.

    >>> naru.nn.LPPool2d(2, 2)(naru.arange(16.0).reshape(1, 1, 4, 4))
    tensor([[[[ 6.4807,  9.8995],
              [21.4009, 25.3377]]]])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """(sum of x^norm_type)^(1 / norm_type) of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size: the size of the windows.
        stride: the step between windows; kernel_size if None.
        ceil_mode: whether output sizes are rounded up instead of down.

    >>> naru.nn.LPPool3d(2, 2)(naru.arange(8.0).reshape(1, 1, 2, 2, 2))
    tensor([[[[[11.8322]]]]])
    """

    _function = staticmethod(F.lp_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover (N, C, L) or (C, L); with return_indices also their indices.

    >>> naru.nn.AdaptiveMaxPool1d(1)(naru.arange(4.0).reshape(1, 1, 4))
    tensor([[[3.]]])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """`AdaptiveMaxPool1d` for (N, C, H, W) or (C, H, W); None in `output_size` keeps the input's size.

    Args:
        return_indices: whether to return also the elements' indices within their channel (int64).

    >>> naru.nn.AdaptiveMaxPool2d(1)(naru.arange(16.0).reshape(1, 1, 4, 4))
    tensor([[[[15.]]]])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """`AdaptiveMaxPool1d` for (N, C, D, H, W) or (C, D, H, W); None in `output_size` keeps the input's size.

    Args:
        return_indices: whether to return also the elements' indices within their channel (int64).

    >>> naru.nn.AdaptiveMaxPool3d(1)(naru.arange(8.0).reshape(1, 1, 2, 2, 2))
    tensor([[[[[7.]]]]])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover (N, C, L) or (C, L).

    >>> naru.nn.AdaptiveAvgPool1d(1)(naru.arange(4.0).reshape(1, 1, 4))
    tensor([[[1.5000]]])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """`AdaptiveAvgPool1d` for (N, C, H, W) or (C, H, W); None in `output_size` keeps the input's size.

    >>> import naru
    >>> naru.nn.AdaptiveAvgPool2d((1, None))(naru.ones(1, 3, 5, 7)).shape
    torch.Size([1, 3, 1, 7])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """`AdaptiveAvgPool1d` for (N, C, D, H, W) or (C, D, H, W); None in `output_size` keeps the input's size.

    >>> naru.nn.AdaptiveAvgPool3d(1)(naru.arange(8.0).reshape(1, 1, 2, 2, 2))
    tensor([[[[[3.5000]]]]])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)
