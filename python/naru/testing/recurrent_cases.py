"""Operator cases of recurrent networks (see operator_cases.py)."""

from __future__ import annotations

import numpy as np

import naru


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _rnn(x, h, w, v, b, c, f=np.tanh):
    return f(x @ w.T + b + h @ v.T + c)


def _lstm(x, h, cell, w, v, b, c):
    i, f, g, o = np.split(x @ w.T + b + h @ v.T + c, 4, -1)
    cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(cell), cell


def _gru(x, h, w, v, b, c):
    (r, z, n), (hr, hz, hn) = np.split(x @ w.T + b, 3, -1), np.split(h @ v.T + c, 3, -1)
    z = _sigmoid(z + hz)
    return (1 - z) * np.tanh(n + _sigmoid(r + hr) * hn) + z * h


def _over(step, x, states):
    """Applies `step` over a sequence (T, N, I): the outputs, and the final states."""
    outs = []
    for row in x:
        states = step(row, *states)
        outs.append(states[0])
    return (np.stack(outs), *(s[None] for s in states))


def _cell_shapes(gates):
    return [(5, 3), (5, 4), (4 * gates, 3), (4 * gates, 4), (4 * gates,), (4 * gates,)]


def recurrent_cases(C):  # noqa: N803
    lstm = _cell_shapes(4)
    both = [(2, 4), *lstm[2:]]
    plain = (True, 1, 0.0, False, False, False)
    return [
        C("rnn_tanh_cell", naru.rnn_tanh_cell, _rnn, _cell_shapes(1), tolerance=20),
        C("rnn_relu_cell", naru.rnn_relu_cell, lambda *a: _rnn(*a, f=lambda x: np.maximum(x, 0)), _cell_shapes(1), tolerance=20),
        C("gru_cell", naru.gru_cell, _gru, _cell_shapes(3), tolerance=40),
        C("lstm_cell", lambda x, h, c, *w: naru.lstm_cell(x, (h, c), *w), _lstm, [lstm[0], lstm[1], *lstm[1:]], tolerance=40),
        C("rnn", lambda x, h, *w: naru.rnn_tanh(x, h[None], w, *plain), lambda x, h, *w: _over(lambda r, s: (_rnn(r, s, *w),), x, (h,)),
          [(3, 2, 3), (2, 4), *_cell_shapes(1)[2:]], tolerance=60),
        C("gru", lambda x, h, *w: naru.gru(x, h[None], w, *plain), lambda x, h, *w: _over(lambda r, s: (_gru(r, s, *w),), x, (h,)),
          [(3, 2, 3), (2, 4), *_cell_shapes(3)[2:]], tolerance=80),
        C("lstm", lambda x, h, c, *w: naru.lstm(x, (h[None], c[None]), w, *plain),
          lambda x, h, c, *w: _over(lambda r, s, t: _lstm(r, s, t, *w), x, (h, c)), [(3, 2, 3), (2, 4), *both], tolerance=80),
    ]  # fmt: skip
