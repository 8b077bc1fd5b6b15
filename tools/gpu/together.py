"""Tests naru and PyTorch in one process, imported in either order: memory shared in both directions, and that shared memory is not reused while the
borrower's stream still reads it. The exit status is 1 if something is wrong."""

import subprocess
import sys

BOTH = """
import {first}, {second}
import torch, naru
print("{first} first:", naru.cuda.is_available(), torch.cuda.is_available())
a = torch.randn(512, 512, device="cuda")
b = naru.from_dlpack(a)
assert abs(float((a @ a).sum()) / float((b @ b).sum()) - 1) < 1e-3, "a product of what PyTorch lent"
c = naru.randn(512, 512, device="cuda")
d = torch.from_dlpack(c)
assert torch.equal(d.cpu(), torch.from_numpy(c.cpu().numpy())), "what naru lent"
bad, big = 0, torch.randn(8192, 8192, device="cuda")
for i in range(60):
    x = naru.full((1 << 24,), float(i), device="cuda")
    y = torch.from_dlpack(x)
    for _ in range(3):
        big @ big  # PyTorch's stream is busy, so that the read below comes late
    z = y.clone()
    del x, y  # naru has the memory back; PyTorch has not read it yet
    w = naru.full((1 << 24,), -1.0, device="cuda")
    naru.cuda.synchronize()
    bad += int((z != i).any())
    del w
print("lent memory overwritten before it was read:", bad, "of 60")
try:
    import cupy
except ImportError as error:
    print("cupy: not here")
else:
    e = cupy.from_dlpack(c)
    f = naru.from_dlpack(e * 2)
    assert bool((f == c * 2).all()), "what CuPy lent"
    print("cupy: right")
sys = __import__("sys")
sys.exit(bad > 0)
"""

status = 0
for first, second in (("torch", "naru"), ("naru", "torch")):
    done = subprocess.run([sys.executable, "-c", BOTH.format(first=first, second=second)], capture_output=True, text=True, timeout=120)
    status |= done.returncode
    print(done.stdout.strip() or "nothing said", "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-600:]}", flush=True)
sys.exit(status)
