"""Cases of reductions into indexed places, running extremes, counting, and what is made of tensors side by side (see operator_cases)."""

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
