"""Cases of searching sorted elements, histograms, indexed writes, and torch.special (see operator_cases)."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import naru

_erfc = np.vectorize(math.erfc, otypes=[float])


def _bessel(x: Any, n: int) -> Any:
    """Bessel's integral over half a period, by the trapezoidal rule, which is exact up to rounding here."""
    angle = (np.arange(400) + 0.5) * np.pi / 400
    return (np.exp(x[..., None] * np.cos(angle)) * np.cos(n * angle)).mean(-1)


def _ndtri(p: Any) -> Any:
    x = np.zeros_like(p)
    for _ in range(60):
        x = x - np.clip((_erfc(-x / np.sqrt(2)) / 2 - p) * np.sqrt(2 * np.pi) * np.exp(x * x / 2), -1, 1)
    return x


def _bessel_j(x: Any, n: int) -> Any:
    angle = (np.arange(400) + 0.5) * np.pi / 400
    return np.cos(n * angle - x[..., None] * np.sin(angle)).mean(-1)


def _bessel_k(x: Any, n: int) -> Any:
    t = np.arange(1, 4000) * 0.002
    return 0.002 * (0.5 * np.exp(-x) + (np.exp(-x[..., None] * np.cosh(t)) * np.cosh(n * t)).sum(-1))


def _bessel_y0(x: Any) -> Any:
    """Bessel function Y0 by Neumann's series."""
    series = sum((-1) ** k * _bessel_j(x, 2 * k) / k for k in range(1, 40))
    return 2 / np.pi * (np.log(x / 2) + 0.5772156649015329) * _bessel_j(x, 0) - 4 / np.pi * series


def _incomplete_gamma(a: Any, x: Any) -> Any:
    """The incomplete gamma function by its power series, whose terms are all positive."""
    term = total = 1 / a
    for k in range(1, 400):
        term = term * x / (a + k)
        total = total + term
    return total * np.exp(a * np.log(x) - x - np.vectorize(math.lgamma)(a))


def _airy(x: Any) -> Any:
    """Airy functions by the power series about 0."""
    f, g = np.ones_like(x), np.array(x)
    total = 0.3550280538878172392600 * f - 0.2588194037928067984052 * g
    for k in range(1, 40):
        f, g = f * x**3 / ((3 * k - 1) * (3 * k)), g * x**3 / ((3 * k) * (3 * k + 1))
        total = total + 0.3550280538878172392600 * f - 0.2588194037928067984052 * g
    return total


def _lower_median(row: Any) -> Any:
    return np.sort(row)[(len(row) - 1) // 2]


def _holes(a: Any) -> Any:
    """Replaces elements greater than 1 with NaN."""
    return naru.where(a > 1, float("nan"), a) if isinstance(a, naru.Tensor) else np.where(a > 1, np.nan, a)


def _nanmedian(a: Any) -> Any:
    return np.array([_lower_median(row[~np.isnan(row)]) for row in _holes(a)])


def _put(a: Any, i: Any, v: Any) -> Any:
    out = a.ravel().copy()
    np.add.at(out, i, v)
    return out.reshape(a.shape)


def _masked(a: Any, v: Any) -> Any:
    out = a.copy()
    out[a > 0] = v[: (a > 0).sum()]
    return out


def _nanquantile(a: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns about an all-NaN column, whose expected result is NaN
        return np.nanquantile(_holes(a), 0.3, axis=0)


def _pieces(a: Any) -> Any:
    return np.stack([a[:2].sum(0), np.zeros_like(a[0]), a[2:].sum(0)])


def selecting_cases(C: Any) -> list:  # noqa: N803
    t, S = naru, naru.special  # noqa: N806
    lengths = [2, 0, 5]
    many = {"many kernels": True}
    reads = {"reads": True}  # the host reads values, so the call cannot be captured
    return [
        C("nanmedian", lambda a: t.nanmedian(_holes(a), 1)[0], _nanmedian, [(5, 9)]),
        C("nanquantile", lambda a: t.nanquantile(_holes(a), 0.3, dim=0), _nanquantile, [(9, 5)]),
        C("searchsorted by halves", lambda a, b: t.searchsorted(a.reshape(-1).sort()[0], b), lambda a, b: np.searchsorted(np.sort(a.ravel()), b), [(7, 9), (5, 7)], gradient=False),
        C("searchsorted of rows", lambda a, b: t.searchsorted(a.sort(1)[0], b, right=True),
          lambda a, b: np.stack([np.searchsorted(np.sort(x), y, side="right") for x, y in zip(a, b)]), [(3, 60), (3, 4)], gradient=False),
        C("isin by halves", lambda a, b: t.isin(a, b), np.isin, [(5, 7), (50,)], integers=((0, 99), (1, 99)), gradient=False),
        C("histogram", lambda a: t.histogram(a, 40, range=(-3, 3))[0], lambda a: np.histogram(a, 40, (-3, 3))[0].astype(float), [(9, 9)], gradient=False),
        C("histogramdd", lambda a: t.histogramdd(a, [3, 4], range=(-3, 3, -3, 3))[0], lambda a: np.histogramdd(a, [3, 4], [(-3, 3), (-3, 3)])[0], [(50, 2)], gradient=False),
        C("put", lambda a, i, v: a.put(i, v, accumulate=True), _put, [(4, 5), (6,), (6,)], integers=((1, 20),)),
        C("masked_scatter", lambda a, v: a.masked_scatter(a > 0, v), _masked, [(4, 5), (20,)], extra=reads),
        C("segment_reduce", lambda a: t.segment_reduce(a, "sum", lengths=t.tensor(lengths, device=a.device)), _pieces, [(7, 3)], extra=reads),
        C("frexp", lambda a: tuple(t.frexp(a)), lambda a: (lambda m, e: (m, e.astype(np.int32)))(*np.frexp(a)), [(5, 7)]),
        C("special.i0", lambda a: S.i0(a), lambda a: _bessel(a, 0), [(5, 7)]),
        C("special.i0e", lambda a: S.i0e(a * 12), lambda a: _bessel(a * 12, 0) * np.exp(-np.abs(a * 12)), [(5, 7)], tolerance=4),
        C("special.i1", lambda a: S.i1(a), lambda a: _bessel(a, 1), [(5, 7)]),
        C("special.i1e", lambda a: S.i1e(a * 12), lambda a: _bessel(a * 12, 1) * np.exp(-np.abs(a * 12)), [(5, 7)], tolerance=4),
        C("special.erfcx", lambda a: S.erfcx(a), lambda a: np.exp(a * a) * _erfc(a), [(5, 7)], tolerance=4),
        C("special.ndtr", lambda a: S.ndtr(a), lambda a: _erfc(-a / np.sqrt(2)) / 2, [(5, 7)]),
        C("special.log_ndtr", lambda a: S.log_ndtr(a), lambda a: np.log(_erfc(-a / np.sqrt(2)) / 2), [(5, 7)]),
        C("special.ndtri", lambda a: S.ndtri(a), _ndtri, [(5, 7)], 0.01, 0.99, tolerance=4),
        C("special.entr", lambda a: S.entr(a), lambda a: -a * np.log(a), [(5, 7)], 0.1, 3),
        C("special.xlog1py", lambda a, b: S.xlog1py(a, b), lambda a, b: a * np.log1p(b), [(5, 7), (7,)], 0.1, 3),
        C("special.multigammaln", lambda a: S.multigammaln(a, 2), lambda a: np.vectorize(math.lgamma)(a) + np.vectorize(math.lgamma)(a - 0.5) + np.log(np.pi) / 2, [(5, 7)], 1, 4, tolerance=4),
        C("special.spherical_bessel_j0", lambda a: S.spherical_bessel_j0(a), lambda a: np.sin(a) / a, [(5, 7)], 0.1, 3),
        C("special.bessel_j0", lambda a: S.bessel_j0(a), lambda a: _bessel_j(a, 0), [(5, 7)], -30, 30, tolerance=4, extra=many),
        C("special.bessel_j1", lambda a: S.bessel_j1(a), lambda a: _bessel_j(a, 1), [(5, 7)], -30, 30, tolerance=4, extra=many),
        C("special.bessel_y0", lambda a: S.bessel_y0(a), _bessel_y0, [(5, 7)], 0.5, 28, tolerance=4, extra=many),
        C("special.bessel_y1", lambda a: S.bessel_y1(a), lambda a: (_bessel_j(a, 1) * _bessel_y0(a) - 2 / (np.pi * a)) / _bessel_j(a, 0), [(5, 7)], 3.2, 4.8, tolerance=4, extra=many),
        C("special.modified_bessel_k0", lambda a: S.modified_bessel_k0(a), lambda a: _bessel_k(a, 0), [(5, 7)], 0.2, 5, tolerance=4, extra=many),
        C("special.modified_bessel_k1", lambda a: S.modified_bessel_k1(a), lambda a: _bessel_k(a, 1), [(5, 7)], 0.2, 5, tolerance=4, extra=many),
        C("special.scaled_modified_bessel_k0", lambda a: S.scaled_modified_bessel_k0(a), lambda a: _bessel_k(a, 0) * np.exp(a), [(5, 7)], 0.2, 5, tolerance=4, extra=many),
        C("special.scaled_modified_bessel_k1", lambda a: S.scaled_modified_bessel_k1(a), lambda a: _bessel_k(a, 1) * np.exp(a), [(5, 7)], 0.2, 5, tolerance=4, extra=many),
        C("special.modified_bessel_i1", lambda a: S.modified_bessel_i1(a), lambda a: _bessel(a, 1), [(5, 7)], extra=many),
        C("special.airy_ai", lambda a: S.airy_ai(a), _airy, [(5, 7)], -4, 2, tolerance=4, extra=many),
        C("igamma", lambda a, b: t.igamma(a, b), _incomplete_gamma, [(5, 7), (5, 7)], 0.3, 30, tolerance=4, extra={**many, "differentiable": [False, True]}),
        C("igammac", lambda a, b: t.igammac(a, b), lambda a, b: 1 - _incomplete_gamma(a, b), [(5, 7), (5, 7)], 0.3, 6, tolerance=4, extra={**many, "differentiable": [False, True]}),
        C("select_scatter", lambda a, b: t.select_scatter(a, b, 1, 2), lambda a, b: np.concatenate([a[:, :2], b[:, None], a[:, 3:]], 1), [(4, 5), (4,)]),
        C("slice_scatter", lambda a, b: t.slice_scatter(a, b, 1, 1, 5, 2), lambda a, b: np.stack([a[:, 0], b[:, 0], a[:, 2], b[:, 1], a[:, 4]], 1), [(4, 5), (4, 2)]),
        C("diagonal_scatter", lambda a, b: t.diagonal_scatter(a, b), lambda a, b: a * (1 - np.eye(4)) + np.diag(b), [(4, 4), (4,)]),
        C("diag_embed", lambda a: t.diag_embed(a, 1), lambda a: np.stack([np.diag(row, 1) for row in a]), [(3, 4)]),
        C("pdist", lambda a: t.pdist(a, 1.5), lambda a: np.array([(np.abs(a[i] - a[j]) ** 1.5).sum() ** (1 / 1.5) for i in range(4) for j in range(i + 1, 4)]), [(4, 3)], tolerance=4),
        C("addbmm", lambda a, b, c: t.addbmm(a, b, c, beta=2, alpha=0.5), lambda a, b, c: 2 * a + 0.5 * (b @ c).sum(0), [(3, 5), (2, 3, 4), (2, 4, 5)], tolerance=10),
        C("inner of batches", lambda a, b: t.inner(a, b), np.inner, [(2, 3, 4), (5, 2, 4)], tolerance=10),
        C("gradient", lambda a: t.gradient(a, spacing=[2.0, t.arange(5, dtype=a.dtype, device=a.device).square()], edge_order=2)[1],
          lambda a: np.gradient(a, 2.0, np.arange(5.0) ** 2, edge_order=2)[1], [(4, 5)], tolerance=4, extra=many),
        C("special.chebyshev_polynomial_t", lambda a: S.chebyshev_polynomial_t(a, 5), lambda a: 16 * a**5 - 20 * a**3 + 5 * a, [(5, 7)], -1, 1, tolerance=4),
        C("special.hermite_polynomial_h", lambda a, n: S.hermite_polynomial_h(a, n),
          lambda a, n: np.choose(n, [np.ones_like(a), 2 * a, 4 * a * a - 2, 8 * a**3 - 12 * a]), [(5, 7), (5, 7)], integers=((1, 4),), tolerance=4, extra=reads),
        C("special.legendre_polynomial_p", lambda a: S.legendre_polynomial_p(a, 3), lambda a: (5 * a**3 - 3 * a) / 2, [(5, 7)], tolerance=4),
        C("special.laguerre_polynomial_l", lambda a: S.laguerre_polynomial_l(a, 2), lambda a: (a * a - 4 * a + 2) / 2, [(5, 7)], tolerance=4),
    ]  # fmt: skip
