"""Products of bfloat16 large enough for the processor's own instructions, in every layout: within one rounding of the float32 product."""
from __future__ import annotations

import numpy as np
import pytest

import naru

M, K, N = 72, 200, 136


def drawn(*shape: int, seed: int = 0) -> naru.Tensor:
    return naru.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32)).bfloat16()


def apart(t: naru.Tensor) -> naru.Tensor:
    """The same values with every second element between them."""
    wide = naru.zeros(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype)
    wide[..., ::2] = t
    return wide[..., ::2]


@pytest.fixture(autouse=True, params=["", "own"])
def libraries(request):
    """With the libraries that there are, and with naru's own kernels."""
    naru._C.set_matmul_libraries(request.param)
    yield
    naru._C.set_matmul_libraries("")


LAYOUTS = {"dense": lambda t: t, "transposed": lambda t: t.mT.contiguous().mT, "apart": apart, "part of more": lambda t: naru.cat([t, t], -1)[..., : t.shape[-1]]}


def close(got: naru.Tensor, wanted: naru.Tensor, depth: int = K) -> None:
    """Products are exact in float32; sums of `depth` terms differ by their order, and the result is rounded once to 8 bits."""
    assert got.dtype == naru.bfloat16 and got.shape == wanted.shape
    bound = 2.0**-8 * wanted.abs() + depth * 2.0**-24 * 4 * depth**0.5
    assert bool(((got.float() - wanted).abs() <= bound).all())


@pytest.mark.parametrize("b", LAYOUTS)
@pytest.mark.parametrize("a", LAYOUTS)
def test_a_product_of_bfloat16_is_float32s_rounded(a, b):
    x, y = LAYOUTS[a](drawn(M, K)), LAYOUTS[b](drawn(K, N, seed=1))
    close(x @ y, x.float() @ y.float())


def test_batches_and_layers_of_bfloat16():
    x, y = drawn(3, M, K), drawn(3, K, N, seed=1)
    close(x @ y, x.float() @ y.float())
    close(x @ y[0], x.float() @ y[0].float())
    close(naru.bmm(x.transpose(1, 2).contiguous().transpose(1, 2), y), naru.bmm(x.float(), y.float()))
    w, bias = drawn(N, K, seed=2), drawn(N, seed=3)
    close(naru.nn.functional.linear(x, w, bias), naru.nn.functional.linear(x.float(), w.float(), bias.float()))
    out = naru.zeros(N, M, dtype=naru.bfloat16)
    naru.mm(x[0], y[0], out=out.t())
    close(out.t(), x[0].float() @ y[0].float())


def test_threads_change_no_bits_of_a_bfloat16_product():
    x, y, before = drawn(300, K), drawn(K, 500, seed=1), naru.get_num_threads()
    try:
        naru.set_num_threads(1)
        wanted = x @ y
        naru.set_num_threads(4)
        assert naru.equal(x @ y, wanted)
    finally:
        naru.set_num_threads(before)


def test_deterministic_products_of_bfloat16_are_naru_s_own():
    x, y = drawn(M, K), drawn(K, N, seed=1)
    naru.use_deterministic_algorithms(True)
    try:
        assert naru.equal(x @ y, (x.float() @ y.float()).bfloat16())
        assert naru.equal((x.to("cuda") @ y.to("cuda")).cpu(), x @ y)
    finally:
        naru.use_deterministic_algorithms(False)


def test_sizes_that_fill_no_tile_and_depths_beyond_one_block():
    """Random sizes around the kernels' tiles (12 rows, 32 columns, pairs and blocks of 512 of the depth), layouts and batches."""
    rng, before = np.random.default_rng(4), naru.get_num_threads()
    for _ in range(40):
        m, n = (int(v) for v in rng.integers(8, 150, 2))
        k = int(rng.choice([int(rng.integers(3, 600)), 511, 512, 513, 1025, 1536]))
        a, b = (LAYOUTS[str(rng.choice(list(LAYOUTS)))] for _ in range(2))
        batch = (int(rng.integers(1, 4)),) if rng.random() < 0.4 else ()
        x, y = a(drawn(*batch, m, k, seed=m)), b(drawn(*batch, k, n, seed=n))
        close(x @ y, x.float() @ y.float(), k)
        try:
            naru.set_num_threads(1)
            one = x @ y
            naru.set_num_threads(3)
            assert naru.equal(x @ y, one), (m, k, n)
        finally:
            naru.set_num_threads(before)
