"""Operator cases of images: convolution, pooling, normalisation, resampling (see operator_cases.py)."""

from __future__ import annotations

import numpy as np

import naru


def _slices(k, strides, counts):
    """The elements that place k of a window meets, for each dimension."""
    return tuple(slice(p, p + s * (n - 1) + 1, s) for p, s, n in zip(k, strides, counts))


def _conv(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    n = w.ndim - 2
    stride, dilation = (v if isinstance(v, tuple) else (v,) * n for v in (stride, dilation))
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
        amounts = [(t // 2, t - t // 2) for t in totals]
    else:
        amounts = [(p, p) for p in (padding if isinstance(padding, tuple) else (padding,) * n)]
    x = np.pad(x, [(0, 0), (0, 0), *amounts])
    counts = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(x.shape[2:], dilation, w.shape[2:], stride)]
    out = np.zeros((x.shape[0], groups, w.shape[0] // groups, *counts))
    parts = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    weights = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for k in np.ndindex(*w.shape[2:]):
        seen = parts[(slice(None),) * 3 + _slices([p * d for p, d in zip(k, dilation)], stride, counts)]
        out += np.einsum("ngc...,goc->ngo...", seen, weights[(slice(None),) * 3 + k])
    out = out.reshape(x.shape[0], -1, *counts)
    return out if b is None else out + b.reshape(1, -1, *(1,) * n)


def _conv_transpose(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n = w.ndim - 2
    stride, padding, output_padding, dilation = (v if isinstance(v, tuple) else (v,) * n for v in (stride, padding, output_padding, dilation))
    counts = x.shape[2:]
    sizes = [(c - 1) * s + d * (k - 1) + 1 + o for c, s, d, k, o in zip(counts, stride, dilation, w.shape[2:], output_padding)]
    out = np.zeros((x.shape[0], groups, w.shape[1], *sizes))
    parts = x.reshape(x.shape[0], groups, -1, *counts)
    weights = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for k in np.ndindex(*w.shape[2:]):
        at = (slice(None),) * 3 + _slices([p * d for p, d in zip(k, dilation)], stride, counts)
        out[at] += np.einsum("ngc...,gco->ngo...", parts, weights[(slice(None),) * 3 + k])
    out = out.reshape(x.shape[0], -1, *sizes)[(slice(None),) * 2 + tuple(slice(p, s - p) for p, s in zip(padding, sizes))]
    return out if b is None else out + b.reshape(1, -1, *(1,) * n)


def convolution_cases(C):  # noqa: N803
    f = naru.nn.functional
    return [
        C("conv1d", lambda x, w, b: f.conv1d(x, w, b, stride=2, padding=1), lambda x, w, b: _conv(x, w, b, 2, 1),
          [(2, 3, 11), (4, 3, 3), (4,)], tolerance=20),
        C("conv2d", lambda x, w, b: f.conv2d(x, w, b, padding=1), lambda x, w, b: _conv(x, w, b, 1, 1),
          [(2, 3, 9, 8), (5, 3, 3, 3), (5,)], tolerance=30),
        C("conv2d large", lambda x, w: f.conv2d(x, w, padding=1), lambda x, w: _conv(x, w, None, 1, 1),
          [(2, 17, 24, 20), (40, 17, 3, 3)], gradient=False, tolerance=80),
        C("conv2d strided", lambda x, w: f.conv2d(x, w, None, (2, 3), (2, 0)), lambda x, w: _conv(x, w, None, (2, 3), (2, 0)),
          [(2, 4, 10, 11), (6, 4, 5, 3)], tolerance=40),
        C("conv2d dilated groups", lambda x, w, b: f.conv2d(x, w, b, dilation=(2, 1), groups=2),
          lambda x, w, b: _conv(x, w, b, dilation=(2, 1), groups=2), [(2, 4, 9, 8), (6, 2, 3, 3), (6,)], tolerance=20),
        C("conv2d depthwise", lambda x, w: f.conv2d(x, w, padding=1, stride=2, groups=5),
          lambda x, w: _conv(x, w, None, 2, 1, groups=5), [(2, 5, 9, 8), (10, 1, 3, 3)], tolerance=20),
        C("conv2d same", lambda x, w: f.conv2d(x, w, padding="same", dilation=(1, 2)),
          lambda x, w: _conv(x, w, None, 1, "same", (1, 2)), [(2, 3, 6, 7), (4, 3, 4, 2)], tolerance=20),
        C("conv2d pointwise", lambda x, w: f.conv2d(x, w), lambda x, w: _conv(x, w), [(2, 7, 5, 6), (9, 7, 1, 1)], tolerance=20),
        C("conv2d unbatched", lambda x, w: f.conv2d(x, w), lambda x, w: _conv(x[None], w)[0], [(3, 6, 6), (4, 3, 3, 3)], tolerance=20),
        C("conv3d", lambda x, w, b: f.conv3d(x, w, b, stride=(1, 2, 1), padding=1), lambda x, w, b: _conv(x, w, b, (1, 2, 1), 1),
          [(2, 2, 4, 5, 6), (3, 2, 3, 3, 2), (3,)], tolerance=20),
        C("conv_transpose1d", lambda x, w, b: f.conv_transpose1d(x, w, b, 2, 1, 1), lambda x, w, b: _conv_transpose(x, w, b, 2, 1, 1),
          [(2, 3, 7), (3, 4, 3), (4,)], tolerance=20),
        C("conv_transpose2d", lambda x, w, b: f.conv_transpose2d(x, w, b, (2, 3), 1, (1, 0), 2, (1, 2)),
          lambda x, w, b: _conv_transpose(x, w, b, (2, 3), 1, (1, 0), 2, (1, 2)), [(2, 4, 5, 4), (4, 3, 3, 2), (6,)], tolerance=20),
        C("conv_transpose3d", lambda x, w: f.conv_transpose3d(x, w, stride=2), lambda x, w: _conv_transpose(x, w, stride=2),
          [(1, 2, 3, 2, 3), (2, 3, 2, 3, 2)], tolerance=20),
    ]


FAMILIES = (convolution_cases,)


def network_cases(C):  # noqa: N803
    return [case for family in FAMILIES for case in family(C)]
