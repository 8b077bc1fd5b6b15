"""naru.masked compared with NumPy on the unmasked elements, and with the functions of nn.functional that share its implementation."""
import functools
import warnings

import naru
import numpy as np
import pytest
from naru.nn import functional as F

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4, 5))
MASK = RNG.random((4, 5)) < 0.6
MASK[0], MASK[:, 1] = True, True
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean, "std": functools.partial(np.std, ddof=1),
              "var": functools.partial(np.var, ddof=1), "norm": np.linalg.norm, "logsumexp": np.logaddexp.reduce}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_masked_reduction_is_that_of_the_elements_that_are_left_and_no_other_has_a_gradient(name):
    x, mask = naru.tensor(X, requires_grad=True), naru.tensor(MASK)
    y = getattr(naru.masked, name)(x, dim=2, mask=mask)
    full = np.broadcast_to(MASK, X.shape)
    want = [[REDUCTIONS[name](X[i, j][full[i, j]]) for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-12)
    y.sum().backward()
    assert not x.grad[~mask.expand(x.shape)].any() and x.grad[mask.expand(x.shape)].any()
    assert getattr(naru.masked, name)(x, dim=(0, 2), keepdim=True, mask=mask).shape == (1, 4, 1)


def test_where_nothing_is_left_a_reduction_gives_what_changes_nothing():
    x, none = naru.ones(2, 3), naru.zeros(2, 3, dtype=naru.bool)
    m = naru.masked
    assert [f(x, mask=none).item() for f in (m.sum, m.prod, m.amax, m.amin, m.norm)] == [0, 1, float("-inf"), float("inf"), 0]
    assert m.mean(x, mask=none).isnan() and m.softmax(x, 1, mask=none).isnan().all() and m.median(x, 1, mask=none).isnan().all()
    with pytest.raises(ValueError, match="masked median expects no fully masked out rows"):
        m.median(x.long(), 1, mask=none)
    with pytest.raises(IndexError, match="_input_mask expected broadcastable mask"):
        m.sum(x, mask=none.unsqueeze(0))


def test_normalisations_and_running_sums_pass_over_what_is_left_out():
    x, mask = naru.tensor(X[0]), naru.tensor(MASK)
    s = naru.masked.softmax(x, 1, mask=mask)
    assert not s[~mask].any() and naru.allclose(s.sum(1), naru.ones(4, dtype=naru.float64))
    assert naru.equal(naru.masked.cumsum(x, 1, mask=mask), (x * mask).cumsum(1))
    assert naru.equal(naru.masked.normalize(x, 2.0, 1, mask=mask), F.normalize(x * mask, 2.0, 1))


def test_functions_behind_nn_functional_give_its_results_and_their_statistics():
    x = naru.tensor(X)
    out, mean, scale = naru.native_layer_norm(x, [5], None, None, 1e-5)
    assert naru.equal(out, F.layer_norm(x, [5])) and naru.allclose((x - mean) * scale, out)
    out, mean, scale = naru.native_group_norm(x, None, None, 3, 4, 5, 2, 1e-5)
    assert naru.equal(out, F.group_norm(x, 2)) and naru.allclose((x.reshape(3, 2, 10) - mean[..., None]) * scale[..., None], out.reshape(3, 2, 10))
    out, mean, scale = naru.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    assert naru.allclose((x - mean[:, None]) * scale[:, None], out)
    assert naru.equal(naru.constant_pad_nd(x, (1, 2)), F.pad(x, (1, 2)))
    grid = naru.rand(3, 2, 2, 2, dtype=naru.float64)
    assert naru.equal(naru.grid_sampler_2d(x[None].expand(3, 3, 4, 5), grid, 0, 1, True), F.grid_sample(x[None].expand(3, 3, 4, 5), grid, "bilinear", "border", True))
    with pytest.raises(RuntimeError, match="expected padding_mode to be one of"):
        naru.grid_sampler_2d(x[None], grid, 0, 3, True)


def test_hash_tensor_is_the_exclusive_or_of_the_bits():
    x = RNG.integers(-9, 9, (3, 5))
    np.testing.assert_array_equal(naru.hash_tensor(naru.tensor(x), 1).numpy(), np.bitwise_xor.reduce(x, 1).view(np.uint64))
    assert naru.hash_tensor(naru.tensor(X)).item() == np.bitwise_xor.reduce(X.view(np.uint64), None)


def test_empty_permuted_lies_in_memory_in_the_order_that_was_asked_for():
    assert naru.empty_permuted((2, 3, 5), (2, 0, 1)).stride() == (3, 1, 6)
    with pytest.raises(RuntimeError, match="Duplicate dim not allowed"):
        naru.empty_permuted((2, 3), (1, 1))


@pytest.mark.parametrize("name, args", [("sum", (1,)), ("mean", (None,)), ("softmax", (0,)), ("norm", (2.0, -1)), ("std", (0,)), ("normalize", (2.0, 1))])
def test_vmap_takes_the_batch_of_the_tensor_and_that_of_the_mask_at_once(name, args):
    f, x = getattr(naru.masked, name), naru.tensor(X)
    masks = naru.tensor(np.broadcast_to(MASK, X.shape).copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = naru.vmap(lambda t, m: f(t, *args, mask=m))(x, masks)
    assert naru.allclose(got, naru.stack([f(t, *args, mask=m) for t, m in zip(x, masks)]), equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "norm", "var", "logsumexp"])
@pytest.mark.parametrize("layout", [naru.sparse_coo, naru.sparse_csr])
def test_reductions_of_sparse_tensors_give_sparse_ones(name, layout):
    """What is not stored is 0 under a mask, and left out without one."""
    f, x = getattr(naru.masked, name), naru.tensor([[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [2.0, 5.0, 0.0]])
    mask = naru.tensor([[True, False, True], [False, False, False], [True, True, True]])
    args = (2.0, 1) if name == "norm" else (1,)
    for given, stands_for in ((mask, mask), (mask.to_sparse(layout=layout), mask), (None, x != 0)):
        t = x.to_sparse(layout=layout).requires_grad_()
        got, dense = f(t, *args, keepdim=True, mask=given), x.clone().requires_grad_()
        want = f(dense, *args, keepdim=True, mask=stands_for)
        assert got.layout is layout and got._nnz() == 2
        assert naru.equal(got.to_dense()[::2], want[::2]) and naru.equal(naru.masked._output_mask(f, x, *args, mask=stands_for), naru.tensor([True, False, True]))
        got.to_dense().sum().backward(), want[::2].sum().backward()
        assert naru.allclose(t.grad.to_dense()[x != 0], dense.grad[x != 0])
    with pytest.raises(RuntimeError, match="keepdim=True"):
        f(x.to_sparse_csr(), *args)
