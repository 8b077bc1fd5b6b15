"""`torch.masked`: reductions and normalizations that exclude the elements whose mask is False.

A mask is a bool tensor that broadcasts to the input's shape; None excludes nothing. Excluded elements count as the identity of the reduction (0 for a
sum, the dtype's minimum for a maximum), which is also the result if all are excluded. All functions have gradients, which are 0 where the mask is False.

>>> import naru
>>> x, mask = naru.tensor([[1.0, 5.0], [3.0, 2.0]]), naru.tensor([[True, False], [True, True]])
>>> naru.masked.sum(x, 1, mask=mask)
tensor([1., 5.])
>>> naru.masked.softmax(x, 0, mask=mask)
tensor([[0.1192, 0.0000],
        [0.8808, 1.0000]])

Reductions of sparse tensors return sparse tensors; without a mask, elements that are not stored are excluded.

naru does not have `MaskedTensor`; calls accept the mask next to the tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C, _missing
from ._masked_layouts import canonical_dim as _canonical_dim, input_mask as _input_mask, output_mask as _output_mask, takes_sparse  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._C import Tensor, dtype as DType

    Dims = int | Sequence[int] | None

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize",
           "prod", "softmax", "softmin", "std", "sum", "var"]  # fmt: skip


def _correction(unbiased: bool | None, correction: float | None) -> float:
    """The number subtracted from the element count in the divisor of a variance."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    return correction if correction is not None else 1 if unbiased is None or unbiased else 0


@takes_sparse
def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The sum of the unmasked elements of `input`, 0 if there are none. Integers are summed in int64 unless `dtype` is given.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of
    `torch.masked`.

    >>> naru.masked.sum(naru.tensor([1, 2, 4]), mask=naru.tensor([True, False, True]))
    tensor(5)
    """
    return _C._masked_sum(input, mask, dim, bool(keepdim), dtype)


@takes_sparse
def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The product of the unmasked elements of `input`, 1 if there are none. Several dimensions are reduced one after the other.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of
    `torch.masked`.

    >>> naru.masked.prod(naru.tensor([2.0, 3.0, 4.0]), mask=naru.tensor([True, False, True]))
    tensor(8.)
    """
    return _C._masked_prod(input, mask, dim, bool(keepdim), dtype)


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of `input` along `dim`; masked elements add 0.

    `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.cumsum(naru.tensor([1.0, 2.0, 4.0]), 0, mask=naru.tensor([True, False, True]))
    tensor([1., 1., 5.])
    """
    return _C._masked_cumsum(input, mask, dim, dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products of `input` along `dim`; masked elements multiply by 1.

    `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.cumprod(naru.tensor([2.0, 3.0, 4.0]), 0, mask=naru.tensor([True, False, True]))
    tensor([2., 2., 8.])
    """
    return _C._masked_cumprod(input, mask, dim, dtype)


@takes_sparse
def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The maximum of the unmasked elements of `input`; the dtype's minimum (-inf) if there are none.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of
    `torch.masked`.

    >>> naru.masked.amax(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(3.)
    """
    return _C._masked_amax(input, mask, dim, bool(keepdim), dtype)


@takes_sparse
def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The minimum of the unmasked elements of `input`; the dtype's maximum (inf) if there are none.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of
    `torch.masked`.

    >>> naru.masked.amin(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([False, True, True]))
    tensor(3.)
    """
    return _C._masked_amin(input, mask, dim, bool(keepdim), dtype)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The index of the maximum of the unmasked elements of `input`, in the input's dtype unless `dtype` names another (as in PyTorch).
    `mask` as in all of `torch.masked`.

    `dim`: a dimension, None for the flattened input; it stays with size 1 if `keepdim`.

    >>> naru.masked.argmax(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([True, False, True]), dtype=naru.int64)
    tensor(2)
    """
    return _C._masked_argmax(input, mask, dim, bool(keepdim), dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The index of the minimum of the unmasked elements of `input`, in the input's dtype unless `dtype` names another (as in PyTorch).
    `mask` as in all of `torch.masked`.

    `dim`: a dimension, None for the flattened input; it stays with size 1 if `keepdim`.

    >>> naru.masked.argmin(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([False, True, True]), dtype=naru.int64)
    tensor(2)
    """
    return _C._masked_argmin(input, mask, dim, bool(keepdim), dtype)


@takes_sparse
def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The mean of the unmasked elements of `input`, NaN if there are none.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of
    `torch.masked`.

    >>> naru.masked.mean(naru.tensor([1.0, 5.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(2.)
    """
    return _C._masked_mean(input, mask, dim, bool(keepdim), dtype)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The median along `dim` of the unmasked elements of `input` (the lower of two), NaN if there are none.

    `dim` stays with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of `torch.masked`. Integers have no NaN: ValueError
    if a slice of them is fully masked.

    >>> naru.masked.median(naru.tensor([1.0, 9.0, 5.0, 3.0]), 0, mask=naru.tensor([True, False, True, True]))
    tensor(3.)
    """
    return _C._masked_median(input, mask, dim, bool(keepdim), dtype)


@takes_sparse
def logsumexp(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of the exponentials of the unmasked elements of `input`, -inf if there are none.

    `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of
    `torch.masked`.

    >>> naru.masked.logsumexp(naru.tensor([0.0, 9.0, 0.0]), 0, mask=naru.tensor([True, False, True]))
    tensor(0.6931)
    """
    return _C._masked_logsumexp(input, mask, dim, bool(keepdim), dtype)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None
) -> Tensor:
    """The elementwise logarithm of the sum of the exponentials of `input` and `other`; a masked operand adds nothing.

    `input_mask`, `other_mask`: masks as in all of `torch.masked`. `dtype`: of the result.

    >>> naru.masked.logaddexp(naru.zeros(2), naru.zeros(2), other_mask=naru.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    return _C._masked_logaddexp(input, other, input_mask, other_mask, dtype)


@takes_sparse
def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The norm (`torch.linalg.vector_norm`) of the unmasked elements of `input`; 0 if there are none, inf for the norm of order -inf.

    `ord`: the order. `dim`: a dimension, several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in
    all of `torch.masked`.

    >>> naru.masked.norm(naru.tensor([3.0, 9.0, 4.0]), mask=naru.tensor([True, False, True]))
    tensor(5.)
    """
    return _C._masked_norm(input, mask, 2.0 if ord is None else ord, dim, bool(keepdim), dtype)


@takes_sparse
def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance of the unmasked elements of `input`; NaN if there are none.

    The divisor is the number of elements minus `correction` (1; 0 with `unbiased` False; passing both is a ValueError). `dim`: a dimension,
    several, None for all; they stay with size 1 if `keepdim`. `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.var(naru.tensor([1.0, 9.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(2.)
    """
    return _C._masked_var(input, mask, dim, _correction(unbiased, correction), bool(keepdim), dtype)


@takes_sparse
def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of the unmasked elements of `input`; NaN if there are none.

    `unbiased`, `correction` and the others as for `var`: `dim`, `keepdim`, `dtype`, `mask`.

    >>> naru.masked.std(naru.tensor([1.0, 9.0, 3.0]), mask=naru.tensor([True, False, True]))
    tensor(1.4142)
    """
    return _C._masked_std(input, mask, dim, _correction(unbiased, correction), bool(keepdim), dtype)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """softmax along `dim` of the unmasked elements of `input`; 0 elsewhere, NaN if all are masked.

    `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.softmax(naru.zeros(3), 0, mask=naru.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _C._masked_softmax(input, mask, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """log_softmax along `dim` of the unmasked elements of `input`; -inf elsewhere.

    `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.log_softmax(naru.zeros(3), 0, mask=naru.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    return _C._masked_log_softmax(input, mask, dim, dtype)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated unmasked elements of `input`, along `dim`.

    `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.softmin(naru.zeros(3), 0, mask=naru.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _C._masked_softmin(input, mask, dim, dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The unmasked elements of `input`, divided by their norm along `dim` (at least `eps`); 0 elsewhere.

    `ord`: the order of the norm. `dtype`: of the result. `mask` as in all of `torch.masked`.

    >>> naru.masked.normalize(naru.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=naru.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    return _C._masked_normalize(input, mask, ord, dim, eps, dtype)


__getattr__ = _missing.module_getattr(__name__)
