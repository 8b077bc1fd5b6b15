"""What tools.fuzz.numbers calls: texts of x (and y), and of rows how far from float64 a result may be."""

from __future__ import annotations

import math

INF, NAN = math.inf, math.nan
POLES = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 1e-30, -1e-30, 1e30, -1e30, 3e38, 1e-38, 90.0, -90.0, 1.5, 20.0]
ELEMENTWISE = [
    *(f"t.{name}(x)" for name in """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10 log1p
    log2 logit nan_to_num neg rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc i0 isnan isinf isfinite
    special.entr special.erfcx special.i0e special.i1 special.i1e special.log_ndtr special.ndtr special.ndtri""".split()),
    *(f"F.{name}(x)" for name in """relu6 elu selu celu gelu silu mish softplus softsign tanhshrink hardtanh hardsigmoid hardswish hardshrink softshrink logsigmoid
    leaky_relu""".split()),
    "F.gelu(x, approximate='tanh')", "t.logit(x, 0.1)", "t.clamp(x, 0.0, 1.0)", "x ** 0", "x ** 0.5", "x ** 2", "x ** -1", "x ** 3", "2.0 ** x", "0.0 ** x", "t.xlogy(0.0, x)",
    "t.special.xlog1py(0.0, x)", "x.where(x > 0, x * 0)", "F.threshold(x, 1.0, 5.0)",
]  # fmt: skip
OF_TWO = [
    *(f"t.{name}(x, y)" for name in """add sub mul div remainder fmod floor_divide pow atan2 maximum minimum fmax fmin hypot copysign xlogy logaddexp logaddexp2 nextafter
    special.xlog1py eq lt""".split()),
    "t.lerp(x, y, 0.3)", "t.clamp(x, y)", "t.where(x > 0, x, y)", "F.mse_loss(x, y, reduction='none')", "F.smooth_l1_loss(x, y, reduction='none')",
    "F.huber_loss(x, y, reduction='none')", "F.l1_loss(x, y, reduction='none')",
]  # fmt: skip
# Functions whose derivative is PyTorch's NaN where a limit exists.
SAME_AS_LIMIT = {"t.xlogy(0.0, x)", "t.special.xlog1py(0.0, x)"}
# x - tanh(x), of which nothing may be left; sin(pi x), of which pi x may be infinite; log(x / (1 - x)), each step rounded to 16 bits: as PyTorch has them.
CANCELS = {"F.tanhshrink(x)", "t.sinc(x)", "t.logit(x)", "t.logit(x, 0.1)"}

# Of rows x, with n elements each. exact: the same number. sum: each addition rounds. relative: of the result. unit: of results about 1.
ROWS = [
    *((text, "sum") for text in [
        "x.sum(-1)", "x.mean(-1)", "x.sum()", "x.nansum(-1)", "x.nanmean(-1)", "x.cumsum(-1)", "t.trapezoid(x)", "t.cumulative_trapezoid(x)", "x @ t.ones(n, dtype=x.dtype)",
        "F.linear(x, t.ones(2, n, dtype=x.dtype))", "F.avg_pool1d(x[None], n)", "F.adaptive_avg_pool1d(x[None], 1)", "F.adaptive_avg_pool1d(x[None], 2)", "x.norm(1, -1)",
        "F.l1_loss(x, x * 0)", "t.zeros(2, dtype=x.dtype).scatter_add(0, zeros(n), x[0])", "t.zeros(2, dtype=x.dtype).index_add(0, zeros(n), x[0])",
        "t.zeros(2, dtype=x.dtype).index_put((zeros(n),), x[0], accumulate=True)", "t.zeros(2, dtype=x.dtype).scatter_reduce(0, zeros(n), x[0], 'mean')",
        "t.zeros(2, dtype=x.dtype).index_reduce(0, zeros(n), x[0], 'mean')", "t.segment_reduce(x[0], 'sum', lengths=t.tensor([n]))", "x[0].put(zeros(n), x[0], accumulate=True)",
        "t.segment_reduce(x[0], 'mean', lengths=t.tensor([n]))", "t.einsum('ij->i', x)", "F.conv1d(x[:, None], t.ones(1, 1, n, dtype=x.dtype))",
        "F.embedding_bag(zeros((1, n)), x[0, :1, None], mode='sum')", "x[0, zeros(n)].sum()", "x[0].take(zeros(n)).mean()", "x[0].index_select(0, zeros(n)).sum()",
        "x[:, :1].expand(-1, n).sum(-1)", "x[0].gather(0, zeros(n)).sum()", "F.embedding(zeros(n), x[0, :, None]).mean()", "F.pad(x, (n, n), 'replicate').sum(-1)",
    ]),
    *((text, "relative") for text in [
        "x.std(-1)", "x.var(-1)", "x.std()", "x.std(-1, unbiased=False)", "t.std_mean(x, -1)[0]", "t.var_mean(x, -1)[0]", "x.T.contiguous().std(0)", "x.norm(2, -1)",
        "x.norm(3, -1)", "x.norm(0.5, -1)", "t.linalg.vector_norm(x, 2.5, -1)", "x.norm(inf, -1)", "x.norm(0, -1)", "x.prod(-1)", "x.cumprod(-1)", "F.mse_loss(x, x * 0)",
        "F.lp_pool1d(x[None], 2.0, n)", "F.pairwise_distance(x, x * 0, eps=0.0)",
    ]),
    *((text, "unit") for text in [
        "x.softmax(-1)", "x.log_softmax(-1)", "x.logsumexp(-1)", "x.logcumsumexp(-1)", "F.layer_norm(x, (n,))", "F.group_norm(x[None].expand(2, -1, -1), 1)",
        "F.batch_norm(x.T, None, None, training=True)", "F.instance_norm(x[None])", "F.normalize(x, dim=-1)", "F.cosine_similarity(x, x, -1)", "t.corrcoef(x)",
        "F.cross_entropy(x, zeros(x.shape[0]))", "F.nll_loss(x, zeros(x.shape[0]))", "F.rms_norm(x, (n,), eps=1e-5)", "t.softmax(x.masked_fill(x == x, -inf), -1)",
        "F.scaled_dot_product_attention(x[None, None, :, :64], x[None, None, :, :64], x[None, None, :, :64] * 0 + 1)", "F.binary_cross_entropy_with_logits(x, x * 0 + 1)",
    ]),
    *((text, "exact") for text in [
        "x.amax(-1)", "x.max(-1)[0]", "x.min()", "x.median(-1)[0]", "x.nanmedian()", "x.sort(-1)[0]", "x.topk(1, -1)[0]", "x.kthvalue(1, -1)[0]", "x.mode(-1)[0]", "x.cummax(-1)[0]",
        "x.cummin(-1)[0]", "x.flip(-1)", "F.max_pool1d(x[None], n)", "t.aminmax(x)[1]",
        "t.zeros(2, dtype=x.dtype).scatter_reduce(0, zeros(n), x[0], 'amax')", "t.segment_reduce(x[0], 'max', lengths=t.tensor([n]))",
    ]),
]  # fmt: skip
# These square elements, or multiply them with each other, in the type that they are summed in, as PyTorch does: not of magnitudes whose squares that type
# does not have. exp of them, and what is divided by the sum, follow.
SQUARES = """norm(2 norm(3 vector_norm norm(0.5 mse_loss lp_pool1d pairwise_distance normalize cosine_similarity corrcoef
    scaled_dot_product_attention prod cumprod l1_loss trapezoid cross_entropy""".split()
