"""Second derivatives: of each gradient of a call (by x, y, z ...), the derivatives by all operands and by the incoming gradient. A call is text
with the same meaning for torch and for naru (t, F). PyTorch 2.15's results are in second_derivatives.json. To regenerate it, run

    .venv-peers/bin/python tests/python/support/second_derivatives.py      (any Python that has torch)

test_second_derivatives.py compares naru with them."""
import json
import math
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("second_derivatives.json")
ROWS, SMALL, PAIR = (3, 5), (3, 3), (4, 3)
IMAGE = {1: (1, 2, 7), 2: (1, 2, 6, 5), 3: (1, 1, 4, 5, 4)}
AT, ONCE = "t.tensor([[0, 2, 1], [1, 1, 0], [4, 3, 2]])", "t.tensor([[0, 2, 1], [1, 3, 0], [4, 3, 2]])"
TABLE, CLASSES, SIGNS = "t.tensor([[0, 2, 1], [1, 1, 0]])", "t.tensor([1, 0, 4])", "t.tensor([1.0, -1, 1, -1, 1], dtype=t.float64)"
DEFINITE = "(x @ x.mT + 3 * t.eye(3, dtype=t.float64))"

# The operator cases (naru.testing.operator_cases) that have none, as in PyTorch.
REFUSED = {"hardsigmoid", "embedding_bag", "embedding_bag sum", "embedding_bag max", "segment_reduce", "multi_margin_loss", "multilabel_margin_loss",
           "ctc_loss", "ctc_loss behind each other"}  # fmt: skip


def images():
    for n, shape in IMAGE.items():
        weight, channels = (2, shape[1]) + (2,) * n, (shape[1],)
        for call in (
            "max_pool{n}d(x, 3, 2, 1)", "max_pool{n}d(x, 2, return_indices=True)[0]", "max_pool{n}d(x, 2, 1, 0, 2)", "avg_pool{n}d(x, 3, 2, 1)",
            "adaptive_avg_pool{n}d(x, 3)", "adaptive_avg_pool{n}d(x, 1)", "adaptive_max_pool{n}d(x, 3)", "interpolate(x, scale_factor=2)",
            "interpolate(x, scale_factor=2, mode='nearest-exact')", "interpolate(x, scale_factor=2, mode='area')",
            "interpolate(x, scale_factor=2, mode='{linear}linear')", "instance_norm(x)",
        ):  # fmt: skip
            yield "F." + call.format(n=n, linear=["", "bi", "tri"][n - 1]), [shape]
        for mode in ("constant", "reflect", "replicate", "circular"):
            yield f"F.pad(x, {(1, 2) * n}, '{mode}')", [shape]
        yield f"F.conv{n}d(x, y, z, padding=1)", [shape, weight, (2,)]
        yield f"F.conv_transpose{n}d(x, y, z, stride=2)", [shape, (shape[1], 2) + (2,) * n, (2,)]
        many = (3, *shape[1:])
        yield "F.batch_norm(x, None, None, y, z, True)", [many, channels, channels]
        yield f"F.batch_norm(x, t.full(({shape[1]},), 0.3).double(), t.full(({shape[1]},), 2.0).double(), y, z)", [many, channels, channels]
        yield f"F.lp_pool{n}d(x.abs(), 3, 2)", [shape]
    yield "F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)", [IMAGE[1]]
    for mode in ("nearest", "bilinear", "bicubic"):
        yield f"F.grid_sample(x, y * 0.6, '{mode}', align_corners=False)", [(1, 2, 4, 5), (1, 3, 2, 2)]
    for how in ("(8, 10), mode='bicubic'", "(2, 3), mode='bilinear', antialias=True", "(2, 3), mode='bicubic', antialias=True"):
        yield f"F.interpolate(x, {how})", [(1, 2, 4, 5)]
    yield "F.fractional_max_pool2d(x, 2, 3, _random_samples=t.full((1, 2, 2), 0.4).double())", [(1, 2, 6, 6)]
    yield "F.fractional_max_pool3d(x, 2, 3, _random_samples=t.full((1, 2, 3), 0.4).double())", [(1, 2, 6, 6, 6)]
    yield "F.affine_grid(x, (1, 1, 3, 4), align_corners=False)", [(1, 2, 3)]
    yield "F.local_response_norm(x, 3, 0.1, 0.75, 2.0)", [(1, 5, 3, 2)]
    yield "F.conv2d(x, y, groups=2)", [(1, 4, 5, 5), (4, 2, 3, 3)]
    yield "t.conv_tbc(x, y, z, 1)", [(5, 2, 3), (3, 3, 4), (4,)]
    yield "F.fold(x, (4, 5), 2)", [(1, 8, 12)]
    yield "F.unfold(x, 2, 1, 1, 2)", [(1, 2, 4, 5)]
    yield "F.pixel_shuffle(x, 2)", [(1, 4, 2, 3)]


def layers():
    yield "F.layer_norm(x, (5,), y, z)", [ROWS, (5,), (5,)]
    yield "F.layer_norm(x, (5,))", [ROWS]
    yield "F.rms_norm(x, (5,), y)", [ROWS, (5,)]
    yield "F.group_norm(x, 2, y, z)", [(3, 4, 5), (4,), (4,)]
    yield "F.group_norm(x, 2)", [(3, 4, 5)]
    yield f"F.embedding({TABLE}, x)", [(5, 3)]
    yield f"F.embedding({TABLE}, x, padding_idx=1)", [(5, 3)]
    for mode in ("mean", "sum", "max"):
        yield f"F.embedding_bag({TABLE}, x, mode='{mode}')", [(5, 3)]
    yield f"F.embedding_bag({TABLE}, x, mode='sum', per_sample_weights=y)", [(5, 3), (2, 3)]
    names = """relu relu6 softshrink hardshrink hardtanh hardsigmoid hardswish leaky_relu elu selu celu gelu silu mish softplus softsign tanhshrink
        logsigmoid sigmoid tanh rrelu""".split()
    for name in names:
        yield f"F.{name}(x * 3)", [ROWS]
    for name in "relu hardtanh leaky_relu elu selu celu relu6 silu mish hardswish".split():
        yield f"F.{name}(x * 3, inplace=True)", [ROWS]
    for call in ("F.gelu(x, approximate='tanh')", "F.rrelu(x, 0.25, 0.25, True)", "F.threshold(x, 0.2, 7.0)", "t.softmax(x, 1)", "F.softmin(x, 1)",
                 "t.log_softmax(x, 1)", "F.dropout(x, 0.0)", "F.dropout(x, 0.5, False)", "F.dropout(x, 1.0)", "F.alpha_dropout(x, 0.0, True)", "F.normalize(x)"):  # fmt: skip
        yield call, [ROWS]
    yield "F.prelu(x, y)", [(2, 3, 4), (3,)]
    yield "F.prelu(x, y)", [(2, 3, 4), (1,)]
    yield "F.glu(x)", [(3, 6)]
    yield "F.linear(x, y, z)", [ROWS, (2, 5), (2,)]
    yield "F.bilinear(x, y, z, w)", [(3, 4), (3, 2), (5, 4, 2), (5,)]
    yield "F.scaled_dot_product_attention(x, y, z)", [(1, 2, 3, 4)] * 3
    yield "F.scaled_dot_product_attention(x, y, z, w)", [(1, 2, 3, 4)] * 3 + [(3, 3)]
    yield "t.gru_cell(x, y, t.linspace(-1, 1, 36).double().reshape(12, 3), t.linspace(-1, 1, 48).double().reshape(12, 4))", [(2, 3), (2, 4)]
    yield "t.rnn_relu_cell(x, y, t.linspace(-1, 1, 12).double().reshape(4, 3), t.linspace(-1, 1, 16).double().reshape(4, 4))", [(2, 3), (2, 4)]


def reductions():
    for name in "sum mean prod max min amax amin std var norm nansum nanmean".split():
        yield f"t.{name}(x)", [ROWS]
    for name in "sum mean prod amax amin std var nansum nanmean logsumexp logcumsumexp cumsum cumprod softmax".split():
        yield f"t.{name}(x, 1)", [ROWS]
    for name in "max min median nanmedian cummax cummin sort".split():
        yield f"t.{name}(x, 1)[0]", [ROWS]
    for call in ("t.aminmax(x)[1]", "t.aminmax(x, dim=1)[0]", "t.msort(x)", "t.topk(x, 2)[0]", "t.kthvalue(x, 2)[0]", "t.mode(x)[0]",
                 "t.quantile(x, t.tensor([0.3, 0.6]).double(), 1)", "t.nanquantile(x, 0.3, 1)", "t.var_mean(x, 1)[0]", "t.std_mean(x, 1)[0]", "t.trapezoid(x)",
                 "t.prod(x * t.tensor([1, 0, 1, 0, 1]), 1)", "t.cumprod(x * t.tensor([1, 0, 1, 0, 1]), 1)", "t.diff(x)", "t.cov(x)", "t.corrcoef(x)"):  # fmt: skip
        yield call, [ROWS]
    for p in (0.5, 1, 1.5, 2, 3, math.inf, -math.inf):
        number = f"float('{p}')"
        yield f"t.norm(x, {number}, 1)", [ROWS]
        yield f"t.linalg.vector_norm(x, {number}, 1)", [ROWS]
        yield f"t.dist(x, y, {number})", [ROWS, ROWS]
        yield f"F.pairwise_distance(x, y, {number})", [PAIR, PAIR]
        if p > 0:
            yield f"t.renorm(x, {number}, 0, 1.0)", [ROWS]
            yield f"t.cdist(x, y, {number})", [PAIR, (5, 3)]
            yield f"t.pdist(x, {number})", [PAIR]
    yield "t.cdist(x, y, compute_mode='use_mm_for_euclid_dist')", [PAIR, (5, 3)]
    yield "F.cosine_similarity(x, y)", [PAIR, PAIR]


def indexing():
    for call in (f"x.gather(1, {AT})", "x.take(t.tensor([0, 7, 7]))", f"t.take_along_dim(x, {AT}, 1)", "x.index_select(1, t.tensor([0, 3, 3]))",
                 "x[t.tensor([0, 2, 2]), t.tensor([1, 1, 1])]", "x[x.detach() > 0]", "x.masked_select(x.detach() > 0)", "x.masked_fill(x.detach() > 0, 2.0)",
                 f"x.scatter(1, {AT}, 2.0)", "x.index_fill(1, t.tensor([0, 2]), 3.0)", "x.repeat_interleave(2, 1)", "x.flip(0)", "x.roll(1, 0)", "x.tril()", "x.diagonal()",
                 "x.as_strided((3, 2), (5, 1), 1)", "x.float().double()", "x.expand(2, 3, 5)", "x.repeat(2, 2)", "x.unfold(1, 3, 2)"):  # fmt: skip
        yield call, [ROWS]
    for call, shape in ((f"x.scatter(1, {ONCE}, y)", SMALL), (f"x.scatter_add(1, {AT}, y)", SMALL), ("x.masked_scatter(x.detach() > 0, y)", (15,)),
                        ("x.masked_fill(x.detach() > 0, y)", ()), ("t.where(x.detach() > 0, x, y)", ROWS), ("x.index_add(1, t.tensor([0, 2, 2]), y, alpha=2)", SMALL),
                        ("x.index_copy(1, t.tensor([0, 2]), y)", (3, 2)), ("x.index_fill(1, t.tensor([0, 2]), y)", ()),
                        ("x.index_put((t.tensor([0, 2]), t.tensor([1, 1])), y)", (2,)), ("x.index_put((t.tensor([0, 0]), t.tensor([1, 1])), y, accumulate=True)", (2,)),
                        ("x.put(t.tensor([0, 7]), y)", (2,)), ("x.put(t.tensor([0, 7]), y, accumulate=True)", (2,)), ("t.select_scatter(x, y, 1, 2)", (3,)),
                        ("t.slice_scatter(x, y, 1, 1, 3)", (3, 2)), ("t.diagonal_scatter(x, y)", (3,)), ("t.cat([x, y], 1)", SMALL), ("t.stack([x, y])", ROWS),
                        ("x.scatter(1, t.tensor([[0, 2, 1]] * 3), y, reduce='add')", SMALL)):  # fmt: skip
        yield call, [ROWS, shape]
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):
            yield f"x.abs().scatter_reduce(1, {AT}, y.abs(), '{how}', include_self={own})", [ROWS, SMALL]
        if how != "sum":
            yield f"x.abs().index_reduce(1, t.tensor([0, 2, 2]), y.abs(), '{how}')", [ROWS, SMALL]
    for how in ("sum", "max", "prod"):
        yield f"t.segment_reduce(x, '{how}', lengths=t.tensor([2, 1, 4]))", [(7, 3)]


def elementwise():
    for name in "maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 copysign fmod remainder div mul clamp_min clamp_max nextafter".split():
        yield f"t.{name}(x, y)", [ROWS] * 2
    for name in "xlogy pow float_power special.xlog1py".split():
        yield f"t.{name}(x.abs() + 0.1, y.abs() + 0.1)", [ROWS] * 2
    for name in "lerp addcmul addcdiv clamp".split():
        yield f"t.{name}(x, y, z)", [ROWS] * 3
    for call in ("t.remainder(x, 0.7)", "t.fmod(x, 0.7)", "x ** 3", "2.0 ** x", "3 / x", "t.clamp(x, -0.5, 0.5)", "t.clamp(x, min=-0.5)", "t.clamp(x, max=0.5)",
                 "t.nan_to_num(x)", "t.polygamma(1, x.abs() + 1)", "t.special.multigammaln(x.abs() + 1, 2)", "t.igamma(t.full((3, 5), 1.3).double(), x.abs())",
                 "t.fft.rfft(x).abs()", "t.complex(x, x).abs()", "t.special.zeta(t.full((3, 5), 2.5).double(), x.abs())", "t.frexp(x)[0]"):  # fmt: skip
        yield call, [ROWS]
    names = """abs sign sgn floor ceil round trunc frac rad2deg deg2rad square exp sinc erf erfc expm1 exp2 sin cos tan atan sinh cosh asinh positive neg i0
        tanh sigmoid reciprocal special.i0e special.i1 special.i1e special.erfcx special.ndtr special.log_ndtr""".split()
    for name in names:
        yield f"t.{name}(x)", [ROWS]
    for name in "sqrt rsqrt log log2 log10 log1p lgamma digamma acosh special.entr".split():
        yield f"t.{name}(x.abs() + 1.1)", [ROWS]
    for name in "asin acos atanh erfinv logit special.ndtri".split():
        yield f"t.{name}(x.abs() / 3 + 0.1)", [ROWS]
    yield "t.polar(x.abs(), y).real", [ROWS] * 2


def losses():
    yield f"F.cross_entropy(x, {CLASSES})", [ROWS]
    yield f"F.cross_entropy(x, {CLASSES}, t.arange(5.0).double(), label_smoothing=0.1, reduction='sum')", [ROWS]
    yield f"F.cross_entropy(x, {CLASSES}, ignore_index=0, reduction='none')", [ROWS]
    yield "F.cross_entropy(x, y)", [ROWS] * 2
    yield "F.cross_entropy(x, t.tensor([[0, 1], [2, 1]]))", [(2, 3, 2)]
    yield f"F.nll_loss(x, {CLASSES})", [ROWS]
    yield "F.nll_loss(x, t.tensor([[[0, 1], [2, 1]]] * 2))", [(2, 3, 2, 2)]
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits poisson_nll_loss".split():
        yield f"F.{name}(x, y.abs() + 0.1)", [ROWS] * 2
        yield f"F.{name}(x, y.detach().abs(), reduction='none')", [ROWS] * 2
    yield "F.binary_cross_entropy(x.abs() / 3 + 0.1, y.abs() / 3 + 0.1)", [ROWS] * 2
    yield "F.soft_margin_loss(x, y.detach())", [ROWS] * 2
    yield "F.gaussian_nll_loss(x, y, z.abs() + 0.1)", [ROWS] * 3
    yield f"F.hinge_embedding_loss(x, {SIGNS})", [ROWS]
    yield f"F.margin_ranking_loss(x, y, {SIGNS}, 0.5)", [(5,)] * 2
    yield "F.cosine_embedding_loss(x, y, t.tensor([1, -1, 1]), 0.1)", [ROWS] * 2
    yield "F.triplet_margin_loss(x, y, z, swap=True)", [ROWS] * 3
    yield f"F.multi_margin_loss(x, {CLASSES})", [ROWS]
    yield f"F.multi_margin_loss(x, {CLASSES}, p=2)", [ROWS]
    yield "F.multilabel_margin_loss(x, t.tensor([[1, 0, -1, 2, 2]] * 3))", [ROWS]
    yield "F.multilabel_soft_margin_loss(x, y)", [ROWS] * 2
    yield "F.ctc_loss(x.log_softmax(2), t.tensor([[1, 2, 1], [3, 1, 2]]), (6, 5), (3, 2))", [(6, 2, 4)]


def matrices():
    for call in ("matmul(x, y)", "tensordot(x, y, 1)", "einsum('ij,jk->ik', x, y)"):
        yield "t." + call, [ROWS, (5, 2)]
    yield "x @ y", [ROWS, (5,)]
    yield "t.dot(x, y)", [(5,)] * 2
    yield "t.bmm(x, y)", [(2, 3, 5), (2, 5, 2)]
    yield "t.addmm(x, y, z, beta=2, alpha=0.5)", [(3, 2), ROWS, (5, 2)]
    yield "t.addr(x, y, z)", [ROWS, (3,), (5,)]
    yield "t.baddbmm(x, y, z)", [(2, 3, 2), (2, 3, 5), (2, 5, 2)]
    yield "t.linalg.cross(x, y)", [SMALL] * 2
    yield "t.kron(x, y)", [(2, 3), (2, 2)]
    for call in ("inv({a})", "det({a})", "slogdet({a})[1]", "cholesky({a})", "eigvalsh({a})", "svdvals(x)", "qr({a})[1]", "lu_factor({a})[0]", "pinv(x)", "matrix_exp(x)",
                 "matrix_power(x, 3)", "matrix_norm(x, 'nuc')", "matrix_norm(x, 2)", "multi_dot([x, x, x])", "householder_product(x, x[0])"):  # fmt: skip
        yield "t.linalg." + call.format(a=DEFINITE), [SMALL]
    yield f"t.cholesky_inverse(t.linalg.cholesky({DEFINITE}))", [SMALL]
    yield f"t.linalg.solve({DEFINITE}, y)", [SMALL, (3, 2)]
    yield f"t.linalg.solve_triangular({DEFINITE}, y, upper=True)", [SMALL, (3, 2)]
    yield "t.linalg.lstsq(x, y)[0]", [PAIR, (4, 2)]


def cases():
    """(name, call, shapes of the operands)"""
    for family in (images, layers, reductions, indexing, elementwise, losses, matrices):
        for call, shapes in family():
            yield f"{call} of {' '.join('x'.join(map(str, s)) or 'one' for s in shapes)}", call, shapes


def numbers(shape, k):
    """Numbers in [-2, 2], different ones and none near 0, in an order of no pattern."""
    n = math.prod(shape)
    order = np.argsort(np.sin(np.arange(1, n + 1) * (7.13 + 1.7 * k)), kind="stable")
    return ((order + 0.5) / max(n, 1) * 4 - 2 + 0.011 * (k + 1)).reshape(shape)


def second_derivatives(t, F, call, shapes):  # noqa: N803
    """For each operand a text about its gradient: "none" or "constant"; "refused" if it has no derivatives; or its derivatives by all operands and
    by the incoming gradient, each a sum with weights, or "-" where it does not depend."""
    xs = [t.tensor(numbers(s, k)).requires_grad_() for k, s in enumerate(shapes)]
    try:
        y = eval(call, {"t": t, "F": F, **dict(zip("xyzw", xs))})
        out = t.tensor(numbers(tuple(y.shape), 9)).requires_grad_()
        firsts = t.autograd.grad(y, xs, out, create_graph=True, allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        return [f"refused at first: {type(error).__name__}"]
    found = []
    for g in firsts:
        if g is None or not g.requires_grad:
            found.append("none" if g is None else "constant")
            continue
        try:
            seconds = t.autograd.grad(g, [*xs, out], t.tensor(numbers(tuple(g.shape), 11)), allow_unused=True, retain_graph=True)
        except (RuntimeError, NotImplementedError):
            found.append("refused")
            continue
        sums = ["-" if h is None else f"{float((h * t.tensor(numbers(tuple(h.shape), 13))).sum()):.9g}" for h in seconds]
        found.append(" ".join(sums))
    return found


if __name__ == "__main__":
    import torch

    lines = [f"{json.dumps(name)}: {json.dumps(second_derivatives(torch, torch.nn.functional, call, shapes))}" for name, call, shapes in cases()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
