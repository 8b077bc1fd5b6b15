"""Rarely used PyTorch names, and Python functions with complex numbers and small integer types."""
import pytest

import naru as torch


def test_control_flow_is_pythons():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.cond(x.sum() > 2, lambda t: t * 3, lambda t: t, (x,)).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert torch.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), (0, torch.ones(1)))[1].tolist() == [8]
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        torch.cond(torch.tensor([True, False]), print, print)
    with pytest.raises(RuntimeError, match="body_fn should return the same number of elements"):
        torch.while_loop(lambda t: t < 1, lambda t: (t, t), (torch.zeros(()),))


def test_old_products_of_sparse_matrices_store_the_rows_that_pytorch_stores():
    s, x = torch.tensor([[0, 1.0, 0], [0, 0, 0], [2, 0, 0]]).to_sparse(), torch.arange(6.0).reshape(2, 3).t()
    assert torch.hspmm(s, x).indices().tolist() == [[0, 2]] and torch.hsmm(s, x).values().tolist() == [[1, 4], [0, 6]]
    assert s.smm(x).indices().tolist() == [[0, 0, 2, 2], [0, 1, 0, 1]] and torch.equal(torch.dsmm(s, x), s.to_dense() @ x)
    assert torch.equal(torch.saddmm(s, s, torch.eye(3), beta=2, alpha=3).to_dense(), 5 * s.to_dense())


def test_methods_that_few_call():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.t().dim_order() == (1, 0) and x.const_data_ptr() == x.data_ptr() and not x.is_distributed()
    assert torch.equal(x.clone().map2_(x, x, lambda a, b, c: a + b + c), 3 * x)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x.resize(3, 2).shape == x.resize_as(torch.ones(3, 2)).shape == (3, 2)
    for name in ("cholesky", "eig", "lstsq", "qr", "solve", "symeig"):
        with pytest.raises(RuntimeError, match="This function was deprecated since version 1.9 and is now removed."):
            getattr(x, name)()


def test_a_tensor_over_a_file_writes_to_it_where_it_is_shared(tmp_path):
    path = str(tmp_path / "numbers")
    torch.from_file(path, shared=True, size=4).copy_(torch.arange(4.0))
    own = torch.from_file(path, size=4)
    own[0] = 9
    assert own.tolist() == [9, 1, 2, 3] and torch.from_file(path, size=2).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="size <16> is smaller than the required mapping size <40>"):
        torch.from_file(path, size=10)


def test_complex_matrices_have_low_rank_factors_and_complex_numbers_pad():
    a = torch.randn(6, 4, dtype=torch.complex64)
    u, s, v = torch.svd_lowrank(a, 4)
    assert torch.allclose(u * s @ v.mH, a, atol=1e-4) and s.dtype == torch.float32 and torch.pca_lowrank(a)[0].shape == (6, 4)
    assert torch.constant_pad_nd(torch.ones(1, dtype=torch.complex64), (1, 0), 2j).tolist() == [2j, 1]
    with pytest.raises(TypeError, match=r"pad\(\): argument 'value' \(position 4\) must be float, not complex"):
        torch.nn.functional.pad(torch.ones(1, dtype=torch.complex64), (1, 0), value=2j)


def test_sums_of_small_integers_meet_them_in_a_product():
    made = torch.einsum("...ik, ...j -> ij", torch.ones(1, 2, 3, dtype=torch.uint8), torch.ones(3, dtype=torch.uint8))
    assert made.tolist() == [[3, 3, 3]] * 2 and made.dtype == torch.int64


def test_a_sparse_matrix_is_made_of_its_diagonals():
    x = torch.arange(1.0, 10).reshape(3, 3)
    assert torch.sparse.spdiags(x, torch.tensor([0, 1, -1]), (3, 3)).to_dense().tolist() == [[1, 5, 0], [7, 2, 6], [0, 8, 3]]
    assert torch.sparse.spdiags(x, torch.tensor([-2, 0, 7]), (4, 2), torch.sparse_csr).to_dense().tolist() == [[4, 0], [0, 5], [1, 0], [0, 2]]
    for offsets, said in (([0, 0, 1], "duplicate values"), ([0, 1], r"Number of diagonals \(3\) does not match the number of offsets \(2\)"), ([0.0, 1.0, 2.0], "must have dtype Long")):
        with pytest.raises(RuntimeError, match=said):
            torch.sparse.spdiags(x, torch.tensor(offsets), (3, 3))
    check = torch.sparse.check_sparse_tensor_invariants
    assert check(True)(check.is_enabled)() and not check.is_enabled()
