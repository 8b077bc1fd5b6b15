"""Linear algebra functions composed of others: low-rank factorizations, lobpcg, and names that PyTorch has removed."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _C, linalg
from .._documentation import show
from .arguments import takes_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor
_EPSILON = {_C.float32: 1.2e-07, _C.float64: 2.23e-16}


@takes_tensors
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:  # noqa: N803
    """(LU, pivots) of matrices `A` (..., m, n), and with `get_infos` an info code for each matrix; see naru.linalg.lu_factor and lu_factor_ex.
    `pivot` False: without row exchanges. `out`: tensors to write the results to. Deprecated: warns.

    >>> naru.lu(naru.tensor([[1.0, 2.0], [4.0, 6.0]]))
    (tensor([[4.0000, 6.0000],
            [0.2500, 0.5000]]), tensor([2, 2], dtype=torch.int32))
    """
    warnings.warn("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future PyTorch release.", stacklevel=2)
    results = _C._lu_with_info(A, pivot, not get_infos)
    if not isinstance(results, (list, tuple)):  # what a class with `__torch_function__` has answered
        return results
    results = tuple(results)[: 3 if get_infos else 2]
    if out is None:
        return results
    return tuple(_C._write_out("lu", target, result) for target, result in zip(out, results))


def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """The product of `matrices` in the cheapest order, also written to `out`; see naru.linalg.multi_dot. Deprecated: warns.

    >>> naru.chain_matmul(naru.ones(2, 3), naru.ones(3, 1), naru.ones(1, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    warnings.warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead", stacklevel=2)
    result = matrices[0] if len(matrices) == 1 else linalg.multi_dot(matrices)
    return result if out is None else _C._write_out("chain_matmul", out, result)


def _require_matrices(name: str, A: Tensor) -> None:  # noqa: N803
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions. (got shape {list(A.shape)})")
    if A.dtype not in _EPSILON and (name == "lobpcg" or A.dtype not in (_C.complex64, _C.complex128)):
        raise NotImplementedError(f"{name}: wanted float32 or float64{'' if name == 'lobpcg' else ', complex64 or complex128'}, got {A.dtype}")


def _range_of(A: Tensor, q: int, niter: int) -> Tensor:  # noqa: N803
    """Orthonormal columns that approximately span A's q leading left singular vectors."""
    basis = linalg.qr(A @ _C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        basis = linalg.qr(A @ linalg.qr(A.mH @ basis)[0])[0]
    return basis


@takes_tensors
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple:  # noqa: N803
    """(U, S, V) with U diag(S) Vᴴ approximating `A` (..., m, n), minus `M` if given, with rank `q`: computed from products with random vectors,
    in `niter` rounds. ValueError if q is greater than m or n.

    >>> A = naru.tensor([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> U, S, V = naru.svd_lowrank(A, 2)
    >>> S.round(), naru.allclose(U @ S.diag() @ V.mT, A, atol=1e-6)
    (tensor([3., 2.]), True)
    """
    _require_matrices("svd_lowrank", A)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    A = A if M is None else A - M  # noqa: N806
    if niter > 1000:
        raise ValueError(f"niter(={niter}) must not be greater than 1000")
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A = A.mH  # noqa: N806
    if not 0 <= q <= A.shape[-1]:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={A.shape[-1]}")
    basis = _range_of(A, q, niter)
    u, s, vt = linalg.svd(basis.mH @ A, full_matrices=False)
    u, v = basis @ u, vt.mH
    return (v, s, u) if wide else (u, s, v)


@takes_tensors
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:  # noqa: N803
    """(U, S, V) of rank `q` of `A` (..., m, n), with its column means subtracted if `center`: V has the principal directions. `niter` rounds,
    as for svd_lowrank. ValueError if q is greater than m or n.

    >>> A = naru.tensor([[0.0, 1.0], [4.0, 1.0], [8.0, 1.0]])  # along the first axis
    >>> naru.pca_lowrank(A, 1)[2].abs().round()
    tensor([[1.],
            [0.]])
    """
    _require_matrices("pca_lowrank", A)
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def _eigenpairs(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:  # noqa: N803
    """The first k eigenpairs of A x = e B x by full factorizations, differentiable."""
    factor = None if B is None else linalg.cholesky(B)
    if factor is not None:
        A = linalg.solve_triangular(factor, linalg.solve_triangular(factor, A, upper=False), upper=False)  # noqa: N806
    return _chosen(A, factor, k, largest)


def _chosen(A: Tensor, factor: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:  # noqa: N803
    e, x = linalg.eigh(A)
    e, x = (e.flip(-1)[..., :k], x.flip(-1)[..., :k]) if largest else (e[..., :k], x[..., :k])
    return e, x if factor is None else linalg.solve_triangular(factor.mT, x, upper=True)


def _matrix(t: Tensor | None, i: int) -> Tensor | None:
    """Matrix number i of a batch; the matrix itself if there is no batch."""
    if t is None or t.dim() == 2:  # includes sparse matrices
        return t
    return t.reshape(-1, *t.shape[-2:])[i]


def _orthonormal(basis: Tensor, B: Tensor | None) -> Tensor:  # noqa: N803
    """Columns with the same span, orthonormal under B, without linearly dependent ones."""
    gram = basis.mT @ (basis if B is None else B @ basis)
    scale = gram.diagonal().sqrt().clamp_min(1e-30)
    e, v = linalg.eigh(gram / scale[:, None] / scale)
    keep = e > e[-1] * basis.shape[0] * _EPSILON[basis.dtype]
    return (basis / scale) @ (v[:, keep] / e[keep].sqrt())


def _iterate(A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, tol: float, niter: int, largest: bool) -> tuple:  # noqa: N803
    """Rayleigh-Ritz in the span of the vectors, their residuals and their last steps, until residuals are small."""
    k, step = X.shape[1], None
    size_a = float(linalg.norm(A @ X) / linalg.norm(X))
    size_b = 1.0 if B is None else float(linalg.norm(B @ X) / linalg.norm(X))
    x = _orthonormal(X, B)
    e, turn = linalg.eigh(x.mT @ (A @ x))
    e, x = (e.flip(0), (x @ turn).flip(1)) if largest else (e, x @ turn)
    done = 0
    while niter < 0 or done < niter:
        done += 1
        residual = A @ x - (x if B is None else B @ x) * e
        limit = (size_a + size_b * e.abs()) * linalg.vector_norm(x, dim=0) * tol
        if bool((linalg.vector_norm(residual, dim=0) < limit).all()) or done > 1000:
            break
        residual = residual if iK is None else iK @ residual
        basis = _orthonormal(_C.cat([x, residual] if step is None else [x, residual, step], 1), B)
        values, turn = linalg.eigh(basis.mT @ (A @ basis))
        at = values.argsort(0, largest)[:k]
        new = basis @ turn[:, at]
        step = new - x @ (x.mT @ (new if B is None else B @ new))
        e, x = values[at], new
    return e, x


@takes_tensors
def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None, iK: Tensor | None = None,  # noqa: N803
    niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None, tracker: Callable[..., Any] | None = None,
    ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(E, X): the `k` greatest (least, with `largest` False) eigenvalues of symmetric matrices `A` (..., m, m), A x = e `B` x, and their
    vectors, computed iteratively from `X` (..., m, n), random by default.

    `iK`: an approximation of A's inverse. If A or B requires grad, full factorizations are used, which are differentiable. `n` columns of X are
    iterated on, at most `niter` times, until residuals are less than `tol`; `method`, `tracker`, `ortho_iparams`, `ortho_fparams` and
    `ortho_bparams` are accepted for compatibility with PyTorch. ValueError if m is less than 3 n.

    >>> naru.lobpcg(naru.diag(naru.tensor([1.0, 5.0, 2.0, 3.0])), 1)[0].round()
    tensor([5.])
    """
    for t in (A, B, X, iK):
        if t is not None:
            _require_matrices("lobpcg", t)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"lobpcg: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")
    rows = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if rows < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    largest = True if largest is None else largest
    if A.requires_grad or (B is not None and B.requires_grad):
        return _eigenpairs(A, B, k, largest)
    tol = _EPSILON[A.dtype] ** 0.5 if tol is None else tol
    batch = A.shape[:-2]
    values, vectors = [], []
    for i in range(max(1, batch.numel())):
        start = _C.randn(rows, n, dtype=A.dtype, device=A.device) if X is None else _matrix(X, i)
        e, x = _iterate(_matrix(A, i), _matrix(B, i), start, _matrix(iK, i), tol, 1000 if niter is None else niter, largest)
        values.append(e[:k])
        vectors.append(x[:, :k])
    return _C.stack(values).reshape(*batch, k), _C.stack(vectors).reshape(*batch, rows, k)


def _removed(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of {instead}.")

    refuse.__name__ = name
    refuse.__doc__ = f"RuntimeError: it was taken away in favor of {instead}."
    return refuse


cholesky = _removed("cholesky", "`torch.linalg.cholesky`")
eig = _removed("eig", "`torch.linalg.eig`")
lstsq = _removed("lstsq", "`torch.linalg.lstsq`")
matrix_rank = _removed("matrix_rank", "`torch.linalg.matrix_rank`")
qr = _removed("qr", "`torch.linalg.qr`")
solve = _removed("solve", "`torch.linalg.solve`")
symeig = _removed("symeig", "`torch.linalg.eigh` or `torch.linalg.eigvalsh`")
show(globals(), "functions")
