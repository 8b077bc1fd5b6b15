"""all_reduce from 4 B to 64 MiB in 2 and 4 processes, and a step of DistributedDataParallel, beside PyTorch's gloo.

python bench/distributed.py [--peer PYTHON] [--rounds N] [--json] prints medians in µs. PYTHON: of an environment with PyTorch (default: .venv-peers). Both
sides run the same code (`side` below), in turn, a round each. An all_reduce's time is the slowest rank's, between two barriers.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = [4, 64, 1024, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]




def count_for(dist, torch, call, seconds):
    """As many calls on all ranks: the first tells."""
    call(), call()
    start = time.perf_counter()
    call()
    n = torch.tensor([max(3, min(2000, int(seconds / max(time.perf_counter() - start, 1e-6))))])
    dist.broadcast(n, src=0)
    return int(n)


def slowest(dist, torch, call, seconds):
    n = count_for(dist, torch, call, seconds)
    times = []
    for _ in range(3):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(n):
            call()
        mine = torch.tensor([(time.perf_counter() - start) / n])
        dist.all_reduce(mine, op=dist.ReduceOp.MAX)
        times.append(mine.item() * 1e6)
    return statistics.median(times)


def network(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))


def step_of(torch, model, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x, y = torch.randn(batch, 784), torch.randint(0, 10, (batch,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def work(rank, size, path, seconds, torch):
    dist = torch.distributed
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    found = {}
    for n in SIZES:
        x = torch.zeros(n // 4)
        found[f"all_reduce {n} B"] = slowest(dist, torch, lambda: dist.all_reduce(x), seconds)
    if size == 2:
        alone = network(torch)
        gradients = torch.zeros(sum(p.numel() for p in alone.parameters()))
        found["half batch alone"] = slowest(dist, torch, step_of(torch, alone, 32), seconds)
        found["all_reduce of the gradients"] = slowest(dist, torch, lambda: dist.all_reduce(gradients), seconds)
        shared = torch.nn.parallel.DistributedDataParallel(network(torch))
        found["step, DistributedDataParallel"] = slowest(dist, torch, step_of(torch, shared, 32), seconds)
    if rank == 0:
        print(json.dumps({"version": str(torch.__version__), "times": found}), flush=True)
    dist.destroy_process_group()


def side(name, size, seconds):
    """One round of one side, in `size` processes."""
    if name == "naru":
        sys.path.insert(0, str(ROOT / "python"))
        import naru as torch
        import naru.distributed
        import naru.multiprocessing as mp
    else:
        import torch
        import torch.distributed
        import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, args=(size, os.path.join(folder, "store"), seconds, torch), nprocs=size, start_method="fork")


def rounds(python, name, size, seconds):
    command = [python, __file__, "--side", name, "--size", str(size), "--seconds", str(seconds)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=str(ROOT / ".venv-peers/bin/python"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--sizes", default="2,4")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--side")
    parser.add_argument("--size", type=int, default=2)
    options = parser.parse_args()
    if options.side:
        return side(options.side, options.size, options.seconds)
    rows = []
    for size in map(int, options.sizes.split(",")):
        told = {"naru": [], "gloo": []}
        for _ in range(options.rounds):
            told["naru"].append(rounds(sys.executable, "naru", size, options.seconds))
            told["gloo"].append(rounds(options.peer, "gloo", size, options.seconds))
        for work_name in told["naru"][0]["times"]:
            mine, theirs = (statistics.median(t["times"][work_name] for t in told[name]) for name in ("naru", "gloo"))
            rows.append(
                {"work": work_name, "processes": size, "naru": round(mine, 2), "peer": "gloo", "version": told["gloo"][0]["version"],
                 "peer_median": round(theirs, 2), "ratio": round(theirs / mine, 2)}
            )  # fmt: skip
    if options.json:
        return print(json.dumps(rows, indent=1))
    for r in rows:
        print(f"{r['processes']} processes  {r['work']:32}  naru {r['naru']:11.1f}  {r['peer']} {r['version']} {r['peer_median']:11.1f}  {r['ratio']:6.2f} x")


if __name__ == "__main__":
    main()
