"""Linear algebra with complex matrices: values compared with NumPy's, first and second derivatives with finite differences, PyTorch's error texts."""
import naru as torch
import numpy as np
import pytest

L = torch.linalg
C128 = torch.complex128


def array(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def good(*shape, seed=0):
    return array(*shape, seed=seed) + 3 * np.eye(shape[-1])


def t(a):
    return a.mH if isinstance(a, torch.Tensor) else np.conj(np.swapaxes(a, -1, -2))


def positive(a):
    return a @ t(a) + 3 * (torch.eye(a.shape[-1], dtype=a.dtype) if isinstance(a, torch.Tensor) else np.eye(a.shape[-1]))


def spectral(w, v, vh):
    """Each vector times its counterpart, weighted: what is left of vectors without their phase."""
    weights = np.arange(1.0, w.shape[-1] + 1)
    return (v * (torch.tensor(weights, dtype=v.dtype) if isinstance(v, torch.Tensor) else weights)) @ vh + v * 0 @ vh, w


def eigh_of(f):
    return lambda a: (lambda w, v: spectral(w, v, t(v)))(*f(a))


def svd_of(f):
    return lambda a: (lambda u, s, vh: spectral(s, u, vh))(*f(a, full_matrices=False))


def lu_product(a):
    return (lambda p, l, u: p @ l @ u)(*L.lu(a))


def unique_qr(qr, mode="reduced"):
    """With the diagonal of R positive."""

    def f(a):
        q, r = qr(a, mode)
        d = r.diagonal(0, -2, -1)
        sign = d / abs(d)
        k = sign.shape[-1]
        return q[..., :k] * sign[..., None, :], (sign.conj() if isinstance(sign, torch.Tensor) else np.conj(sign))[..., :, None] * r[..., :k, :]

    return f


def reflected(a, tau, c):
    for i in reversed(range(tau.shape[-1])):
        v = np.where(np.arange(a.shape[-2]) > i, a[..., i], 0)
        v = np.where(np.arange(a.shape[-2]) == i, 1, v)[..., None]
        c = c - tau[..., i, None, None] * v @ (t(v) @ c)
    return c


def exponential(a):
    x = term = np.eye(a.shape[-1])
    for i in range(1, 25):
        term = term @ (a / 8) / i
        x = x + term
    return np.linalg.matrix_power(x, 8)


A, B, TALL, WIDE, TAU = good(2, 3, 3), array(2, 3, 2, seed=1), array(2, 4, 3, seed=2), array(3, 4, seed=3), array(2, 3, seed=4)
N = np.linalg
CASES = {
    "solve": (L.solve, N.solve, A, B), "solve right": (lambda a, b: L.solve(a, b.mT, left=False), lambda a, b: np.swapaxes(b, -1, -2) @ N.inv(a), A, B),
    "inv": (L.inv, N.inv, A), "det": (L.det, N.det, A), "slogdet": (L.slogdet, N.slogdet, A), "logdet": (torch.logdet, lambda a: np.log(N.det(a)), A),
    "lu": (lu_product, lambda a: a, A), "lu tall": (lu_product, lambda a: a, TALL), "lu wide": (lu_product, lambda a: a, WIDE),
    "lu_solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b), N.solve, A, B),
    "lu_solve adjoint": (lambda a, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True), lambda a, b: N.solve(t(a), b), A, B),
    "lu_solve right": (lambda a, b: L.lu_solve(*L.lu_factor(a), t(b), left=False), lambda a, b: t(b) @ N.inv(a), A, B),
    "lu_solve right adjoint": (lambda a, b: L.lu_solve(*L.lu_factor(a), t(b), left=False, adjoint=True), lambda a, b: t(b) @ N.inv(t(a)), A, B),
    "cholesky": (lambda a: L.cholesky(positive(a)), lambda a: N.cholesky(positive(a)), A),
    "cholesky upper": (lambda a: L.cholesky(positive(a), upper=True), lambda a: t(N.cholesky(positive(a))), A),
    "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, a.tril()), lambda a, b: N.solve(np.tril(a) @ t(np.tril(a)), b), A, B),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(L.cholesky(positive(a), upper=True), upper=True), lambda a: N.inv(positive(a)), A),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), lambda a, b: N.solve(np.triu(a), b), A, B),
    "solve_triangular right": (lambda a, b: L.solve_triangular(a.mH, t(b), upper=False, left=False), lambda a, b: t(b) @ N.inv(np.tril(t(a))), A, B),
    "qr": (unique_qr(L.qr), unique_qr(N.qr), TALL), "qr wide": (unique_qr(L.qr), unique_qr(N.qr), WIDE), "qr complete": (unique_qr(L.qr, "complete"), unique_qr(N.qr, "complete"), A),
    "householder_product": (L.householder_product, lambda a, tau: reflected(a, tau, np.broadcast_to(np.eye(4, 3), a.shape)), TALL, TAU),
    "ormqr": (lambda a, tau: torch.ormqr(a, tau, a), lambda a, tau: reflected(a, tau, a), TALL, TAU),
    "svd": (svd_of(L.svd), svd_of(N.svd), TALL), "svd wide": (svd_of(L.svd), svd_of(N.svd), WIDE), "svdvals": (L.svdvals, lambda a: N.svd(a)[1], TALL),
    "eigh": (eigh_of(lambda a: L.eigh(positive(a))), eigh_of(lambda a: N.eigh(positive(a))), A), "eigh upper": (eigh_of(lambda a: L.eigh(positive(a), "U")), eigh_of(lambda a: N.eigh(positive(a), "U")), A),
    "eigvalsh": (lambda a: L.eigvalsh(positive(a)), lambda a: N.eigvalsh(positive(a)), A),
    "eig": (lambda a: (lambda w, v: (v * w[..., None, :] ** 2) @ L.inv(v))(*L.eig(a)), lambda a: a @ a, A), "eigvals": (lambda a: (L.eigvals(a) ** 3).sum(-1), lambda a: np.trace(a @ a @ a, 0, -2, -1), A),
    "lstsq": (lambda a, b: L.lstsq(a, b).solution, lambda a, b: N.pinv(a) @ b, TALL, array(2, 4, 2, seed=5)), "lstsq wide": (lambda a: L.lstsq(a, a[:, :2]).solution, lambda a: N.pinv(a) @ a[:, :2], WIDE),
    "pinv": (L.pinv, N.pinv, TALL), "pinv hermitian": (lambda a: L.pinv(positive(a), hermitian=True), lambda a: N.inv(positive(a)), A),
    "nuclear norm": (lambda a: L.matrix_norm(a, "nuc"), lambda a: N.svd(a)[1].sum(-1), TALL), "spectral norm": (lambda a: L.matrix_norm(a, 2), lambda a: N.svd(a)[1][..., 0], TALL),
    "norm 1": (lambda a: L.matrix_norm(a, 1), lambda a: N.norm(a, 1, (-2, -1)), TALL), "cond": (L.cond, N.cond, A), "cond 1": (lambda a: L.cond(a, 1), lambda a: N.cond(a, 1), A),
    "matrix_exp": (L.matrix_exp, exponential, A[0]), "matrix_power": (lambda a: L.matrix_power(a, -2), lambda a: N.matrix_power(a, -2), A), "vecdot": (L.vecdot, lambda a, b: (np.conj(a) * b).sum(-1), TALL, array(2, 4, 3, seed=6)),
    "polar": (lambda a: tuple(L.polar(a)), lambda a: (lambda u, s, vh: (u @ vh, t(vh) * s[..., None, :] @ vh))(*N.svd(a, full_matrices=False)), TALL),
    "matrix_sqrth": (lambda a: L.matrix_sqrth(positive(a)), lambda a: (lambda w, v: v * np.sqrt(w)[..., None, :] @ t(v))(*N.eigh(positive(a))), A),
}  # fmt: skip
# Only first derivatives are checked for these: second differences would show nothing that the other cases do not.
ONCE = {"ormqr", "eigh upper", "lstsq wide"}


def results(y):
    return list(y) if isinstance(y, tuple) else [y]


def loss(ys):
    """Weighted, so that no part is like another: real."""
    total = 0
    for i, y in enumerate(results(ys)):
        w = torch.tensor(array(*y.shape, seed=7 + i))
        total = total + ((w * y).real if y.is_complex() else w.real * y).sum()
    return total


def along(g, d):
    return sum((a.conj() * torch.tensor(b)).real.sum().item() for a, b in zip(g, d))


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_those_of_gradients_are_right_for_complex_matrices(name):
    f, reference, *operands = CASES[name]
    xs = [torch.tensor(x, requires_grad=True) for x in operands]
    ys = f(*xs)
    for y, wanted in zip(results(ys), results(tuple(reference(*operands)) if name == "slogdet" else reference(*operands)), strict=True):
        np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-9, atol=1e-9)
    for y, x in zip(results(f(*(torch.tensor(x, dtype=torch.complex64) for x in operands))), results(ys)):
        assert y.dtype == (torch.complex64 if x.is_complex() else torch.float32)

    def gradients(at):
        leaves = [torch.tensor(x, requires_grad=True) for x in at]
        return torch.autograd.grad(loss(f(*leaves)), leaves)

    g = torch.autograd.grad(loss(ys), xs, create_graph=True)
    h, directions = 1e-5, [array(*x.shape, seed=20 + i) for i, x in enumerate(operands)]
    near = [[x + sign * h * d for x, d in zip(operands, directions)] for sign in (1, -1)]
    difference = (loss(f(*map(torch.tensor, near[0]))) - loss(f(*map(torch.tensor, near[1])))).item() / (2 * h)
    assert along([x.detach() for x in g], directions) == pytest.approx(difference, rel=1e-6, abs=1e-7)
    if name in ONCE:
        return
    weights = [torch.tensor(array(*x.shape, seed=30 + i)) for i, x in enumerate(operands)]
    second = torch.autograd.grad(sum((x.conj() * w).real.sum() for x, w in zip(g, weights)), xs, allow_unused=True)
    slopes = [along(gradients(at), [w.numpy() for w in weights]) for at in near]
    found = along([x if x is not None else torch.zeros_like(o) for x, o in zip(second, xs)], directions)
    assert found == pytest.approx((slopes[0] - slopes[1]) / (2 * h), rel=1e-5, abs=1e-6)


def test_what_ldl_factors_is_symmetric_or_hermitian_as_one_says():
    b = torch.tensor(B)
    for a, hermitian in ((A + t(A), True), (A + np.swapaxes(A, -1, -2), False)):
        factors = L.ldl_factor(torch.tensor(a), hermitian=hermitian)
        np.testing.assert_allclose(L.ldl_solve(*factors, b, hermitian=hermitian).numpy(), N.solve(a, B), atol=1e-9)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_every_driver_solves_complex_problems(driver):
    b = array(2, 4, 2, seed=5)
    found = L.lstsq(torch.tensor(TALL), torch.tensor(b), driver=driver)
    wanted = N.pinv(TALL) @ b
    np.testing.assert_allclose(found.solution.numpy(), wanted, atol=1e-9)
    if driver != "gelsy":
        np.testing.assert_allclose(found.residuals.numpy(), (abs(TALL @ wanted - b) ** 2).sum(-2), atol=1e-9)
    if driver in ("gelsd", "gelss"):
        np.testing.assert_allclose(found.singular_values.numpy(), N.svd(TALL)[1], atol=1e-9)
    assert found.residuals.dtype == found.singular_values.dtype == torch.float64


def test_ranks_of_complex_matrices_are_counted_and_empty_ones_have_none():
    a = torch.tensor(TALL)
    assert L.matrix_rank(torch.cat([a, a * (1 + 2j)], -1)).tolist() == [3, 3] and L.matrix_rank(torch.tensor(A + t(A)), hermitian=True).tolist() == [3, 3]
    empty = torch.zeros(2, 0, 3, dtype=C128)
    u, s, vh = L.svd(empty)
    assert u.shape == (2, 0, 0) and s.dtype == torch.float64 and vh.dtype == C128 and torch.equal(vh[1], torch.eye(3, dtype=C128))
    assert L.eigh(torch.zeros(2, 0, 0, dtype=C128))[0].dtype == torch.float64 and L.cond(torch.zeros(0, 3, 3, dtype=C128)).dtype == torch.float64


I2, HALF = torch.zeros(2, 2, dtype=torch.complex64), torch.zeros(2, 2, dtype=torch.complex32)
PHASE = "specified up to multiplication by e^{i phi}. The specified loss function depends on this "
WRONG = {
    "phase of svd": (RuntimeError, "svd_backward: The singular vectors in the complex case are " + PHASE + "phase term, making it ill-defined.", lambda: L.svd(torch.tensor(A, requires_grad=True))[0].real.sum().backward()),
    "phase of eigh": (RuntimeError, "linalg_eigh_backward: The eigenvectors in the complex case are " + PHASE + "quantity, so it is ill-defined.", lambda: L.eigh(torch.tensor(A, requires_grad=True))[1].real.sum().backward()),
    "singular": (L.LinAlgError, "linalg.inv: The diagonal element 1 is zero", lambda: L.inv(I2)), "not positive": (L.LinAlgError, "not positive-definite", lambda: L.cholesky(I2 - torch.eye(2))),
    "half": (NotImplementedError, "\"linalg_svd_cpu\" not implemented for 'ComplexHalf'", lambda: L.svd(HALF)), "half inverse": (NotImplementedError, "linalg.inv: Low precision dtypes not supported. Got ComplexHalf", lambda: L.inv(HALF)),
    "types": (RuntimeError, "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of type ComplexFloat instead", lambda: L.solve(torch.eye(2), I2)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_complex_matrices_can_not_be_is_an_error_in_pytorchs_words(name):
    kind, text, call = WRONG[name]
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)
