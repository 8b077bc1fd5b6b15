"""Cases of sparse tensors (see operator_cases): built from coordinates and values, with duplicate coordinates, and compared as dense tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import naru

_SIZES = (5, 6)


def _made(i: Any, v: Any) -> Any:
    return naru.sparse_coo_tensor(naru.stack([i[0], i[1]]), v, _SIZES)


def _dense(i: Any, v: Any) -> Any:
    out = np.zeros(_SIZES + v.shape[1:], v.dtype)
    np.add.at(out, (i[0], i[1]), v)
    return out


def _softmax(i: Any, v: Any) -> Any:
    x = _dense(i, v)
    stored = _dense(i, np.ones_like(v)) > 0
    e = np.where(stored, np.exp(x), 0)
    return e / np.where(stored.any(1, keepdims=True), e.sum(1, keepdims=True), 1)


def sparse_cases(C: Any) -> list:
    one = {"integers": ((0, 5),)}
    s, d = _made, _dense
    return [
        C("sparse to_dense", lambda i, v: s(i, v).to_dense(), d, [(2, 9), (9,)], **one),
        C("sparse coalesce", lambda i, v: s(i, v).coalesce().to_dense(), d, [(2, 9), (9,)], **one),
        C("sparse with dense dimensions", lambda i, v: naru.sparse_coo_tensor(i, v, (*_SIZES, 3)).to_dense(), d, [(2, 9), (9, 3)], **one),
        C("sparse product", lambda i, v, x: naru.sparse.mm(s(i, v), x), lambda i, v, x: d(i, v) @ x, [(2, 9), (9,), (6, 4)], **one),
        C("sparse product by rows", lambda i, v, x: s(i, v).to_sparse_csr() @ x, lambda i, v, x: d(i, v) @ x, [(2, 9), (9,), (6, 4)], **one),
        C("sparse matrix on the right", lambda i, v, x: x @ s(i, v), lambda i, v, x: x @ d(i, v), [(2, 9), (9,), (4, 5)], **one),
        C("sparse addmm", lambda i, v, x, y: naru.sparse.addmm(y, s(i, v), x, beta=0.5, alpha=2), lambda i, v, x, y: y / 2 + 2 * d(i, v) @ x,
          [(2, 9), (9,), (6, 4), (5, 4)], **one),
        C("sparse by sparse", lambda i, v, w: naru.sparse.mm(s(i, v), s(i, w).t()).to_dense(), lambda i, v, w: d(i, v) @ d(i, w).T,
          [(2, 9), (9,), (9,)], **one),
        C("sparse sum", lambda i, v: (naru.sparse.sum(s(i, v)), naru.sparse.sum(s(i, v), 0).to_dense()), lambda i, v: (d(i, v).sum(), d(i, v).sum(0)),
          [(2, 9), (9,)], **one),
        C("sparse softmax", lambda i, v: naru.sparse.softmax(s(i, v), 1).to_dense(), _softmax, [(2, 9), (9,)], **one),
        C("sparse arithmetic", lambda i, v, x: (s(i, v) + s(i, v) * 2 - s(i, v) / 4 + s(i, v) * x).to_dense() + (x + s(i, v)),
          lambda i, v, x: d(i, v) * 3.75 + d(i, v) * x + x, [(2, 9), (9,), _SIZES], **one),
        C("sparse mask", lambda i, v, x: x.sparse_mask(s(i, v).detach().coalesce()).to_dense(),
          lambda i, v, x: np.where(d(i, np.ones_like(v)) > 0, x, 0), [(2, 9), (9,), _SIZES], extra={"differentiable": [False, False, True]}, **one),
    ]  # fmt: skip
