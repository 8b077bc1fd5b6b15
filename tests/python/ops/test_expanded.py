"""Expanded tensors (stride 0), as the gradient of a sum is one: what is computed of them has the bits of the same elements written out."""
import itertools

import pytest

import naru
import naru.nn.functional as F
from bitwise import bits

DTYPES = ["float32", "float64", "bfloat16", "float16"]


def patterns(shape, dtype=naru.float32):
    """Tensors of the shape, expanded along each non-empty set of dimensions."""
    for n in range(1, len(shape) + 1):
        for dims in itertools.combinations(range(len(shape)), n):
            yield (3 * naru.randn(*[1 if d in dims else size for d, size in enumerate(shape)])).to(dtype).expand(shape)


CONVOLUTIONS = {
    "3 x 3": (lambda x, w: F.conv2d(x, w, None, 1, 1), (2, 16, 9, 9), (24, 16, 3, 3)),
    "stride": (lambda x, w: F.conv2d(x, w, None, 2, 3), (2, 3, 20, 20), (16, 3, 7, 7)),
    "1 x 1": (F.conv2d, (2, 32, 8, 8), (48, 32, 1, 1)),
    "groups": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 2), (2, 32, 8, 8), (32, 16, 3, 3)),
    "depthwise": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 16), (2, 16, 12, 12), (16, 1, 3, 3)),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w, None, 2), (2, 16, 8, 8), (16, 24, 3, 3)),
    "1-d": (lambda x, w: F.conv1d(x, w, None, 1, 1), (2, 16, 40), (24, 16, 3)),
    "3-d": (lambda x, w: F.conv3d(x, w, None, 1, 1), (2, 8, 5, 6, 7), (16, 8, 3, 3, 3)),
}


@pytest.mark.parametrize("deterministic", [False, True], ids=["", "deterministic"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_expanded_operands_and_gradients(name, dtype, deterministic):
    call, x_shape, w_shape = CONVOLUTIONS[name]
    naru.use_deterministic_algorithms(deterministic)
    try:
        dtype = getattr(naru, dtype)
        x, w = naru.randn(*x_shape).to(dtype), naru.randn(*w_shape).to(dtype)
        for t in patterns(x_shape, dtype):
            assert bits(call(t, w)) == bits(call(t.contiguous(), w))
        for t in patterns(w_shape, dtype):
            assert bits(call(x, t)) == bits(call(x, t.contiguous()))
        x.requires_grad_(), w.requires_grad_()
        y = call(x, w)
        for g in patterns(tuple(y.shape), dtype):
            got = naru.autograd.grad(y, [x, w], g, retain_graph=True)
            wanted = naru.autograd.grad(y, [x, w], g.contiguous(), retain_graph=True)
            assert [bits(t) for t in got] == [bits(t) for t in wanted]
    finally:
        naru.use_deterministic_algorithms(False)


def test_a_convolution_of_channels_last_images_keeps_their_order():
    x = naru.randn(2, 16, 9, 9).contiguous(memory_format=naru.channels_last).requires_grad_()
    w = naru.randn(24, 16, 3, 3).requires_grad_()
    y = F.conv2d(x, w, None, 1, 1)
    for g in patterns(tuple(y.shape)):
        got, = naru.autograd.grad(y, x, g, retain_graph=True)
        wanted, = naru.autograd.grad(y, x, g.contiguous(memory_format=naru.channels_last), retain_graph=True)
        assert bits(got) == bits(wanted) and got.is_contiguous(memory_format=naru.channels_last)


def test_second_derivatives_of_a_convolution_flow_through_an_expanded_gradient():
    x, w = naru.randn(1, 2, 5, 5, dtype=naru.float64).requires_grad_(), naru.randn(3, 2, 3, 3, dtype=naru.float64).requires_grad_()
    scale = naru.ones((), dtype=naru.float64).requires_grad_()
    y = F.conv2d(x, w)
    gx, = naru.autograd.grad(y, x, scale.expand(y.shape), create_graph=True)
    got = naru.autograd.grad(gx.square().sum(), [w, scale])
    gx, = naru.autograd.grad(F.conv2d(x, w), x, (scale * naru.ones_like(y)), create_graph=True)
    for a, b in zip(got, naru.autograd.grad(gx.square().sum(), [w, scale])):
        assert naru.allclose(a, b, rtol=1e-12)


SCANS = {"cumsum": naru.cumsum, "cumprod": naru.cumprod, "cummax": lambda t, d: naru.cummax(t, d).values, "logcumsumexp": naru.logcumsumexp,
         "flip": lambda t, d: t.flip(d), "roll": lambda t, d: t.roll(2, d), "sort": lambda t, d: t.sort(d).values}


@pytest.mark.parametrize("dtype", DTYPES + ["int64", "int32", "int8"])
@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("shape", [(3, 700), (40, 300), (5, 17, 33)], ids=str)
def test_scans_and_turns(name, dtype, shape):
    if name == "logcumsumexp" and dtype.startswith("int"):
        return
    for t in patterns(shape, getattr(naru, dtype)):
        for d in range(len(shape)):
            assert bits(SCANS[name](t, d)) == bits(SCANS[name](t.contiguous(), d))


@pytest.mark.parametrize("dtype", DTYPES + ["int64", "int32"])
def test_sums_and_writes_at_places(dtype):
    dtype = getattr(naru, dtype)
    table, rows = naru.zeros(5, 33, dtype=dtype), naru.randint(-5, 5, (40,))
    along = naru.randint(0, 33, (5, 70))
    for t in patterns((40, 33), dtype):
        for accumulate in (True, False):
            assert bits(table.index_put((rows,), t, accumulate)) == bits(table.index_put((rows,), t.contiguous(), accumulate))
        assert bits(table.index_add(0, rows % 5, t)) == bits(table.index_add(0, rows % 5, t.contiguous()))
    for t in patterns((5, 70), dtype):
        assert bits(table.scatter_add(1, along, t)) == bits(table.scatter_add(1, along, t.contiguous()))
        assert bits(table.scatter(1, along, t)) == bits(table.scatter(1, along, t.contiguous()))
    few = naru.zeros(5, 2, dtype=dtype)  # so many values for a place that their sums go in blocks
    places = naru.randint(0, 2, (5, 5000))
    for t in patterns((5, 5000), dtype):
        assert bits(few.scatter_add(1, places, t)) == bits(few.scatter_add(1, places, t.contiguous()))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(1,), (1, 6, 1, 1), (5, 6, 1, 1), (6, 4, 7), (5, 1, 1, 7), (5, 6, 4, 1)])
def test_an_expanded_gradient_of_batch_norm_has_the_bits_of_a_dense_one(shape, channels_last, device):
    naru.manual_seed(0)
    x = naru.randn(5, 6, 4, 7).to(device)
    if channels_last:
        x = x.to(memory_format=naru.channels_last)
    x, w, b = (t.requires_grad_() for t in (x, naru.randn(6).to(device), naru.randn(6).to(device)))
    y = F.batch_norm(x, None, None, w, b, training=True)
    g = naru.randn(shape).to(device).expand(x.shape)
    dense = naru.empty_like(x).copy_(g)
    got, want = naru.autograd.grad(y, (x, w, b), g, retain_graph=True), naru.autograd.grad(y, (x, w, b), dense)
    assert all(naru.equal(a, e) for a, e in zip(got, want))
