"""`torch.sparse`: sparse tensors by coordinates (COO) and by rows (CSR).

A sparse tensor is a Tensor: it can be passed on, be a gradient, and meet the operators that have a sparse form. Any other operator raises
NotImplementedError and says so; `to_dense()` gives it a dense tensor.

>>> import naru
>>> s = naru.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> naru.sparse.mm(s, naru.ones(3, 1))
tensor([[3.],
        [9.]])
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def _like(data: Any, dtype: Any, device: Any) -> Tensor:
    """As `torch.as_tensor`, with the history that a tensor has."""
    if isinstance(data, Tensor):
        return data.to(device=device or data.device, dtype=dtype or data.dtype)
    return _C.as_tensor(data, dtype=dtype, device=device)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor of coordinates.

    Args:
        indices: integers (dimensions, stored): a column for each value. Indices outside `size` raise RuntimeError.
        values: (stored, ...); values of equal coordinates add up.
        size: found from the indices where it is not given. `sparse_coo_tensor(size)` is a tensor of zeros.
        dtype, device, requires_grad: of the result; those of `values` without.
        pin_memory, check_invariants: accepted as in PyTorch; indices are always checked.
        is_coalesced: whether each coordinate stands once, in row-major order; what is said is believed.

    >>> naru.sparse_coo_tensor(naru.tensor([[0, 1], [1, 0]]), naru.tensor([5, 7])).to_dense()
    tensor([[0, 5],
            [7, 0]])
    """
    if values is None:
        size = tuple(size if size is not None else indices)
        none = _C.empty((len(size), 0), dtype=_C.int64, device=device)
        made = _C._sparse_coo_tensor(none, _C.empty(0, dtype=dtype, device=device), size, False)
    else:
        held = _like(values, dtype, device)
        made = _C._sparse_coo_tensor(
            _like(indices, _C.int64, held.device), held, None if size is None else tuple(size), bool(is_coalesced)
        )
    return made.detach().requires_grad_() if requires_grad else made


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix by rows.

    Args:
        crow_indices: where each row begins, and where the last one ends: integers (rows + 1).
        col_indices: the column of each value: integers (stored).
        values: (stored).
        size: found from the indices where it is not given.
        dtype, device, requires_grad: of the result; those of `values` without.
        pin_memory, check_invariants: accepted as in PyTorch; indices are always checked (RuntimeError).

    >>> naru.sparse_csr_tensor(naru.tensor([0, 1, 2]), naru.tensor([1, 0]), naru.tensor([5, 7])).to_dense()
    tensor([[0, 5],
            [7, 0]])
    """
    held = _like(values, dtype, device)
    rows, columns = (_like(i, _C.int64, held.device) for i in (crow_indices, col_indices))
    made = _C._sparse_csr_tensor(rows, columns, held, None if size is None else tuple(size))
    return made.detach().requires_grad_() if requires_grad else made


def reduce_sparse(t: Tensor) -> tuple[Any, ...]:
    """What pickle makes the sparse tensor `t` of.

    >>> t = naru.ones(2, 2).to_sparse()
    >>> make, parts = naru.sparse.reduce_sparse(t)
    >>> naru.equal(make(*parts).to_dense(), t.to_dense())
    True
    """
    plain = t.detach()
    parts = (plain.crow_indices(), plain.col_indices(), plain.values()) if t.is_sparse_csr else (plain._indices(), plain._values())
    coalesced = t.is_sparse and t.is_coalesced()
    return _rebuild_sparse, (parts, tuple(t.shape), coalesced, t.requires_grad and t.is_leaf)


def _rebuild_sparse(parts: tuple[Tensor, ...], size: tuple[int, ...], coalesced: bool, requires_grad: bool) -> Tensor:
    if len(parts) == 3:
        return sparse_csr_tensor(*parts, size, requires_grad=requires_grad)
    return sparse_coo_tensor(*parts, size, is_coalesced=coalesced, requires_grad=requires_grad)


def _rows_of(mat: Tensor) -> Tensor:
    """The row of each value that a CSR matrix stores."""
    crow = mat.crow_indices()
    return _C.repeat_interleave(_C.arange(mat.shape[0], device=mat.device), crow[1:] - crow[:-1])


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of matrices `mat1` (n, k) and `mat2` (k, m) of which some are sparse; it is sparse if both are.

    Args:
        reduce: of a CSR matrix and a dense one: what is made of the products of each row in place of their sum: "sum", "mean", "amax" or "amin". A row of
            which nothing is stored gives 0.

    >>> s = naru.sparse_csr_tensor([0, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0], (2, 2))
    >>> naru.sparse.mm(s, naru.ones(2, 1), "amax")
    tensor([[2.],
            [3.]])
    """
    if reduce is None:
        return _C._sparse_mm(mat1, mat2)
    if not mat1.is_sparse_csr or mat2.layout is not _C.strided:
        raise RuntimeError(f"sparse_mm_reduce: expect mat1 to be a CSR matrix and mat2 a dense one, got layouts {mat1.layout} and {mat2.layout}")
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    rows = _rows_of(mat1.detach())
    half = mat2.dtype in (_C.float16, _C.bfloat16)  # which is computed in float32, and rounded once
    values, dense = (t.to(_C.float32) if half else t for t in (mat1.values(), mat2))
    products = values.unsqueeze(1) * dense[mat1.detach().col_indices()]
    zeros = _C.zeros((mat1.shape[0], mat2.shape[1]), dtype=products.dtype, device=products.device)
    return zeros.scatter_reduce(0, rows.unsqueeze(1).expand(products.shape), products, reduce, include_self=False).to(mat2.dtype)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) where the CSR matrix `input` stores something, and nowhere else: a CSR matrix of the same places.

    >>> import naru
    >>> s = naru.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 1.0], (2, 2))
    >>> naru.sparse.sampled_addmm(s, naru.ones(2, 3), naru.ones(3, 2)).values()
    tensor([4., 4.])
    """
    return _C._sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta` * `mat` + `alpha` * (`mat1` @ `mat2`), of a dense `mat` and a sparse mat1.

    >>> s = naru.eye(2).to_sparse()
    >>> naru.sparse.addmm(naru.ones(2, 2), s, naru.tensor([[1.0, 2.0], [3.0, 4.0]]), beta=10)
    tensor([[11., 12.],
            [13., 14.]])
    """
    return _C._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:  # noqa: A001
    """The sum of what `input` stores, or sums over the dimensions `dim`: sparse if a dimension with coordinates is left. `dtype`: what it is
    added up in.

    >>> s = naru.tensor([[0, 3], [4, 5]]).to_sparse()
    >>> naru.sparse.sum(s), naru.sparse.sum(s, 0).to_dense()
    (tensor(12), tensor([4, 8]))
    """
    return _C._sparse_sum(input, dim, dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """softmax along `dim` of what `input` stores; the rest counts as minus infinity. `dtype`: of the result.

    >>> s = naru.tensor([[0.0, 1.0], [2.0, 2.0]]).to_sparse()
    >>> naru.sparse.softmax(s, 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    return _C._sparse_softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax` of `input` along `dim`; `dtype` as there.

    >>> s = naru.tensor([[0.0, 1.0], [2.0, 2.0]]).to_sparse()
    >>> naru.sparse.log_softmax(s, 1).to_dense()
    tensor([[ 0.0000,  0.0000],
            [-0.6931, -0.6931]])
    """
    return _C._sparse_log_softmax(input, dim, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix of its diagonals.

    Args:
        diagonals: (diagonals, n), or one diagonal; element j stands in column j of the matrix.
        offsets: integers: how far above the main diagonal each one is; negative ones are below. Each once.
        shape: rows and columns of the matrix.
        layout: of the result, torch.sparse_coo where it is not given.

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
    high, wide = shape
    spans = [(max(0, k), max(0, k, min(wide, rows.shape[1], high + k))) for k in numbers]
    columns = [_C.arange(first, last, device=rows.device) for first, last in spans]
    places = _C.stack([_C.cat([c - k for c, k in zip(columns, numbers)]), _C.cat(columns)])
    made = sparse_coo_tensor(places, _C.cat([row[first:last] for row, (first, last) in zip(rows.unbind(0), spans)]), (high, wide))
    return made if layout is None else made.to_sparse(layout=layout)


class check_sparse_tensor_invariants:  # noqa: N801
    """Whether parts of sparse tensors are looked at when one is made. naru looks always; what is switched here is noted.

    Args:
        enable: inside a `with`, or a function that this decorates.

    >>> import naru
    >>> with naru.sparse.check_sparse_tensor_invariants():
    ...     naru.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _on = False

    @classmethod
    def is_enabled(cls) -> bool:
        """What was switched last."""
        return check_sparse_tensor_invariants._on

    @classmethod
    def enable(cls) -> None:
        """Notes that it is on."""
        check_sparse_tensor_invariants._on = True

    @classmethod
    def disable(cls) -> None:
        """Notes that it is off."""
        check_sparse_tensor_invariants._on = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(check_sparse_tensor_invariants._on)
        check_sparse_tensor_invariants._on = self._wanted

    def __exit__(self, *_: object) -> None:
        check_sparse_tensor_invariants._on = self._before.pop()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return run


__getattr__ = _missing.module_getattr(__name__)
