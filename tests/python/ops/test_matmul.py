"""einsum and tensordot compared with NumPy."""
import os
import subprocess
import sys

import naru as torch
import numpy as np
import pytest

RNG = np.random.default_rng(1)
EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ji,jk->ki", [(2, 3), (2, 4)]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,i->", [(4,), (4,)]),
    ("i,i->i", [(4,), (4,)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
    ("...ij,jk", [(5, 6, 2, 3), (3, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,ik,il->jkl", [(2, 3), (2, 4), (2, 5)]),
    ("iij,jk->ik", [(3, 3, 2), (2, 4)]),
    ("b i , i j -> b j", [(2, 3), (3, 4)]),
    ("ba,b->", [(2, 3), (2,)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
]


@pytest.mark.parametrize("equation, shapes", EQUATIONS)
def test_einsum_is_numpys(equation, shapes):
    arrays = [RNG.normal(size=shape) for shape in shapes]
    got = torch.einsum(equation, *(torch.from_numpy(a) for a in arrays))
    np.testing.assert_allclose(got.numpy(), np.einsum(equation.replace(" ", ""), *arrays), rtol=1e-12, atol=1e-13)


def test_einsum_takes_lists_and_has_gradients():
    a = torch.from_numpy(RNG.normal(size=(2, 3))).requires_grad_()
    b = torch.from_numpy(RNG.normal(size=(3, 4))).requires_grad_()
    same = torch.einsum(a, [0, 1], b, [1, 2], [0, 2])
    np.testing.assert_allclose(same.detach().numpy(), (a @ b).detach().numpy(), rtol=1e-12)
    assert torch.equal(torch.einsum(a, [30, 1], b, [1, 2]), (a @ b).T)  # subscripts given as integers, not letters
    assert torch.autograd.gradcheck(lambda x, y: torch.einsum("ij,jk->ki", x, y), [a, b])


def test_einsum_without_a_sum_is_a_product_of_elements():
    """Of any dtypes, bool among them; a product of matrices would want equal ones."""
    whole, real = torch.tensor([1, 2]), torch.tensor([0.5, 2.0], dtype=torch.float64)
    assert torch.einsum("i,j->ji", whole, real).tolist() == [[0.5, 1.0], [2.0, 4.0]]
    assert torch.einsum("i,i->i", whole > 1, whole > 0).tolist() == [False, True]


BAD_USE = [
    (lambda: torch.einsum("ij", torch.ones(2)), RuntimeError, "does not match the number of dimensions (1) for operand 0"),
    (lambda: torch.einsum("i,j", torch.ones(2)), RuntimeError, "fewer operands were provided"),
    (lambda: torch.einsum("i->j", torch.ones(2)), RuntimeError, "output subscript j does not appear"),
    (lambda: torch.einsum("i,i", torch.ones(2), torch.ones(3)), RuntimeError,
     "subscript i has size 3 for operand 1 which does not broadcast with previously seen size 2"),
    (lambda: torch.einsum("...,...", torch.ones(2, 3), torch.ones(4, 3)), RuntimeError, "dimension 0 covered by ellipsis in operand 1 has size 4"),
    (lambda: torch.einsum("ii", torch.ones(2, 3)), RuntimeError, "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    (lambda: torch.einsum("...ijk", torch.ones(2, 3)), RuntimeError, "subscripts in the equation (3) is more than the number of dimensions (2)"),
    (lambda: torch.einsum("i..j", torch.ones(2, 3)), RuntimeError, "found '.' for operand 0 that is not part of any ellipsis"),
    (lambda: torch.einsum("...i...", torch.ones(2, 3)), RuntimeError, "found '.' for operand 0 for which an ellipsis was already found"),
    (lambda: torch.einsum("i j -> i 1", torch.ones(2, 3)), RuntimeError, "invalid subscript given at index 9"),
    (lambda: torch.einsum("i,i", torch.ones(2), torch.ones(2, dtype=torch.float64)), RuntimeError, "to have the same dtype, but got: float != double"),
    (lambda: torch.einsum("ij"), ValueError, "must specify the equation string and at least one operand"),
    (lambda: torch.einsum(torch.ones(2, 3), [0, 52]), ValueError, "not within the valid range [0, 52)"),
    (lambda: torch.tensordot(torch.ones(2, 3), torch.ones(2, 3), 1), RuntimeError, "contracted dimensions need to match"),
    (lambda: torch.tensordot(torch.ones(2), torch.ones(2), 2), RuntimeError, "tensordot expects dims"),
]


@pytest.mark.parametrize("use, kind, text", BAD_USE)
def test_bad_equations_are_refused(use, kind, text):
    with pytest.raises(kind) as error:
        use()
    assert text in str(error.value)


@pytest.mark.parametrize("dims", [0, 1, 2, ([0, 1], [1, 0]), ([2], [0])])
def test_tensordot_is_numpys(dims):
    shapes = {0: ((2, 3), (4,)), 1: ((2, 3), (3, 4)), 2: ((5, 2, 3), (2, 3, 4))}
    shape_a, shape_b = shapes[dims] if isinstance(dims, int) else ((2, 3, 4), (3, 2, 5)) if len(dims[0]) == 2 else ((2, 3, 4), (4, 5))
    a, b = RNG.normal(size=shape_a), RNG.normal(size=shape_b)
    got = torch.tensordot(torch.from_numpy(a), torch.from_numpy(b), dims)
    np.testing.assert_allclose(got.numpy(), np.tensordot(a, b, dims), rtol=1e-12)


def test_small_products_have_the_bits_of_batched_ones():
    for m, k, n in ((2, 1, 2), (8, 8, 8), (3, 50, 7), (50, 50, 50), (51, 8, 9)):
        a, b = torch.randn(m, k), torch.randn(k, n)
        assert (a @ b).numpy().tobytes() == torch.bmm(a[None], b[None])[0].numpy().tobytes(), (m, k, n)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not list a process's threads")
def test_the_library_starts_no_threads_whatever_the_environment_asks():
    text = "import os, naru; naru.ones(64, 64) @ naru.ones(64, 64); print(len(os.listdir('/proc/self/task')), os.environ['OPENBLAS_NUM_THREADS'])"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4", "NARU_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["1", "4"], "")


def test_a_row_times_a_matrix_is_right_for_every_length_and_number_of_threads():
    threads = torch.get_num_threads()
    for k in [*range(1, 70), 784]:
        weight, x, bias = RNG.normal(size=(600, k)).astype("f4"), RNG.normal(size=k).astype("f4"), RNG.normal(size=600).astype("f4")
        w, v, b = torch.from_numpy(weight), torch.from_numpy(x), torch.from_numpy(bias)
        results = []
        for n in (1, 2):
            torch.set_num_threads(n)
            results += [torch.mv(w, v), (v[None] @ w.t())[0]]
        torch.set_num_threads(threads)
        for other in results[1:]:
            assert other.numpy().tobytes() == results[0].numpy().tobytes(), k
        want, bound = weight.astype("f8") @ x, np.abs(weight).astype("f8") @ np.abs(x) * (k + 2) * 2.0**-24
        assert (np.abs(results[0].numpy() - want) <= bound).all(), k
        got = torch.nn.functional.linear(v[None], w, b)[0].numpy()
        assert (np.abs(got - (want + bias)) <= bound + np.abs(want + bias) * 2.0**-23).all(), k
