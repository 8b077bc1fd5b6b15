"""Top-level functions that nn.functional's are built on, with extra inputs and results: statistics, masks, numeric mode codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._documentation import show
from ..nn import functional as F
from .._functions.arguments import takes_tensors
from .._functions.naming import named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._C import Tensor

_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")

rms_norm, pairwise_distance, hardshrink = F.rms_norm, F.pairwise_distance, F.hardshrink
celu_, selu_, threshold_ = F.celu_, F.selu_, F.threshold_


def _with_training(name: str, function: Callable[..., Tensor], in_place: bool) -> Callable[..., Tensor]:
    """A dropout function with required p and train."""

    @named(name, f"nn.functional.{function.__name__}(input, p, train{', inplace=True' if in_place else ''}): `p` is the chance of a zero, `train` False changes nothing.")
    def call(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, in_place)

    return call


dropout_ = _with_training("dropout_", F.dropout, True)
alpha_dropout, alpha_dropout_ = (_with_training("alpha_dropout" + "_" * i, F.alpha_dropout, bool(i)) for i in (0, 1))
feature_dropout, feature_dropout_ = (_with_training("feature_dropout" + "_" * i, F.feature_dropout, bool(i)) for i in (0, 1))
feature_alpha_dropout, feature_alpha_dropout_ = (_with_training("feature_alpha_dropout" + "_" * i, F.feature_alpha_dropout, bool(i)) for i in (0, 1))


@takes_tensors
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) of each element of `input`, as nn.functional.celu with `alpha`.

    >>> naru.celu(naru.tensor([1.0, -1.0]))
    tensor([ 1.0000, -0.6321])
    """
    return F.celu(input, alpha)


@takes_tensors
def selu(input: Tensor) -> Tensor:
    """nn.functional.selu of each element of `input`: celu, scaled so that layers keep mean 0 and variance 1.

    >>> naru.selu(naru.tensor([1.0, -1.0]))
    tensor([ 1.0507, -1.1113])
    """
    return F.selu(input)


@takes_tensors
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Pads `input` with `value` by the amounts in `pad`, pairs from the last dimension on: nn.functional.pad with a constant.

    >>> naru.constant_pad_nd(naru.tensor([1, 2]), (1, 1), 7)
    tensor([7, 1, 2, 7])
    """
    if isinstance(value, complex):
        return _C.complex(_C._pad(_C.real(input), pad, "constant", value.real), _C._pad(_C.imag(input), pad, "constant", value.imag))
    return _C._pad(input, pad, "constant", value)


def _of_code(codes: tuple[str, ...], code: int, what: str) -> str:
    if not 0 <= code < len(codes):
        raise RuntimeError(f"grid_sampler(): expected {what} to be one of {', '.join(f'{i} ({c})' for i, c in enumerate(codes))}, but got {code}")
    return codes[code]


@takes_tensors
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Samples `input` (N, C, H, W or N, C, D, H, W) at the points of `grid`, as nn.functional.grid_sample, with numeric codes for the modes:
    `interpolation_mode` 0 bilinear, 1 nearest, 2 bicubic; `padding_mode` 0 zeros, 1 border, 2 reflection. `align_corners`: whether -1 and 1
    are the centers of the outermost pixels rather than their edges. RuntimeError for other codes.

    >>> x = naru.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> naru.grid_sampler(x, naru.tensor([[[[0.0, 0.0], [1.0, 1.0]]]]), 0, 0, True)
    tensor([[[[2.5000, 4.0000]]]])
    """
    mode, padding = _of_code(_MODES, interpolation_mode, "interpolation_mode"), _of_code(_PADDINGS, padding_mode, "padding_mode")
    return F.grid_sample(input, grid, mode, padding, align_corners)


@takes_tensors
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler for images: `input` (N, C, H, W), `grid` (N, H', W', 2); `interpolation_mode`, `padding_mode` and `align_corners` as in
    grid_sampler.

    >>> x = naru.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> naru.grid_sampler_2d(x, naru.tensor([[[[-1.0, 0.0], [0.5, 0.5]]]]), 0, 0, True)
    tensor([[[[2.0000, 3.2500]]]])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@takes_tensors
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler for volumes: `input` (N, C, D, H, W), `grid` (N, D', H', W', 3); `interpolation_mode`, `padding_mode` and `align_corners` as in
    grid_sampler.

    >>> x = naru.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> naru.grid_sampler_3d(x, naru.tensor([0.0, 0.0, -1.0]).reshape(1, 1, 1, 1, 3), 0, 0, True)
    tensor([[[[[1.5000]]]]])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _statistics(input: Tensor, dims: list[int], eps: float, keepdim: bool, dtype: Any) -> tuple[Tensor, Tensor]:
    """Mean and 1 / sqrt(variance + eps), returned in `dtype`; 16-bit types are computed in float32."""
    wide = input.to(_C.float64 if input.dtype is _C.float64 else _C.float32)
    var, mean = _C.var_mean(wide, dims, correction=0, keepdim=keepdim)
    return mean.to(dtype), _C.rsqrt(var + eps).to(dtype)


def _of_statistics(input: Tensor, weight: Tensor | None) -> Any:
    return input.dtype if weight is None else weight.dtype


@takes_tensors
def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(nn.functional.layer_norm of `input` over its last dimensions `normalized_shape`, times `weight`, plus `bias`; the means; 1 / the
    standard deviations). `eps` is added to the variance. The statistics have no gradient.

    >>> naru.native_layer_norm(naru.tensor([[1.0, 3.0]]), [2], None, None, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    out = F.layer_norm(input, normalized_shape, weight, bias, eps)
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    return (out, *_statistics(input.detach(), dims, eps, True, _of_statistics(input, weight)))


@takes_tensors
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """(nn.functional.group_norm, the means, 1 / the standard deviations): `input` has N x C x HxW elements, `weight` and `bias` have shape (C) or
    are None; the statistics have shape (N, group), with `eps` added to the variance, and gradients.

    >>> naru.native_group_norm(naru.tensor([[1.0, 3.0, 5.0, 5.0]]), None, None, 1, 4, 1, 2, 1.0)[1:]
    (tensor([[2., 5.]]), tensor([[0.7071, 1.0000]]))
    """
    out = F.group_norm(input, group, weight, bias, eps)
    return (out, *_statistics(input.reshape(N, group, C * HxW // group), [2], eps, False, _of_statistics(input, weight)))


@takes_tensors
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(nn.functional.batch_norm, the means, 1 / the standard deviations) per channel, the second dimension of `input`; `weight`, `bias`,
    `running_mean` and `running_var` have one number per channel, or are None. In `training` the statistics are those of input, and the
    running ones move towards them by `momentum`; in evaluation the last two results are empty. `eps` is added to the variance.

    >>> mean, var = naru.zeros(1), naru.ones(1)
    >>> naru.native_batch_norm(naru.tensor([[1.0], [3.0]]), None, None, mean, var, True, 0.5, 0.0)[:2]
    (tensor([[-1.],
            [ 1.]]), tensor([2.]))
    >>> mean, var
    (tensor([1.]), tensor([1.5000]))
    """
    if training:
        mean, scale = _statistics(input.detach(), [0, *range(2, input.ndim)], eps, False, _of_statistics(input, weight))
    else:
        mean, scale = _C.empty(0, dtype=input.dtype, device=input.device), _C.empty(0, dtype=input.dtype, device=input.device)
    return _C.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps), mean, scale


@takes_tensors
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves the channels of `input` (N, C, ...) between `groups`: nn.functional.channel_shuffle.

    >>> naru.native_channel_shuffle(naru.arange(4.0).reshape(1, 4, 1, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return F.channel_shuffle(input, groups)


def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """An uninitialized tensor of `size` whose dimensions are ordered in memory by `physical_layout`, outermost first.
    `dtype`, `device`, `pin_memory` and `requires_grad` as for `empty`; `layout` is strided. RuntimeError if physical_layout is not a
    permutation.

    >>> naru.empty_permuted((2, 3, 5, 7), (0, 2, 3, 1)).stride()
    (105, 1, 21, 3)
    """
    sizes, order = list(size), list(physical_layout)
    if len(sizes) != len(order):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(sizes)} is not equal to "
            f"len(physical_layout) = {len(order)}"
        )
    for i, d in enumerate(order):
        if not 0 <= d < len(order):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(order) - 1}, but got {d} at index {i}).  NB: negative dims not currently supported; file an issue if you want it.")
        if d in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
    made = _C.empty([sizes[d] for d in order], dtype=dtype, device=device, pin_memory=pin_memory)
    return made.permute([order.index(d) for d in range(len(order))]).requires_grad_(requires_grad)


@takes_tensors
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None) -> Tensor:
    """The xor of the bits of `input`'s elements along `dim` (an int or several; all if empty), as uint64: floating point as float64,
    integers as int64. `keepdim` keeps reduced dimensions with size 1; `mode` must be 0 (RuntimeError). Also written to `out` if given.

    >>> naru.hash_tensor(naru.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode {mode}; 0 (exclusive or) is all there is")
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"hash_tensor\" not implemented for '{input.dtype}' (hash its view_as_real)")
    bits = input.detach().to(_C.float64).view(_C.int64) if input.dtype.is_floating_point else input.detach().to(_C.int64)
    dims = sorted({d % max(bits.ndim, 1) for d in ([dim] if isinstance(dim, int) else dim)} or range(bits.ndim)) if bits.ndim else []
    if dims:
        kept = [d for d in range(bits.ndim) if d not in dims]
        shape = [1 if d in dims else n for d, n in enumerate(bits.shape) if keepdim or d not in dims]
        many = 1
        for d in dims:
            many *= bits.shape[d]
        bits = bits.permute(kept + dims).reshape([bits.shape[d] for d in kept] + [many])
        while bits.shape[-1] > 1:
            half = bits.shape[-1] // 2
            bits = _C.cat([bits[..., :half] ^ bits[..., half : 2 * half], bits[..., 2 * half :]], -1)
        bits = (bits.sum(-1) if many else _C.zeros([bits.shape[i] for i in range(len(kept))], dtype=_C.int64, device=bits.device)).reshape(shape)
    result = bits.view(_C.uint64)
    return result if out is None else _C._write_out("hash_tensor", out, result)


show(globals(), "functions")
