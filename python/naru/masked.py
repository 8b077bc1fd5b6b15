"""`torch.masked`: reductions and normalisations that leave out the elements whose mask is False.

A mask is a bool tensor that broadcasts to the input's shape; None leaves nothing out. What is left out counts as what does not change the result (0 of a sum,
the least number of a maximum), so that a part of which nothing is left gives that. Everything has gradients, which are 0 where the mask is False.

>>> import naru
>>> x, mask = naru.tensor([[1.0, 5.0], [3.0, 2.0]]), naru.tensor([[True, False], [True, True]])
>>> naru.masked.sum(x, 1, mask=mask)
tensor([1., 5.])
>>> naru.masked.softmax(x, 0, mask=mask)
tensor([[0.1192, 0.0000],
        [0.8808, 1.0000]])

`MaskedTensor` is not in naru; calls take the mask beside the tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C, _missing, linalg
from .nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._C import Tensor, dtype as DType

    Dims = int | Sequence[int] | None

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize",
           "prod", "softmax", "softmin", "std", "sum", "var"]  # fmt: skip

_SMALL_INTEGERS = (_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32)


def _mask_of(input: Tensor, mask: Tensor | None) -> Tensor:
    """The mask in the input's shape."""
    if mask is None:
        return _C.ones(input.shape, dtype=_C.bool, device=input.device)
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.to(_C.bool).expand(input.shape)


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with a value in the place of what is left out."""
    if mask is None:
        return input
    return _C.where(_mask_of(input, mask), input, _C.full((), value, dtype=input.dtype, device=input.device))


def _least(dtype: DType) -> Any:
    if dtype.is_floating_point:
        return float("-inf")
    return 0 if dtype is _C.bool else _integers(dtype).min


def _greatest(dtype: DType) -> Any:
    if dtype.is_floating_point:
        return float("inf")
    return 1 if dtype is _C.bool else _integers(dtype).max


def _integers(dtype: DType) -> Any:
    from . import iinfo

    return iinfo(dtype)


def _dims(input: Tensor, dim: Dims) -> list[int]:
    """The dimensions of a reduction, each once; all of them for None and for ()."""
    wanted = [dim] if isinstance(dim, int) else list(dim) if dim is not None else []
    n = max(input.ndim, 1)
    found: list[int] = []
    for d in wanted:
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
        if d % n in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % n)
    return sorted(d for d in (found or range(input.ndim)) if input.ndim)


def _summed_as(input: Tensor, dtype: DType | None) -> DType:
    return dtype or (_C.int64 if input.dtype in _SMALL_INTEGERS else input.dtype)


def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The sum of what the mask leaves of `input`, 0 where it leaves nothing. Whole numbers add up in int64 unless `dtype` says otherwise.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of
    `torch.masked`.

    >>> naru.masked.sum(naru.tensor([1, 2, 4]), mask=naru.tensor([True, False, True]))
    tensor(5)
    """
    return _C.sum(_filled(input, mask, 0), _dims(input, dim), bool(keepdim), dtype=_summed_as(input, dtype))


def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The product of what the mask leaves of `input`, 1 where it leaves nothing. Of several dimensions one after the other.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of
    `torch.masked`.

    >>> naru.masked.prod(naru.tensor([2.0, 3.0, 4.0]), mask=naru.tensor([True, False, True]))
    tensor(8.)
    """
    out = _filled(input, mask, 1).to(_summed_as(input, dtype))
    for d in reversed(_dims(input, dim)):
        out = out.prod(d, bool(keepdim))
    return out


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of `input` along `dim`; what is left out adds 0.

    `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.cumsum(naru.tensor([1.0, 2.0, 4.0]), 0, mask=naru.tensor([True, False, True]))
    tensor([1., 1., 5.])
    """
    return _C.cumsum(_filled(input, mask, 0), dim, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products of `input` along `dim`; what is left out multiplies by 1.

    `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.cumprod(naru.tensor([2.0, 3.0, 4.0]), 0, mask=naru.tensor([True, False, True]))
    tensor([2., 2., 8.])
    """
    return _C.cumprod(_filled(input, mask, 1), dim, dtype=dtype or input.dtype)


def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The greatest of what the mask leaves of `input`; the dtype's least number (-inf) where it leaves nothing.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of
    `torch.masked`.

    >>> naru.masked.amax(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(3.)
    """
    return _C.amax(_filled(input, mask, _least(input.dtype)), _dims(input, dim), bool(keepdim)).to(dtype or input.dtype)


def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The least of what the mask leaves of `input`; the dtype's greatest number (inf) where it leaves nothing.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of
    `torch.masked`.

    >>> naru.masked.amin(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([False, True, True]))
    tensor(3.)
    """
    return _C.amin(_filled(input, mask, _greatest(input.dtype)), _dims(input, dim), bool(keepdim)).to(dtype or input.dtype)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The place of the greatest of what the mask leaves of `input`, as a number of the input's dtype unless `dtype` names another (as PyTorch
    has it).

    `dim`: a dimension, None for the flattened input; it stays with size 1 if `keepdim`.

    >>> naru.masked.argmax(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([True, False, True]), dtype=naru.int64)
    tensor(2)
    """
    return _C.argmax(_filled(input, mask, _least(input.dtype)), dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The place of the least of what the mask leaves of `input`, as a number of the input's dtype unless `dtype` names another (as PyTorch has
    it).

    `dim`: a dimension, None for the flattened input; it stays with size 1 if `keepdim`.

    >>> naru.masked.argmin(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([False, True, True]), dtype=naru.int64)
    tensor(2)
    """
    return _C.argmin(_filled(input, mask, _greatest(input.dtype)), dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dims: list[int], keepdim: bool, mask: Tensor | None) -> Tensor:
    return _C.sum(_mask_of(input, mask), dims, bool(keepdim), dtype=_C.int64)


def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The mean of what the mask leaves of `input`, NaN where it leaves nothing.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of
    `torch.masked`.

    >>> naru.masked.mean(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(2.)
    """
    total = sum(input, dim, keepdim=keepdim, dtype=dtype or input.dtype, mask=mask)
    return total / _count(input, _dims(input, dim), keepdim, mask)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The median along `dim` of what the mask leaves of `input` (of two the lower one), NaN where it leaves nothing.

    `dim` stays with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of `torch.masked`. Whole numbers have no NaN: ValueError
    where a mask leaves nothing of a part of them.

    >>> naru.masked.median(naru.tensor([1.0, 9.0, 5.0, 3.0]), 0, mask=naru.tensor([True, False, True, True]))
    tensor(3.)
    """
    if not input.dtype.is_floating_point:
        kept = _mask_of(input, mask).any(dim)
        if not bool(kept.all()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        wide = _filled(input.to(_C.float64), mask, float("nan"))
        return _C.nanmedian(wide, dim, bool(keepdim)).values.to(dtype or input.dtype)
    return _C.nanmedian(_filled(input, mask, float("nan")), dim, bool(keepdim)).values.to(dtype or input.dtype)


def logsumexp(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of the exponentials of what the mask leaves of `input`, -inf where it leaves nothing.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of
    `torch.masked`.

    >>> naru.masked.logsumexp(naru.tensor([0.0, 9.0, 0.0]), 0, mask=naru.tensor([True, False, True]))
    tensor(0.6931)
    """
    fill = float("-inf") if input.dtype.is_complex else _least(input.dtype)
    return _C.logsumexp(_filled(input, mask, fill), _dims(input, dim), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of two exponentials, of `input` and `other`, element by element; an operand that its mask leaves out adds
    nothing.

    `input_mask`, `other_mask`: as masks are for all of `torch.masked`. `dtype`: of the result.

    >>> naru.masked.logaddexp(naru.zeros(2), naru.zeros(2), other_mask=naru.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    least = float("-inf")
    return _C.logaddexp(_filled(input, input_mask, least), _filled(other, other_mask, least)).to(dtype or input.dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The norm (`torch.linalg.vector_norm`) of what the mask leaves of `input`; 0 where it leaves nothing, of the norm -inf inf.

    `ord`: which one. `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for
    all of `torch.masked`.

    >>> naru.masked.norm(naru.tensor([3.0, 9.0, 4.0]), mask=naru.tensor([True, False, True]))
    tensor(5.)
    """
    order = 2.0 if ord is None else ord
    fill = float("inf") if order == float("-inf") else 0
    return linalg.vector_norm(_filled(input, mask, fill), order, _dims(input, dim), bool(keepdim), dtype=dtype)


def _spread(
    input: Tensor, dim: Dims, unbiased: bool | None, correction: float | None, keepdim: bool, dtype: DType | None, mask: Tensor | None
) -> Tensor:
    """The variance of what the mask leaves, in the dtype that it is computed in."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    less = correction if correction is not None else 1 if unbiased is None or unbiased else 0
    dims, kept = _dims(input, dim), _mask_of(input, mask)
    wide = dtype or input.dtype
    if not (wide.is_floating_point or wide.is_complex):
        wide = _C.float32
    total = sum(input, dims, keepdim=True, dtype=wide, mask=mask)
    x = input - total / _C.sum(kept, dims, True, dtype=_C.int64)
    squares = sum(x * x.conj(), dims, keepdim=keepdim, dtype=wide, mask=mask)
    return (squares / _C.clamp(_count(input, dims, keepdim, mask) - less, min=0)).to(wide)


def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance of what the mask leaves of `input`; NaN where it leaves nothing.

    It is divided by the number of elements less `correction` (1; 0 with `unbiased` False, not both: ValueError). `dim`: a dimension,
    several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.var(naru.tensor([1.0, 9.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(2.)
    """
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of what the mask leaves of `input`; NaN where it leaves nothing.

    `unbiased`, `correction` and the others as for `var`: `dim`, `keepdim`, `dtype`, `mask`.

    >>> naru.masked.std(naru.tensor([1.0, 9.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(1.4142)
    """
    return _C.sqrt(_spread(input, dim, unbiased, correction, keepdim, dtype, mask))


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """softmax along `dim` of what the mask leaves of `input`; 0 elsewhere, NaN where nothing is left.

    `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.softmax(naru.zeros(3), 0, mask=naru.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return F.softmax(_filled(input, mask, float("-inf")), dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax along `dim` of what the mask leaves of `input`; -inf elsewhere.

    `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.log_softmax(naru.zeros(3), 0, mask=naru.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    return F.log_softmax(_filled(input, mask, float("-inf")), dim, dtype=dtype)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated numbers, along `dim` of what the mask leaves of `input`.

    `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.softmin(naru.zeros(3), 0, mask=naru.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return F.softmin(_filled(input, mask, float("inf")), dim, dtype=dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """What the mask leaves of `input`, divided by its norm along `dim` (at least `eps`); 0 elsewhere.

    `ord`: which norm. `dtype`: of the result. `mask` as for all of `torch.masked`.

    >>> naru.masked.normalize(naru.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=naru.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    least = _C.full((), eps, dtype=size.dtype, device=size.device)
    return _filled(input, mask, 0) / _C.maximum(size, least)


__getattr__ = _missing.module_getattr(__name__)
