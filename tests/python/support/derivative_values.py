"""First derivatives at singular points: 0, -0, infinities, nan, the ends of domains, ties, rows of one value, empty rows. A call is text with the
same meaning for torch and for naru (t, F). PyTorch 2.15's results, in float64, are in derivative_values.json. To regenerate it, run

    .venv-peers/bin/python tests/python/support/derivative_values.py      (any Python that has torch)

test_derivative_values.py compares naru with them."""
import json
import math
import pathlib

FILE = pathlib.Path(__file__).with_name("derivative_values.json")
INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, 2.0, -2.0, -3.0, 1e-30, -1e-30, 1e30, -1e30, 3.0, 6.0, 90.0, -90.0, 800.0, -800.0, 20.0, -0.5, 1.5]
FEW = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, 2.0, -2.0, -3.0, 1e-30, 1e200, -1e200]
ROWS = [
    [0.0, 0.0], [0.0, 2.0], [2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0], [INF, 1.0], [-INF, 1.0], [-INF, -INF], [INF, INF], [INF, -INF], [NAN, 1.0], [5.0],
    [2.0, 2.0, 1.0], [1.0, 2.0, 3.0], [-INF, -INF, 1.0, 2.0], [2.0, -INF, -INF, 1.0], [0.0, 0.0, 0.0, 4.0], [3.0, 4.0],
]  # fmt: skip
ONE = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10 log1p log2 logit nan_to_num
    neg rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc special.entr special.erfcx special.i0 special.i0e special.i1
    special.i1e special.log_ndtr special.ndtr special.ndtri""".split()
ONE_OF_F = "relu6 elu selu celu gelu silu mish softplus softsign tanhshrink hardtanh hardsigmoid hardswish hardshrink softshrink logsigmoid leaky_relu".split()
MORE = [
    "F.gelu(x, approximate='tanh')", "F.threshold(x, 1.0, 5.0)", "t.logit(x, 0.1)", "t.clamp(x, 0.0, 1.0)", "x ** 0", "x ** 0.5", "x ** 1", "x ** 2", "x ** -1", "x ** 1.5",
    "x ** -0.5", "x ** 3", "2.0 ** x", "0.0 ** x", "t.nan_to_num(x, 1.0, 2.0, 3.0)", "t.xlogy(x, 2.0)", "t.xlogy(2.0, x)", "t.xlogy(0.0, x)", "t.special.xlog1py(0.0, x)",
    "F.elu(x, 2.0)", "F.softplus(x, 2.0, 1.0)", "t.stack([x, x]).std(0)", "t.stack([x, x]).logsumexp(0)", "F.prelu(x, t.tensor([0.25], dtype=t.float64))",
]  # fmt: skip
TWO = """add sub mul div remainder fmod pow atan2 maximum minimum fmax fmin hypot copysign xlogy logaddexp float_power special.xlog1py""".split()
MORE_OF_TWO = [
    "t.lerp(x, y, 0.3)", "t.clamp(x, y)", "t.clamp(x, max=y)", "t.where(x > 0, x, y)", "F.mse_loss(x, y, reduction='none')", "F.l1_loss(x, y, reduction='none')",
    "F.smooth_l1_loss(x, y, reduction='none')", "F.huber_loss(x, y, reduction='none')", "F.binary_cross_entropy_with_logits(x, y, reduction='none')",
    "F.poisson_nll_loss(x, y, reduction='none')",
]  # fmt: skip
OF_ROWS = [
    "x.sum()", "x.mean()", "x.prod()", "x.prod(0)", "x.cumprod(0)", "x.cumsum(0)", "x.logcumsumexp(0)", "x.logcumsumexp(0)[-1]", "x.logsumexp(0)", "x.softmax(0)[0]",
    "x.log_softmax(0)[0]", "x.std()", "x.std(0, unbiased=False)", "x.var()", "t.std_mean(x)[0]", "t.std_mean(x)[1]", "t.var_mean(x)[0]", "x.norm(0)", "x.norm(0.5)",
    "x.norm(1.5)", "x.norm(2)", "x.norm(3)", "x.norm(-1)", "x.norm(-2)", "t.linalg.vector_norm(x, 2.5)", "x.max()", "x.amax(0)", "x.max(0)[0]", "x.median()", "x.quantile(0.25)",
    "x.quantile(1.0)", "x.cummax(0)[0]", "x.cummin(0)[0]", "x.nansum()", "F.normalize(x, dim=0)[0]", "x.sort()[0][0]", "F.cross_entropy(x[None], t.tensor([0]))",
    "F.nll_loss(x[None], t.tensor([0]))", "t.trapezoid(x)", "t.diff(x)", "x.masked_fill(x == x, -math.inf).softmax(0).nan_to_num()",
]  # fmt: skip


def operands():
    """(call, its operands)"""
    for name in ONE:
        yield f"t.{name}(x)", [POINTS]
    for name in ONE_OF_F:
        yield f"F.{name}(x)", [POINTS]
    for call in MORE:
        yield call, [POINTS]
    pairs = [[a for a in FEW for _ in FEW], [b for _ in FEW for b in FEW]]
    for call in [*(f"t.{name}(x, y)" for name in TWO), *MORE_OF_TWO]:
        yield call, pairs
    for number, row in enumerate(ROWS):
        for call in OF_ROWS:
            yield f"{call} #{number}", [row]


def derivatives(t, F, call, values):  # noqa: N803
    """The derivatives by each operand, one behind the other; or that there is none."""
    x, *rest = (t.tensor(v, dtype=t.float64, requires_grad=True) for v in values)
    try:
        y = eval(call.split(" #")[0], {"t": t, "F": F, "x": x, "y": rest[0] if rest else None, "math": math})
        if not y.requires_grad:
            return "no history"
        grads = t.autograd.grad(y, [x, *rest], t.ones_like(y), allow_unused=True)
    except (RuntimeError, NotImplementedError, IndexError) as error:
        return f"refused: {type(error).__name__}"
    return " ".join("none" if g is None else " ".join(f"{v:.13g}" for v in (g + t.zeros(g.shape)).reshape(-1).tolist()) for g in grads)


if __name__ == "__main__":
    import torch

    lines = [f"{json.dumps(call)}: {json.dumps(derivatives(torch, torch.nn.functional, call, values))}" for call, values in operands()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
