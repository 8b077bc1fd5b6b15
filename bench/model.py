"""A model of collectives, its constants measured here, and what it says of more ranks and hosts than there are.

python bench/model.py prints: processor time of a call by each of 4 to 64 ranks on this host, measured and predicted from the first two; then times for one
rank on each of 64 and 4,096 hosts. (Processor time, which other work on the machine does not add to; so the ranks need not have a processor each.)

The model is LogGP's: a message costs o of processor time on each side, plus G for a byte that is copied and S for one that is summed; between hosts it takes
L, and 1 / bandwidth for a byte. w is what a rank's own call costs, its sleep and waking included. naru sends each message directly: what it does in a
call is known, so there is nothing else to fit.
"""
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RANKS = (4, 8, 16, 32, 64)
LARGE = 4 << 20
LATENCY, BANDWIDTH = 5e-6, 25e9 / 8  # assumed: of a network of 25 Gb/s


def seconds_used():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rank_of(rank, size, path):
    import naru as torch
    import naru.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    found = {}
    x, y = torch.zeros(256), torch.zeros(LARGE // 4)
    for name, call, count in (("barrier", dist.barrier, 400), ("1 KiB", lambda: dist.all_reduce(x), 400), ("4 MiB", lambda: dist.all_reduce(y), 8)):
        call()
        before = seconds_used()
        for _ in range(count):
            call()
        mean = torch.tensor([(seconds_used() - before) / count], dtype=torch.float64)
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        found[name] = mean.item()
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def side(size):
    sys.path.insert(0, str(ROOT / "python"))
    import naru
    import naru.distributed
    import naru.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        naru.multiprocessing.start_processes(rank_of, args=(size, os.path.join(folder, "store")), nprocs=size, start_method="fork")


def measured(size):
    """The least of three runs, each the mean over ranks."""
    runs = []
    for _ in range(3):
        done = subprocess.run([sys.executable, __file__, str(size)], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
        runs.append(json.loads(done.stdout))
    return {name: min(run[name] for run in runs) for name in runs[0]}


def main():
    if len(sys.argv) > 1:
        return side(int(sys.argv[1]))
    found = {n: measured(n) for n in RANKS}
    first, second = RANKS[:2]
    # A barrier is a message to and from each other rank; a small all_reduce also sums what comes; a large one sends, receives and sums parts.
    o = (found[second]["barrier"] - found[first]["barrier"]) / (second - first) / 2
    w = found[first]["barrier"] - 2 * o * (first - 1)
    per_small = (found[second]["1 KiB"] - found[first]["1 KiB"]) / (second - first) - 2 * o
    per_byte = (found[second]["4 MiB"] - found[second]["barrier"]) / (LARGE * (second - 1) / second)  # 4 copies and a sum
    print(f"o = {o * 1e6:.2f} µs, w = {w * 1e6:.1f} µs, 1 KiB to and from a rank {per_small * 1e6:.2f} µs more, {per_byte * 1e9:.2f} ns for a byte of a large one\n")
    predict = {
        "barrier": lambda n: w + 2 * o * (n - 1),
        "1 KiB": lambda n: w + (2 * o + per_small) * (n - 1),
        "4 MiB": lambda n: w + 2 * o * (n - 1) + per_byte * LARGE * (n - 1) / n,
    }
    print("| ranks | " + " | ".join(f"{name}: measured | predicted" for name in predict) + " |\n|" + "---|" * 7)
    for n in RANKS:
        print(f"| {n} | " + " | ".join(f"{found[n][name] * 1e6:,.0f} | {predict[name](n) * 1e6:,.0f}" for name in predict) + " |")

    def flat_small(n, size):
        return LATENCY + (n - 1) * (2 * o + (size + 64) / BANDWIDTH)

    def direct(n, size):  # reduce-scatter and all-gather, all to all
        return 2 * (LATENCY + (n - 1) * (2 * o + (size / n + 64) / BANDWIDTH)) + per_byte * size * (n - 1) / n / 4

    def tree(n, size):
        return math.ceil(math.log2(n)) * (LATENCY + 2 * o) + 2 * size / BANDWIDTH

    rows = {
        "barrier": (lambda n: flat_small(n, 0), lambda n: tree(n, 0)),
        "all_reduce 1 KiB": (lambda n: flat_small(n, 1024), lambda n: tree(n, 1024)),
        "all_reduce 25 MiB": (lambda n: direct(n, 25 << 20), lambda n: 2 * tree(n, 0) + 2 * (25 << 20) / BANDWIDTH),
        "broadcast 25 MiB": (lambda n: LATENCY + (n - 1) * (o + (25 << 20) / BANDWIDTH), lambda n: tree(n, 25 << 20)),
    }
    print("\n| one rank on each host, ms | 64: naru | 64: trees | 4,096: naru | 4,096: trees |\n|---|---|---|---|---|")
    for name, (own, best) in rows.items():
        print(f"| {name} | " + " | ".join(f"{f(n) * 1e3:,.3g}" for n in (64, 4096) for f in (own, best)) + " |")
    return None


if __name__ == "__main__":
    main()
