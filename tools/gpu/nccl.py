"""Process groups over NCCL on one card, by one rank: starts, calls every collective and compares it with the host's engine, captures and replays them, aborts.

    python nccl.py [--device 0]

Prints a line of JSON for each part: {"part", "right", "milliseconds", "text"}. The exit status is 0 if all are right. More ranks need more cards:
torchrun --standalone --nproc_per_node=N tools/gpu/nccl.py compares them in the same way.
"""

import argparse
import json
import os
import time
import traceback

import naru as torch
import naru.distributed as dist

SUMS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int32, torch.int64, torch.complex64, torch.bool, torch.int16)


def start(device):
    assert dist.is_nccl_available(), torch._C._device_library_obstacle()
    x = torch.ones(4, device=device)
    dist.all_reduce(x)  # joins
    assert x.tolist() == [dist.get_world_size()] * 4
    return dist.group.WORLD._engine.device_transport()


def reductions(device):
    """Small whole numbers: any order gives the same sum."""
    for dtype in TYPES:
        for op in SUMS:
            if (dtype == torch.bool and op == "AVG") or (dtype.is_complex and op in ("MIN", "MAX")):
                continue
            wanted = (torch.arange(1000) % 3 + dist.get_rank()).to(dtype)
            x = wanted.to(device)
            dist.all_reduce(wanted, getattr(dist.ReduceOp, op))
            for _ in range(2):
                y = x.clone()
                dist.all_reduce(y, getattr(dist.ReduceOp, op))
                assert torch.equal(y.cpu(), wanted), (dtype, op, torch.are_deterministic_algorithms_enabled())
                torch.use_deterministic_algorithms(True)
            torch.use_deterministic_algorithms(False)
    return f"{len(TYPES)} types, by the library and by the tree"


def moves(device):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.full((3,), float(rank), device=device)
    lists = [torch.zeros(3, device=device) for _ in range(size)]
    dist.all_gather(lists, mine)
    assert [t[0].item() for t in lists] == list(range(size))
    whole = torch.zeros(3 * size, device=device)
    dist.all_gather_into_tensor(whole, mine)
    assert whole[::3].tolist() == list(range(size))
    dist.broadcast(mine, src=size - 1)
    assert mine[0].item() == size - 1
    out = torch.zeros(1, device=device)
    dist.reduce_scatter_tensor(out, torch.arange(float(size), device=device))
    assert out.item() == rank * size
    dist.reduce_scatter(out, [torch.full((1,), float(i), device=device) for i in range(size)])
    assert out.item() == rank * size
    dist.all_to_all_single(whole[:size].contiguous(), whole[:size].contiguous())
    dist.gather(mine, lists if rank == 0 else None, dst=0)
    dist.scatter(mine, lists if rank == 0 else None, src=0)
    dist.reduce(mine, dst=0)
    if size > 1:
        got = torch.zeros(1, device=device)
        right, left = (rank + 1) % size, (rank - 1) % size
        sent = torch.full((1,), float(rank), device=device)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, right), dist.P2POp(dist.irecv, got, left)]):
            work.wait()
        assert got.item() == left
    dist.barrier()
    return ""


def asynchronous(device):
    tensors = [torch.full((1 << 20,), float(i), device=device) for i in range(16)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work in works:
        work.wait()
    assert [t.max().item() for t in tensors] == [i * dist.get_world_size() for i in range(16)]
    assert all(work.is_completed() and work.is_success() for work in works)
    return ""


def capture(device):
    """Steps of DistributedDataParallel in a graph have the bits of those outside."""
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    models = [torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.01) for net in nets]
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in models]
    shared = torch.zeros(32, 64, device=device)

    def step(i, x):
        optimizers[i].zero_grad(set_to_none=False)
        loss = models[i](x).square().mean()
        loss.backward()
        optimizers[i].step()
        return loss.detach()

    data = [torch.randn(32, 64, device=device) for _ in range(6)]
    for i in range(2):
        step(i, data[0])
    shared.copy_(data[0])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(0, shared)
    for x in data[1:]:
        shared.copy_(x)
        graph.replay()
        other = step(1, x)
        assert loss.item() == other.item(), (loss.item(), other.item())
    return f"{len(data) - 1} replays"


def abort(device):
    group = dist.new_group(list(range(dist.get_world_size())))
    x = torch.ones(4, device=device)
    dist.all_reduce(x, group=group)
    torch.cuda.synchronize()
    group.abort()
    try:
        dist.all_reduce(x, group=group)
    except dist.DistBackendError as error:
        return str(error)
    raise AssertionError("an aborted group goes on")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=int, default=int(os.environ.get("LOCAL_RANK", "0")))
    device = parser.parse_args().device
    torch.cuda.set_device(device)
    if "RANK" in os.environ:
        dist.init_process_group("nccl")
    else:
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    wrong = 0
    for part in (start, reductions, moves, asynchronous, capture, abort):
        begun = time.monotonic()
        try:
            text, right = part(torch.device("cuda", device)), True
        except Exception:
            text, right = traceback.format_exc(), False
        wrong += not right
        if dist.get_rank() == 0 or not right:
            print(json.dumps({"part": part.__name__, "right": right, "milliseconds": round((time.monotonic() - begun) * 1e3, 1), "text": text}), flush=True)
    dist.destroy_process_group()
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
