"""A host loop on the cpu gives the same bits as the several instructions that devices run; virtual devices take the latter path."""
import numpy as np
import pytest

import naru
from bitwise import bits

F = naru.nn.functional


def floats(shape, dtype=np.float32, seed=0, special=True):
    """With equal elements, both zeros, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=shape), 1).astype(dtype)
    if special:
        flat = x.reshape(-1)
        places = rng.permutation(flat.size)[: max(flat.size // 6, 1)]
        flat[places] = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype), places.size)
    return x


def whole(shape, most, dtype=np.int64, seed=1, least=0):
    return np.random.default_rng(seed).integers(least, most, shape).astype(dtype)


LONGEST = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0, -6, 4, 2**40])
CASES = {
    "gcd": lambda t: naru.gcd(t(whole((7, 1), 50, least=-50)), t(whole((9,), 50, seed=2, least=-50))),
    "gcd of extremes": lambda t: naru.gcd(t(LONGEST[:, None]), t(LONGEST)),
    "gcd of bytes": lambda t: naru.gcd(t(whole((99,), 127, np.int8, least=-128)), t(whole((99,), 127, np.int8, 5, -128))),
    "searchsorted": lambda t: naru.searchsorted(t(np.sort(floats(70, special=False))), t(floats((5, 33)))),
    "searchsorted right": lambda t: naru.searchsorted(t(np.sort(floats((3, 40), np.float64, special=False), axis=1)), t(floats((3, 17), np.float64)), right=True),
    "searchsorted among what is in no order": lambda t: naru.searchsorted(t(floats(50)), t(floats(40, seed=3))),
    "searchsorted of many": lambda t: naru.searchsorted(t(np.sort(floats(257, special=False))), t(floats(1000)), right=True),
    "searchsorted in one": lambda t: naru.searchsorted(t(whole(1, 5)), t(whole(90, 9))),
    "bucketize integers": lambda t: naru.bucketize(t(whole((100,), 90)), t(np.sort(whole((45,), 90, seed=4)))),
    "mode": lambda t: naru.mode(t(floats((6, 5, 31))), -1),
    "mode of one": lambda t: naru.mode(t(floats((4, 1))), 1, keepdim=True),
    "mode of integers": lambda t: naru.mode(t(whole((20, 17), 6, np.int32)), 1, keepdim=True),
    "cummax": lambda t: naru.cummax(t(floats((7, 300))), 1),
    "cummin": lambda t: naru.cummin(t(floats((2, 3, 31), np.float64)), -1),
    "cummax of integers": lambda t: naru.cummax(t(whole((5, 40), 9)), 1),
    "tril": lambda t: naru.tril(t(floats((3, 6, 8))), 2),
    "triu": lambda t: naru.triu(t(whole((9, 4), 100, np.int16)), -3),
    "tril beyond": lambda t: naru.tril(t(floats((4, 4), np.float64)), -9),
    "one_hot": lambda t: F.one_hot(t(whole((4, 5), 7))),
    "block_diag": lambda t: naru.block_diag(t(floats((2, 3))), t(floats((1, 4))), t(floats((3, 2)))),
    "nextafter": lambda t: naru.nextafter(t(floats((9, 40))), t(floats((9, 40), seed=8))),
    "softshrink": lambda t: F.softshrink(t(floats((9, 40))), 0.4),
    "hardshrink": lambda t: F.hardshrink(t(floats((9, 40))), 0.4),
    "pdist": lambda t: F.pdist(t(floats((21, 70), special=False))),
    "pdist of few columns": lambda t: F.pdist(t(floats((70, 3), np.float64))),
    "pdist of 128 columns": lambda t: F.pdist(t(floats((19, 128)))),
    "cdist of eight columns": lambda t: naru.cdist(t(floats((5, 8))), t(floats((33, 8), seed=4))),
    "pdist of many columns": lambda t: F.pdist(t(floats((3, 1000)))),
    "cdist": lambda t: naru.cdist(t(floats((9, 70), special=False)), t(floats((20, 70), seed=4))),
    "ctc_loss": lambda t: F.ctc_loss(t(floats((12, 3, 6), special=False)), t(whole((3, 4), 6, least=1)), [12, 11, 7], [4, 0, 2], reduction="none"),
    "ctc_loss of labels behind each other": lambda t: F.ctc_loss(t(floats((12, 3, 6), special=False)), t(whole(6, 6, np.int32, least=1)), [12, 11, 7], [4, 0, 2]),
    "grid_sample nowhere": lambda t: F.grid_sample(t(floats((2, 3, 5, 6), np.float64, special=False)), t(floats((2, 9, 40, 2), np.float64)), align_corners=False),
    "fmod": lambda t: naru.fmod(t(floats((40, 100)) * 7), t(floats((40, 100), seed=5))),
    "fmod of what lies near a multiple": lambda t: naru.fmod(t(floats(1001, seed=2) * np.arange(1001, dtype=np.float32)), t(floats(1001, seed=2))),
    "grid_sample inside": lambda t: F.grid_sample(t(floats((2, 3, 5, 6), special=False)), t(np.random.default_rng(4).uniform(-0.7, 0.7, (2, 9, 45, 2)).astype(np.float32)), align_corners=False),
    "grid_sample inside, of doubles": lambda t: F.grid_sample(t(floats((1, 3, 5, 6), np.float64)), t(np.random.default_rng(4).uniform(-0.7, 0.7, (1, 1, 3, 2))), align_corners=True),
    "pdist of two": lambda t: F.pdist(t(floats((2, 5)))),
    "pdist of 17 rows": lambda t: F.pdist(t(floats((17, 9), np.float64))),
    "cdist to 17 rows": lambda t: naru.cdist(t(floats((20, 9))), t(floats((17, 9), seed=4))),
    "histc": lambda t: naru.histc(t(floats((40, 70))), 20, -1.0, 1.3),
    "histc of what is all inside": lambda t: naru.histc(t(floats((9, 1001), special=False)), 7),
    "histc of doubles, strided": lambda t: naru.histc(t(floats((70, 40), np.float64)).t(), 2000, -0.5, 0.7),
    "histc of equal numbers": lambda t: (naru.histc(t(np.full(5, 2, np.float32)), 3), naru.histc(t(np.float32(2.5)), 1, 2.5, 3)),
    "multi_margin_loss of few classes": lambda t: (F.multi_margin_loss(t(floats((9, 16))), t(whole((9,), 16)), reduction="none"), F.multi_margin_loss(t(floats((9, 1))), t(whole((9,), 1)), p=2, reduction="none")),
    "mode of numbers that do not repeat": lambda t: naru.mode(t(np.random.default_rng(2).permutation(60).reshape(6, 10).astype(np.float32) / np.float32(0)), 1),
    "embedding_bag": lambda t: F.embedding_bag(t(whole((6, 9), 20)), t(floats((20, 70)))),
    "embedding_bag of one": lambda t: F.embedding_bag(t(whole((6, 1), 20)), t(floats((20, 7), np.float64)), mode="sum"),
    "multi_margin_loss": lambda t: F.multi_margin_loss(t(floats((9, 70))), t(whole((9,), 70)), reduction="none"),
    "multi_margin_loss squared": lambda t: F.multi_margin_loss(t(floats((9, 7), np.float64)), t(whole((9,), 7)), p=2, margin=0.3),
    "multilabel_margin_loss": lambda t: F.multilabel_margin_loss(t(floats((9, 20))), t(whole((9, 20), 20, least=-1)), reduction="none"),
    "multilabel_margin_loss of a vector": lambda t: F.multilabel_margin_loss(t(floats(20, special=False)), t(whole(20, 20))),
    "adaptive_avg_pool2d": lambda t: F.adaptive_avg_pool2d(t(floats((3, 5, 16, 19))), 7),
    "adaptive_max_pool2d": lambda t: F.adaptive_max_pool2d(t(floats((2, 9, 16, 19))), 7, return_indices=True),
    "pad": lambda t: F.pad(t(floats((2, 3, 4, 5))), (1, 2, 0, 3, 2, 1), value=-0.0),
    "pad cut and filled": lambda t: (F.pad(t(floats((3, 9), np.float64)), (0, 2, -1, 1), value=1.5), F.pad(t(whole((7,), 9, np.int8)), (2, 2), value=-3), F.pad(t(floats((2, 4), np.float16)), (1, 1), value=0.1)),
    "softmax": lambda t: t(floats((9, 70))).softmax(1),
    "softmax of many": lambda t: t(floats((3, 4, 1000), np.float64, special=False)).softmax(-1),
    "log_softmax": lambda t: t(floats((9, 70), special=False)).log_softmax(1),
    "unfold": lambda t: t(floats((9, 33))).unfold(1, 4, 2).contiguous(),
    "repeated rows": lambda t: t(floats((40, 1, 2), np.float64)).expand(40, 30, 2).contiguous(),
}  # fmt: skip
for reduce in ("amax", "amin"):
    for include in (True, False):
        CASES[f"scatter_reduce {reduce} {include}"] = lambda t, reduce=reduce, include=include: t(floats((6, 9))).scatter_reduce(
            1, t(whole((5, 40), 9)), t(floats((5, 40), seed=6)), reduce, include_self=include)
CASES["scatter_reduce along the first"] = lambda t: t(whole((6, 9), 50)).scatter_reduce(0, t(whole((40, 7), 6)), t(whole((40, 7), 90)), "amin")
for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border"):
        for align in (True, False):
            CASES[f"grid_sample {mode} {padding} {align}"] = lambda t, mode=mode, padding=padding, align=align: F.grid_sample(
                t(floats((2, 3, 5, 6), special=False)), t(floats((2, 9, 40, 2))), mode, padding, align_corners=align)


@pytest.mark.parametrize("name", CASES)
def test_a_loop_of_the_cpu_gives_the_bits_of_a_devices_instructions(name):
    def made(device):
        out = CASES[name](lambda array: naru.tensor(array, device=device))
        return [bits(o.cpu()) for o in (out if isinstance(out, tuple) else (out,))]

    assert made("cpu") == made("cuda:0")


@pytest.mark.parametrize("padding", [0, 1, (2, 1)])
@pytest.mark.parametrize("stride", [1, 2, (3, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_convolution_of_channels_by_themselves_gives_the_bits_of_a_device(own_matmuls, padding, stride, transposed):
    x, w, b = floats((2, 6, 11, 19), special=False), floats((6, 2 - transposed, 3, 4) if transposed else (12, 1, 3, 4), seed=3, special=False), floats(6 if transposed else 12)
    conv = F.conv_transpose2d if transposed else F.conv2d

    def made(device):
        x_, w_, b_ = (naru.tensor(a, device=device) for a in (x, w, b))
        return bits(conv(x_, w_, b_, stride=stride, padding=padding, groups=6, dilation=(1, 2)).cpu())

    assert made("cpu") == made("cuda:0")


def test_a_loop_refuses_places_out_of_bounds_as_devices_do():
    for call in (
        lambda t: t(floats((3, 4))).scatter_reduce(1, t(np.array([[9]])), t(floats((1, 1))), "amax"),
        lambda t: F.embedding_bag(t(np.array([[0, 20]])), t(floats((20, 7)))),
        lambda t: F.multi_margin_loss(t(floats((1, 4))), t(np.array([4]))),
        lambda t: F.multilabel_margin_loss(t(floats((1, 2))), t(np.array([[2, 0]]))),
    ):
        with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
            call(naru.tensor)


def test_gradients_and_loops_go_together():
    x, grid = naru.tensor(floats((1, 2, 4, 4), special=False)), naru.tensor(floats((1, 3, 3, 2), special=False))
    with_history = F.grid_sample(x.clone().requires_grad_(), grid, align_corners=False)
    assert with_history.requires_grad
    assert bits(with_history.detach()) == bits(F.grid_sample(x, grid, align_corners=False))


def test_einsum_of_two_operands_is_one_product_whatever_the_order_of_subscripts():
    a, b = floats((2, 3, 4), special=False), floats((4, 3, 5), special=False)
    for equation in ("abc,cbd->ad", "abc,cbd->dba", "abc,cbd->bad", "abc,cbd->dcab", "abc, cbd -> acbd"):
        expected = np.einsum(equation.replace(" ", ""), a.astype(np.float64), b.astype(np.float64))
        np.testing.assert_allclose(naru.einsum(equation, naru.tensor(a), naru.tensor(b)).numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 19, 16, 19), (2, 3, 5, 40)], ids=str)
def test_pooled_windows_are_the_same_however_channels_lie(shape):
    for x in (floats(shape), floats(shape, np.float64), whole(shape, 9, np.int32), np.full(shape, -np.inf, np.float32)):
        near = naru.tensor(x)
        last = near.contiguous(memory_format=naru.channels_last)
        pools = [lambda t: F.max_pool2d(t, 3, 2, 1, return_indices=True), lambda t: F.max_pool2d(t, (2, 5), (1, 3), ceil_mode=True, return_indices=True)]
        if x.dtype.kind == "f":
            pools += [lambda t: F.adaptive_max_pool2d(t, 7, return_indices=True), lambda t: (F.adaptive_avg_pool2d(t, 7), F.avg_pool2d(t, 3, 2, 1))]
        for pool in pools:
            assert [bits(o.contiguous()) for o in pool(near)] == [bits(o.contiguous()) for o in pool(last)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_activations_of_what_is_positive_throughout_have_the_bits_that_they_have_beside_negative_numbers(dtype):
    x = np.concatenate([np.abs(floats(3000, dtype)) + dtype(0.5), floats(3000, dtype), np.abs(floats(300, dtype, special=False)) + dtype(0.5)])
    shuffle = np.random.default_rng(9).permutation(x.size)
    for act in (F.elu, lambda t: F.elu(t, -0.3), F.selu, lambda t: F.celu(t, 0.7), lambda t: F.softplus(t, 3.0, 4.0)):
        assert bits(act(naru.tensor(x))[naru.tensor(shuffle)]) == bits(act(naru.tensor(x[shuffle])))


def test_pooling_to_no_elements_is_no_work_however_many_positions_there_are():
    x = naru.zeros(4, 3, 1, 5, 2, requires_grad=True)
    y = F.adaptive_avg_pool3d(x, [0, 64, 1 << 31])
    y.sum().backward()
    assert y.shape == (4, 3, 0, 64, 1 << 31) and not x.grad.any()
    assert F.adaptive_avg_pool1d(naru.zeros(0, 2), 1 << 40).shape == F.adaptive_max_pool1d(naru.zeros(0, 2), 1 << 40).shape == (0, 1 << 40)
    many = naru.zeros(0, 1, 1).expand(0, 1, 1 << 40)
    assert F.avg_pool1d(many, 2).shape == F.max_pool1d(many, 2).shape == (0, 1, 1 << 39)
