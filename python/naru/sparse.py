"""`torch.sparse`: sparse tensors in coordinate (COO) format, compressed by rows or columns (CSR, CSC), or by rows or columns of blocks (BSR, BSC).

A sparse tensor is a Tensor: it can be passed around, be a gradient, and be used in operators that have a sparse form. Any other operator raises
NotImplementedError with a message; `to_dense()` converts it to a dense tensor.

>>> import naru
>>> s = naru.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> naru.sparse.mm(s, naru.ones(3, 1))
tensor([[3.],
        [9.]])
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import _C, _missing, _sparse_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor
_rebuild_sparse = _sparse_tensors._rebuild_sparse  # pickles refer to this name

__all__ = ["addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of matrices `mat1` (n, k) and `mat2` (k, m), at least one of them sparse; it is sparse if both are.

    Args:
        reduce: for a CSR matrix and a dense one: the reduction of the products of each row instead of a sum: "sum", "mean", "amax" or "amin". A row
            with no stored elements gives 0.

    >>> s = naru.sparse_csr_tensor([0, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0], (2, 2))
    >>> naru.sparse.mm(s, naru.ones(2, 1), "amax")
    tensor([[2.],
            [3.]])
    """
    return _C._sparse_mm(mat1, mat2, reduce)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the stored elements of the CSR matrix `input`: a CSR matrix with the same sparsity pattern.

    >>> import naru
    >>> s = naru.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 1.0], (2, 2))
    >>> naru.sparse.sampled_addmm(s, naru.ones(2, 3), naru.ones(3, 2)).values()
    tensor([4., 4.])
    """
    return _C._sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta` * `mat` + `alpha` * (`mat1` @ `mat2`), for a dense `mat` and a sparse mat1.

    >>> s = naru.eye(2).to_sparse()
    >>> naru.sparse.addmm(naru.ones(2, 2), s, naru.tensor([[1.0, 2.0], [3.0, 4.0]]), beta=10)
    tensor([[11., 12.],
            [13., 14.]])
    """
    return _C._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:  # noqa: A001
    """The sum of the stored elements of `input`, or sums over the dimensions `dim`: sparse if a sparse dimension is left. `dtype`: of the
    summation and the result.

    >>> s = naru.tensor([[0, 3], [4, 5]]).to_sparse()
    >>> naru.sparse.sum(s), naru.sparse.sum(s, 0).to_dense()
    (tensor(12), tensor([4, 8]))
    """
    return _C._sparse_sum(input, dim, dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """softmax along `dim` of the stored elements of `input`; unstored elements count as minus infinity. `dtype`: of the result.

    >>> s = naru.tensor([[0.0, 1.0], [2.0, 2.0]]).to_sparse()
    >>> naru.sparse.softmax(s, 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    return _C._sparse_softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax` of `input` along `dim`; `dtype` as in `softmax`.

    >>> s = naru.tensor([[0.0, 1.0], [2.0, 2.0]]).to_sparse()
    >>> naru.sparse.log_softmax(s, 1).to_dense()
    tensor([[ 0.0000,  0.0000],
            [-0.6931, -0.6931]])
    """
    return _C._sparse_log_softmax(input, dim, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix with the given diagonals.

    Args:
        diagonals: (diagonals, n), or one diagonal; element j is in column j of the matrix.
        offsets: unique integers, the offset of each diagonal above the main diagonal; negative ones are below.
        shape: rows and columns of the matrix.
        layout: of the result, torch.sparse_coo by default; or sparse_csr or sparse_csc.

    >>> import naru
    >>> naru.sparse.spdiags(naru.tensor([[1, 2, 3], [4, 5, 6]]), naru.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1, 5, 0],
            [0, 2, 6],
            [0, 0, 3]])
    """
    rows = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    above = offsets.reshape(1) if offsets.dim() == 0 else offsets
    if rows.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if above.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if above.numel() != rows.shape[0]:
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({above.numel()})")
    if above.dtype is not _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {above.dtype}")
    numbers = above.tolist()
    if len(set(numbers)) != len(numbers):
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, _C.sparse_coo, _C.sparse_csc, _C.sparse_csr):
        got = str(layout).removeprefix("torch.").title().replace("_", "")
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {got}")
    high, wide = shape
    spans = [(max(0, k), max(0, k, min(wide, rows.shape[1], high + k))) for k in numbers]
    columns = [_C.arange(first, last, device=rows.device) for first, last in spans]
    if not numbers:
        made = _C.zeros((high, wide), dtype=rows.dtype, device=rows.device, layout=_C.sparse_coo)
        return made if layout is None else made.to_sparse(layout=layout)
    places = _C.stack([_C.cat([c - k for c, k in zip(columns, numbers)]), _C.cat(columns)])
    made = _sparse_tensors.sparse_coo_tensor(places, _C.cat([row[first:last] for row, (first, last) in zip(rows.unbind(0), spans)]), (high, wide))
    return made if layout is None else made.to_sparse(layout=layout)


class check_sparse_tensor_invariants:  # noqa: N801
    """Whether the parts of new sparse tensors are fully validated. naru always validates them, except for the order of indices within rows and
    columns of compressed tensors, which is checked only if this is on.

    Args:
        enable: the setting, within a `with` block or a function that this decorates.

    >>> import naru
    >>> with naru.sparse.check_sparse_tensor_invariants():
    ...     naru.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    @classmethod
    def is_enabled(cls) -> bool:
        """The current setting."""
        return _sparse_tensors.order_checked

    @classmethod
    def enable(cls) -> None:
        """Turns the checks on."""
        _sparse_tensors.order_checked = True

    @classmethod
    def disable(cls) -> None:
        """Turns the checks off."""
        _sparse_tensors.order_checked = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_sparse_tensors.order_checked)
        _sparse_tensors.order_checked = self._wanted

    def __exit__(self, *_: object) -> None:
        _sparse_tensors.order_checked = self._before.pop()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return run


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """Adapts `gradcheck` (autograd.gradcheck or gradgradcheck) to functions of sparse tensors: compares gradients at the inputs' stored elements,
    masked or not.

    >>> check = naru.sparse.as_sparse_gradcheck(naru.autograd.gradcheck)
    >>> s = naru.eye(2, dtype=naru.float64).to_sparse_csr().requires_grad_()
    >>> check(lambda s: s @ s, s, masked=True)
    True
    """

    @functools.wraps(gradcheck)
    def run(func: Any, inputs: Any, *args: Any, masked: bool = False, **options: Any) -> bool:
        given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        sparse = [isinstance(t, Tensor) and t.layout is not _C.strided for t in given]
        leaves = [_sparse_tensors.parts_of(t)[-1].clone().requires_grad_(t.requires_grad) if s else t for t, s in zip(given, sparse)]

        def of_values(*values: Any) -> Any:
            made = func(*(_sparse_tensors.with_values(t, v) if s else v for t, s, v in zip(given, sparse, values)))
            return tuple(t.to_dense() for t in made) if isinstance(made, (list, tuple)) else made.to_dense()

        return gradcheck(of_values, leaves, *args, **options)

    return run


def _old(dtype: Any, device: Any, args: tuple) -> Tensor:
    """The result of `torch.sparse.FloatTensor(...)`: zeros for sizes; a COO tensor for indices and values (and a size)."""
    if not args or not isinstance(args[0], Tensor):
        size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return _C.zeros(tuple(size) or (0,), dtype=dtype, device=device, layout=_C.sparse_coo)
    if len(args) > 1 and args[1].dtype != dtype:
        raise TypeError(f"expected values of dtype={dtype} (got dtype={args[1].dtype}); convert them with values.to({dtype})")
    return _sparse_tensors.sparse_coo_tensor(*args, device=device)


_missing_name = _missing.module_getattr(__name__)
# Packages compare with these, and derive from them.
SparseSemiStructuredTensor, SparseSemiStructuredTensorCUSPARSELT, SparseSemiStructuredTensorCUTLASS = (
    _missing.absent_class(f"sparse.SparseSemiStructuredTensor{library}") for library in ("", "CUSPARSELT", "CUTLASS")
)


def __getattr__(name: str) -> Any:
    if name.endswith("Tensor"):
        from ._compat.tensor_types import tensor_types

        if name in (types := tensor_types("cpu", _C.sparse_coo, _old)):
            return types[name]
    return _missing_name(name)
