"""The standard's linear algebra extension. The last two dimensions are matrices, all others are batch dimensions."""

from __future__ import annotations

from typing import Any

from .. import _C, linalg
from ..linalg import det, eig, eigh, eigvals, eigvalsh, inv, slogdet, svdvals
from ._elementwise import pair
from ._manipulation import matmul, matrix_transpose, tensordot, vecdot
from ._reductions import sum

Tensor = _C.Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor L of `x` (..., n, n) with x = L @ L^H, or U = L^H if `upper`. Raises LinAlgError if x is not positive definite.

    >>> naru.array_api.linalg.cholesky(naru.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of length three in `x1` and `x2` along `axis`. Raises ValueError for other sizes.

    >>> naru.array_api.linalg.cross(naru.tensor([1, 0, 0]), naru.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x1, x2 = pair("cross", x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < max(x1.ndim, x2.ndim) or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: wanted size 3 along axis {axis}, got shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    x1, x2 = _C.broadcast_tensors(x1, x2)
    return linalg.cross(x1, x2, dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The elements on the diagonal `offset` above the main one of each matrix of `x`.

    >>> naru.array_api.linalg.diagonal(naru.arange(9).reshape(3, 3), offset=1)
    tensor([1, 5])
    """
    return linalg.diagonal(x, offset=offset)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of each matrix of `x`, `ord`: "fro", "nuc", 1, -1, 2, -2, inf, -inf. `keepdims` keeps the two dimensions with size 1.

    >>> naru.array_api.linalg.matrix_norm(naru.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    return linalg.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The `n`-th power of each matrix of `x` (..., m, m); for negative n, of its inverse.

    >>> naru.array_api.linalg.matrix_power(naru.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The rank of each matrix of `x`: the number of singular values greater than `rtol` times the largest.

    >>> naru.array_api.linalg.matrix_rank(naru.ones(2, 2))
    tensor(1)
    """
    return linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all pairs of elements of the vectors `x1` and `x2`.

    >>> naru.array_api.linalg.outer(naru.tensor([1, 2]), naru.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    return _C.outer(*pair("outer", x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of each matrix of `x`; singular values below `rtol` times the largest count as zero.

    >>> naru.array_api.linalg.pinv(naru.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The factors (Q, R) of each matrix of `x`, Q with orthonormal columns, R upper triangular. `mode`: "reduced" or "complete".

    >>> naru.array_api.linalg.qr(naru.tensor([[2.0, 0.0], [0.0, 3.0]])).R.abs()
    tensor([[2., 0.],
            [0., 3.]])
    """
    return linalg.qr(x, mode=mode)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solves `x1` @ result == `x2`; x2 is a vector only if it is 1-d (PyTorch also infers it from the sizes).

    >>> naru.array_api.linalg.solve(naru.tensor([[2.0, 0.0], [0.0, 4.0]]), naru.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    x1, x2 = pair("solve", x1, x2)
    if x2.ndim == 1:
        return linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    return linalg.solve(x1, x2.unsqueeze(0) if x2.ndim == x1.ndim - 1 else x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition (U, S, Vh) of each matrix of `x`; `full_matrices` makes U and Vh square.

    >>> naru.array_api.linalg.svd(naru.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    return linalg.svd(x, full_matrices=full_matrices)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal of each matrix of `x` that is `offset` above the main one; `dtype` as for `sum`.

    >>> naru.array_api.linalg.trace(naru.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    return sum(linalg.diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm `ord` of the vectors in `x` along `axis` (an integer, a tuple, None for all elements), which stays with size 1 if `keepdims`.

    >>> naru.array_api.linalg.vector_norm(naru.tensor([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    tensor([ 5., 10.])
    """
    if axis == ():
        size = _C.abs(x)
        return (size != 0).to(size.dtype) if ord == 0 else size
    return linalg.vector_norm(x, ord, axis, keepdims)
