"""Cases of linear algebra (see operator_cases). Results that are unique only up to signs or order are normalized, or multiplied together."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

L = naru.linalg
# LAPACK's bits depend on the library and the processor; devices other than the host fall back.
LIBRARY = {"library": True}
# The host reads whether a matrix was singular, so the call cannot be captured.
READS = {**LIBRARY, "reads": True}


def _t(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def _good(a: Any) -> Any:
    """Well-conditioned square matrices, with elements from -1 to 1."""
    return a + 3 * (naru.eye(a.shape[-1], dtype=a.dtype, device=a.device) if isinstance(a, naru.Tensor) else np.eye(a.shape[-1]))


def _positive(a: Any) -> Any:
    return _good(a @ (a.mT if isinstance(a, naru.Tensor) else _t(a)))


def _weights(n: int) -> Any:
    return np.arange(1.0, n + 1)


def _like(array: Any, t: Any) -> Any:
    return naru.tensor(array, dtype=t.dtype, device=t.device)


def _unique_qr(a: Any, mode: str = "reduced") -> tuple:
    """QR with a positive diagonal of R."""
    if isinstance(a, naru.Tensor):
        q, r = L.qr(a, mode)
        sign = r.diagonal(dim1=-2, dim2=-1).sign()
    else:
        q, r = np.linalg.qr(a, mode)
        sign = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    return q[..., : sign.shape[-1]] * sign[..., None, :], r[..., : sign.shape[-1], :] * sign[..., :, None]


def _eigenvectors(a: Any, triangle: str = "L") -> tuple:
    """The eigenvalues, and the weighted outer product of each eigenvector with itself."""
    if isinstance(a, naru.Tensor):
        w, v = L.eigh(a, triangle)
        return (v * _like(_weights(a.shape[-1]), a)) @ v.mT, w
    w, v = np.linalg.eigh(a, triangle)
    return (v * _weights(a.shape[-1])) @ _t(v), w


def _eigenspaces(a: Any) -> tuple:
    """For `a` with real, well-separated eigenvalues, in sorted order: the weighted product of each eigenvector with its row of the inverse."""
    if isinstance(a, naru.Tensor):
        w, v = L.eig(a)
        order = w.real.argsort(-1)
        w, v = w.real.gather(-1, order), v.gather(-1, order.unsqueeze(-2).expand(v.shape))
        return ((v * _like(_weights(a.shape[-1]), w)) @ L.inv(v)).real, w
    w, v = np.linalg.eig(a)
    order = np.argsort(w.real, -1)
    w, v = np.take_along_axis(w, order, -1), np.take_along_axis(v, order[..., None, :], -1)
    return ((v * _weights(a.shape[-1])) @ np.linalg.inv(v)).real, w.real


def _apart(a: Any) -> Any:
    """Adds a diagonal that keeps eigenvalues real and well separated."""
    steps = 5.0 * np.arange(a.shape[-1])
    return a + (_like(np.diag(steps), a) if isinstance(a, naru.Tensor) else np.diag(steps))


def _singular_vectors(a: Any) -> tuple:
    if isinstance(a, naru.Tensor):
        u, s, vt = L.svd(a, full_matrices=False)
        return (u * _like(_weights(s.shape[-1]), a)) @ vt, s
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (u * _weights(s.shape[-1])) @ vt, s


def _exponential(a: Any) -> Any:
    x = term = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for i in range(1, 30):
        term = term @ (a / 16) / i
        x = x + term
    return np.linalg.matrix_power(x, 16)


def _reflectors(a: Any, tau: Any, c: Any) -> Any:
    """The product of Householder reflectors H1 ... Hk and c."""
    for i in reversed(range(tau.shape[-1])):
        v = np.where(np.arange(a.shape[-2]) > i, a[..., i], 0.0)
        v = np.where(np.arange(a.shape[-2]) == i, 1.0, v)[..., None]
        c = c - tau[..., i, None, None] * v @ (_t(v) @ c)
    return c


def _columns(a: Any) -> Any:
    return np.broadcast_to(np.eye(*a.shape[-2:]), a.shape)


def _polar(a: Any) -> tuple:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return u @ vt, _t(vt) * s[..., None, :] @ vt


def _root(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return v * np.sqrt(w)[..., None, :] @ _t(v)


def _ldl_solution(a: Any, b: Any) -> Any:
    a = _positive(a.detach())
    return L.ldl_solve(*L.ldl_factor_ex(a)[:2], b)


def _cond(a: Any, p: Any) -> Any:
    return np.linalg.norm(a, p, (-2, -1)) * np.linalg.norm(np.linalg.inv(a), p, (-2, -1))


def _solving_cases(C: Any) -> list:
    square, right = (2, 4, 4), (2, 4, 3)
    return [
        C("linalg.solve", lambda a, b: L.solve(_good(a), b), lambda a, b: np.linalg.solve(_good(a), b), [square, right], extra=READS),
        C("linalg.solve_ex right", lambda a, b: L.solve_ex(_good(a), b, left=False)[0], lambda a, b: b @ np.linalg.inv(_good(a)), [(4, 4), (3, 5, 4)], extra=LIBRARY),
        C("linalg.solve_ex vectors", lambda a, b: L.solve_ex(_good(a), b)[0], lambda a, b: np.linalg.solve(_good(a), b[..., None])[..., 0], [square, (2, 4)], extra=LIBRARY),
        C("linalg.solve_triangular", lambda a, b: L.solve_triangular(_good(a), b, upper=True), lambda a, b: np.linalg.solve(np.triu(_good(a)), b), [square, right], extra=LIBRARY),
        C("linalg.solve_triangular right", lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
          lambda a, b: b @ np.linalg.inv(np.tril(a, -1) + np.eye(4)), [square, (3, 4)], extra=LIBRARY, tolerance=4),
        C("linalg.inv_ex", lambda a: L.inv_ex(_good(a))[0], lambda a: np.linalg.inv(_good(a)), [square], extra=LIBRARY),
        C("linalg.det", lambda a: L.det(a), lambda a: np.linalg.det(a), [(3, 4, 4)], extra=LIBRARY),
        C("linalg.slogdet", lambda a: tuple(L.slogdet(_good(a)))[::-1], lambda a: tuple(np.linalg.slogdet(_good(a)))[::-1], [square], extra=LIBRARY),
        C("logdet", lambda a: naru.logdet(_positive(a)), lambda a: np.linalg.slogdet(_positive(a))[1], [square], extra=LIBRARY),
        C("linalg.lu", lambda a: (lambda p, l, u: p @ l @ u)(*L.lu(a)), lambda a: a, [(2, 5, 3)], extra=READS, tolerance=4),
        C("linalg.lu wide", lambda a: (lambda p, l, u: p @ l @ u)(*L.lu(a)), lambda a: a, [(3, 5)], extra=READS, tolerance=4),
        C("linalg.lu_solve", lambda a, b: L.lu_solve(*L.lu_factor_ex(_good(a))[:2], b, adjoint=True), lambda a, b: np.linalg.solve(_t(_good(a)), b), [square, right], extra=READS),
        C("linalg.lu_solve right", lambda a, b: L.lu_solve(*L.lu_factor_ex(_good(a))[:2], b, left=False), lambda a, b: b @ np.linalg.inv(_good(a)), [square, (2, 3, 4)], extra=READS),
        C("linalg.cholesky_ex", lambda a: L.cholesky_ex(_positive(a))[0], lambda a: np.linalg.cholesky(_positive(a)), [square], extra=LIBRARY),
        C("linalg.cholesky upper", lambda a: L.cholesky(_positive(a), upper=True), lambda a: _t(np.linalg.cholesky(_positive(a))), [square], extra=READS),
        C("cholesky_solve", lambda a, b: b.cholesky_solve(_good(a).tril()), lambda a, b: np.linalg.inv(np.tril(_good(a)) @ _t(np.tril(_good(a)))) @ b, [square, right], extra=LIBRARY),
        C("cholesky_inverse", lambda a: _good(a).triu().cholesky_inverse(upper=True), lambda a: np.linalg.inv(_t(np.triu(_good(a))) @ np.triu(_good(a))), [square], extra=READS),
        C("linalg.ldl_solve", lambda a, b: _ldl_solution(a, b), lambda a, b: np.linalg.solve(_positive(a), b), [square, right], extra=READS, gradient=False),
        C("linalg.lstsq", lambda a, b: L.lstsq(a, b).solution, lambda a, b: np.linalg.pinv(a) @ b, [(2, 6, 3), (2, 6, 2)], extra=READS, tolerance=10),
        C("linalg.lstsq gels", lambda a, b: L.lstsq(a, b, driver="gels")[1::-1], lambda a, b: (((a @ np.linalg.pinv(a) @ b - b) ** 2).sum(-2), np.linalg.pinv(a) @ b),
          [(2, 6, 3), (2, 6, 2)], extra=READS, tolerance=10),
        C("linalg.lstsq gelsd", lambda a, b: L.lstsq(a, b, driver="gelsd")[::3], lambda a, b: (np.linalg.pinv(a) @ b, np.linalg.svd(a)[1]), [(2, 3, 5), (2, 3, 2)], extra=READS, tolerance=10),
    ]  # fmt: skip


def _factor_cases(C: Any) -> list:
    square, tall = (2, 4, 4), (2, 5, 3)
    return [
        C("linalg.qr", lambda a: _unique_qr(a), lambda a: _unique_qr(a), [tall], extra=LIBRARY, tolerance=10),
        C("linalg.qr complete wide", lambda a: _unique_qr(a, "complete"), lambda a: _unique_qr(a, "complete"), [(2, 3, 5)], extra=LIBRARY, tolerance=10),
        C("linalg.householder_product", lambda a, t: L.householder_product(a, t), lambda a, t: _reflectors(a, t, _columns(a)), [tall, (2, 2)], extra=LIBRARY),
        C("ormqr", lambda a, t, c: naru.ormqr(a, t, c), lambda a, t, c: _reflectors(a, t, c), [tall, (2, 3), tall], extra=LIBRARY),
        C("linalg.eigh", lambda a: _eigenvectors(_positive(a)), lambda a: _eigenvectors(_positive(a)), [square], extra=READS, tolerance=20),
        C("linalg.eigvalsh", lambda a: L.eigvalsh(a + a.mT, "U"), lambda a: np.linalg.eigvalsh(a + _t(a)), [square], extra=READS, tolerance=4),
        C("linalg.eig", lambda a: _eigenspaces(_apart(a)), lambda a: _eigenspaces(_apart(a)), [square], extra={**READS, "many kernels": True}, tolerance=40),
        C("linalg.eigvals", lambda a: naru.view_as_real(L.eigvals(a) ** 2).sum(-2), lambda a: (lambda w: np.stack([w.real.sum(-1), w.imag.sum(-1)], -1))(np.linalg.eigvals(a) ** 2),
          [square], extra={**READS, "many kernels": True}, tolerance=40),
        C("linalg.solve of complex matrices", lambda a, b, c: naru.view_as_real(L.solve(naru.complex(_good(a), b), naru.complex(c, b))),
          lambda a, b, c: (lambda z: np.stack([z.real, z.imag], -1))(np.linalg.solve(_good(a) + 1j * b, c + 1j * b)), [square, square, square], extra=READS, tolerance=4),
        C("linalg.svd", lambda a: _singular_vectors(a), lambda a: _singular_vectors(a), [tall], extra=READS, tolerance=40),
        C("linalg.svdvals", lambda a: L.svdvals(a), lambda a: np.linalg.svd(a)[1], [(3, 5)], extra=READS, tolerance=4),
        C("linalg.polar", lambda a: tuple(L.polar(a)), lambda a: _polar(a), [tall], extra=READS, tolerance=20),
        C("linalg.matrix_sqrth", lambda a: L.matrix_sqrth(_positive(a)), lambda a: _root(_positive(a)), [square], extra=READS, tolerance=4),
        C("linalg.pinv", lambda a: L.pinv(a), lambda a: np.linalg.pinv(a), [tall], extra=READS, tolerance=10),
        C("linalg.pinv hermitian", lambda a: L.pinv(a + a.mT, hermitian=True), lambda a: np.linalg.pinv(a + _t(a)), [square], extra=READS, tolerance=40),
        C("linalg.matrix_rank", lambda a: L.matrix_rank(naru.cat([a, a], -1)), lambda a: np.linalg.matrix_rank(a), [(2, 5, 2)], gradient=False, extra=READS),
    ]  # fmt: skip


def _norm_cases(C: Any) -> list:
    orders = {1: 1, "inf": np.inf, -1: -1, 2: 2, -2: -2, "fro": "fro", "nuc": "nuc"}
    inf = float("inf")
    return [
        *(C(f"linalg.matrix_norm {name}", (lambda p: lambda a: L.matrix_norm(a, p))(p), (lambda p: lambda a: np.linalg.norm(a, p, (-2, -1)))(p), [(2, 5, 3)],
            extra=READS if name in (2, -2, "nuc") else {}, tolerance=4) for name, p in orders.items()),
        *(C(f"linalg.cond {p}", (lambda p: lambda a: L.cond(_good(a), p))(p), (lambda p: lambda a: _cond(_good(a), p))(p), [(2, 4, 4)],
            extra=READS if p in (2, "nuc") else LIBRARY, tolerance=10) for p in (1, 2, "fro", "nuc")),
        C("linalg.norm of dimensions", lambda a: L.norm(a, inf, dim=(2, 0)), lambda a: np.linalg.norm(a, np.inf, (2, 0)), [(4, 3, 5)]),
        C("linalg.vector_norm", lambda a: L.vector_norm(a, 3, dim=1), lambda a: (np.abs(a) ** 3).sum(1) ** (1 / 3), [(4, 5)]),
        C("linalg.matrix_exp", lambda a: L.matrix_exp(a * 2), lambda a: _exponential(a * 2), [(2, 4, 4)], extra=READS, tolerance=20),
        C("linalg.matrix_power", lambda a: L.matrix_power(a, 5), lambda a: np.linalg.matrix_power(a, 5), [(2, 3, 3)], tolerance=10),
        C("linalg.matrix_power below 0", lambda a: L.matrix_power(_good(a), -3), lambda a: np.linalg.matrix_power(_good(a), -3), [(2, 3, 3)], extra=READS, tolerance=4),
        C("linalg.multi_dot", lambda *m: L.multi_dot(m), lambda *m: np.linalg.multi_dot(m), [(4,), (4, 6), (6, 2), (2, 5)], tolerance=10),
        C("linalg.vander", lambda a: L.vander(a, N=4), lambda a: a[..., None] ** np.arange(4), [(2, 3)]),
        C("linalg.vecdot", lambda a, b: L.vecdot(a, b, dim=0), lambda a, b: (a * b).sum(0), [(5, 7), (5, 1)], tolerance=4),
        C("linalg.cross", lambda a, b: L.cross(a, b), lambda a, b: np.cross(a, b), [(4, 3), (1, 3)]),
        C("linalg.tensorinv", lambda a: L.tensorinv(a + 3 * naru.eye(6, dtype=a.dtype, device=a.device).reshape(2, 3, 6)),
          lambda a: np.linalg.tensorinv(a + 3 * np.eye(6).reshape(2, 3, 6)), [(2, 3, 6)], extra=READS, tolerance=4),
        C("linalg.tensorsolve", lambda a, b: L.tensorsolve(a + 3 * naru.eye(6, dtype=a.dtype, device=a.device).reshape(2, 3, 6), b),
          lambda a, b: np.linalg.tensorsolve(a + 3 * np.eye(6).reshape(2, 3, 6), b), [(2, 3, 6), (2, 3)], extra=READS, tolerance=4),
    ]  # fmt: skip


def linalg_cases(C: Any) -> list:
    cases = _solving_cases(C) + _factor_cases(C) + _norm_cases(C)
    for case in cases:
        case.lo, case.hi = -1, 1
    return cases
