"""The work of each benchmark line, once for naru and PyTorch (their API is one) and once for NumPy.

python work.py LIBRARY LINE THREADS prints one JSON object per work: {"work": ..., "seconds": ...}. Run by run.py, each library in a process of its own.
"""
import json
import os
import sys

LIBRARY, LINE, THREADS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NARU_NUM_THREADS"):
    os.environ[name] = str(THREADS)

from timing import median_seconds  # noqa: E402


def report(work, call, **options):
    print(json.dumps({"work": work, "seconds": median_seconds(call, **options)}), flush=True)


def numpy_lines():
    import numpy as np
    rng = np.random.default_rng(0)

    def gelu(x):
        return np.float32(0.5) * x * (np.float32(1.0) + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))

    if LINE == 2:
        x, y = rng.random(1, np.float32), rng.random(1, np.float32)
        report("x + y, n=1, Python", lambda: x + y)
    elif LINE == 3:
        def touched():
            z = np.zeros(1 << 24, np.float32)
            z[:: 1024] = 0  # NumPy's zeros are pages not yet there; touching each makes them
        report("zeros 64 MiB in a loop", touched)
    elif LINE == 4:
        for n, label in ((1 << 20, "1 M"), (1 << 24, "16 M")):
            x = rng.standard_normal(n).astype(np.float32)
            report(f"gelu written out in 9 ops, {label}", lambda: gelu(x), repetitions=5)
    elif LINE == 5:
        x, y = rng.random(1 << 24, np.float32), rng.random(1 << 24, np.float32)
        report("x + y, 16 M, fresh output", lambda: x + y)
        report("exp, 16 M, fresh output", lambda: np.exp(x))
    elif LINE == 9:
        for n in (256, 512, 1024, 2048, 4096):
            a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
            report(f"matmul fp32 {n}", lambda: a @ b, repetitions=5)


def torch_lines():
    if LIBRARY == "naru":
        import naru as torch
    else:
        import torch
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    # naru holds elementwise work back; reading one element's memory address makes it run, and costs PyTorch next to nothing.
    done = torch.Tensor.data_ptr

    def gelu(x):
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    if LINE == 2:
        x, y = torch.rand(1), torch.rand(1)
        xr = torch.rand(1, requires_grad=True)
        report("x + y, n=1, Python", lambda: x + y)
        report("x + y, n=1, requires_grad, Python", lambda: xr + y)

        def backward():
            (xr * y).sum().backward()
            xr.grad = None
        report("(x * y).sum().backward(), n=1, Python", backward)
    elif LINE == 3:
        report("zeros 64 MiB in a loop", lambda: done(torch.zeros(1 << 24)))
    elif LINE == 4:
        for n, label in ((1 << 20, "1 M"), (1 << 24, "16 M")):
            x = torch.randn(n)
            report(f"gelu written out in 9 ops, {label}", lambda: done(gelu(x)), repetitions=5)
    elif LINE == 5:
        x, y = torch.randn(1 << 24), torch.randn(1 << 24)
        report("x + y, 16 M, fresh output", lambda: done(x + y))
        report("exp, 16 M, fresh output", lambda: done(torch.exp(x)))
    elif LINE == 9:
        for n in (256, 512, 1024, 2048, 4096):
            a, b = torch.randn(n, n), torch.randn(n, n)
            report(f"matmul fp32 {n}", lambda: done(a @ b), repetitions=5)
    elif LINE == 12:
        X, Y = torch.randn(64, 784), torch.randint(0, 10, (64,))
        for label, optimizer in (("SGD", torch.optim.SGD), ("Adam", torch.optim.Adam)):
            model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
            opt = optimizer(model.parameters(), lr=1e-6)

            def step():
                opt.zero_grad()
                F.cross_entropy(model(X), Y).backward()
                opt.step()
            report(f"MLP 784-256-10 training step, batch 64, {label}", step, warm=10)
            for p in model.parameters():
                done(p)


(numpy_lines if LIBRARY == "numpy" else torch_lines)()
