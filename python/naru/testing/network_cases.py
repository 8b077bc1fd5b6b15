"""Operator cases for images: convolution, pooling, normalization, resampling (see operator_cases.py)."""

from __future__ import annotations

import numpy as np

import naru


def _slices(k, strides, counts):
    """The elements that kernel position k meets in all windows, one slice per dimension."""
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
        C("conv2d wide", lambda x, w, b: f.conv2d(x, w, b, padding=1), lambda x, w, b: _conv(x, w, b, 1, 1),
          [(2, 16, 9, 8), (20, 16, 3, 3), (20,)], tolerance=80),
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


def _pooled(x, kernel, stride, padding, dilation, sizes, f):
    """f(elements of the window, their flat indices) at each position."""
    n = x.ndim - 2
    kernel, stride, padding, dilation = (v if isinstance(v, tuple) else (v,) * n for v in (kernel, stride, padding, dilation))
    out = np.empty((*x.shape[:2], *sizes))
    numbers = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    for p in np.ndindex(*sizes):
        at = [[e for e in (p[d] * stride[d] - padding[d] + k * dilation[d] for k in range(kernel[d])) if 0 <= e < x.shape[d + 2]] for d in range(n)]
        seen = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *at)].reshape(*x.shape[:2], -1)
        out[(slice(None), slice(None), *p)] = f(seen, numbers[np.ix_(*at)].reshape(-1))
    return out


def _greatest(seen, _numbers):
    return seen.max(-1)


def _where_greatest(seen, numbers):
    return numbers[seen.argmax(-1)]


def _mean(seen, _numbers):
    return seen.mean(-1)


def _adaptive(x, sizes, f):
    out = np.empty((*x.shape[:2], *sizes))
    for p in np.ndindex(*sizes):
        at = tuple(slice(i * d // s, -(-(i + 1) * d // s)) for i, d, s in zip(p, x.shape[2:], sizes))
        out[(slice(None), slice(None), *p)] = f(x[(slice(None), slice(None), *at)].reshape(*x.shape[:2], -1), None)
    return out


def _unpool(x):
    out = np.zeros_like(x)
    for p in np.ndindex(x.shape[0], x.shape[1], x.shape[2] // 2, x.shape[3] // 2):
        block = x[p[0], p[1], 2 * p[2]:2 * p[2] + 2, 2 * p[3]:2 * p[3] + 2]
        at = np.unravel_index(block.argmax(), (2, 2))
        out[p[0], p[1], 2 * p[2] + at[0], 2 * p[3] + at[1]] = block.max()
    return out


def _fractional(x, sample):
    """Fractional max pooling with 2 x 2 windows, five in each direction."""
    alpha = (x.shape[-1] - 2) / 4
    starts = [int((i + sample) * alpha) - int(sample * alpha) for i in range(4)] + [x.shape[-1] - 2]
    return np.stack([np.stack([x[..., i:i + 2, j:j + 2].max((-1, -2)) for j in starts], -1) for i in starts], -2)


def pooling_cases(C):  # noqa: N803
    f = naru.nn.functional
    return [
        C("max_pool1d", lambda x: f.max_pool1d(x, 3, 2, 1), lambda x: _pooled(x, 3, 2, 1, 1, (5,), _greatest), [(2, 3, 9)]),
        C("max_pool2d", lambda x: f.max_pool2d(x, 3, 2, 1, return_indices=True),
          lambda x: (_pooled(x, 3, 2, 1, 1, (5, 4), _greatest), _pooled(x, 3, 2, 1, 1, (5, 4), _where_greatest).astype(int)), [(2, 3, 9, 8)]),
        C("max_pool2d ceil dilated", lambda x: f.max_pool2d(x, (2, 3), (3, 2), (0, 1), (2, 1), ceil_mode=True),
          lambda x: _pooled(x, (2, 3), (3, 2), (0, 1), (2, 1), (4, 5), _greatest), [(2, 3, 11, 8)]),
        C("max_pool2d large", lambda x: f.max_pool2d(x, 2), lambda x: _pooled(x, 2, 2, 0, 1, (14, 13), _greatest), [(5, 8, 28, 27)]),
        C("max_pool3d", lambda x: f.max_pool3d(x, 2, 2), lambda x: _pooled(x, 2, 2, 0, 1, (2, 2, 3), _greatest), [(1, 2, 5, 4, 6)]),
        C("avg_pool1d", lambda x: f.avg_pool1d(x, 3, 2, 1, count_include_pad=False), lambda x: _pooled(x, 3, 2, 1, 1, (5,), _mean), [(2, 3, 10)]),
        C("avg_pool2d", lambda x: f.avg_pool2d(x, 3, 2, 1), lambda x: _pooled(x, 3, 2, 1, 1, (5, 4), lambda s, _: s.sum(-1) / 9), [(2, 3, 9, 8)]),
        C("avg_pool2d ceil", lambda x: f.avg_pool2d(x, 2, ceil_mode=True), lambda x: _pooled(x, 2, 2, 0, 1, (5, 4), _mean), [(2, 3, 9, 8)]),
        C("avg_pool2d wide", lambda x: f.avg_pool2d(x, 9, 1, divisor_override=7),
          lambda x: _pooled(x, 9, 1, 0, 1, (8, 9), lambda s, _: s.sum(-1) / 7), [(2, 3, 16, 17)], tolerance=40),
        C("avg_pool3d", lambda x: f.avg_pool3d(x, (2, 1, 3)), lambda x: _pooled(x, (2, 1, 3), (2, 1, 3), 0, 1, (2, 4, 2), _mean), [(1, 2, 4, 4, 6)]),
        C("adaptive_avg_pool1d", lambda x: f.adaptive_avg_pool1d(x, 4), lambda x: _adaptive(x, (4,), _mean), [(2, 3, 10)]),
        C("adaptive_avg_pool2d", lambda x: f.adaptive_avg_pool2d(x, (3, None)), lambda x: _adaptive(x, (3, 8), _mean), [(2, 3, 7, 8)]),
        C("adaptive_avg_pool3d", lambda x: f.adaptive_avg_pool3d(x, 1), lambda x: _adaptive(x, (1, 1, 1), _mean), [(1, 2, 4, 3, 5)], tolerance=20),
        C("adaptive_max_pool2d", lambda x: f.adaptive_max_pool2d(x, (3, 5)), lambda x: _adaptive(x, (3, 5), _greatest), [(2, 3, 7, 8)]),
        C("lp_pool2d", lambda x: f.lp_pool2d(x, 3, 2), lambda x: _pooled(x, 2, 2, 0, 1, (3, 4), lambda s, _: (s ** 3).sum(-1) ** (1 / 3)),
          [(2, 3, 6, 8)], 0.5, 2, tolerance=20),
        C("max_unpool2d", lambda x: f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2), _unpool, [(2, 3, 6, 8)]),
        C("fractional_max_pool2d", lambda x: f.fractional_max_pool2d(x, 2, 5, _random_samples=naru.full((2, 3, 2), 0.4, dtype=x.dtype, device=x.device)),
          lambda x: _fractional(x, 0.4), [(2, 3, 9, 9)]),
    ]


def _normalised(x, dims, w=None, b=None):
    y = (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + 1e-5)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return y if w is None else y * w.reshape(shape) + b.reshape(shape)


def _response(x, size, alpha, beta, k):
    squares = np.pad(x ** 2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0), (0, 0)])
    sums = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return x / (k + alpha * sums / size) ** beta


def normalisation_cases(C):  # noqa: N803
    f = naru.nn.functional
    return [
        C("batch_norm", lambda x, w, b: f.batch_norm(x, None, None, w, b, True), lambda x, w, b: _normalised(x, (0, 2, 3), w, b),
          [(4, 3, 5, 6), (3,), (3,)], tolerance=20),
        # (Transposed: with a row repeated through stride 0, each channel must still have a variance.)
        C("batch_norm (N, C)", lambda x: f.batch_norm(x.t(), None, None, training=True), lambda x: _normalised(x.T, (0,)), [(5, 9)],
          tolerance=20),
        C("batch_norm eval", lambda x, w, b: f.batch_norm(x, (w * 0 + 0.5).detach(), (w * 0 + 2).detach(), w, b),
          lambda x, w, b: (x - 0.5) / np.sqrt(2 + 1e-5) * w.reshape(1, 3, 1) + b.reshape(1, 3, 1), [(4, 3, 5), (3,), (3,)]),
        C("instance_norm", lambda x: f.instance_norm(x), lambda x: _normalised(x, (2, 3)), [(3, 4, 5, 6)], tolerance=20),
        C("group_norm", lambda x, w, b: f.group_norm(x, 2, w, b),
          lambda x, w, b: _normalised(x.reshape(3, 2, -1), (2,)).reshape(x.shape) * w.reshape(1, 4, 1, 1) + b.reshape(1, 4, 1, 1),
          [(3, 4, 5, 6), (4,), (4,)], tolerance=20),
        C("local_response_norm", lambda x: f.local_response_norm(x, 4, 0.1, 0.75, 2.0), lambda x: _response(x, 4, 0.1, 0.75, 2.0), [(2, 7, 4, 3)]),
    ]


def _matrix(size, out, weights):
    """The matrix whose row p has the (element, weight) pairs of weights(p)."""
    m = np.zeros((out, size))
    for p in range(out):
        for e, w in weights(p):
            m[p, min(max(e, 0), size - 1)] += w
    return m


def _scale(size, out, align):
    return (size - 1) / (out - 1) if align else size / out


def _linear_matrix(size, out, align):
    s = _scale(size, out, align)

    def weights(p):
        at = s * p if align else max(s * (p + 0.5) - 0.5, 0)
        return [(int(at), 1 - at % 1), (int(at) + 1, at % 1)]
    return _matrix(size, out, weights)


def _keys(x, a):
    x = abs(x)
    return ((a + 2) * x - (a + 3)) * x * x + 1 if x < 1 else (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0


def _cubic_matrix(size, out, align):
    s = _scale(size, out, align)

    def weights(p):
        at = s * p if align else s * (p + 0.5) - 0.5
        return [(int(np.floor(at)) + k, _keys(at - np.floor(at) - k, -0.75)) for k in range(-1, 3)]
    return _matrix(size, out, weights)


def _smooth_matrix(size, out, filter, reach):
    s = size / out
    wide = max(s, 1)

    def weights(p):
        centre = s * (p + 0.5)
        seen = range(max(int(centre - reach * wide + 0.5), 0), min(int(centre + reach * wide + 0.5), size))
        found = [(e, filter((e - centre + 0.5) / wide)) for e in seen]
        return [(e, w / sum(w for _, w in found)) for e, w in found]
    return _matrix(size, out, weights)


def _along(x, *matrices):
    for d, m in enumerate(matrices):
        x = np.moveaxis(np.tensordot(m, x, (1, x.ndim - len(matrices) + d)), 0, x.ndim - len(matrices) + d)
    return x


def _nearest(x, sizes, half):
    for d, s in enumerate(sizes):
        x = np.take(x, [int((p + half) * x.shape[d + 2] / s) for p in range(s)], d + 2)
    return x


def _unfolded(x, k, dilation, padding, stride):
    x = np.pad(x, [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    counts = [(s - dilation * (k - 1) - 1) // stride + 1 for s in x.shape[2:]]
    parts = [x[(slice(None),) * 2 + _slices([i * dilation, j * dilation], (stride,) * 2, counts)] for i in range(k) for j in range(k)]
    return np.stack(parts, 2).reshape(x.shape[0], x.shape[1] * k * k, -1)


def _folded(c, sizes, k):
    counts = [s - k + 1 for s in sizes]
    parts = c.reshape(c.shape[0], -1, k, k, *counts)
    out = np.zeros((c.shape[0], parts.shape[1], *sizes))
    for i, j in np.ndindex(k, k):
        out[:, :, i:i + counts[0], j:j + counts[1]] += parts[:, :, i, j]
    return out


def _sampled(x, grid, inside, weights, reach):
    """Grid sampling. inside(p, size) applies the padding mode; weights(t) are those of the elements floor(p) + reach."""
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n in np.ndindex(grid.shape[0], *grid.shape[1:-1]):
        places = [((g + 1) * s - 1) / 2 for g, s in zip(grid[n][::-1], x.shape[2:])]
        if weights is not _keys_weights:
            places = [inside(p, s) for p, s in zip(places, x.shape[2:])]
        low = [int(np.floor(p)) for p in places]
        each = [weights(p - q) for p, q in zip(places, low)]
        for k in np.ndindex(*(len(reach),) * len(places)):
            at = [q + reach[i] for q, i in zip(low, k)]
            if weights is _keys_weights:
                at = [int(inside(a, s)) for a, s in zip(at, x.shape[2:])]
            if all(0 <= a < s for a, s in zip(at, x.shape[2:])):
                out[(n[0], slice(None), *n[1:])] += x[(n[0], slice(None), *at)] * np.prod([e[i] for e, i in zip(each, k)])
    return out


def _keys_weights(t):
    return [_keys(t + 1, -0.75), _keys(t, -0.75), _keys(1 - t, -0.75), _keys(2 - t, -0.75)]


def _linear_weights(t):
    return [1 - t, t]


def _nearest_weights(t):
    return [float(t <= 0.5), float(t > 0.5)]


def _anywhere(p, _size):
    return p


def _at_border(p, size):
    return min(max(p, 0), size - 1)


def _reflected(p, size):
    p = abs(p + 0.5)
    flips, extra = divmod(p, size)
    return _at_border(extra - 0.5 if flips % 2 == 0 else size - extra - 0.5, size)


def resampling_cases(C):  # noqa: N803
    f = naru.nn.functional
    triangle = lambda x: max(1 - abs(x), 0)  # noqa: E731
    return [
        C("pad", lambda x: f.pad(x, (1, 2, -1, 3), value=0.5),
          lambda x: np.pad(x[:, 1:], [(0, 0), (0, 3), (1, 2)], constant_values=0.5), [(2, 4, 5)]),
        C("pad reflect", lambda x: f.pad(x, (1, 2, 3, 0), "reflect"), lambda x: np.pad(x, [(0, 0), (0, 0), (3, 0), (1, 2)], "reflect"), [(2, 3, 4, 5)]),
        C("pad replicate", lambda x: f.pad(x, (1, 7, 3, 0, 0, 1), "replicate"),
          lambda x: np.pad(x, [(0, 0), (0, 0), (0, 1), (3, 0), (1, 7)], "edge"), [(1, 2, 2, 4, 5)]),
        C("pad circular", lambda x: f.pad(x, (2, 3), "circular"), lambda x: np.pad(x, [(0, 0), (0, 0), (2, 3)], "wrap"), [(2, 3, 5)]),
        C("interpolate nearest", lambda x: f.interpolate(x, (7, 3)), lambda x: _nearest(x, (7, 3), 0), [(2, 3, 4, 5)]),
        C("interpolate nearest-exact", lambda x: f.interpolate(x, 7, mode="nearest-exact"), lambda x: _nearest(x, (7,), 0.5), [(2, 3, 4)]),
        C("interpolate linear", lambda x: f.interpolate(x, 9, mode="linear"), lambda x: _along(x, _linear_matrix(5, 9, False)), [(2, 3, 5)]),
        C("interpolate bilinear", lambda x: f.interpolate(x, scale_factor=2, mode="bilinear"),
          lambda x: _along(x, _linear_matrix(6, 12, False), _linear_matrix(5, 10, False)), [(2, 3, 6, 5)]),
        C("interpolate bilinear corners", lambda x: f.interpolate(x, (9, 3), mode="bilinear", align_corners=True),
          lambda x: _along(x, _linear_matrix(6, 9, True), _linear_matrix(5, 3, True)), [(2, 3, 6, 5)]),
        C("interpolate bicubic", lambda x: f.interpolate(x, (9, 3), mode="bicubic"),
          lambda x: _along(x, _cubic_matrix(6, 9, False), _cubic_matrix(5, 3, False)), [(2, 3, 6, 5)]),
        C("interpolate trilinear", lambda x: f.interpolate(x, (3, 5, 4), mode="trilinear", align_corners=True),
          lambda x: _along(x, _linear_matrix(2, 3, True), _linear_matrix(3, 5, True), _linear_matrix(4, 4, True)), [(2, 2, 2, 3, 4)]),
        C("interpolate area", lambda x: f.interpolate(x, (3, 2), mode="area"), lambda x: _adaptive(x, (3, 2), _mean), [(2, 3, 7, 5)]),
        C("interpolate antialias", lambda x: f.interpolate(x, (4, 9), mode="bilinear", antialias=True),
          lambda x: _along(x, _smooth_matrix(11, 4, triangle, 1), _smooth_matrix(6, 9, triangle, 1)), [(2, 3, 11, 6)]),
        C("interpolate bicubic antialias", lambda x: f.interpolate(x, (4, 9), mode="bicubic", antialias=True),
          lambda x: _along(x, *(_smooth_matrix(a, b, lambda v: _keys(v, -0.5), 2) for a, b in ((11, 4), (6, 9)))), [(2, 3, 11, 6)], tolerance=20),
        C("unfold", lambda x: f.unfold(x, 3, 2, 1, 2), lambda x: _unfolded(x, 3, 2, 1, 2), [(2, 3, 8, 7)]),
        C("fold", lambda x: f.fold(x, (5, 6), 2), lambda x: _folded(x, (5, 6), 2), [(2, 12, 20)]),
        C("grid_sample", lambda x, g: f.grid_sample(x, g, align_corners=False),
          lambda x, g: _sampled(x, g, _anywhere, _linear_weights, (0, 1)), [(2, 3, 5, 6), (2, 3, 4, 2)], -1.3, 1.3),
        C("grid_sample border 3d", lambda x, g: f.grid_sample(x, g, padding_mode="border", align_corners=False),
          lambda x, g: _sampled(x, g, _at_border, _linear_weights, (0, 1)), [(1, 2, 3, 4, 3), (1, 2, 2, 3, 3)], -1.3, 1.3),
        C("grid_sample nearest", lambda x, g: f.grid_sample(x, g.detach(), "nearest", "reflection", False),
          lambda x, g: _sampled(x, g, _reflected, _nearest_weights, (0, 1)), [(2, 3, 5, 6), (2, 3, 4, 2)], -1.9, 1.9, extra={"differentiable": [True, False]}),
        C("grid_sample bicubic", lambda x, g: f.grid_sample(x, g, "bicubic", "border", False),
          lambda x, g: _sampled(x, g, _at_border, _keys_weights, (-1, 0, 1, 2)), [(1, 2, 5, 6), (1, 3, 4, 2)], -1.3, 1.3, tolerance=20),
        C("affine_grid", lambda t: f.affine_grid(t, (2, 1, 3, 4), align_corners=False),
          lambda t: np.einsum("hwk,njk->nhwj", np.stack([*np.meshgrid((np.arange(4) + 0.5) / 2 - 1, (np.arange(3) + 0.5) / 1.5 - 1), np.ones((3, 4))], -1), t),
          [(2, 2, 3)]),
        C("pixel_shuffle", lambda x: f.pixel_shuffle(x, 2),
          lambda x: x.reshape(2, 3, 2, 2, 4, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 8, 10), [(2, 12, 4, 5)]),
        C("pixel_unshuffle", lambda x: f.pixel_unshuffle(x, 2),
          lambda x: x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3), [(2, 3, 4, 6)]),
        C("channel_shuffle", lambda x: f.channel_shuffle(x, 3), lambda x: x.reshape(2, 3, 2, 4, 5).swapaxes(1, 2).reshape(x.shape), [(2, 6, 4, 5)]),
    ]


FAMILIES = (convolution_cases, pooling_cases, normalisation_cases, resampling_cases)


def network_cases(C):  # noqa: N803
    return [case for family in FAMILIES for case in family(C)]
