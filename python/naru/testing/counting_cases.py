"""Cases of scatter reductions, running maxima and minima, counting, and joining tensors (see operator_cases)."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru


def _scatter_reduce(reduce: str, include_self: bool) -> Any:
    numbers = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min, "sum": np.sum}[reduce]

    def reference(a: Any, i: Any, v: Any) -> Any:
        out = a.copy()
        for r in range(a.shape[0]):
            for c in range(a.shape[1]):
                if found := [v[r, k] for k in range(i.shape[1]) if i[r, k] == c]:
                    out[r, c] = numbers(np.array(([a[r, c]] if include_self else []) + found))
        return out

    return reference


def _index_reduce(a: Any, i: Any, v: Any) -> Any:
    out = a.copy()
    for k, place in enumerate(i):
        out[:, place] = np.maximum(out[:, place], v[:, k])
    return out


def _polygamma_2(x: Any) -> Any:
    far = x + 400
    return -2 * (sum((x + k) ** -3.0 for k in range(400)) + far**-2 / 2 + far**-3 / 2 + far**-4 / 4)


def _reduced(reduce: str, own: bool) -> Any:
    return lambda a, i, v: a.scatter_reduce(1, i, v, reduce, include_self=own)


def scatter_cases(C: Any) -> list:
    return [
        *(C(f"scatter_reduce {reduce}{'' if own else ', without self'}", _reduced(reduce, own), _scatter_reduce(reduce, own), [(5, 7), (5, 6), (5, 6)],
            integers=((1, 7),), lo=0.5)
          for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
        C("polygamma", lambda a: naru.polygamma(2, a), _polygamma_2, [(5, 7)], 0.5, 3),
        C("index_reduce", lambda a, i, v: a.index_reduce(1, i, v, "amax"), _index_reduce, [(5, 7), (6,), (5, 6)], integers=((1, 7),)),
    ]  # fmt: skip


def _running(a: Any, better: Any) -> Any:
    at = np.zeros(a.shape, np.int64)
    for i in range(1, a.shape[1]):
        later = better(a[:, i], np.take_along_axis(a, at[:, i - 1 : i], 1)[:, 0])
        at[:, i] = np.where(later, i, at[:, i - 1])
    return np.take_along_axis(a, at, 1), at


def _mode(a: Any) -> Any:
    values, places = [], []
    for row in a:
        found, counts = np.unique(row, return_counts=True)
        values.append(found[np.argmax(counts)])
        places.append(np.flatnonzero(row == values[-1])[-1])
    return np.array(values), np.array(places)


def counting_cases(C: Any) -> list:
    square = [(4, 9)]
    return [
        C("cummax", lambda a: tuple(a.cummax(1)), lambda a: _running(a, np.greater_equal), [(5, 33)]),
        C("cummin", lambda a: tuple(a.cummin(1)), lambda a: _running(a, np.less_equal), [(5, 33)]),
        C("logcumsumexp", lambda a: a.logcumsumexp(0), lambda a: np.log(np.cumsum(np.exp(a), 0)), [(9, 5)], tolerance=4),
        C("mode", lambda i: tuple(i.mode(1)), _mode, [(5, 20)], integers=((0, 4),), gradient=False),
        C("unique_consecutive", lambda i: i.unique_consecutive(), lambda i: i.ravel()[np.r_[True, np.diff(i.ravel()) != 0]], [(5, 7)],
          integers=((0, 2),), gradient=False),
        C("gcd", lambda i, j: naru.gcd(i, j), np.gcd, [(5, 7), (7,)], integers=((0, 60), (1, 60)), gradient=False),
        C("lcm", lambda i, j: naru.lcm(i, j), np.lcm, [(5, 7), (7,)], integers=((0, 60), (1, 60)), gradient=False),
        C("cov", lambda a: a.cov(), np.cov, square, tolerance=10, bits=False),
        C("corrcoef", lambda a: a.corrcoef(), np.corrcoef, square, tolerance=10, bits=False),
        C("block_diag", lambda a, b: naru.block_diag(a, b), lambda a, b: np.block([[a, np.zeros((2, 5))], [np.zeros((4, 3)), b]]), [(2, 3), (4, 5)]),
        C("cartesian_prod", lambda a, b: naru.cartesian_prod(a, b), lambda a, b: np.array([(x, y) for x in a for y in b]), [(3,), (4,)]),
        C("combinations", lambda a: naru.combinations(a), lambda a: np.array([(a[i], a[j]) for i in range(4) for j in range(i + 1, 4)]), [(4,)]),
        C("vander", lambda a: naru.vander(a, 4), lambda a: np.vander(a, 4), [(5,)], 0.5, 2),
        C("cumulative_trapezoid", lambda a: naru.cumulative_trapezoid(a, dim=0), lambda a: np.cumsum(a[1:] + a[:-1], 0) / 2, [(7, 5)]),
        C("sinc", lambda a: a.sinc(), np.sinc, [(5, 7)], 0.1, 3, tolerance=4),
        C("logaddexp2", lambda a, b: a.logaddexp2(b), np.logaddexp2, [(5, 7), (7,)], tolerance=4),
    ]  # fmt: skip
