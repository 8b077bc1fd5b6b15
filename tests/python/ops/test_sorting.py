"""Sorting compared bit by bit with NumPy's stable sort: equal elements, both zeros, NaN, all lengths and dtypes."""
import numpy as np
import pytest

import naru as torch

LENGTHS = (1, 2, 47, 48, 49, 257, 1000, 3000)
DTYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "?")


def rows(dtype, n, rng):
    """Rows at random, with many equal elements, in order and in reverse; floats with both zeros, infinities and NaN in some."""
    if np.dtype(dtype).kind != "f":
        wide = rng.integers(-(2**62), 2**62, (2, n)).astype(dtype)
        few = rng.integers(0, 3, (1, n)).astype(dtype)
    else:
        wide = rng.standard_normal((2, n)).astype(dtype)
        few = rng.choice(np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0], dtype), (1, n))
    return np.concatenate([wide, few, np.sort(wide[:1], 1), np.sort(wide[:1], 1)[:, ::-1]])


def order(row, descending):
    """Positions in order, the first of equal elements first; NaN is greatest."""
    if not descending:
        return np.argsort(row, kind="stable")
    back = np.argsort(row[::-1], kind="stable")[::-1]
    return len(row) - 1 - back


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_topk_give_the_stable_order_and_the_very_elements(dtype, descending):
    rng = np.random.default_rng(7)
    for n in LENGTHS:
        a = rows(dtype, n, rng)
        expected = np.stack([order(row, descending) for row in a])
        x = torch.from_numpy(a)
        for k in sorted({1, max(1, n // 9), max(1, n // 2), n}):
            whole = k == n or x.dtype == torch.bool  # PyTorch has no topk for these
            values, indices = (r[:, :k] for r in x.sort(1, descending=descending)) if whole else x.topk(k, 1, largest=descending)
            assert (indices.numpy() == expected[:, :k]).all(), (n, k)
            assert values.numpy().tobytes() == np.take_along_axis(a, expected[:, :k], 1).tobytes(), (n, k)


def test_a_dimension_that_is_not_the_last_and_one_that_steps_are_sorted_as_well():
    a = np.random.default_rng(1).standard_normal((60, 8)).astype("f4")
    x = torch.from_numpy(a)
    assert (x.sort(0).indices.numpy() == np.argsort(a, 0, kind="stable")).all()
    assert (x[:, ::2].sort(0).values.numpy() == np.sort(a[:, ::2], 0)).all()
    assert (x.t().sort(1).values.numpy() == np.sort(a.T, 1)).all()
