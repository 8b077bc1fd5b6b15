"""Linear algebra beyond the operator cases: PyTorch's error texts, empty and 1 x 1 matrices, degenerate matrices, second derivatives."""
import os
import pickle
import subprocess
import sys

import naru as torch
import numpy as np
import pytest

L = torch.linalg
F64 = torch.float64
SINGULAR = torch.zeros(3, 3)
BATCH = torch.stack([torch.eye(3), SINGULAR])
NAN = torch.full((3, 3), float("nan"))


def random(*shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).uniform(-1, 1, shape))


def good(*shape, seed=0):
    return random(*shape, seed=seed) + 3 * torch.eye(shape[-1], dtype=F64)


NUMERICAL = {
    "inv": (lambda: L.inv(SINGULAR), "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."),
    "inv of a batch": (lambda: torch.inverse(BATCH), "linalg.inv: (Batch element 1): The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."),
    "solve": (lambda: L.solve(BATCH, torch.ones(3)), "torch.linalg.solve: (Batch element 1): The solver failed because the input matrix is singular."),
    "cholesky": (lambda: L.cholesky(-torch.eye(2)), "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite)."),
    "cholesky of NaN": (lambda: L.cholesky(NAN), "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite)."),
    "cholesky_ex": (lambda: L.cholesky_ex(-torch.eye(2), check_errors=True), "not positive-definite"),
    "cholesky_inverse": (lambda: torch.cholesky_inverse(SINGULAR), "cholesky_inverse: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."),
    "lu_factor": (lambda: L.lu_factor(SINGULAR), "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a division by zero."),
    "svd of NaN": (lambda: L.svd(NAN), "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."),
    "pinv of NaN": (lambda: L.pinv(NAN), "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."),
    "eigh of NaN": (lambda: L.eigh(NAN), "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: "),
    "lstsq by gels": (lambda: L.lstsq(torch.diag(torch.tensor([1.0, 0])), torch.ones(2, 1), driver="gels"), "does not have full rank"),
    "matrix_power": (lambda: L.matrix_power(SINGULAR, -2), "linalg.inv: The diagonal element 1 is zero"),
    "tensorinv": (lambda: L.tensorinv(torch.zeros(4, 2, 2), 1), "inv: The diagonal element 1 is zero"),
    "ldl_factor": (lambda: L.ldl_factor(SINGULAR), "torch.linalg.ldl_factor: D[1,1] is zero"),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMERICAL)
def test_what_a_matrix_can_not_be_is_a_linalg_error_in_pytorchs_words(name):
    call, text = NUMERICAL[name]
    with pytest.raises(L.LinAlgError) as error:
        call()
    assert text in str(error.value) and isinstance(error.value, RuntimeError)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_elements_that_are_not_finite_end_every_iteration(value, size):
    a = torch.eye(size)
    a[0, 0] = value
    for f in (L.svd, L.svdvals, L.eigh, L.eigvalsh, L.pinv, L.matrix_rank, *(lambda t, d=d: L.lstsq(t, torch.ones(size, 1), driver=d) for d in ("gels", "gelsy", "gelsd", "gelss"))):
        with pytest.raises(L.LinAlgError):
            f(a)
    with pytest.raises(L.LinAlgError, match="Argument 6 has illegal value"):
        L.lstsq(torch.eye(size), a[:, :1])
    assert L.qr(a).R.shape == L.lu(a).U.shape == (size, size) and L.ldl_factor_ex(a).LD.shape == (size, size)


def test_the_error_is_pickled_as_itself():
    assert pickle.loads(pickle.dumps(L.LinAlgError)) is L.LinAlgError


I, H, R, V = torch.ones(3, 3, dtype=torch.int64), torch.eye(3, dtype=torch.half), torch.ones(2, 3), torch.ones(3)
E = torch.eye(3)
LU, PIVOTS = L.lu_factor(E)
WRONG = {
    "square": (RuntimeError, "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices", lambda: L.inv(R)),
    "dimensions": (RuntimeError, "linalg.cholesky: The input tensor A must have at least 2 dimensions.", lambda: L.cholesky(V)),
    "integers": (NotImplementedError, "linalg.svd: Expected a floating point or complex tensor as input. Got Long", lambda: L.svd(I)),
    "half": (NotImplementedError, "\"lu_cpu\" not implemented for 'Half'", lambda: L.det(H)),
    "half inverse": (NotImplementedError, "linalg.inv: Low precision dtypes not supported. Got Half", lambda: L.inv(H)),
    "tensor": (TypeError, "linalg_inv(): argument 'A' (position 1) must be Tensor, not int", lambda: L.inv(3)),
    "types": (RuntimeError, "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of type Double instead", lambda: L.solve(E, V.double())),
    "sizes": (RuntimeError, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)", lambda: L.solve(E, torch.ones(4, 2))),
    "sizes right": (RuntimeError, "linalg.solve: Incompatible shapes of A and B for the equation XA = B (3x3 and 3x2)", lambda: L.solve(E, torch.ones(3, 2), left=False)),
    "pivot": (RuntimeError, "linalg.lu_factor: LU without pivoting is not implemented on the CPU", lambda: L.lu_factor(E, pivot=False)),
    "pivots' type": (RuntimeError, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32", lambda: L.lu_solve(LU, PIVOTS.long(), E)),
    "pivots' number": (RuntimeError, "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix", lambda: L.lu_solve(LU, PIVOTS[:2], E)),
    "pivots beyond": (RuntimeError, "Pivots given to lu_solve must all be smaller or equal to LU.size(-2)", lambda: L.lu_solve(LU, PIVOTS + 5, E)),
    "pivots unpacked": (RuntimeError, "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive", lambda: torch.lu_unpack(LU, PIVOTS + 5)),
    "pivots of ldl": (RuntimeError, "pivots must be those of ldl_factor", lambda: L.ldl_solve(E, PIVOTS + 5, E)),
    "qr's mode": (RuntimeError, "qr received unrecognized mode 'foo' but expected one of 'reduced' (default), 'r', or 'complete'", lambda: L.qr(E, mode="foo")),
    "a driver": (RuntimeError, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs", lambda: L.svd(E, driver="gesvd")),
    "lstsq's driver": (RuntimeError, "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)", lambda: L.lstsq(E, V, driver="foo")),
    "lstsq's sizes": (RuntimeError, "torch.linalg.lstsq: input.size(-2) should match other.size(-2)", lambda: L.lstsq(E, torch.ones(4, 1))),
    "triangle": (RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X", lambda: L.eigh(E, UPLO="X")),
    "cond": (ValueError, "linalg.cond got an invalid norm type: 3", lambda: L.cond(E, p=3)),
    "cond of no squares": (RuntimeError, "linalg.cond(ord=1): A must be batches of square matrices, but they are 2 by 3 matrices", lambda: L.cond(R, 1)),
    "order": (RuntimeError, "linalg.matrix_norm: Order 3 not supported.", lambda: L.norm(E, 3)),
    "named order": (RuntimeError, "linalg.matrix_norm: Order foo not supported.", lambda: L.matrix_norm(E, "foo")),
    "norm's rank": (RuntimeError, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.", lambda: L.norm(torch.ones(2, 2, 2), 2)),
    "norm's dims": (RuntimeError, "linalg.matrix_norm: dims must be different. Got (0, 0)", lambda: L.norm(E, 2, dim=(0, 0))),
    "norm's type": (RuntimeError, "linalg.vector_norm: the dtype of the input (Double) should be convertible without narrowing to the specified dtype (Float)", lambda: L.vector_norm(E.double(), dtype=torch.float32)),
    "one factor": (RuntimeError, "multi_dot(): expected at least 2 tensors but got 1", lambda: L.multi_dot([E])),
    "factors": (RuntimeError, "multi_dot(): tensors 0 and 1 with shapes [3, 3] and [2, 2] cannot be multiplied", lambda: L.multi_dot([E, torch.ones(2, 2)])),
    "vander": (RuntimeError, "N must be greater than 1.", lambda: L.vander(V, N=1)),
    "tensorinv": (RuntimeError, "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 1 != 6", lambda: L.tensorinv(R)),
    "reflectors": (RuntimeError, "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]", lambda: L.householder_product(R, V)),
    "cross": (RuntimeError, "linalg.cross: inputs dimension -1 must have length 3. Got 3 and 2", lambda: L.cross(E, E[:, :2])),
    "polar": (RuntimeError, "linalg.polar: input must have at least as many rows as columns, but got 2 by 3 matrices", lambda: L.polar(R)),
    "rank": (RuntimeError, "This function doesn't handle types other than float and double", lambda: L.matrix_rank(I)),
    "low rank": (RuntimeError, "svd_lowrank: The input tensor A must have at least 2 dimensions.", lambda: torch.svd_lowrank(V)),
    "rounds": (ValueError, "niter(=100000) must not be greater than 1000", lambda: torch.svd_lowrank(E, 2, 100000)),
    "lobpcg": (RuntimeError, "lobpcg: A must be batches of square matrices, but they are 2 by 3 matrices", lambda: torch.lobpcg(R)),
    "devices": (RuntimeError, "Expected all tensors to be on the same device, but found at least two devices", lambda: L.solve(E, E.to("cuda"))),
    "qr without Q": (RuntimeError, "The derivative of linalg.qr depends on Q, which is not computed when mode='r'.", lambda: L.qr(E.clone().requires_grad_(), mode="r")[1].sum().backward()),
    "qr complete": (RuntimeError, "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.", lambda: L.qr(R.t().clone().requires_grad_(), mode="complete")[0].sum().backward()),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_operands_are_errors_in_pytorchs_words(name):
    kind, text, call = WRONG[name]
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)


def test_without_checks_the_numbers_say_which_matrix_it_was():
    for result, info in (L.inv_ex(BATCH), L.solve_ex(BATCH, torch.ones(2, 3)), L.cholesky_ex(BATCH)):
        assert info.tolist() == [0, 1] and info.dtype == torch.int32 and result[0].isfinite().all()
    assert L.lu_factor_ex(BATCH).info.tolist() == L.ldl_factor_ex(BATCH).info.tolist() == [0, 1]


def test_matrices_without_elements_have_results(device):
    none, flat, tall = torch.zeros(0, 0, device=device), torch.zeros(0, 3, device=device), torch.zeros(2, 3, 0, device=device)
    assert L.det(none).item() == 1 and L.slogdet(none)[1].item() == 0 and L.inv(none).shape == L.cholesky(none).shape == (0, 0)
    assert L.solve(none, torch.zeros(0, 2, device=device)).shape == (0, 2) and L.solve(torch.zeros(0, 3, 3, device=device), torch.zeros(3, 1, device=device)).shape == (0, 3, 1)
    assert [t.shape for t in L.svd(flat)] == [(0, 0), (0,), (3, 3)] and torch.equal(L.svd(flat)[2].cpu(), torch.eye(3))
    assert [t.shape for t in L.qr(tall)] == [(2, 3, 0), (2, 0, 0)] and torch.equal(L.qr(tall, "complete")[0].cpu(), torch.eye(3).expand(2, 3, 3))
    assert [t.shape for t in L.lu(flat)] == [(0, 0), (0, 0), (0, 3)] and [t.shape for t in L.eigh(none)] == [(0,), (0, 0)]
    assert L.pinv(flat).shape == (3, 0) and L.matrix_rank(tall).tolist() == [0, 0] and L.matrix_exp(none).shape == (0, 0)
    assert L.lstsq(flat, torch.ones(0, 2, device=device)).solution.tolist() == [[0, 0]] * 3
    assert L.cond(none).item() == L.matrix_norm(flat, 2).item() == L.matrix_norm(flat, "nuc").item() == L.matrix_norm(flat, 1).item() == 0
    x = torch.zeros(0, 0, device=device, requires_grad=True)
    (L.det(x) + L.inv(x).sum() + L.cholesky(x).sum() + L.svdvals(x).sum() + L.eigvalsh(x).sum()).backward()
    assert x.grad.shape == (0, 0)


def test_single_elements_are_divided_multiplied_and_rooted(device):
    x = torch.tensor([[4.0]], dtype=F64, device=device)
    assert L.det(x).item() == 4 and L.inv(x).item() == 0.25 and L.cholesky(x).item() == 2 and L.solve(x, x).item() == 1
    assert L.eigvalsh(x).item() == 4 and L.svdvals(-x).item() == 4 and L.pinv(x).item() == 0.25 and L.matrix_power(x, -2).item() == 1 / 16
    assert L.matrix_exp(x).item() == pytest.approx(np.exp(4)) and L.slogdet(-x)[0].item() == -1 and L.cond(x).item() == 1


def test_more_matrices_and_columns_than_a_thread_takes_at_once_are_all_done():
    a, b = good(70, 5, 5), random(70, 5, 200, seed=1)
    np.testing.assert_allclose((a @ L.solve(a, b)).numpy(), b.numpy(), atol=1e-12)
    c, d = good(150, 150), random(150, 333, seed=2)
    np.testing.assert_allclose((c @ L.solve(c, d)).numpy(), d.numpy(), atol=1e-10)
    np.testing.assert_allclose((c.triu() @ L.solve_triangular(c, d, upper=True)).numpy(), d.numpy(), atol=1e-9)


def test_batches_broadcast_with_a_vector_for_each_matrix_or_for_all():
    a = good(2, 1, 3, 3)
    assert L.solve(a, random(5, 3, 2)).shape == (2, 5, 3, 2)
    assert L.solve(good(2, 3, 3), random(3)).shape == (2, 3) and L.solve(good(2, 3, 3), random(2, 3)).shape == (2, 3)
    x = good(3, 3).requires_grad_()
    L.solve(x, random(4, 3, 2)).sum().backward()
    assert x.grad.shape == (3, 3)


# Functions of one operand, with an operand at which they are smooth.
SMOOTH = {
    "solve": (lambda a: L.solve(a, a @ a), good(3, 3)), "inv": (L.inv, good(2, 3, 3)), "det": (L.det, random(3, 3)), "slogdet": (lambda a: L.slogdet(a)[1], good(3, 3)),
    "lu_factor": (lambda a: L.lu_factor(a)[0], good(3, 3)), "lu_factor tall": (lambda a: L.lu_factor(a)[0], random(4, 3)),
    "lu_solve": (lambda a: L.lu_solve(*L.lu_factor(a), a, left=False, adjoint=True), good(3, 3)), "cholesky": (lambda a: L.cholesky(a @ a.mT), good(3, 3)),
    "cholesky_solve": (lambda a: torch.cholesky_solve(a, a.tril()), good(3, 3)), "cholesky_inverse": (lambda a: torch.cholesky_inverse(a.tril()), good(3, 3)),
    "solve_triangular": (lambda a: L.solve_triangular(a, a.mT, upper=True, left=False), good(3, 3)), "qr": (lambda a: L.qr(a)[0] @ a.mT, random(4, 3)),
    "qr wide": (lambda a: L.qr(a)[1] ** 2, random(3, 4)), "householder_product": (lambda a: L.householder_product(a, a[0]), random(4, 3)),
    "eigh": (lambda a: (lambda w, v: v**2 * w)(*L.eigh(a + a.mT)), random(3, 3)), "eigvalsh": (lambda a: L.eigvalsh(a @ a.mT), random(3, 3)),
    "eig": (lambda a: (lambda w, v: ((v.abs() ** 2 + 0j) @ w).abs())(*L.eig(a)), random(3, 3)), "eigvals": (lambda a: L.eigvals(a).abs(), random(3, 3)),
    "svd": (lambda a: (lambda u, s, vt: u**2 @ (s[:, None] * vt**2))(*L.svd(a, full_matrices=False)), random(4, 3)), "svdvals": (L.svdvals, random(3, 4)),
    "pinv": (L.pinv, random(4, 3)), "lstsq": (lambda a: L.lstsq(a, a[:, :2] ** 2).solution, random(4, 3)), "polar": (lambda a: L.polar(a)[0], random(4, 3)),
    "matrix_exp": (L.matrix_exp, random(3, 3)), "matrix_power": (lambda a: L.matrix_power(a, 3), random(3, 3)), "nuclear norm": (lambda a: L.matrix_norm(a, "nuc"), random(4, 3)),
    "ormqr": (lambda a: torch.ormqr(a, a[0], a), random(4, 3)), "multi_dot": (lambda a: L.multi_dot([a, a.mT, a]), random(4, 3)), "cond": (lambda a: L.cond(a, 1), good(3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_gradients_agree_with_finite_differences(name):
    f, x = SMOOTH[name]
    x = x.clone().requires_grad_()
    y = f(x)
    y = (y * random(*y.shape, seed=3)).sum()
    direction, weight = random(*x.shape, seed=4), random(*x.shape, seed=5)

    def slope(t):
        t = t.detach().requires_grad_()
        out = f(t)
        (g,) = torch.autograd.grad((out * random(*out.shape, seed=3)).sum(), t)
        return (g * weight).sum().item()

    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad((g * weight).sum(), x)
    h = 1e-5
    wanted = (slope(x + h * direction) - slope(x - h * direction)) / (2 * h)
    assert (second * direction).sum().item() == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_the_gradient_of_a_determinant_that_is_zero_is_that_of_the_cofactors():
    a = torch.tensor([[1.0, 2, 3], [4, 5, 6], [5, 7, 9]], dtype=F64, requires_grad=True)
    wanted = [[3, -6, 3], [3, -6, 3], [-3, 6, -3]]
    for create_graph in (False, True):
        (g,) = torch.autograd.grad(L.det(a), a, create_graph=create_graph)
        np.testing.assert_allclose(g.detach().numpy(), wanted, atol=1e-9)
    zeros = torch.zeros(2, 2, dtype=F64, requires_grad=True)
    assert torch.autograd.grad(L.det(zeros), zeros)[0].abs().max().item() < 1e-12


def test_equal_values_have_gradients_where_they_do_not_matter():
    a = torch.eye(3, dtype=F64, requires_grad=True)
    for f in (L.svdvals, L.eigvalsh, lambda t: L.svd(t)[1], lambda t: L.eigh(t)[0]):
        assert torch.equal(torch.autograd.grad(f(a).sum(), a)[0], torch.eye(3, dtype=F64))
    assert torch.autograd.grad((L.eigh(a)[1] ** 2 * random(3)).sum(), a)[0].isnan().any(), "which vectors it is, is not determined"


def test_a_singular_matrix_has_infinite_condition_and_a_pseudoinverse_with_a_gradient():
    assert L.cond(SINGULAR, 1).item() == float("inf") and L.cond(BATCH, "fro").tolist() == [pytest.approx(3), float("inf")]
    a = torch.tensor([[1.0, 2], [2, 4], [3, 6]], dtype=F64, requires_grad=True)
    p = L.pinv(a)
    np.testing.assert_allclose((a @ p @ a).detach().numpy(), a.detach().numpy(), atol=1e-12)
    p.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [[0.0037, 0.0012], [-0.0012, -0.0147], [-0.0061, -0.0306]], atol=5e-5)


def test_tolerances_decide_what_counts_as_zero():
    a = torch.diag(torch.tensor([4.0, 1.0, 0.5]))
    assert L.matrix_rank(a).item() == 3 and L.matrix_rank(a, 0.7).item() == 2 and L.matrix_rank(a, atol=2.0).item() == 1 and L.matrix_rank(a, rtol=0.2).item() == 2
    assert L.matrix_rank(torch.stack([a, a]), torch.tensor([0.7, 2.0])).tolist() == [2, 1] and L.matrix_rank(-a, hermitian=True).item() == 3
    assert L.pinv(a, rtol=0.2).diagonal().tolist() == [0.25, 1, 0] and a.pinverse(0.2).diagonal().tolist() == [0.25, 1, 0]


def test_results_have_names_and_go_where_out_says():
    a = torch.tensor([[2.0, 1], [1, 3]])
    assert type(L.svd(a)).__name__ == "linalg_svd" and L.svd(a).Vh.shape == (2, 2) and L.lu_factor(a).pivots.dtype == torch.int32
    assert [n for n in ("solution", "residuals", "rank", "singular_values") if not hasattr(L.lstsq(a, a), n)] == []
    out = torch.empty(0)
    assert L.inv(a, out=out) is out and torch.equal(out, L.inv(a))
    pair = torch.empty(0), torch.empty(0)
    L.qr(a, out=pair)
    assert torch.allclose(pair[0] @ pair[1], a)


def test_older_names_are_methods_too():
    a = torch.tensor([[2.0, 1], [1, 3]])
    assert torch.allclose(a.inverse(), L.inv(a)) and a.det().item() == pytest.approx(5) and a.logdet().item() == pytest.approx(np.log(5))
    assert a.slogdet().logabsdet.item() == pytest.approx(np.log(5)) and torch.allclose(a.matrix_exp(), L.matrix_exp(a)) and torch.allclose(a.matrix_power(2), a @ a)
    u, s, v = a.svd()
    assert torch.allclose(u * s @ v.t(), a) and torch.norm(a, "nuc").item() == pytest.approx(s.sum().item())
    assert torch.allclose(torch.triangular_solve(a, a).solution, L.solve_triangular(a, a, upper=True))
    reflectors, tau = a.geqrf()
    assert torch.allclose(torch.orgqr(reflectors, tau) @ reflectors.triu(), a)


def test_a_device_without_routines_falls_back_and_says_so():
    a, b = good(3, 3), random(3, 2)
    with torch.virtual("mps", without=["lu_factor", "lu_solve"]):
        with pytest.raises(NotImplementedError, match="aten::lu_factor"):
            L.solve(a.to("mps"), b.to("mps"))
        torch.fallback.reset()
        with torch.fallback.policy("count"):
            assert torch.equal(L.solve(a.to("mps"), b.to("mps")).cpu(), L.solve(a, b))
        assert {use.op for use in torch.fallback.report()} == {"lu_factor", "lu_solve"}
        torch.fallback.reset()


def test_without_a_library_the_error_says_what_to_install():
    program = "import naru\nnaru._C._set_package_folders('')\ntry:\n  naru.linalg.inv(naru.eye(2))\nexcept RuntimeError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "NARU_MATMUL": "own", "NARU_OPENBLAS": "/dev/null"})
    # It succeeds where the system has OpenBLAS installed.
    assert done.returncode == 0 and (not done.stdout or "requires LAPACK" in done.stdout and "scipy-openblas32" in done.stdout), done.stderr


def test_low_rank_factorizations_find_what_is_there():
    a = random(40, 30) @ torch.diag(torch.tensor([1.0] * 4 + [0.0] * 26, dtype=F64)) @ random(30, 30, seed=1)
    for wide in (False, True):
        x = a.mT if wide else a
        u, s, v = torch.svd_lowrank(x, q=6)
        np.testing.assert_allclose((u * s @ v.mT).numpy(), x.numpy(), atol=1e-10)
    u, s, v = torch.pca_lowrank(a, q=4)
    np.testing.assert_allclose(s.numpy(), L.svdvals(a - a.mean(0))[:4].numpy(), rtol=1e-9)


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_the_outermost_eigenpairs(largest):
    a, b = random(2, 24, 24), torch.diag(random(24, seed=1) + 2)
    a = a @ a.mT + torch.eye(24, dtype=F64)
    e, x = torch.lobpcg(a, k=2, largest=largest)
    wanted = L.eigvalsh(a)
    np.testing.assert_allclose(e.numpy(), (wanted.flip(-1) if largest else wanted)[:, :2].numpy(), rtol=1e-8)
    np.testing.assert_allclose((a @ x).numpy(), (x * e.unsqueeze(-2)).numpy(), atol=1e-4)
    e, x = torch.lobpcg(a[0], k=2, B=b, largest=largest)
    np.testing.assert_allclose((a[0] @ x).numpy(), (b @ x * e).numpy(), atol=1e-4)
    leaf = a[0].clone().requires_grad_()
    torch.lobpcg(leaf, k=1, largest=largest)[0].sum().backward()
    vector = L.eigh(a[0])[1][:, -1 if largest else 0]
    np.testing.assert_allclose(leaf.grad.numpy(), torch.outer(vector, vector).numpy(), atol=1e-9)


def test_names_that_are_gone_say_what_is_in_their_place():
    for name in ("cholesky", "eig", "lstsq", "matrix_rank", "qr", "solve", "symeig"):
        with pytest.raises(RuntimeError, match="deprecated since version 1.9 and is now removed.*torch.linalg."):
            getattr(torch, name)(torch.eye(2))


def test_eigenvectors_of_any_matrix_are_turned_into_multiples_of_themselves(device):
    for a in (random(4, 3, 3), random(5, 5), torch.complex(random(2, 4, 4), random(2, 4, 4, seed=1)), torch.tensor([[0.0, 1], [-1, 0]], dtype=F64), random(2, 3, 3).float()):
        w, v = L.eig(a.to(device))
        assert w.dtype == v.dtype == (torch.complex64 if a.dtype == torch.float32 else torch.complex128) and w.device.type == v.device.type
        w, v = w.cpu(), v.cpu()
        tolerance = 1e-5 if a.dtype == torch.float32 else 1e-12
        np.testing.assert_allclose((a.to(v.dtype) @ v).numpy(), (v * w.unsqueeze(-2)).numpy(), atol=tolerance)
        np.testing.assert_allclose((v.abs() ** 2).sum(-2).numpy(), 1, atol=tolerance)
        order = lambda z: np.sort_complex(np.round(z, 4))  # noqa: E731
        np.testing.assert_allclose(order(L.eigvals(a.to(device)).cpu().numpy()), order(np.linalg.eigvals(a.numpy())), atol=1e-3)
    assert L.eig(torch.zeros(2, 0, 0))[1].shape == (2, 0, 0) and L.eigvals(torch.zeros(0, 3, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: L.eig(torch.ones(2, 3)), RuntimeError, "linalg.eig: A must be batches of square matrices, but they are 2 by 3 matrices"),
        (lambda: L.eig(torch.tensor([[float("nan"), 1], [1, 1]])), RuntimeError, "torch.linalg.eig: input tensor should not contain infs or NaNs."),
        (lambda: L.eig(torch.ones(2, 2, dtype=torch.int64)), RuntimeError, "Unknown Complex ScalarType for Long"),
        (lambda: L.eig(torch.ones(2, 2, dtype=torch.float16)), NotImplementedError, "\"linalg_eig_out_cpu\" not implemented for 'Half'"),
    ],
)
def test_matrices_without_eigenvalues_are_pytorchs_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_loss_that_depends_on_the_phase_of_eigenvectors_is_an_error():
    a = torch.tensor([[1.0, 2], [-3, 4]], dtype=F64, requires_grad=True)
    with pytest.raises(RuntimeError, match="linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e"):
        L.eig(a)[1].imag.sum().backward()


def test_complex_systems_are_solved_from_both_sides():
    a, b = torch.complex(good(2, 3, 3), random(2, 3, 3)), torch.complex(random(2, 3, 3, seed=2), random(2, 3, 3, seed=3))
    np.testing.assert_allclose((a @ L.solve(a, b)).numpy(), b.numpy(), atol=1e-12)
    np.testing.assert_allclose((L.solve(a, b, left=False) @ a).numpy(), b.numpy(), atol=1e-12)
    np.testing.assert_allclose(L.inv(a).numpy(), np.linalg.inv(a.numpy()), atol=1e-12)
    with pytest.raises(L.LinAlgError, match="singular"):
        L.solve(torch.zeros(2, 2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64))


def test_what_is_written_to_out_has_the_fields_of_the_result():
    a, places = good(3, 3), torch.empty(0, dtype=torch.int32)
    inverse = L.inv_ex(a, out=(torch.empty(0, dtype=F64), places))
    assert type(inverse).__name__ == "linalg_inv_ex_out" and inverse.info is places
    np.testing.assert_allclose((a @ inverse.inverse).numpy(), np.eye(3), atol=1e-12)
    values = torch.empty(0, dtype=F64)
    assert torch.max(a, 0, out=[values, torch.empty(0, dtype=torch.int64)]).values is values


def test_a_right_side_of_least_squares_is_of_vectors_only_if_its_batch_is_that_of_the_matrices():
    a, b, of_vectors = random(2, 4, 2), random(4, 2, seed=2), random(2, 4, seed=2)
    np.testing.assert_allclose(L.lstsq(a, b).solution.numpy(), (L.pinv(a) @ b).numpy(), atol=1e-12)
    np.testing.assert_allclose(L.lstsq(a, of_vectors).solution.numpy(), (L.pinv(a) @ of_vectors.unsqueeze(-1)).squeeze(-1).numpy(), atol=1e-12)
    with pytest.raises(RuntimeError, match=r"input.size\(-2\) should match other.size\(-2\)"):
        L.lstsq(random(1, 1, 1), random(3, 1))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.addr(torch.ones(2, 2, dtype=torch.int16), *[torch.ones(2, dtype=torch.int16)] * 2, beta=2.0), "beta must not be a floating point"),
        (lambda: torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha=True), "Boolean alpha only supported for Boolean results"),
        (lambda: L.vector_norm(torch.ones(2), 2 + 0j), "linalg.vector_norm: Expected a non-complex scalar"),
        (lambda: L.norm(torch.ones(2, 2), 1j), "linalg.matrix_norm: Expected a non-complex scalar"),
        (lambda: L.multi_dot([torch.eye(2)] * 2, out=torch.empty(0, dtype=F64)), "to have dtype float, but got double"),
        (lambda: L.lu_solve(torch.eye(2), torch.zeros(2, dtype=torch.int32), torch.eye(2)), "greater or equal to 1"),
    ],
)
def test_factors_orders_and_pivots_that_do_not_fit_are_pytorchs_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_the_type_of_addr_is_that_of_all_three():
    small, flags = torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.bool)
    assert torch.addr(torch.ones(2, 2, dtype=torch.bool), small, flags, alpha=3).dtype == torch.uint8
    assert torch.addr(torch.zeros(2, 2, dtype=torch.bool), flags, flags).all()
