"""NumPy's side of the benchmark lines."""
import numpy as np


class Side:
    def __init__(self, library, threads, row, report, import_seconds):
        self.report = report
        self.rng = np.random.default_rng(0)

    def run(self, line):
        getattr(self, f"line_{line}", lambda: None)()

    def normal(self, *shape):
        return self.rng.standard_normal(shape, np.float32)

    def line_2(self):
        x, y = self.normal(1), self.normal(1)
        self.report("x + y, n=1, Python", lambda: x + y)

    def line_3(self):
        def touched():
            z = np.zeros(1 << 24, np.float32)
            z[::1024] = 0  # NumPy's zeros are pages not yet there; touching each makes them
        self.report("zeros 64 MiB in a loop", touched)

    def line_4(self):
        half, one, a, b = map(np.float32, (0.5, 1.0, 0.7978845608, 0.044715))
        for n, label in ((1 << 20, "1 M"), (1 << 24, "16 M")):
            x = self.normal(n)
            self.report(f"gelu written out in 9 ops, {label}", lambda: half * x * (one + np.tanh(a * (x + b * x * x * x))), repetitions=5)

    def line_5(self):
        x, y = self.normal(1 << 24), self.normal(1 << 24)
        self.report("x + y, 16 M, fresh output", lambda: x + y)
        self.report("exp, 16 M, fresh output", lambda: np.exp(x))

    def line_6(self):
        v, x = self.normal(1 << 24), self.normal(4096, 1024)
        self.report("sum, 16 M", lambda: v.sum())
        self.report("max, 16 M", lambda: v.max())
        self.report("sum(0), (4096, 1024)", lambda: x.sum(0))
        self.report("var(0), (4096, 1024)", lambda: x.var(0, ddof=1))
        self.report("argmax(1), (4096, 1024)", lambda: x.argmax(1))
        self.report("cumsum(1), (4096, 1024)", lambda: x.cumsum(1))
        self.report("sort(1), (4096, 1024)", lambda: np.sort(x, 1))  # values only: no positions, as the others give

    def line_7(self):
        x = self.normal(4096, 1024)

        def softmax():
            e = np.exp(x - x.max(1, keepdims=True))
            e /= e.sum(1, keepdims=True)
            return e
        self.report("softmax, (4096, 1024)", softmax)

    def line_8(self):
        x = self.normal(4096, 4096)
        self.report("transpose, (4096, 4096)", lambda: np.ascontiguousarray(x.T), repetitions=5)

    def line_9(self):
        for n in (256, 512, 1024, 2048, 4096):
            a, b = self.normal(n, n), self.normal(n, n)
            self.report(f"matmul fp32 {n}", lambda: a @ b, repetitions=5)

    def line_10(self):
        for n in (8, 64):
            a, b = self.normal(n, n), self.normal(n, n)
            self.report(f"matmul fp32 {n}, Python", lambda: a @ b)
        w1, b1, w2, b2 = self.normal(784, 256), self.normal(256), self.normal(256, 10), self.normal(10)
        for n in (1, 64):
            x = self.normal(n, 784)
            self.report(f"MLP 784-256-10 forward, batch {n}", lambda: np.maximum(x @ w1 + b1, 0) @ w2 + b2)

    def line_16(self):
        images, labels = self.normal(8192, 784), self.rng.integers(0, 10, 8192)
        order = self.rng.permutation(8192)
        at = 0

        def batch():
            nonlocal at
            at = (at + 64) % 8192
            rows = order[at : at + 64]
            return images[rows], labels[rows]
        self.report("loader in memory, batch 64, a batch", batch)
