"""The exercise: two square matrices on each device of the machine, multiplied ten times and timed (smaller here)."""
import time

import torch

size = 256
devices = ["cpu"]
if torch.cuda.is_available():
    devices += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
if torch.backends.mps.is_available():
    devices.append("mps")
torch.manual_seed(0)
a_cpu, b_cpu = torch.randn(size, size), torch.randn(size, size)
expected = a_cpu.double() @ b_cpu.double()
for device in devices:
    a, b = a_cpu.to(device), b_cpu.to(device)
    start = time.perf_counter()
    for _ in range(10):
        c = a @ b
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    elif device == "mps":
        torch.mps.synchronize()
    seconds = time.perf_counter() - start
    print(f"{device}: {10 * 2 * size**3 / seconds / 1e9:.1f} GFLOP/s")
    assert str(c.device) == ("mps:0" if device == "mps" else device)
    assert (c.cpu().double() - expected).abs().max() < 1e-3
assert len(devices) == 1 + torch.cuda.device_count() + torch.mps.device_count()
