"""Sobol' points equal PyTorch's, however the draws are split."""

import sys

import naru
import pytest

pytest.importorskip("scipy", reason="the direction numbers are SciPy's")
SobolEngine = naru.quasirandom.SobolEngine


def test_points_are_the_same_in_whatever_parts_they_are_drawn():
    whole = SobolEngine(5, scramble=True, seed=3).draw(200)
    engine = SobolEngine(5, scramble=True, seed=3)
    assert naru.equal(naru.cat([engine.draw(n) for n in (1, 2, 0, 97, 3)]), whole[:103])
    assert naru.equal(engine.fast_forward(20).draw(77), whole[123:]) and engine.num_generated == 200
    assert naru.equal(engine.reset().fast_forward(0).fast_forward(7).draw(1), whole[7:8])
    exact = engine.reset().fast_forward(7).draw(1, dtype=naru.float64)[0]
    assert naru.equal(engine.quasi, (exact * 2**30).long()) and whole.min() >= 0 and whole.max() < 1


def test_without_scrambling_each_interval_of_a_power_of_two_has_one_point():
    cells = (SobolEngine(50).draw_base2(6, dtype=naru.float64) * 64).long().sort(0).values
    assert naru.equal(cells, naru.arange(64).unsqueeze(1).expand(64, 50))


def test_scrambled_points_are_pytorchs_with_its_random_numbers():
    before = naru.random.algorithm()
    try:
        naru.random.set_algorithm("pytorch")
        engine = SobolEngine(3, scramble=True, seed=12)
    finally:
        naru.random.set_algorithm(before)
    assert engine.shift.tolist() == [220391643, 384888859, 677444568]
    naru.testing.assert_close(engine.draw(3)[1:], naru.tensor([[0.6255, 0.5054, 0.1194], [0.9071, 0.2331, 0.9756]]), atol=6e-5, rtol=0)


def test_the_dtype_is_the_default_one_and_out_is_resized():
    assert SobolEngine(2).draw(2, dtype=naru.float64).dtype == naru.float64 and SobolEngine(2).draw(2).dtype == naru.float32
    out = naru.empty(1)
    assert SobolEngine(2).draw(3, out=out) is out and out.shape == (3, 2)
    assert repr(SobolEngine(2, True, seed=4)) == "SobolEngine(dimension=2, scramble=True, seed=4)"


@pytest.mark.parametrize("call, error, words", [
    (lambda: SobolEngine(21202), ValueError, r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"),
    (lambda: SobolEngine(2).draw(0), ValueError, "n must be non-negative, but got -1"),
    (lambda: SobolEngine(2).draw(2.0), TypeError, "must be int, not float"),
    (lambda: SobolEngine(2).draw(2, dtype=naru.float16), NotImplementedError, '"_sobol_engine_draw" not implemented for \'Half\''),
    (lambda: SobolEngine(2).fast_forward(2**30).draw(1), ValueError, "at most 1073741824 points"),
    (lambda: SobolEngine(2).fast_forward(1).draw_base2(2), ValueError, r"n=1\+2\*\*2=5"),
])
def test_what_can_not_be_drawn_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats.qmc", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        SobolEngine(2)
