"""Cases with complex numbers. Operands and results are pairs of real tensors, so that gradients are checked by finite differences for
each part, and devices are compared bitwise, as in all other cases."""

from __future__ import annotations

import numpy as np

import naru


def _pairs(values):
    """Combines x, y, u, v ... to x + iy, u + iv ..."""
    return [naru.complex(a, b) if isinstance(a, naru.Tensor) else a + 1j * b for a, b in zip(values[::2], values[1::2])]


def _parts(result):
    if isinstance(result, naru.Tensor):
        return naru.view_as_real(result) if result.is_complex() else result
    return np.stack([result.real, result.imag], -1) if np.iscomplexobj(result) else result


def _on_pairs(function):
    return lambda *values: _parts(function(*_pairs(values)))


def complex_cases(Case) -> list:
    t = naru
    one, two = [(5, 7), (5, 7)], [(5, 7), (5, 7), (7,), (7,)]

    def C(name, run, reference, shapes, lo=-2.0, hi=2.0, **options):
        return Case("complex " + name, _on_pairs(run), _on_pairs(reference), shapes, lo, hi, **{"tolerance": 30, **options})

    unary = [
        ("neg", np.negative), ("reciprocal", np.reciprocal), ("sqrt", np.sqrt), ("rsqrt", lambda z: 1 / np.sqrt(z)), ("square", np.square),
        ("exp", np.exp), ("exp2", lambda z: np.exp(z * np.log(2))), ("expm1", np.expm1), ("log", np.log), ("log2", np.log2), ("log10", np.log10),
        ("log1p", np.log1p), ("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("sinh", np.sinh), ("cosh", np.cosh), ("tanh", np.tanh),
        ("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh),
        ("abs", np.abs), ("angle", np.angle), ("conj", np.conj), ("sgn", lambda z: z / np.abs(z)), ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
    ]  # fmt: skip
    binary = [
        ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("pow", np.power), ("eq", np.equal), ("ne", np.not_equal),
    ]  # fmt: skip
    # Away from zeros, poles and branch cuts, near which finite differences are inaccurate.
    cases = [C(name, getattr(t, name), f, one, 0.25, 0.85, tolerance=60) for name, f in unary]
    cases += [C(name, getattr(t, name), f, two, 0.25, 2, gradient=name not in ("eq", "ne")) for name, f in binary]
    cases += [
        C("mul by a real tensor", lambda a, b: a * b.real, lambda a, b: a * b.real, two),
        C("mul by a number", lambda a: a * (2 - 1j), lambda a: a * (2 - 1j), one),
        C("power of a number", lambda a: (1 + 2j) ** a, lambda a: (1 + 2j) ** a, one),
        C("cube", lambda a: a**3, lambda a: a**3, one),
        C("lerp", lambda a, b: t.lerp(a, b, 0.25), lambda a, b: a + 0.25 * (b - a), [(5, 7)] * 4),
        C("addcmul", lambda a, b: t.addcmul(a, b, b, value=2j), lambda a, b: a + 2j * b * b, two),
        C("where", lambda a, b: t.where(a.real > 0, a, b), lambda a, b: np.where(a.real > 0, a, b), two),
        C("sum", lambda a: a.sum(0), lambda a: a.sum(0), one),
        C("mean", lambda a: a.mean(), lambda a: a.mean(), one),
        C("prod", lambda a: a.prod(1), lambda a: a.prod(1), one, 0.5, 1.2),
        C("cumsum", lambda a: a.cumsum(1), lambda a: a.cumsum(1), one),
        C("cumprod", lambda a: a.cumprod(0), lambda a: a.cumprod(0), one, 0.5, 1.2),
        C("norm", lambda a: a.norm(), lambda a: np.sqrt((np.abs(a) ** 2).sum()), one),
        C("var", lambda a: a.var(1), lambda a: a.var(1, ddof=1), one),
        C("mm", lambda a, b: a @ b, lambda a, b: a @ b, [(6, 9), (6, 9), (9, 4), (9, 4)]),
        C("mm of a transpose", lambda a, b: a.mH @ b, lambda a, b: a.conj().T @ b, [(9, 6), (9, 6), (9, 4), (9, 4)]),
        C("bmm", lambda a, b: a @ b, lambda a, b: a @ b, [(3, 5, 4), (3, 5, 4), (3, 4, 6), (3, 4, 6)]),
        C("mv", lambda a, b: a @ b, lambda a, b: a @ b, [(6, 9), (6, 9), (9,), (9,)]),
        C("dot", t.dot, np.dot, [(9,)] * 4),
        C("vdot", t.vdot, np.vdot, [(9,)] * 4),
        C("linear", lambda x, w, b: t.nn.functional.linear(x, w, b), lambda x, w, b: x @ w.T + b, [(6, 5), (6, 5), (4, 5), (4, 5), (4,), (4,)]),
        C("polar", lambda a: t.polar(a.real, a.imag), lambda a: a.real * np.exp(1j * a.imag), one),
        C("logaddexp", t.logaddexp, lambda a, b: np.log(np.exp(a) + np.exp(b)), two, 0.25, 1),
        C("logsumexp", lambda a: a.logsumexp(1), lambda a: np.log(np.exp(a).sum(1)), one, -0.2, 0.2),
        C("conv1d", lambda x, w, b: t.nn.functional.conv1d(x, w, b, stride=2, padding=1), _conv1d,
          [(2, 3, 9), (2, 3, 9), (4, 3, 3), (4, 3, 3), (4,), (4,)]),
        C("embedding", lambda w: t.nn.functional.embedding(t.tensor([[1, 4], [0, 1]], device=w.device), w), lambda w: w[[[1, 4], [0, 1]]], one),
        C("cat", lambda a, b: t.cat([a, b], 1), lambda a, b: np.concatenate([a, b], 1), [(4, 3), (4, 3), (4, 5), (4, 5)]),
        C("stack", lambda a, b: t.stack([a, b.real], 1), lambda a, b: np.stack([a, b.real], 1), [(4, 3)] * 4),
        C("transpose clone", lambda a: a.t().clone(), lambda a: a.T, one),
        C("flip", lambda a: a.flip(1), lambda a: a[:, ::-1], one),
        C("slice", lambda a: a[1:, ::2], lambda a: a[1:, ::2], one),
        C("index", lambda a: a[[0, 3, 3]], lambda a: a[[0, 3, 3]], one),
        C("index mask", lambda a: a[a.imag > 0], lambda a: a[a.imag > 0], one),
        C("gather", lambda a: a.gather(1, t.tensor([[6, 0, 0]] * 5, device=a.device)), lambda a: a[:, [6, 0, 0]], one),
        C("masked_fill", lambda a: a.masked_fill(a.real > 0, 2j), lambda a: np.where(a.real > 0, 2j, a), one),
        C("tril", lambda a: a.tril(), lambda a: np.tril(a), one),
        C("diff", lambda a: a.diff(), lambda a: np.diff(a), one),
        C("write to the real part", _write_real, lambda a, b: b.real + 1j * a.imag, [(5, 7)] * 4),
        C("write to rows", _write_rows, lambda a, b: np.concatenate([b[None], a[1:]]), [(5, 7), (5, 7), (7,), (7,)]),
    ]
    return cases


def _conv1d(x, w, b):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    return np.stack([np.einsum("nci,oci->no", x[:, :, 2 * i : 2 * i + 3], w) for i in range(5)], -1) + b[:, None]


# Complex operators are compositions of many real kernels: where kernels are slow to compile, a few of each kind represent all.
_FEW = ["mul", "div", "exp", "abs", "eq", "sum", "prod", "mm", "index", "where", "stack", "flip", "write to the real part"]


def with_few_complex(cases: list) -> list:
    """The cases without most complex ones, and without others that consist of many kernels."""
    cases = [c for c in cases if not c.extra.get("many kernels")]
    return [c for c in cases if not c.name.startswith("complex ") or c.name.removeprefix("complex ") in _FEW]


def _write_real(a, b):
    z = a.clone()
    z.real = b.real
    return z


def _write_rows(a, b):
    z = a.clone()
    z[0] = b
    return z
