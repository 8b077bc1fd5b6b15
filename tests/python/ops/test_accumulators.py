"""Sums, counts, means and statistics of 16-bit types are accumulated in float32 and rounded once; those of float32 are accurate for large means,
near overflow and near underflow. The expected values are computed by the same function in float64."""

import random

import naru
import naru.nn.functional as F
import pytest

COUNTS = (300, 5000, 70000)  # bfloat16 can count to 256, float16 to 2048, and float16's maximum is 65504


def zeros(n):
    return naru.zeros(n, dtype=naru.int64)


def gradient(f, x, scale=1.0):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    return naru.autograd.grad(y, x, naru.full_like(y, scale))[0]


def of_weights(f, rows=2):
    """The gradient of a table that all elements of x read the first place of, by x."""
    return lambda x: naru.autograd.grad(f(w := naru.ones(rows, dtype=x.dtype, requires_grad=True), x), w, x)[0][:1]


# x holds n sixteenths, whose sum is in the range of both types.
SUMS = {
    "scatter_add": lambda x: naru.zeros(2, dtype=x.dtype).scatter_add(0, zeros(len(x)), x),
    "scatter_add_ in place, to what is there": lambda x: naru.ones(2, dtype=x.dtype).scatter_add_(0, zeros(len(x)), x),
    "index_add": lambda x: naru.zeros(2, dtype=x.dtype).index_add(0, zeros(len(x)), x),
    "index_add of rows": lambda x: naru.zeros(2, 3, dtype=x.dtype).index_add(0, zeros(len(x)), x[:, None].expand(-1, 3)),
    "index_add of a column": lambda x: naru.zeros(3, 2, dtype=x.dtype).t().index_add(0, zeros(len(x)), x[:, None].expand(-1, 3)),
    "index_put": lambda x: naru.zeros(2, dtype=x.dtype).index_put((zeros(len(x)),), x, accumulate=True),
    "put_": lambda x: naru.zeros(2, dtype=x.dtype).put_(zeros(len(x)), x, accumulate=True),
    "scatter_reduce sum": lambda x: naru.ones(2, dtype=x.dtype).scatter_reduce(0, zeros(len(x)), x, "sum"),
    "scatter_reduce mean": lambda x: naru.ones(2, dtype=x.dtype).scatter_reduce(0, zeros(len(x)), x, "mean"),
    "scatter_reduce prod": lambda x: naru.ones(2, dtype=x.dtype).scatter_reduce(0, zeros(60), x[:60] + 1, "prod"),
    "index_reduce mean": lambda x: naru.ones(2, dtype=x.dtype).index_reduce(0, zeros(len(x)), x, "mean"),
    "segment sum": lambda x: naru.segment_reduce(x, "sum", lengths=naru.tensor([len(x)])),
    "segment mean": lambda x: naru.segment_reduce(x, "mean", lengths=naru.tensor([len(x)])),
    "trapezoid": naru.trapezoid,
    "cumulative_trapezoid": lambda x: naru.cumulative_trapezoid(x)[-1:],
    "nanmean": naru.nanmean,
    "cumsum": lambda x: x.cumsum(0)[-1:],
    "logcumsumexp": lambda x: x.logcumsumexp(0)[-1:],
    "avg_pool1d": lambda x: F.avg_pool1d(x[None, None] * 1600, len(x)),
    "avg_pool with a divisor": lambda x: F.avg_pool2d(x[None, None] * 16, (1, len(x)), divisor_override=len(x)),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x[None, None] * 1600, 2),
    "lp_pool1d": lambda x: F.lp_pool1d(x[None, None], 2.0, len(x)),
    "local_response_norm": lambda x: F.local_response_norm(x[None, :3000, None] * 1600, 3000)[0, :3, 0],
    "std": lambda x: naru.std(x * (naru.arange(len(x)) % 3 - 1).to(x.dtype)),
    "cross_entropy by probabilities": lambda x: F.cross_entropy(naru.stack([x * 1600, x * 0], 1), naru.full((len(x), 2), 0.5, dtype=x.dtype)),
    "cross_entropy, smoothed and weighted": lambda x: F.cross_entropy(naru.stack([x * 1600, x * 0], 1), 1 - zeros(len(x)), naru.tensor([1.0, 2.0], dtype=x.dtype), label_smoothing=0.125),
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x[None] * 1600, -x[None], naru.ones(1, dtype=x.dtype)),
}
GRADIENTS = {
    "gather": of_weights(lambda w, x: w.gather(0, zeros(len(x)))),
    "indexing": of_weights(lambda w, x: w[zeros(len(x))]),
    "index_select": of_weights(lambda w, x: w.index_select(0, zeros(len(x)))),
    "take": of_weights(lambda w, x: w.take(zeros(len(x)))),
    "embedding": of_weights(lambda w, x: F.embedding(zeros(len(x)), w[:, None])[:, 0]),
    "embedding by frequency": lambda x: gradient(lambda w: F.embedding(zeros(len(x)), w, scale_grad_by_freq=True), naru.ones(2, 1, dtype=x.dtype)),
    "expand": of_weights(lambda w, x: w.expand(len(x)), 1),
    "repeat": of_weights(lambda w, x: w.repeat(len(x)), 1),
    "nearest": of_weights(lambda w, x: F.interpolate(w[None, None], len(x))[0, 0], 1),
    "padding": of_weights(lambda w, x: F.pad(w[None, None], (0, len(x) - 1), "replicate")[0, 0], 1),
    **{name: (lambda x, f=f: gradient(f, x * 16, 60000)[:2]) for name, f in {
        "max": naru.max, "min": naru.min, "amax": lambda s: s.amax(0), "amin": lambda s: s.amin(), "median": naru.median, "nanmedian": naru.nanmedian,
        "norm inf": lambda s: s.norm(float("inf")), "norm -inf": lambda s: s.norm(-float("inf")), "norm 3": lambda s: s.norm(3.0) / 16, "norm 1.5": lambda s: s.norm(1.5) / 1024,
        "mean": naru.mean, "nanmean": naru.nanmean, "logsumexp": lambda s: (s * 12).logsumexp(0) / 16, "avg_pool": lambda s: F.avg_pool1d(s[None, None], len(s)),
        "scatter_reduce amax": lambda s: naru.zeros(2, dtype=s.dtype).scatter_reduce(0, zeros(len(s)), s, "amax"),
        "scatter_reduce mean": lambda s: naru.zeros(2, dtype=s.dtype).scatter_reduce(0, zeros(len(s)), s, "mean", include_self=False),
        "segment max": lambda s: naru.segment_reduce(s, "max", lengths=naru.tensor([len(s)])),
        "nll_loss": lambda s: F.nll_loss(naru.stack([-s, s], 1), zeros(len(s)), naru.ones(2, dtype=s.dtype)),
        "cross_entropy": lambda s: F.cross_entropy(naru.stack([s, s * 0], 1), zeros(len(s)), naru.ones(2, dtype=s.dtype)),
    }.items()},
}


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
@pytest.mark.parametrize("name", [*SUMS, *(f"gradient of {n}" for n in GRADIENTS)])
def test_sums_of_16_bit_numbers_are_rounded_once(name, dtype):
    f = GRADIENTS[name.removeprefix("gradient of ")] if name.startswith("gradient of ") else SUMS[name]
    unit = 2.0**-10 if dtype is naru.float16 else 2.0**-7
    for n in COUNTS:
        x = naru.full((n,), 1 / 16, dtype=dtype)
        got, want = f(x).double(), f(x.double())
        # One rounding error (half an ulp); two where a function of the sum is also rounded. The least subnormal of float16 is 2^-24.
        assert ((got - want).abs() <= unit * want.abs() + 2.0**-24).all(), (n, got.flatten()[:2], want.flatten()[:2])


def normal_numbers(rows, columns):
    generator = random.Random(0)
    return naru.tensor([[generator.gauss(0, 1) for _ in range(columns)] for _ in range(rows)], dtype=naru.float64)


@pytest.mark.parametrize(("scale", "mean"), [(1, 0), (1, 1e5), (1, 1e7), (1e-3, 1e4), (1e19, 1e20), (1e30, 0), (1e37, 0), (1e-30, 0), (1e-36, 0)])
def test_float32_statistics_hold_at_every_magnitude(scale, mean, device):
    x = (normal_numbers(8, 1000) * scale + mean).float()
    on = x.to(device)
    wide = x.double()
    want = wide.std(1)

    def near(got, reference, error=256 * 2.0**-24):  # the error of a chain of 256 additions
        return ((got.cpu().double() - reference).abs() <= error * reference.abs()).all()

    assert near(on.std(1), want) and near(on.t().contiguous().std(0), want) and near(on.std(), wide.std())
    std, means = naru.std_mean(on, dim=1)
    assert near(std, want)
    # The mean is accurate to one ulp, or to the rounding error of the deviations' sum.
    assert ((means.cpu().double() - wide.mean(1)).abs() <= 2.0**-23 * wide.mean(1).abs() + 256 * 2.0**-24 * want).all()
    if 1e-18 < scale < 1e18:
        assert near(on.var(1), wide.var(1)) and near(naru.var_mean(on, 1)[0], wide.var(1))
        running_mean, running_var = naru.zeros(8).to(on.device), naru.ones(8).to(on.device)
        F.batch_norm(on.t().contiguous(), running_mean, running_var, training=True, momentum=1.0)
        assert near(running_var, wide.var(1), 1e-5)
        c, reference = naru.cov(on).cpu().double(), naru.cov(wide)
        assert ((c - reference).abs() <= 1e-5 * reference.diagonal().max()).all()
    y, z = on.clone().requires_grad_(), wide.clone().requires_grad_()
    y.std(1).sum().backward(), z.std(1).sum().backward()
    assert ((y.grad.cpu().double() - z.grad).abs() <= 1e-5).all()


def transposed(t):
    return t.transpose(0, -1).contiguous().transpose(0, -1)


NORMS = {
    "layer_norm": lambda x, w, b, eps: F.layer_norm(x, (6, 12), w.reshape(6, 12), b.reshape(6, 12), eps),
    "rms_norm": lambda x, w, b, eps: F.rms_norm(x, (6, 12), w.reshape(6, 12), eps),
    "group_norm": lambda x, w, b, eps: F.group_norm(x, 2, w[:6], b[:6], eps),
    "instance_norm": lambda x, w, b, eps: F.instance_norm(x, weight=w[:6], bias=b[:6], eps=eps),
    "batch_norm": lambda x, w, b, eps: F.batch_norm(x, None, None, w[:6], b[:6], training=True, eps=eps),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("layout", [lambda t: t, transposed, lambda t: naru.cat([t, t])[3:8]], ids=["dense", "transposed", "offset"])
@pytest.mark.parametrize(
    ("scale", "mean", "eps"), [(1, 0, 1e-5), (1, 1e5, 1e-5), (1, 1e7, 1e-5), (1e19, 1e20, 1e-5), (1e30, 0, 1e-5), (5e37, 2e38, 1e-5), (1e-30, 0, 1e-5), (1e-30, 0, 1e-70)]
)
def test_normalization_holds_at_every_magnitude(name, layout, scale, mean, eps, device):
    generator = random.Random(0)
    x = naru.tensor([generator.uniform(-2, 2) for _ in range(5 * 72)], dtype=naru.float64).reshape(5, 6, 12)
    x = x * scale + mean
    if name != "batch_norm":
        x[1::2] = x[1::2] / scale  # ordinary rows stand between
    x = x.float()
    w, b = (naru.tensor([generator.uniform(-2, 2) for _ in range(72)]) for _ in range(2))

    def run(on, kind):
        inputs = [t.to(kind).to(on).requires_grad_() for t in (x, w, b)]
        y = NORMS[name](layout(inputs[0]), *inputs[1:], eps)
        g = naru.linspace(-1, 2, y.numel(), dtype=naru.float64).to(kind).reshape(y.shape).to(on)
        return [t.detach().cpu().double() for t in (y, *naru.autograd.grad((y * g).sum(), inputs, allow_unused=True)) if t is not None]

    got, want = run(device, naru.float32), run("cpu", naru.float64)
    for number, (a, e) in enumerate(zip(got, want, strict=True)):
        if number == 1:  # by rows: each of its own magnitude; those below float32's least number are 0
            a, e = a.flatten(1), e.flatten(1)
            assert ((a - e).abs() <= 1e-4 * e.abs().amax(1, keepdim=True) + 1e-44).all(), (a, e)
        else:
            # The mean is rounded to 2^-24 of itself, which is at most 32 deviations; gradients of weights are sums of 60 or more.
            assert ((a - e).abs() <= (6e-6 if number == 0 else 3e-5) * (1 + e.abs())).all(), (number, (a - e).abs().max())


def test_the_first_element_may_be_far_from_all_others():
    x = naru.tensor([[1e7, *range(999)], [-3e38, *[3e38] * 999], [0.0, *[1e-34] * 999]])
    assert ((x.std(1).double() / x.double().std(1) - 1).abs() < 1e-6).all()
    y = naru.tensor([[float("inf"), 1.0, 2.0], [1.0, float("nan"), 2.0], [5.0, 5.0, 5.0]])
    assert y.var(1).isnan().tolist() == [True, True, False] and y.var(1)[2] == 0


@pytest.mark.parametrize("dtype", [naru.float32, naru.float64, naru.float16, naru.bfloat16])
def test_equal_elements_have_no_deviation_and_no_gradient(dtype):
    for f in (naru.std, lambda x: naru.std_mean(x)[0], lambda x: naru.std(naru.complex(x.float(), x.float()))):
        x = naru.full((3,), 1.0, dtype=dtype, requires_grad=True)
        y = f(x)
        y.backward()
        assert y == 0 and x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("optimizer", [naru.optim.Adam, naru.optim.AdamW, naru.optim.Adagrad])
def test_fused_steps_of_float16_have_an_eps(optimizer):
    """After three steps of lr 0.1, in float32 with a state rounded to float16: PyTorch 2.15's."""
    want = {naru.optim.Adam: [1.0, 0.585, 0.6997], naru.optim.AdamW: [0.9971, 0.5825, 0.6973], naru.optim.Adagrad: [1.0, 0.6997, 0.7715]}[optimizer]
    for g, expected in zip((0.0, 1e-4, 1.0), want):
        p = naru.nn.Parameter(naru.ones(3, dtype=naru.float16))
        steps = optimizer([p], lr=0.1, fused=True)
        for _ in range(3):
            p.grad = naru.full((3,), g, dtype=naru.float16)
            steps.step()
        assert abs(p[0].item() - expected) < 6e-4, (g, p)


@pytest.mark.parametrize("dtype", [naru.float16, naru.bfloat16])
def test_cov_of_16_bits_is_rounded_once(dtype):
    x = (normal_numbers(3, 50) + 20).to(dtype)
    weights, counts = normal_numbers(1, 50)[0].abs() + 0.5, naru.arange(1, 51)
    for more in ({}, {"aweights": weights.float()}, {"fweights": counts}, {"fweights": counts, "aweights": weights.to(dtype)}):
        wide = {k: v.double() if v.is_floating_point() else v for k, v in more.items()}
        got, want = naru.cov(x, **more), naru.cov(x.double(), **wide)
        assert got.dtype == (naru.float32 if more.get("aweights", x).dtype == naru.float32 else dtype)
        unit = 1e-5 if got.dtype == naru.float32 else 2.0**-11 if dtype == naru.float16 else 2.0**-8
        assert ((got.double() - want).abs() <= unit * want.abs() + 1e-5 * want.diagonal().max()).all(), (more.keys(), got, want)
