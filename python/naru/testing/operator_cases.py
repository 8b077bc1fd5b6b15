"""The list of operator cases, used by `naru selftest` and by naru's own tests: every device runs all cases, with float64 NumPy as the oracle.

A case draws its operands (float64 arrays), and has the naru computation and the NumPy computation. `layouts` turns each operand
into tensors with different memory layouts and the same elements.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import naru
from naru import _C
from naru.testing.complex_cases import complex_cases, with_few_complex  # noqa: F401
from naru.testing.counting_cases import counting_cases, scatter_cases
from naru.testing.fourier_cases import fourier_cases
from naru.testing.linalg_cases import linalg_cases
from naru.testing.loss_cases import loss_cases
from naru.testing.network_cases import network_cases
from naru.testing.recurrent_cases import recurrent_cases
from naru.testing.selecting_cases import selecting_cases
from naru.testing.sparse_cases import sparse_cases
from naru.testing.unsigned_cases import unsigned_cases


@dataclass
class Case:
    name: str
    run: Callable                     # (naru tensors...) -> tensor or tuple of tensors
    reference: Callable               # (float64 arrays...) -> array or tuple of arrays
    shapes: Sequence[tuple]           # of the operands
    lo: float = -3
    hi: float = 3
    gradient: bool = True
    integers: Sequence[int] = ()      # operands that hold integers below a bound: (operand, bound) pairs
    tolerance: float = 0              # in units of 1e-6 relative, in addition to float32 rounding of the operands
    bits: bool = True                 # the same bits on every device, thread count and instruction set
    extra: dict = field(default_factory=dict)

    def operands(self, seed: int, shapes=None) -> list:
        rng = np.random.default_rng(seed)
        bounds = dict(self.integers)
        arrays = []
        for i, shape in enumerate(shapes or self.shapes):
            if i in bounds:
                arrays.append(rng.integers(0, bounds[i], shape).astype(np.int64))
            else:
                # Values that both float32 and float64 represent, so that the oracle has exactly naru's operands.
                arrays.append(rng.uniform(self.lo, self.hi, shape).astype(np.float32).astype(np.float64))
        return arrays


def layouts(array: np.ndarray, device: str, dtype) -> dict:
    """The same elements in every memory layout."""
    def put(a):
        kind = dtype if a.dtype.kind == "f" else None
        return naru.tensor(np.ascontiguousarray(a), dtype=kind, device=device)

    out = {"contiguous": put(array)}
    if array.ndim >= 2:
        out["transposed"] = put(np.swapaxes(array, -1, -2)).transpose(-1, -2)
    if array.ndim >= 1:
        padded = np.concatenate([np.zeros_like(array[:1]) if array.shape[0] else np.zeros((1,) + array.shape[1:], array.dtype), array])
        out["offset"] = put(padded)[1:]
        spread = np.zeros(array.shape[:-1] + (2 * array.shape[-1],), array.dtype)
        spread[..., ::2] = array
        out["strided"] = put(spread)[..., ::2]
    return out


_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])
_lgamma = np.vectorize(math.lgamma, otypes=[float])


def _digamma(x):
    # Abramowitz and Stegun 6.3.5 and 6.3.18: recurrence up to where the asymptotic series holds, then the series.
    x = np.array(x, float)
    shift = np.zeros_like(x)
    for _ in range(20):
        shift -= 1 / x
        x = x + 1
    i = 1 / (x * x)
    return shift + np.log(x) - 0.5 / x - i * (1 / 12 - i * (1 / 120 - i / 252))


def _zeta(s, q):
    # Euler-Maclaurin summation, starting far out.
    terms = sum((q + k) ** -s for k in range(100))
    a = q + 100
    return terms + a ** (1 - s) / (s - 1) + a ** -s / 2 + s * a ** (-s - 1) / 12 - s * (s + 1) * (s + 2) * a ** (-s - 3) / 720


def _erfinv(y):
    x = np.zeros_like(np.asarray(y, float))
    for _ in range(60):
        x = x - (_erf(x) - y) * np.sqrt(np.pi) / 2 * np.exp(x * x)
    return x


def _sigmoid(a):
    return 1 / (1 + np.exp(-a))


def _softplus(a):
    return np.logaddexp(a, 0)


# NumPy equivalents of the rows of the elementwise table.
REFERENCES = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floor_divide": np.floor_divide,
    "div_trunc": lambda a, b: np.trunc(a / b), "remainder": np.remainder, "fmod": np.fmod, "pow": np.power, "atan2": np.arctan2,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "hypot": np.hypot, "copysign": np.copysign,
    "xlogy": lambda a, b: np.where(a == 0, 0, a * np.log(b)), "logaddexp": np.logaddexp,
    "add_scaled": lambda a, b, c: a + c * b, "lerp": lambda a, b, c: a + c * (b - a),
    "clamp": lambda a, b, c: np.minimum(np.maximum(a, b), c), "clamp_min": np.maximum, "clamp_max": np.minimum,
    "neg": np.negative, "positive": np.positive, "abs": np.abs, "sign": np.sign, "square": np.square, "reciprocal": np.reciprocal,
    "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc,
    "frac": lambda a: a - np.trunc(a), "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "zeta": lambda s, q: _zeta(s, q),
    "erf": _erf, "erfc": _erfc, "erfinv": _erfinv, "lgamma": _lgamma, "digamma": _digamma, "sigmoid": _sigmoid,
    "relu": lambda a: np.maximum(a, 0), "relu6": lambda a: np.clip(a, 0, 6), "silu": lambda a: a * _sigmoid(a),
    "logsigmoid": lambda a: -_softplus(-a), "gelu": lambda a: a * 0.5 * (1 + _erf(a / np.sqrt(2))),
    "gelu_tanh": lambda a: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a ** 3))),
    "softsign": lambda a: a / (1 + np.abs(a)), "mish": lambda a: a * np.tanh(_softplus(a)),
    "hardsigmoid": lambda a: np.clip(a + 3, 0, 6) / 6, "hardswish": lambda a: a * np.clip(a + 3, 0, 6) / 6,
    "leaky_relu": lambda a, b: np.where(a > 0, a, a * b), "elu": lambda a, b: np.where(a > 0, a, b * np.expm1(a)),
    "softplus": lambda a, b, c: np.where(a * b > c, a, _softplus(a * b) / b), "threshold": lambda a, b, c: np.where(a > b, a, c),
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf, "isneginf": np.isneginf, "signbit": np.signbit,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.bitwise_not,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "where": np.where,
}
# Rounding an operand can change the result by a whole step, or the derivative is 0 or jumps: finite differences do not apply.
NO_DIFFERENCES = {"floor_divide", "div_trunc", "remainder", "fmod", "copysign"}


def elementwise_cases() -> list:
    cases = []
    for name, arity, rule, lo, hi, differentiable, _ in _C._elementwise_table():
        call = functools.partial(_C._elementwise, name)
        integer = rule in ("Bits", "Shift")
        cond = rule == "Where"
        shapes = {1: [(5, 7)], 2: [(5, 7), (7,)], 3: [(5, 7), (5, 1), (7,)]}[arity]
        integers = tuple((i, int(hi)) for i in range(arity)) if integer else ((0, 2),) if cond else ()
        run = (lambda call: lambda c, a, b: call(c != 0, a, b))(call) if cond else call
        reference = (lambda c, a, b: np.where(c != 0, a, b)) if cond else REFERENCES[name]
        cases.append(Case(name, run, reference, shapes, lo, hi,
                          gradient=any(differentiable) and name not in NO_DIFFERENCES, integers=integers,
                          extra={"differentiable": differentiable, "broadcasts": arity > 1, "elementwise": True}))
    return cases


def _var(a, axis=None, ddof=1):
    return np.var(a, axis=axis, ddof=ddof)


def _softmax(a, axis):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _cross_entropy(x, t):
    p = np.log(_softmax(x, 1))
    return -p[np.arange(len(t)), t].mean()


def _layer_norm(x, w, b):
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * w + b


def _gather(a, i):
    return np.take_along_axis(a, i, 1)


def _topk(a):
    order = np.argsort(-a, axis=-1, kind="stable")[..., :3]
    return np.take_along_axis(a, order, -1), order


def _scatter_add(a, i, v):
    out = a.copy()
    for r in range(i.shape[0]):
        for c in range(i.shape[1]):
            out[r, i[r, c]] += v[r, c]
    return out


def other_cases() -> list:
    t = naru
    C = Case
    big = [(67, 130)]
    return [
        C("sum", lambda a: a.sum(), lambda a: a.sum(), big),
        C("sum(0)", lambda a: a.sum(0), lambda a: a.sum(0), big),
        C("sum(1, keepdim)", lambda a: a.sum(1, keepdim=True), lambda a: a.sum(1, keepdims=True), big),
        C("sum((0, 2))", lambda a: a.sum((0, 2)), lambda a: a.sum((0, 2)), [(5, 6, 7)]),
        C("mean", lambda a: a.mean(), lambda a: a.mean(), big),
        C("mean(-1)", lambda a: a.mean(-1), lambda a: a.mean(-1), big),
        C("prod(1)", lambda a: a.prod(1), lambda a: a.prod(1), [(5, 7)], 0.5, 1.5),
        C("amax(1)", lambda a: a.amax(1), lambda a: a.max(1), big),
        C("amin(0)", lambda a: a.amin(0), lambda a: a.min(0), big),
        C("max", lambda a: a.max(), lambda a: a.max(), big),
        C("max(dim)", lambda a: tuple(a.max(1)), lambda a: (a.max(1), a.argmax(1)), big),
        C("min(dim)", lambda a: tuple(a.min(0)), lambda a: (a.min(0), a.argmin(0)), big),
        C("argmax", lambda a: a.argmax(), lambda a: a.argmax(), big, gradient=False),
        C("argmax(1)", lambda a: a.argmax(1), lambda a: a.argmax(1), big, gradient=False),
        C("argmin(0)", lambda a: a.argmin(0), lambda a: a.argmin(0), big, gradient=False),
        C("any(1)", lambda a: (a > 2.9).any(1), lambda a: (a > 2.9).any(1), big, gradient=False),
        C("all(0)", lambda a: (a > -2.9).all(0), lambda a: (a > -2.9).all(0), big, gradient=False),
        C("var(0)", lambda a: a.var(0), lambda a: _var(a, 0), big),
        C("std", lambda a: a.std(), lambda a: np.sqrt(_var(a)), big),
        C("norm", lambda a: a.norm(), lambda a: np.sqrt((a * a).sum()), big),
        C("logsumexp", lambda a: t.logsumexp(a, 1), lambda a: np.log(np.exp(a).sum(1)), [(5, 9)]),
        C("cumsum(1)", lambda a: a.cumsum(1), lambda a: a.cumsum(1), [(5, 33)], tolerance=20),
        C("cumsum(0)", lambda a: a.cumsum(0), lambda a: a.cumsum(0), [(33, 5)], tolerance=20),
        C("matmul", lambda a, b: a @ b, lambda a, b: a @ b, [(33, 40), (40, 19)], tolerance=20),
        C("matmul large", lambda a, b: a @ b, lambda a, b: a @ b, [(130, 140), (140, 150)], gradient=False, tolerance=40),
        C("matmul vector", lambda a, b: a @ b, lambda a, b: a @ b, [(9,), (9, 4)], tolerance=20),
        C("matmul batch", lambda a, b: a @ b, lambda a, b: a @ b, [(3, 5, 7), (7, 6)], tolerance=20),
        C("matmul broadcast", lambda a, b: a @ b, lambda a, b: a @ b, [(2, 1, 5, 7), (3, 7, 4)], tolerance=20),
        C("dot", lambda a, b: a @ b, lambda a, b: a @ b, [(17,), (17,)], tolerance=20),
        C("linear", lambda x, w, b: t.nn.functional.linear(x, w, b), lambda x, w, b: x @ w.T + b, [(6, 11), (4, 11), (4,)], tolerance=20),
        C("softmax", lambda a: t.softmax(a, -1), lambda a: _softmax(a, -1), [(7, 13)]),
        C("softmax(0)", lambda a: t.softmax(a, 0), lambda a: _softmax(a, 0), [(7, 13)]),
        C("log_softmax", lambda a: t.log_softmax(a, 1), lambda a: np.log(_softmax(a, 1)), [(7, 13)]),
        C("cross_entropy", lambda a, i: t.nn.functional.cross_entropy(a, i), _cross_entropy, [(8, 10), (8,)], integers=((1, 10),)),
        C("mse_loss", lambda a, b: t.nn.functional.mse_loss(a, b), lambda a, b: ((a - b) ** 2).mean(), [(8, 10), (8, 10)]),
        C("layer_norm", lambda x, w, b: t.nn.functional.layer_norm(x, (13,), w, b), _layer_norm, [(6, 13), (13,), (13,)], tolerance=20),
        C("embedding", lambda w, i: t.nn.functional.embedding(i, w), lambda w, i: w[i], [(11, 5), (3, 4)], integers=((1, 11),)),
        C("reshape", lambda a: a.reshape(7, 10), lambda a: a.reshape(7, 10), [(5, 14)]),
        C("permute", lambda a: a.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1), [(3, 4, 5)]),
        C("transpose clone", lambda a: a.t().clone(), lambda a: a.T, [(37, 41)]),
        C("expand", lambda a: a.expand(4, 5, 6), lambda a: np.broadcast_to(a, (4, 5, 6)), [(5, 1)]),
        C("flatten", lambda a: a.flatten(1), lambda a: a.reshape(3, 20), [(3, 4, 5)]),
        C("cat", lambda a, b: t.cat([a, b], 1), lambda a, b: np.concatenate([a, b], 1), [(4, 3), (4, 5)]),
        C("stack", lambda a, b: t.stack([a, b], -1), lambda a, b: np.stack([a, b], -1), [(4, 3), (4, 3)]),
        C("split", lambda a: a.split(3, 1)[1], lambda a: a[:, 3:6], [(4, 7)]),
        C("chunk", lambda a: a.chunk(3, 0)[2], lambda a: a[6:], [(7, 4)]),
        C("slice", lambda a: a[1:, ::2], lambda a: a[1:, ::2], [(5, 7)]),
        C("index row", lambda a: a[2], lambda a: a[2], [(5, 7)]),
        C("index None Ellipsis", lambda a: a[..., None, 1], lambda a: a[..., None, 1], [(5, 7)]),
        C("index tensor", lambda a, i: a[i], lambda a, i: a[i], [(5, 7), (3, 2)], integers=((1, 5),)),
        C("index mixed", lambda a, i: a[:, i, 1:], lambda a, i: a[:, i, 1:], [(5, 7, 4), (3,)], integers=((1, 7),)),
        C("index two tensors", lambda a, i, j: a[i, :, j], lambda a, i, j: a[i, :, j], [(5, 7, 4), (3,), (3,)], integers=((1, 5), (2, 4))),
        C("index mask", lambda a: a[a > 0], lambda a: a[a > 0], [(5, 7)]),
        C("gather", lambda a, i: a.gather(1, i), _gather, [(5, 7), (5, 3)], integers=((1, 7),)),
        C("index_select", lambda a, i: a.index_select(1, i), lambda a, i: a[:, i], [(5, 7), (4,)], integers=((1, 7),)),
        C("scatter_add", lambda a, i, v: a.scatter_add(1, i, v), _scatter_add, [(5, 7), (5, 3), (5, 3)], integers=((1, 7),)),
        C("masked_fill", lambda a: a.masked_fill(a > 1, 9.0), lambda a: np.where(a > 1, 9.0, a), [(5, 7)]),
        C("sort", lambda a: tuple(a.sort(1)), lambda a: (np.sort(a, 1), np.argsort(a, 1, kind="stable")), [(5, 33)]),
        C("sort descending", lambda a: a.sort(0, descending=True)[0], lambda a: -np.sort(-a, 0), [(33, 5)]),
        C("topk", lambda a: tuple(a.topk(3)), _topk, [(5, 33)]),
        C("tril", lambda a: a.tril(-1), lambda a: np.tril(a, -1), [(6, 7)]),
        C("triu", lambda a: a.triu(1), lambda a: np.triu(a, 1), [(6, 7)]),
        C("flip", lambda a: a.flip(0), lambda a: a[::-1], [(6, 7)]),
        C("repeat", lambda a: a.repeat(2, 3), lambda a: np.tile(a, (2, 3)), [(4, 5)]),
        C("clone", lambda a: a.clone(), lambda a: a, [(4, 5)]),
        C("fused chain", lambda a: ((a * 2 + 1).tanh() * a).exp().sum(1), lambda a: np.exp(np.tanh(a * 2 + 1) * a).sum(1), big, tolerance=20),
        C("gelu in nine", lambda x: 0.5 * x * (1 + (0.7978845608 * (x + 0.044715 * x * x * x)).tanh()),
          lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3))), [(97, 101)]),
    ]


CASES = (
    elementwise_cases() + other_cases() + network_cases(Case) + recurrent_cases(Case) + scatter_cases(Case) + counting_cases(Case) + linalg_cases(Case)
    + complex_cases(Case) + selecting_cases(Case) + loss_cases(Case) + fourier_cases(Case) + unsigned_cases(Case) + sparse_cases(Case)
)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


# Error bound of a few correctly rounded steps, relative to the largest element.
STEPS = {"float32": 2e-6, "float64": 1e-13}


def compare(case: Case, got, arrays: list, dtype) -> float:
    """The largest error of a case's results in ulp of `dtype` at the largest element; AssertionError if they are wrong."""
    wanted, got = as_tuple(case.reference(*arrays)), as_tuple(got)
    assert len(got) == len(wanted), f"{len(got)} results in place of {len(wanted)}"
    name = str(dtype).removeprefix("torch.")
    # A few ulp of the result's size, plus the rounding error of a sum with that many terms.
    step = STEPS[name] * (1 + case.tolerance / 2)
    worst = 0.0
    for g, w in zip(got, wanted):
        w = np.asarray(w)
        assert tuple(g.shape) == w.shape, f"shape {tuple(g.shape)} in place of {w.shape}"
        g = g.detach().cpu().numpy()
        if w.dtype.kind in "bi":
            np.testing.assert_array_equal(g, w)
            continue
        scale = max(1.0, float(np.abs(w).max(initial=0)))
        np.testing.assert_allclose(g, w, rtol=step, atol=step * scale)
        finite = np.isfinite(w)
        error = np.abs(g[finite].astype(np.float64) - w[finite]).max(initial=0)
        worst = max(worst, float(error / np.spacing(scale, dtype=name)))
    return worst


def differentiable(case, arrays) -> list:
    """The indices of the operands that receive a gradient."""
    flags = case.extra.get("differentiable", [True] * len(arrays))
    return [i for i, a in enumerate(arrays) if a.dtype.kind == "f" and flags[i]]


def on_device(arrays: list, device: str, dtype) -> list:
    """Operands as tensors: floating-point ones in `dtype`, the others in their own dtype."""
    return [naru.tensor(a, dtype=dtype if a.dtype.kind == "f" else None, device=device) for a in arrays]


def bits(t) -> bytes:
    """The bytes of a tensor's elements."""
    return t.detach().cpu().contiguous().numpy().tobytes()


def result_bits(case, device: str = "cpu", shapes=None) -> list:
    """The bytes of a case's results in float32, and of its gradients."""
    arrays = case.operands(6, shapes)
    operands = on_device(arrays, device, naru.float32)
    wanted = differentiable(case, arrays) if case.gradient else []
    for i in wanted:
        operands[i].requires_grad_()
    out = as_tuple(case.run(*operands))
    if wanted:
        out[0].backward(naru.ones_like(out[0]))
    return [bits(t) for t in out] + [bits(operands[i].grad) for i in wanted]


def digests() -> dict:
    """A digest of each case's bits; elementwise cases also run on a shape large enough for fusion."""
    out = {}
    for case in CASES:
        data = b"".join(result_bits(case))
        if case.extra.get("broadcasts"):
            data += b"".join(result_bits(case, shapes=[(131, 67)] * len(case.shapes)))
        out[case.name] = hashlib.sha256(data).hexdigest()
    return out


if __name__ == "__main__":
    print(json.dumps(digests()))
