"""Gradients where a formula meets NaN, infinity, numbers too small to divide by, equal elements or none at all: PyTorch's answers."""

import math

import naru
import naru.nn.functional as F
import pytest

NAN, TINY = math.nan, 5e-324


def gradient(f, values, dtype=naru.float64):
    x = naru.tensor(values, dtype=dtype, requires_grad=True)
    y = f(x)
    return naru.autograd.grad(y, x, naru.ones_like(y))[0].tolist()


def same(got, want):
    return len(got) == len(want) and all(a == b or a != a and b != b or abs(a - b) <= 1e-12 * abs(b) for a, b in zip(got, want))


def zeros(x):
    return naru.zeros_like(x)


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (naru.relu, [1.0, 1.0, 0.0]),
        (lambda x: naru.maximum(x, zeros(x)), [1.0, 1.0, 0.0]),
        (lambda x: naru.minimum(x, zeros(x)), [1.0, 0.0, 1.0]),
        (lambda x: naru.maximum(zeros(x), x), [1.0, 1.0, 0.0]),
        (F.elu, [1.0, 1.0, math.exp(-2)]),
        (lambda x: F.celu(x, 2.0), [1.0, 1.0, math.exp(-1)]),
        (lambda x: F.huber_loss(x, zeros(x), reduction="none"), [NAN, 1.0, -1.0]),
        (lambda x: F.lp_pool1d(x.reshape(1, 1, 3), 2.0, 3), [NAN, NAN, NAN]),
    ],
)
def test_a_nan_does_not_pass_as_an_element_without_a_gradient(f, want):
    assert same(gradient(f, [NAN, 2.0, -2.0]), want)


@pytest.mark.parametrize(
    ("f", "values", "want"),
    [
        (lambda x: naru.atan2(x, zeros(x)), [0.0, TINY, 2.0], [0.0, 0.0, 0.0]),
        (lambda x: naru.atan2(naru.ones_like(x), x), [0.0, 1.0, 2.0], [-1.0, -0.5, -0.2]),
        (naru.sinc, [0.0, TINY, -TINY, 1.0], [0.0, 0.0, 0.0, -1.0]),
        (naru.special.i1, [0.0, TINY, -TINY], [0.5, 0.5, 0.5]),
        (naru.special.i1e, [0.0, TINY, -TINY], [0.5, 0.5, 0.5]),
    ],
)
def test_a_formula_that_divides_by_nothing_has_its_limit(f, values, want):
    assert same(gradient(f, values), want)


@pytest.mark.parametrize("f", [naru.median, naru.nanmedian])
def test_the_median_of_all_elements_gives_equal_ones_equal_parts(f):
    assert same(gradient(f, [3.0, 1.0, 2.0, 2.0, 5.0, 2.0]), [0.0, 0.0, 1 / 3, 1 / 3, 0.0, 1 / 3])
    assert same(gradient(f, [3.0, NAN, 2.0, NAN]), [0.0, 0.5, 0.0, 0.5] if f is naru.median else [0.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("f", [naru.softmax, naru.log_softmax])
def test_a_gradient_of_no_elements_has_a_gradient(f):
    x = naru.zeros(0, 3, requires_grad=True)
    (g,) = naru.autograd.grad(f(x, 0), x, naru.ones(0, 3), create_graph=True)
    assert g.shape == (0, 3) and g.requires_grad


def test_rrelu_draws_as_pytorch_for_the_elements_that_are_not_positive():
    before = naru.random.algorithm()
    naru.random.set_algorithm("pytorch")
    try:
        x = naru.tensor([-1.0, 2.0, -3.0, 0.0, 5.0])
        naru.manual_seed(3)
        assert F.rrelu(x, 0.1, 0.3, training=True).tolist() == [-0.10682164132595062, 2.0, -0.4720441699028015, 0.0, 5.0]
        naru.manual_seed(3)
        assert F.rrelu(x.double(), 0.1, 0.3, training=True).tolist() == [-0.1068216391301041, 2.0, -0.47204413603278417, 0.0, 5.0]
    finally:
        naru.random.set_algorithm(before)


def test_hardtanh_passes_the_gradient_of_nan_and_heaviside_has_none():
    x = naru.tensor([float("nan"), 1.0, -1.0, 0.5], requires_grad=True)
    F.hardtanh(x).sum().backward()
    assert x.grad.tolist() == [1, 0, 0, 1]
    with pytest.raises(RuntimeError, match="derivative for aten::heaviside is not implemented"):
        naru.heaviside(x, naru.ones(1)).sum().backward()


def test_a_real_negative_base_has_a_gradient_by_a_complex_exponent():
    e = naru.tensor([0.5 + 0.25j], dtype=naru.complex128, requires_grad=True)
    assert naru.autograd.gradcheck(lambda e: naru.pow(naru.tensor([-1.5], dtype=naru.float64), e), (e,))


def test_a_leafs_first_gradient_lies_as_the_leaf():
    dense = naru.rand(2, 3, 4, 5).to(memory_format=naru.channels_last).requires_grad_()
    (dense * naru.rand(2, 3, 4, 5)).sum().backward()
    assert dense.grad.stride() == dense.stride()
    given, leaf = naru.ones(3), naru.ones(3, requires_grad=True)
    leaf.backward(given, create_graph=True)
    leaf.grad.detach().zero_()
    assert given.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [naru.float16, naru.float32])
def test_what_stands_before_a_zero_of_cumprod_has_its_gradient(dtype):
    """Although that of the zero, of what is behind it, is infinite."""
    great = 3e4 if dtype is naru.float16 else 3e38
    assert same(gradient(lambda x: x.cumprod(0), [-0.5, 2.0, 0.0, great, great], dtype), [3.0, -0.5, -math.inf, 0.0, 0.0])


@pytest.mark.parametrize(("p", "scales"), [(0.5, (1e-30, 1.0, 1e30)), (1.5, (1e-20, 1.0, 1e20))])
def test_the_gradient_of_a_norm_is_of_shares_of_it(p, scales):
    """Powers of elements near the type's limits have no digits left."""
    for scale in scales:
        found = gradient(lambda x: x.norm(p), [scale, -3 * scale, 2 * scale], naru.float32)
        want = gradient(lambda x: x.norm(p), [1.0, -3.0, 2.0])
        assert all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(found, want))


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
def test_rms_norm_of_16_bits_has_the_eps_of_float32(dtype):
    x = naru.full((4,), 1e-3, dtype=dtype)
    assert abs(F.rms_norm(x, (4,))[0].item() - 0.9453) < 0.004  # 1 / sqrt(1 + 2^-23 / 1e-6), as in PyTorch 2.15
    assert F.rms_norm(x, (4,), eps=1e-3)[0].item() < 0.04


def test_logaddexp2_of_16_bits_is_rounded_once():
    x = naru.tensor([3e38, 16.375, -5.0], dtype=naru.bfloat16)
    y = naru.tensor([0.5, -4.0, -5.0], dtype=naru.bfloat16)
    assert naru.equal(naru.logaddexp2(x, y), naru.logaddexp2(x.double(), y.double()).to(naru.bfloat16))


@pytest.mark.parametrize("dtype", [naru.float32, naru.float16, naru.bfloat16])
@pytest.mark.parametrize("row", [[1e4, 1e4, 3.0], [65504.0, 65504.0, 1e-4], [1e-4, 1e-4, 2.0], [math.inf, 2.0, 3.0], [-math.inf, 0.0, 2.0], [3e38, 1e38, 1e-38], [1e-30, 1e-30, 5.0], [7.0, 0.0, -2.0]])
def test_the_gradient_of_a_product_is_that_of_the_others(row, dtype):
    """Also where the product itself overflows, underflows, is infinite or 0."""
    x = naru.tensor(row, dtype=naru.float64).to(dtype)
    if dtype != naru.float32 and not all(math.isfinite(v) or math.isinf(row[i]) for i, v in enumerate(x.tolist())):
        x = naru.tensor([2.0, 3.0, 4.0], dtype=dtype)
    for f in (lambda t: t.prod(), lambda t: t[None].prod(1)[0], lambda t: t.prod(0, keepdim=True)[0]):
        y = x.clone().requires_grad_()
        (got,) = naru.autograd.grad(f(y), y)
        n = len(row)
        want = naru.tensor([math.prod(x.double()[j].item() for j in range(n) if j != i) for i in range(n)], dtype=naru.float64).to(dtype)
        assert naru.allclose(got, want, rtol=2e-2 if dtype == naru.bfloat16 else 2e-3 if dtype == naru.float16 else 1e-5, atol=0, equal_nan=True), (got, want)
