"""One program, run on NumPy arrays and on tensors."""
import numpy as np

import naru

# A tiny matrix, and one above the size up to which the cpu works immediately, so that nodes are deferred and fused.
SHAPES = [(4, 6), (80, 90)]

VIEWS = [
    lambda a: a[1:], lambda a: a[:, ::2], lambda a: a.T, lambda a: a[0], lambda a: a[..., -1], lambda a: a[:2, 1:3],
]
INPLACE = [
    lambda a, b: a.__iadd__(b), lambda a, b: a.__isub__(b), lambda a, b: a.__imul__(b), lambda a, b: a.__iadd__(1.5),
    lambda a, b: a.__imul__(-0.5), lambda a, b: a.__isub__(2.0),
]
NEW = [
    lambda a, b: a + b, lambda a, b: a - b * 0.5, lambda a, b: a * b, lambda a, b: abs(a) + b, lambda a, b: -a, lambda a, b: (a + 1) * (b - 1),
]


def overlaps(a, b):
    return np.shares_memory(a, b)


def broadcasts(a, b, onto=None):
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return onto is None or shape == onto


class Both:
    """The same program's state twice."""

    def __init__(self, shape, device):
        rng = np.random.default_rng(3)
        first = rng.integers(-4, 5, shape).astype(np.float64)
        self.device = device
        self.arrays = [first, first.copy()]
        self.tensors = [naru.tensor(a, device=device) for a in self.arrays]

    def put(self, array, tensor):
        if array.ndim and array.size and len(self.arrays) < 8:
            self.arrays.append(array)
            self.tensors.append(tensor)

    def run(self, kind, i, j, k, n):
        a, b = self.arrays[i % len(self.arrays)], self.arrays[j % len(self.arrays)]
        s, t = self.tensors[i % len(self.tensors)], self.tensors[j % len(self.tensors)]
        if kind == "new" and broadcasts(a, b):
            self.put(NEW[k](a, b), NEW[k](s, t))
        elif kind == "view" and a.ndim == 2:
            self.put(VIEWS[k](a), VIEWS[k](s))
        elif kind == "inplace" and broadcasts(a, b, a.shape) and (a is b or not overlaps(a, b)):
            INPLACE[k](a, b)
            INPLACE[k](s, t)
        elif kind == "assign" and a.ndim == 2:
            a[: k + 1, ::2] = n
            s[: k + 1, ::2] = n
        elif kind == "mask":
            a[a > n] = n - 0.5
            s[s > n] = n - 0.5
        elif kind == "positions":
            where = np.arange(a.shape[0])[:: k + 1]
            a[where] = n
            s[naru.tensor(where, device=self.device)] = n
        elif kind == "reduce" and a.ndim == 2:
            self.put(a.sum(k % 2), s.sum(k % 2))
        elif kind == "op_reduce" and broadcasts(a, b) and NEW[k](a, b).ndim == 2:
            self.put(NEW[k](a, b).sum(n % 2) * 0.5, NEW[k](s, t).sum(n % 2) * 0.5)
        elif kind == "cat" and a.ndim and a.ndim == b.ndim and a.shape[1:] == b.shape[1:] and a.size + b.size < 50000:
            self.put(np.concatenate([a, b]), naru.cat([s, t]))
        elif kind == "copy":
            self.put(a.copy(), s.clone())

    def check(self):
        for a, t in zip(self.arrays, self.tensors):
            assert tuple(t.shape) == a.shape
            np.testing.assert_allclose(t.cpu().numpy(), a, rtol=1e-12, atol=1e-9 * max(1.0, np.abs(a[np.isfinite(a)]).max(initial=0)))
