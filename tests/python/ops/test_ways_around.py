"""Ways around work that most operands do not need give the same values as the work itself, wherever the operands that need it stand."""
import numpy as np
import pytest

import naru
from bitwise import bits

F = naru.nn.functional
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.5, -7.25, 1e-40, -1e-42, 3e38, 1.0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", "log log2 log10 lgamma digamma erfc erfinv logit special.entr special.ndtr special.ndtri special.log_ndtr".split())
def test_a_number_gives_the_same_beside_others_that_need_more(name, dtype):
    f = naru
    for part in name.split("."):
        f = getattr(f, part)
    rng = np.random.default_rng(7)
    usual = rng.uniform(0.01, 0.99, 500) * 2.0 ** rng.integers(-9, 9, 500)
    mixed = usual.copy()
    places = rng.permutation(500)[:60]
    mixed[places] = np.resize(SPECIAL, 60)
    for x in (usual, mixed):
        alone = f(naru.tensor(x, dtype=getattr(naru, dtype)))
        every_other = np.stack([x, np.resize(SPECIAL, x.size)], 1).reshape(-1)  # every vector has some that are not usual
        assert bits(alone) == bits(f(naru.tensor(every_other, dtype=getattr(naru, dtype)))[::2].contiguous())


def test_remainders_of_powers_of_two():
    rng = np.random.default_rng(3)
    for low in (0, -(2**62)):
        a, b = rng.integers(low, 2**62, 4099), 2 ** rng.integers(0, 63, 4099)
        for x, y in ((a, b), (a, np.int64(2**62)), (a, np.where(b > 2**55, -b, b)), (a, np.where(b > 2**55, b - 1, b))):
            got = naru.remainder(naru.tensor(x), naru.tensor(np.broadcast_to(y, x.shape).copy()))
            assert got.numpy().tolist() == np.remainder(x, y).tolist()


@pytest.mark.parametrize("n", [1, 2, 24, 25, 1000, 2**17, 2**17 + 1, 300_000])
def test_permutations_of_any_length_are_the_same_shuffle(n):
    """A long one is shuffled in 32 bits; either is Fisher and Yates's by the words that randint draws."""
    naru.manual_seed(n)
    words = naru.randint(0, 2**62, (n,)).tolist()
    order = list(range(n))
    for i, word in enumerate(words):
        j = i + (word * (n - i) >> 62)
        order[i], order[j] = order[j], order[i]
    for dtype in (naru.int64, naru.int32 if n > 2**15 else naru.int16):
        naru.manual_seed(n)
        got = naru.randperm(n, dtype=dtype)
        assert got.dtype == dtype and got.tolist() == order


@pytest.mark.parametrize("shape, dim", [((33,), 0), ((5, 1), 1), ((4, 32), 1), ((32, 3), 0), ((2, 17, 5), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_logcumsumexp_is_the_same_with_and_without_a_gradient(shape, dim, dtype):
    rng = np.random.default_rng(5)
    x = rng.normal(size=shape) * 30
    x.reshape(-1)[rng.permutation(x.size)[: x.size // 4]] = -np.inf
    x = naru.tensor(x, dtype=getattr(naru, dtype))
    plain, strided = x.logcumsumexp(dim), x.T.contiguous().T.logcumsumexp(dim) if x.dim() == 2 else x.logcumsumexp(dim)
    recorded = x.clone().requires_grad_().logcumsumexp(dim)
    assert recorded.requires_grad and bits(plain) == bits(recorded.detach()) == bits(strided.contiguous())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("columns", [1, 2, 17, 32])
def test_medians_and_modes_of_rows_with_and_without_nan(columns, dtype):
    rng = np.random.default_rng(columns)
    for share in (0, 0.05, 0.7, 1):
        x = rng.integers(0, 9, (40, columns)).astype(np.float64)
        x[rng.random(x.shape) < share] = np.nan
        t = naru.tensor(x, dtype=getattr(naru, dtype))
        value, place = t.median(1)
        for row in range(len(x)):
            nans = np.flatnonzero(np.isnan(x[row]))
            wanted = nans[0] if nans.size else np.argsort(x[row], kind="stable")[(columns - 1) // 2]
            assert place[row].item() == wanted and bits(value[row]) == bits(t[row, wanted])
        # The other way: columns, which no loop of the host goes along.
        for f in (naru.median, naru.mode):
            assert [bits(o) for o in f(t, 1)] == [bits(o) for o in f(t.t().contiguous(), 0)]


@pytest.mark.parametrize("dtype, error", [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("rows", [511, 512, 701])
def test_cov_of_many_rows_is_that_of_numpy(rows, dtype, error):
    x = np.random.default_rng(rows).normal(size=(rows, 40)) + 3
    got = naru.tensor(x.T.copy(), dtype=getattr(naru, dtype)).t().cov()
    np.testing.assert_allclose(got.numpy(), np.cov(x), atol=error)


@pytest.mark.parametrize("spread", [0, 1, 2**32 - 1, 2**32, 2**63])
@pytest.mark.parametrize("n", [1, 7, 47, 48, 129, 1000])
def test_integers_near_and_far_from_each_other_are_sorted(n, spread):
    """Keys of a row that lies within 2^32 are narrow."""
    rng = np.random.default_rng(n)
    low = -(2**63) if spread == 2**63 else int(rng.integers(-(2**62), 2**62))
    x = rng.integers(low, low + spread, (6, n), dtype=np.int64, endpoint=True)
    x[1, 0], x[1, -1] = low, min(low + spread, 2**63 - 1)
    for t in (naru.tensor(x), naru.tensor(x.T.copy()).t()):
        for descending in (False, True):
            keys = ~x if descending else x
            order = np.argsort(keys, axis=1, kind="stable")
            values, places = t.sort(1, descending)
            assert (places.numpy() == order).all() and (values.numpy() == np.take_along_axis(x, order, 1)).all()
            k = min(n, 3)
            values, places = t.topk(k, 1, largest=descending)
            assert (places.numpy() == order[:, :k]).all() and (values.numpy() == np.take_along_axis(x, order[:, :k], 1)).all()
    values, inverse, counts = naru.unique(naru.tensor(x), return_inverse=True, return_counts=True)
    for got, wanted in zip((values, inverse, counts), np.unique(x, return_inverse=True, return_counts=True)):
        assert got.reshape(-1).tolist() == wanted.reshape(-1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int32"])
@pytest.mark.parametrize("n, k", [(4, 1), (31, 7), (32, 8), (33, 5), (100, 8), (128, 3), (129, 3)])
def test_the_first_few_of_a_short_row(n, k, dtype):
    rng = np.random.default_rng(n * k)
    x = rng.integers(-9, 9, (20, n)).astype(dtype)
    if dtype.startswith("float"):
        x.reshape(-1)[rng.permutation(x.size)[: x.size // 5]] = np.resize(np.array([np.nan, np.inf, -np.inf, -0.0], dtype), x.size // 5)
    for largest in (False, True):
        rank = np.where(np.isnan(x), 1e9, np.minimum(x.astype(np.float64), 1e8))  # NaN is greatest
        order = np.argsort(-rank if largest else rank, axis=1, kind="stable")[:, :k]
        values, places = naru.tensor(x).topk(k, 1, largest=largest)
        assert (places.numpy() == order).all() and bits(values) == bits(naru.tensor(np.take_along_axis(x, order, 1)))


@pytest.mark.parametrize("padding", [0, 1, (2, 0)])
def test_fold_is_what_unfold_is_the_transpose_of(padding):
    x = naru.tensor(np.random.default_rng(1).normal(size=(2, 3, 9, 8)).astype(np.float32), requires_grad=True)
    columns = F.unfold(x, (2, 3), padding=padding, stride=(1, 2))
    weights = naru.tensor(np.random.default_rng(2).normal(size=tuple(columns.shape)).astype(np.float32))
    columns.backward(weights)
    assert bits(x.grad) == bits(F.fold(weights, (9, 8), (2, 3), padding=padding, stride=(1, 2)))
    np.testing.assert_allclose(F.fold(columns.detach(), (9, 8), (2, 3), padding=padding, stride=(1, 2)).numpy(),
                               (x * F.fold(naru.ones_like(columns), (9, 8), (2, 3), padding=padding, stride=(1, 2))).detach().numpy(), rtol=1e-5, atol=1e-6)
