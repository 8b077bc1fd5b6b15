"""Collectives and training in two processes, compared with PyTorch's gloo backend. `./run test --torch` runs this in PyTorch's environment."""
import json
import os
import subprocess
import sys

import pytest

if os.environ.get("NARU_ORACLE") != "torch":
    pytest.skip("PyTorch is compared with by ./run test --torch only", allow_module_level=True)

pytest.importorskip("torch")

PROGRAM = """
import importlib, json, os, sys, tempfile
torch, dist, mp = (importlib.import_module(sys.argv[1] + name) for name in ("", ".distributed", ".multiprocessing"))

def numbers(shape, k):
    count = 1
    for n in shape:
        count *= n
    return (torch.sin(torch.arange(count, dtype=torch.float32) * k) * 0.3).reshape(shape)

def work(rank, size, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=size)
    net = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.Tanh(), torch.nn.Linear(20, 3))
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(numbers(tuple(p.shape), i + 1.3))
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    found = []
    for step in range(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(numbers((8, 6), 0.7 + step)[rank::size]), (torch.arange(8) % 3)[rank::size])
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        found.append(mean.item() / size)
    for op in ("SUM", "PRODUCT", "MIN", "MAX"):
        x = numbers((5,), 0.9) + rank
        dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
        found += x.tolist()
    if rank == 0:
        print(json.dumps(found))
    dist.destroy_process_group()

with tempfile.TemporaryDirectory() as folder:
    mp.start_processes(work, args=(2, os.path.join(folder, "store")), nprocs=2, start_method="fork")
"""


def test_two_processes_train_as_with_gloo():
    ours, theirs = (
        json.loads(subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM, name], capture_output=True, text=True, check=True, timeout=200).stdout)
        for name in ("naru", "torch")
    )
    assert ours == pytest.approx(theirs, rel=0, abs=5e-7)
