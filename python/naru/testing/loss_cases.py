"""Operator cases of losses, and of functions in no other family (see operator_cases.py)."""

from __future__ import annotations

import math

import numpy as np

import naru


def _log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def _log_sigmoid(x):
    return -np.logaddexp(0, -x)


def _hinge(x):
    return np.maximum(x, 0)


def _multi_margin(x, t, p, w):
    each = _hinge(1 - x[np.arange(len(t)), t][:, None] + x) ** p * w[t][:, None]
    each[np.arange(len(t)), t] = 0
    return each.mean(1)


def _multilabel_margin(x, t):
    out = []
    for row, labels in zip(x, t):
        labels = labels[:np.argmax(labels < 0)] if (labels < 0).any() else labels
        others = [i for i in range(len(row)) if i not in labels]
        out.append(sum(max(1 - (row[y] - row[i]), 0) for y in labels for i in others) / len(row))
    return np.array(out)


def _distance(a, b):
    return np.sqrt(((a - b + 1e-6) ** 2).sum(-1))


def _triplet(a, b, c):
    return _hinge(_distance(a, b) - np.minimum(_distance(a, c), _distance(b, c)) + 1).mean()


def _ctc(x, targets, steps, counts):
    x, out = _log_softmax(x), []
    for n, (t, s) in enumerate(zip(steps, counts)):
        states = [0]
        for label in targets[n][:s]:
            states += [label, 0]
        old = np.full(len(states), -np.inf)
        for k in range(t):
            new = np.full(len(states), -np.inf)
            for i, label in enumerate(states):
                before = [old[i]] + ([old[i - 1]] if i else []) + ([old[i - 2]] if i > 1 and label != states[i - 2] else [])
                new[i] = (np.logaddexp.reduce(before) if k else 0 if i < 2 else -np.inf) + x[k, n, label]
            old = new
        out.append(-np.logaddexp.reduce(old[-2:]))
    return np.array(out)


def _bags(w, i, ends, reduce, padding=None):
    parts = np.split(i, ends)
    kept = [p if padding is None else p[p != padding] for p in parts]
    return np.stack([reduce(w[p], 0) if len(p) else np.zeros(w.shape[1]) for p in kept])


def _cosine(a, b):
    return (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))


def _cross_entropy(x, t):
    return -_log_softmax(x)[np.arange(len(t)), t].mean()


def _conv_tbc(x, w, b):
    x = np.pad(x, [(1, 1), (0, 0), (0, 0)])
    steps = len(x) - len(w) + 1
    return sum(np.einsum("tbc,co->tbo", x[k:k + steps], w[k]) for k in range(len(w))) + b


def class_cases(C):  # noqa: N803
    f = naru.nn.functional
    return [
        C("multi_margin_loss", lambda x, t, w: f.multi_margin_loss(x, t, 2, weight=w.detach()), lambda x, t, w: _multi_margin(x, t, 2, w).mean(),
          [(7, 5), (7,), (5,)], integers=((1, 5),), extra={"differentiable": [True, False, False]}),
        C("multilabel_margin_loss", lambda x, t: f.multilabel_margin_loss(x, t - 1, reduction="none"), lambda x, t: _multilabel_margin(x, t - 1),
          [(6, 5), (6, 5)], integers=((1, 6),)),
        C("multilabel_soft_margin_loss", lambda x, t, w: f.multilabel_soft_margin_loss(x, t, w, reduction="sum"),
          lambda x, t, w: (-(t * _log_sigmoid(x) + (1 - t) * _log_sigmoid(-x)) * w).mean(1).sum(), [(6, 5), (6, 5), (5,)]),
        C("triplet_margin_with_distance_loss", lambda a, b, c: f.triplet_margin_with_distance_loss(a, b, c, swap=True), _triplet, [(6, 5)] * 3),
        C("ctc_loss", lambda x, t: f.ctc_loss(x.log_softmax(2), t + 1, (9, 7, 8, 9), (4, 0, 2, 3), reduction="none"),
          lambda x, t: _ctc(x, t + 1, (9, 7, 8, 9), (4, 0, 2, 3)), [(9, 4, 4), (4, 4)], integers=((1, 3),), tolerance=40),
        C("ctc_loss behind each other", lambda x, t: f.ctc_loss(x.log_softmax(2), t + 1, [6, 5], [3, 1], reduction="sum"),
          lambda x, t: _ctc(x, [t[:3] + 1, t[3:] + 1], (6, 5), (3, 1)).sum(), [(6, 2, 4), (4,)], integers=((1, 3),), tolerance=40),
        C("linear_cross_entropy", lambda x, w, t, b: f.linear_cross_entropy(x, w, t, linear_bias=b), lambda x, w, t, b: _cross_entropy(x @ w.T + b, t),
          [(8, 6), (5, 6), (8,), (5,)], integers=((2, 5),), tolerance=20),
        C("embedding_bag", lambda w, i: f.embedding_bag(i, w), lambda w, i: w[i].mean(1), [(11, 5), (3, 4)], integers=((1, 11),)),
        C("embedding_bag sum", lambda w, i, s: f.embedding_bag(i, w, naru.tensor([0, 4, 4], device=i.device), mode="sum", per_sample_weights=s),
          lambda w, i, s: np.stack([(w[i[:4]] * s[:4, None]).sum(0), w[0] * 0, (w[i[4:]] * s[4:, None]).sum(0)]),
          [(11, 5), (9,), (9,)], integers=((1, 11),)),
        C("embedding_bag max", lambda w, i: f.embedding_bag(i, w, naru.tensor([0, 4], device=i.device), mode="max", padding_idx=2),
          lambda w, i: _bags(w, i, [4], np.max, 2), [(11, 5), (9,)], integers=((1, 11),)),
        C("embedding scaled", lambda w, i: f.embedding(i, w, scale_grad_by_freq=True), lambda w, i: w[i], [(11, 5), (7,)], integers=((1, 11),),
          gradient=False),
    ]


def pair_cases(C):  # noqa: N803
    f = naru.nn.functional
    pair = [(8, 5), (8, 5)]
    return [
        C("l1_loss", lambda a, b: f.l1_loss(a, b), lambda a, b: np.abs(a - b).mean(), pair),
        C("smooth_l1_loss", lambda a, b: f.smooth_l1_loss(a, b, beta=2.0),
          lambda a, b: np.where(np.abs(a - b) < 2, (a - b) ** 2 / 4, np.abs(a - b) - 1).mean(), pair),
        C("huber_loss", lambda a, b: f.huber_loss(a, b, delta=2.0),
          lambda a, b: np.where(np.abs(a - b) < 2, (a - b) ** 2 / 2, 2 * np.abs(a - b) - 2).mean(), pair),
        C("kl_div", lambda a, b: f.kl_div(a, b, reduction="batchmean"), lambda a, b: (b * (np.log(b) - a)).sum() / 8, pair, 0.1, 2),
        C("binary_cross_entropy", lambda a, b: f.binary_cross_entropy(a, b), lambda a, b: -(b * np.log(a) + (1 - b) * np.log(1 - a)).mean(), pair, 0.1, 0.9),
        C("binary_cross_entropy_with_logits", lambda a, b, w, p: f.binary_cross_entropy_with_logits(a, b, w, pos_weight=p.detach()),
          lambda a, b, w, p: -(w * (p * b * _log_sigmoid(a) + (1 - b) * _log_sigmoid(-a))).mean(), [*pair, (5,), (5,)],
          extra={"differentiable": [True, True, False, False]}),
        C("nll_loss", lambda a, i, w: f.nll_loss(a, i, w.detach()), lambda a, i, w: -(a[np.arange(8), i] * w[i]).sum() / w[i].sum(),
          [(8, 5), (8,), (5,)], 0.5, 2, integers=((1, 5),), extra={"differentiable": [True, False, False]}),
        C("poisson_nll_loss", lambda a, b: f.poisson_nll_loss(a, b, full=True),
          lambda a, b: (np.exp(a) - b * a + np.where(b > 1, b * np.log(b) - b + 0.5 * np.log(2 * np.pi * b), 0)).mean(), pair, 0.1, 3, tolerance=20),
        C("gaussian_nll_loss", lambda a, b, v: f.gaussian_nll_loss(a, b, v, full=True),
          lambda a, b, v: (0.5 * (np.log(v) + (a - b) ** 2 / v) + 0.5 * math.log(2 * math.pi)).mean(), [*pair, (8, 1)], 0.1, 3, tolerance=20),
        C("soft_margin_loss", lambda a, b: f.soft_margin_loss(a, b), lambda a, b: np.logaddexp(0, -a * b).mean(), pair,
          extra={"differentiable": [True, False]}),
        C("hinge_embedding_loss", lambda a, i: f.hinge_embedding_loss(a, 2 * i - 1, 1.5),
          lambda a, i: np.where(i == 1, a, _hinge(1.5 - a)).mean(), pair, integers=((1, 2),)),
        C("margin_ranking_loss", lambda a, b, i: f.margin_ranking_loss(a, b, 2 * i - 1, 0.5),
          lambda a, b, i: _hinge((1 - 2 * i) * (a - b) + 0.5).mean(), [(8, 5)] * 3, integers=((2, 2),)),
        C("cosine_embedding_loss", lambda a, b, i: f.cosine_embedding_loss(a, b, 2 * i - 1, 0.1),
          lambda a, b, i: np.where(i == 1, 1 - _cosine(a, b), _hinge(_cosine(a, b) - 0.1)).mean(), [*pair, (8,)], integers=((2, 2),)),
        C("triplet_margin_loss", lambda a, b, c: f.triplet_margin_loss(a, b, c, swap=True), _triplet, [(6, 5)] * 3),
    ]


def assorted_cases(C):  # noqa: N803
    f = naru.nn.functional
    return [
        C("rrelu", lambda x: f.rrelu(x, 0.2, 0.4), lambda x: np.where(x > 0, x, x * 0.3), [(5, 7)], tolerance=2),
        C("bilinear", lambda a, b, w, c: f.bilinear(a, b, w, c), lambda a, b, w, c: np.einsum("ni,kij,nj->nk", a, w, b) + c,
          [(6, 4), (6, 3), (5, 4, 3), (5,)], tolerance=20),
        C("conv_tbc", lambda x, w, b: f.conv_tbc(x, w, b, 1), _conv_tbc, [(7, 2, 3), (3, 3, 4), (4,)], tolerance=20),
        C("grouped_mm", lambda a, b: naru.nn.functional.grouped_mm(a, b, offs=naru.tensor([3, 8], dtype=naru.int32)),
          lambda a, b: np.concatenate([a[:3] @ b[0], a[3:8] @ b[1]]), [(8, 5), (2, 5, 6)], tolerance=20, extra={"oracle": False}),
        C("softplus of beta", lambda x: f.softplus(x, 2.0), lambda x: np.logaddexp(0, 2 * x) / 2, [(5, 7)]),
        C("glu", lambda x: f.glu(x, 0), lambda x: x[:3] / (1 + np.exp(-x[3:])), [(6, 5)]),
        C("normalize", lambda x: f.normalize(x), lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), [(6, 5)]),
        C("cosine_similarity", lambda a, b: f.cosine_similarity(a, b), lambda a, b: (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)), [(6, 5), (6, 5)]),
    ]


FAMILIES = (class_cases, pair_cases, assorted_cases)


def loss_cases(C):  # noqa: N803
    return [case for family in FAMILIES for case in family(C)]
