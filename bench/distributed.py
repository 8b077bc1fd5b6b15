"""One side of line 19: python distributed.py SIDE prints one JSON object per work, {"work": ..., "seconds": ...}. Run by run.py.

SIDE is naru, torch (its gloo) or mpi (a library of MPI by itself, called through ctypes). all_reduce from 4 B to 64 MiB in 2 and 4 processes, beside gloo
in shared memory and beside MPI's own by MPI; and a step of DistributedDataParallel (MLP 784-256-10, a batch of 64 in two halves) with its parts: the step
alone on half of the batch, and an all_reduce of the gradients. The time of a call is the slowest rank's, of a number of calls between two barriers.
"""
import ctypes
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
MPI_SIZES = [4, 16 << 10, 1 << 20, 64 << 20]
PROCESSES = (2, 4)
BATCHES, SECONDS = 5, 0.1


def named(size):
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


def row(work, seconds):
    print(json.dumps({"work": work, "seconds": seconds}), flush=True)


def slowest(call, barrier, greatest):
    """Median seconds of a call; barrier() and greatest(number) are over all ranks."""
    call(), call()
    start = time.perf_counter()
    call()
    count = max(1, min(5000, int(SECONDS / greatest(time.perf_counter() - start))))
    batches = []
    for _ in range(BATCHES):
        barrier()
        start = time.perf_counter()
        for _ in range(count):
            call()
        batches.append(greatest((time.perf_counter() - start) / count))
    return statistics.median(batches)


# --- naru and PyTorch: the same program


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


def rank_of(rank, size, backend, path, torch):
    dist = torch.distributed
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=size)

    def greatest(seconds):
        found = torch.tensor([seconds], dtype=torch.float64)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return found.item()

    def told(work, call):
        seconds = slowest(call, dist.barrier, greatest)
        if rank == 0:
            row(work, seconds)

    by = " by MPI" if backend == "mpi" else ""
    for n in MPI_SIZES if by else SIZES:
        x = torch.zeros(n // 4)
        told(f"all_reduce {named(n)}{by}, {size} processes", lambda: dist.all_reduce(x))
    if size == 2 and not by:
        alone = network(torch)
        gradients = torch.zeros(sum(p.numel() for p in alone.parameters()))
        told("DDP: half of the batch alone", step_of(torch, alone, 32))
        told("DDP: all_reduce of the gradients", lambda: dist.all_reduce(gradients))
        told("DDP: step", step_of(torch, torch.nn.parallel.DistributedDataParallel(network(torch)), 32))
    dist.destroy_process_group()


def start(torch, size, backend):
    with tempfile.TemporaryDirectory() as folder:
        arguments = (size, backend, os.path.join(folder, "store"), torch)
        torch.multiprocessing.start_processes(rank_of, args=arguments, nprocs=size, start_method="fork")


# --- MPI by itself; the numbers are those of the standard ABI


def rank_of_mpi(library):
    mpi, null = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL), ctypes.c_void_p()
    world, floats, doubles, in_place, add, largest = (ctypes.c_void_p(n) for n in (0x101, 0x210, 0x214, 1, 0x21, 0x23))
    rank, size, found = ctypes.c_int(), ctypes.c_int(), ctypes.c_double()
    mpi.MPI_Init(null, null)
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))

    def greatest(seconds):
        found.value = seconds
        mpi.MPI_Allreduce(in_place, ctypes.byref(found), 1, doubles, largest, world)
        return found.value

    for n in MPI_SIZES:
        memory, count = ctypes.create_string_buffer(n), ctypes.c_int(n // 4)
        seconds = slowest(lambda: mpi.MPI_Allreduce(in_place, memory, count, floats, add, world), lambda: mpi.MPI_Barrier(world), greatest)
        if rank.value == 0:
            row(f"all_reduce {named(n)} by MPI, {size.value} processes", seconds)
    mpi.MPI_Finalize()


def mpi_library():
    sys.path.insert(0, str(ROOT / "python"))
    import naru

    return naru._C._mpi_path()


def main(side, *rest):
    if side == "mpi":
        if rest:
            return rank_of_mpi(*rest)
        # As many as processors, of which it needs all: with more, a rank that waits takes the others' time, and 4 B takes 10 ms.
        library = mpi_library()
        mpiexec = Path(library).resolve().parents[1] / "bin" / "mpiexec"
        return subprocess.run([mpiexec, "-n", "2", sys.executable, __file__, "mpi", library], check=True, timeout=300)
    if side == "naru":
        backends = ["gloo"] + ["mpi"] * bool(mpi_library())
        import naru as torch
        import naru.distributed
        import naru.multiprocessing
    else:
        backends = ["gloo"]
        import torch
        import torch.distributed
        import torch.multiprocessing
    for backend in backends:
        for size in PROCESSES if backend == "gloo" else PROCESSES[:1]:
            start(torch, size, backend)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
