"""Pooling, as functions. The core does the work; here are the choices that Python's signatures leave to the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._functions.arguments import takes_tensors
from .._functions.naming import named

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor

avg_pool1d, avg_pool2d, avg_pool3d = _C.avg_pool1d, _C.avg_pool2d, _C.avg_pool3d
adaptive_avg_pool1d = _C.adaptive_avg_pool1d
adaptive_max_pool1d_with_indices = _C.adaptive_max_pool1d


_MAX_POOL = """The greatest element of each window of (N, C, d1...) or (C, d1...).

Args:
    input: floating point, integer or bool.
    kernel_size, stride, dilation: of the window: its size, its step (its size if None), the distance of its elements.
    padding: added on both sides; counts as less than every number.
    ceil_mode: sizes are rounded up.
    return_indices: whether each one's place in its channel (int64) is returned, too, as max_pool*_with_indices does always.

>>> """


def _max_pool(values: Any, with_indices: Any, name: str, example: str, both: bool = False) -> Any:
    @takes_tensors
    @named(name, _MAX_POOL + example)
    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if both or return_indices:
            return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return values(input, kernel_size, stride, padding, dilation, ceil_mode)

    return max_pool


max_pool1d = _max_pool(
    _C.max_pool1d, _C.max_pool1d_with_indices, "max_pool1d",
    "naru.nn.functional.max_pool1d(naru.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)\ntensor([[5., 3.]])",
)  # fmt: skip
max_pool2d = _max_pool(
    _C.max_pool2d, _C.max_pool2d_with_indices, "max_pool2d",
    "naru.nn.functional.max_pool2d(naru.arange(8.0).reshape(1, 2, 4), 2)\ntensor([[[5., 7.]]])",
)  # fmt: skip
max_pool3d = _max_pool(
    _C.max_pool3d, _C.max_pool3d_with_indices, "max_pool3d",
    "naru.nn.functional.max_pool3d(naru.arange(16.0).reshape(1, 2, 2, 4), 2)\ntensor([[[[13., 15.]]]])",
)  # fmt: skip
max_pool1d_with_indices = _max_pool(
    _C.max_pool1d, _C.max_pool1d_with_indices, "max_pool1d_with_indices",
    "naru.nn.functional.max_pool1d_with_indices(naru.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)\n(tensor([[5., 3.]]), tensor([[1, 3]]))", True,
)  # fmt: skip
max_pool2d_with_indices = _max_pool(
    _C.max_pool2d, _C.max_pool2d_with_indices, "max_pool2d_with_indices",
    "naru.nn.functional.max_pool2d_with_indices(naru.arange(8.0).reshape(1, 2, 4), 2)\n(tensor([[[5., 7.]]]), tensor([[[5, 7]]]))", True,
)  # fmt: skip
max_pool3d_with_indices = _max_pool(
    _C.max_pool3d, _C.max_pool3d_with_indices, "max_pool3d_with_indices",
    "naru.nn.functional.max_pool3d_with_indices(naru.arange(8.0).reshape(1, 2, 2, 2), 2)\n(tensor([[[[7.]]]]), tensor([[[[7]]]]))", True,
)  # fmt: skip


def _whole_sizes(input: Tensor, output_size: Any, n: int, op: str) -> Any:
    """`output_size` with the input's own size in place of each None."""
    if isinstance(output_size, int):
        return output_size
    if len(output_size) != n:
        raise RuntimeError(f"{op}: output_size must be {n}, got {len(output_size)} sizes")
    if input.dim() < n:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D tensor for adaptive pooling of {n} dimensions, but got {list(input.shape)}")
    return [own if size is None else size for own, size in zip(input.shape[-n:], output_size)]


@takes_tensors
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that cover (N, C, h, w) or (C, h, w), as many as `output_size` says; None keeps a size.

    Args:
        input: (N, C, h, w) or (C, h, w), floating point.

    >>> naru.nn.functional.adaptive_avg_pool2d(naru.arange(16.0).reshape(1, 1, 4, 4), 1)
    tensor([[[[7.5000]]]])
    """
    return _C.adaptive_avg_pool2d(input, _whole_sizes(input, output_size, 2, "adaptive_avg_pool2d"))


@takes_tensors
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that cover (N, C, d, h, w) or (C, d, h, w), as many as `output_size` says; None keeps a size.

    Args:
        input: (N, C, ...) or (C, ...), floating point.

    >>> naru.nn.functional.adaptive_avg_pool3d(naru.arange(8.0).reshape(1, 1, 2, 2, 2), 1)
    tensor([[[[[3.5000]]]]])
    """
    return _C.adaptive_avg_pool3d(input, _whole_sizes(input, output_size, 3, "adaptive_avg_pool3d"))


@takes_tensors
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows as `output_size` says; with `return_indices` also their places (int64).

    Args:
        input: (N, C, ...) or (C, ...), floating point.

    >>> naru.nn.functional.adaptive_max_pool1d(naru.arange(4.0).reshape(1, 1, 4), 1)
    tensor([[[3.]]])
    """
    found = _C.adaptive_max_pool1d(input, output_size)
    return found if return_indices else found[0]


@takes_tensors
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The same for (N, C, h, w) or (C, h, w); None keeps a size.

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        output_size: how many windows: a number, or one for each dimension.
        return_indices: whether the elements' places in their channel (int64) are returned, too.

    >>> naru.nn.functional.adaptive_max_pool2d(naru.arange(16.0).reshape(1, 1, 4, 4), 1)
    tensor([[[[15.]]]])
    """
    found = _C.adaptive_max_pool2d(input, _whole_sizes(input, output_size, 2, "adaptive_max_pool2d"))
    return found if return_indices else found[0]


@takes_tensors
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The same for (N, C, d, h, w) or (C, d, h, w); None keeps a size.

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        output_size: how many windows: a number, or one for each dimension.
        return_indices: whether the elements' places in their channel (int64) are returned, too.

    >>> naru.nn.functional.adaptive_max_pool3d(naru.arange(8.0).reshape(1, 1, 2, 2, 2), 1)
    tensor([[[[[7.]]]]])
    """
    found = _C.adaptive_max_pool3d(input, _whole_sizes(input, output_size, 3, "adaptive_max_pool3d"))
    return found if return_indices else found[0]


@takes_tensors
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """`adaptive_max_pool2d` with the places.

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        output_size: how many windows: a number, or one for each dimension.
        return_indices: whether the elements' places in their channel (int64) are returned, too.

    >>> naru.nn.functional.adaptive_max_pool2d_with_indices(naru.arange(16.0).reshape(1, 1, 4, 4), 1)
    (tensor([[[[15.]]]]), tensor([[[[15]]]]))
    """
    return adaptive_max_pool2d(input, output_size, True)


@takes_tensors
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """`adaptive_max_pool3d` with the places.

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        output_size: how many windows: a number, or one for each dimension.
        return_indices: whether the elements' places in their channel (int64) are returned, too.

    >>> naru.nn.functional.adaptive_max_pool3d_with_indices(naru.arange(8.0).reshape(1, 1, 2, 2, 2), 1)
    (tensor([[[[[7.]]]]]), tensor([[[[[7]]]]]))
    """
    return adaptive_max_pool3d(input, output_size, True)


@takes_tensors
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^norm_type)^(1 / norm_type) of each window of (N, C, l) or (C, l).

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        kernel_size: the windows' size.
        stride: their step; their size if None.
        ceil_mode: whether sizes are rounded up.

    >>> naru.nn.functional.lp_pool1d(naru.arange(4.0).reshape(1, 1, 4), 2, 2)
    tensor([[[1.0000, 3.6056]]])
    """
    return _C._lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@takes_tensors
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^norm_type)^(1 / norm_type) of each window of (N, C, h, w) or (C, h, w).

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        kernel_size: the windows' size.
        stride: their step; their size if None.
        ceil_mode: whether sizes are rounded up.

    >>> naru.nn.functional.lp_pool2d(naru.arange(16.0).reshape(1, 1, 4, 4), 2, 2)
    tensor([[[[ 6.4807,  9.8995],
              [21.4009, 25.3377]]]])
    """
    return _C._lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@takes_tensors
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^norm_type)^(1 / norm_type) of each window of (N, C, d, h, w) or (C, d, h, w).

    Args:
        input: (N, C, ...) or (C, ...), floating point.
        kernel_size: the windows' size.
        stride: their step; their size if None.
        ceil_mode: whether sizes are rounded up.

    >>> naru.nn.functional.lp_pool3d(naru.arange(8.0).reshape(1, 1, 2, 2, 2), 2, 2)
    tensor([[[[[11.8322]]]]])
    """
    return _C._lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _require_spatial(input: Tensor, n: int, name: str) -> None:
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor for input, but got: {list(input.shape)}")


_FRACTIONAL = """The greatest elements of windows at random places (Graham, 2015) of (N, C, d1...) or (C, d1...).

Args:
    input: floating point.
    kernel_size: the windows' size.
    output_size: how many windows; or output_ratio: how many for each element of the input. ValueError for neither.
    return_indices: whether each one's place in its channel (int64) is returned, too.
    _random_samples: numbers (N, C, dimensions) in [0, 1) that choose the places.

>>> """


def _fractional(n: int, name: str, example: str) -> Any:
    @takes_tensors
    @named(name, _FRACTIONAL + example)
    def fractional_max_pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        _require_spatial(input, n, name)
        if output_size is None:
            if output_ratio is None:
                raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
            ratio = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
            if len(ratio) != n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints. (got {len(ratio)}, wanted {n})")
            output_size = [int(size * r) for size, r in zip(input.shape[-n:], ratio)]
        images = 1 if input.dim() == n + 1 else input.size(0)
        if _random_samples is not None:
            _random_samples = _random_samples[:images]
        else:
            _random_samples = _C.rand(images, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
        found = _C._fractional_max_pool(n, input, kernel_size, output_size, _random_samples)
        return found if return_indices else found[0]

    return fractional_max_pool


# The last window ends where the input does, whatever chance says.
fractional_max_pool2d = _fractional(
    2, "fractional_max_pool2d",
    "naru.nn.functional.fractional_max_pool2d(naru.arange(16.0).reshape(1, 4, 4), 2, output_size=2)[..., -1, -1]\ntensor([15.])",
)  # fmt: skip
fractional_max_pool3d = _fractional(
    3, "fractional_max_pool3d",
    "naru.nn.functional.fractional_max_pool3d(naru.arange(64.0).reshape(1, 4, 4, 4), 2, output_size=2)[..., -1, -1, -1]\ntensor([63.])",
)  # fmt: skip


def fractional_max_pool2d_with_indices(*args: Any, **kwargs: Any) -> Any:
    """`fractional_max_pool2d` with the places.

    >>> values, places = naru.nn.functional.fractional_max_pool2d_with_indices(naru.arange(16.0).reshape(1, 4, 4), 2, output_size=2)
    >>> values[0, -1, -1], places[0, -1, -1]
    (tensor(15.), tensor(15))
    """
    return fractional_max_pool2d(*args, **{**kwargs, "return_indices": True})


def fractional_max_pool3d_with_indices(*args: Any, **kwargs: Any) -> Any:
    """`fractional_max_pool3d` with the places.

    >>> values, places = naru.nn.functional.fractional_max_pool3d_with_indices(naru.arange(64.0).reshape(1, 4, 4, 4), 2, output_size=2)
    >>> values[0, -1, -1, -1], places[0, -1, -1, -1]
    (tensor(63.), tensor(63))
    """
    return fractional_max_pool3d(*args, **{**kwargs, "return_indices": True})


def _unpool_sizes(input: Tensor, n: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Sequence[int]:
    """The sizes that were pooled: those asked for, if a window could have been left over, else the least."""
    kernel, step, pad = (
        tuple(v) if isinstance(v, (tuple, list)) else (v,) * n for v in (kernel_size, kernel_size if stride is None else stride, padding)
    )
    for values, what in ((kernel, "kernel_size"), (step, "stride"), (pad, "padding")):
        if len(values) != n:
            raise RuntimeError(f"max_unpool{n}d: {what} must be an int or have {n} of them, got {len(values)}")
    least = [(input.shape[d - n] - 1) * step[d] + kernel[d] - 2 * pad[d] for d in range(n)]
    if output_size is None:
        return least
    wanted = list(output_size)
    if len(wanted) == n + 2:
        wanted = wanted[2:]
    if len(wanted) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for d in range(n):
        if not least[d] - step[d] < wanted[d] < least[d] + step[d]:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {least[d] - step[d]} and {least[d] + step[d]})'
            )
    return wanted


_UNPOOL = """Zeros, with each element of `input`, (N, C, d1...) or (C, d1...), at the place that max pooling found it at.

Args:
    input: the elements. indices: their places, as pooling with `return_indices=True` gives them (int64).
    kernel_size, stride, padding: as they were in pooling; stride is kernel_size if None.
    output_size: the sizes that were pooled, where several fit; ValueError for those that do not.

>>> """


def _unpool(n: int, name: str, example: str) -> Any:
    @takes_tensors
    @named(name, _UNPOOL + example)
    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Tensor:
        _require_spatial(input, n, name)
        return _C._max_unpool(n, input, indices, _unpool_sizes(input, n, kernel_size, stride, padding, output_size))

    return max_unpool


max_unpool1d = _unpool(
    1, "max_unpool1d", "naru.nn.functional.max_unpool1d(naru.tensor([[5.0, 3.0]]), naru.tensor([[1, 3]]), 2)\ntensor([[0., 5., 0., 3.]])"
)
max_unpool2d = _unpool(
    2, "max_unpool2d",
    "naru.nn.functional.max_unpool2d(naru.tensor([[[5.0]]]), naru.tensor([[[3]]]), 2)\ntensor([[[0., 0.],\n         [0., 5.]]])",
)  # fmt: skip
max_unpool3d = _unpool(
    3, "max_unpool3d",
    "naru.nn.functional.max_unpool3d(naru.tensor([[[[5.0]]]]), naru.tensor([[[[3]]]]), (1, 2, 2)).flatten()\ntensor([0., 0., 0., 5.])",
)  # fmt: skip
