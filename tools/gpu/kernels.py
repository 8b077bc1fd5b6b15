"""python kernels.py WHAT [naru|torch]: lists the kernels of one step of the library on cuda, by name, with their times. They are recorded by
CUPTI through PyTorch's profiler, which sees all launches of its process. WHAT: cross_entropy, softmax, layer_norm, batch_norm, or a step of
training.py's: mlp, gpt, resnet."""

import collections
import importlib
import sys

import torch
from torch.profiler import ProfilerActivity, profile

LIBRARY = "".join(sys.argv[2:3]) or "naru"
t = importlib.import_module(LIBRARY)
F, D, BF16 = t.nn.functional, "cuda", t.bfloat16


def normal(*sizes, dtype=t.float32):
    return t.randn(*sizes, device=D).to(dtype)


def cross_entropy():
    x, y = normal(4096, 50257, dtype=BF16).requires_grad_(), t.randint(0, 50257, (4096,), device=D)
    return lambda: t.autograd.grad(F.cross_entropy(x, y), x)


def softmax():
    x = normal(64, 50257)
    return lambda: x.softmax(1)


def layer_norm():
    x, w, b = normal(8192, 1024, dtype=BF16).requires_grad_(), normal(1024, dtype=BF16).requires_grad_(), normal(1024, dtype=BF16).requires_grad_()
    g = normal(8192, 1024, dtype=BF16)
    return lambda: t.autograd.grad(F.layer_norm(x, (1024,), w, b), (x, w, b), g)


def batch_norm():
    m = t.nn.BatchNorm2d(64).to(D)
    x = normal(128, 64, 112, 112, dtype=BF16).to(memory_format=t.channels_last).requires_grad_()
    g = t.randn_like(x.detach())

    def step():
        with t.autocast(D, dtype=BF16):
            y = t.relu(m(x))
        return t.autograd.grad(y, (x, *m.parameters()), g)

    return step


def main(what):
    if what in ("mlp", "gpt", "resnet"):
        from training import training

        step = training(LIBRARY, what).step
    else:
        step = {f.__name__: f for f in (cross_entropy, softmax, layer_norm, batch_norm)}[what]()
    for _ in range(2):
        kept = step()
        t.cuda.synchronize()
    torch.zeros(1, device="cuda")  # PyTorch's own initialization
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        kept = step()
        t.cuda.synchronize()
        torch.cuda.synchronize()
    del kept
    rows = collections.defaultdict(lambda: [0, 0.0])
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            row = rows[event.name[:110]]
            row[0] += 1
            row[1] += event.device_time
    count, total = (sum(r[i] for r in rows.values()) for i in (0, 1))
    print(f"{LIBRARY} {what}: {count} kernels and copies, {total / 1e3:.2f} ms on the device")
    for name, (count, us) in sorted(rows.items(), key=lambda r: -r[1][1])[:24]:
        print(f"  {us / 1e3:9.3f} ms {count:5d}  {name}")


if __name__ == "__main__":
    main(sys.argv[1])
