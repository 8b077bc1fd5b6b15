"""What only process groups over NCCL do; test_nccl.py runs this on the libraries of tests/fakes."""
import hashlib
import json
import os
import pickle
import signal
import time
import warnings
from datetime import timedelta
from pathlib import Path

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from distributed_support import backend_of
from naru.nn.parallel import DistributedDataParallel as DDP


def join(rank, size, path, seconds=60, backend=None):
    torch.set_num_threads(1)
    name = backend_of(rank)
    dist.init_process_group(name if backend is None else backend, init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=seconds))


def _begin(rank, body, size, path, rest):
    join(rank, size, path)
    body(rank, size, *rest)
    if dist.is_initialized():
        dist.destroy_process_group()


def on_ranks(tmp_path, size, body, *rest):
    mp.start_processes(_begin, args=(body, size, str(tmp_path / "store"), rest), nprocs=size, start_method="fork")


def started(tmp_path, size, body, *rest):
    """The exit codes of ranks that need not all end well."""
    running = mp.start_processes(body, args=(size, str(tmp_path / "store"), *rest), nprocs=size, join=False, start_method="fork")
    for process, file in zip(running.processes, running.error_files):
        process.join(60)
        print(Path(file).read_text() if Path(file).exists() else "")
    return [process.exitcode for process in running.processes]


def until(found, seconds=30):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)


# --- results


TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.uint8, torch.int32, torch.int64, torch.complex64)
OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def exact(rank, size):
    """Small whole numbers, whose reductions are the same in any order."""
    assert dist.group.WORLD._engine.device_transport() in ("NCCL 2.28.3", "RCCL 2.28.3")
    for dtype in (*TYPES, torch.bool, torch.complex128, torch.uint16, torch.uint32, torch.uint64):
        for op in OPS:
            each = [(torch.arange(5, device="cpu") + r + 1).to(dtype) for r in range(size)]
            if dtype == torch.bool:
                each = [(torch.arange(5, device="cpu") + r) % 2 == 0 for r in range(size)]
            x = each[rank].to(f"cuda:{rank}")
            there = [t.clone() for t in each]
            try:
                dist.all_reduce(there[rank].clone(), getattr(dist.ReduceOp, op))  # what the host's engine says of it
            except RuntimeError as error:
                with pytest.raises(type(error)) as same:
                    dist.all_reduce(x, getattr(dist.ReduceOp, op))
                assert str(same.value) == str(error)
                continue
            wanted = each[rank].clone()
            dist.all_reduce(wanted, getattr(dist.ReduceOp, op))
            whole = x.clone()
            dist.all_reduce(whole, getattr(dist.ReduceOp, op))
            assert torch.equal(whole.cpu(), wanted), (dtype, op, whole, wanted)
            last = x.clone()
            dist.reduce(last, size - 1, getattr(dist.ReduceOp, op))
            assert torch.equal(last.cpu(), wanted if rank == size - 1 else each[rank]), (dtype, op)
            part = torch.empty(5, dtype=dtype, device=x.device)
            dist.reduce_scatter(part, [x.roll(i) for i in range(size)], getattr(dist.ReduceOp, op))
            assert torch.equal(part.cpu(), wanted.roll(rank)), (dtype, op)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_reductions_are_what_the_hosts_are(tmp_path, size):
    on_ranks(tmp_path, size, exact)


def hashes(rank, size, folder, name):
    found = {}
    generator = torch.Generator("cpu").manual_seed(rank)
    for dtype in TYPES:
        for n in (1, 3, 1000, 40_001):
            x = (torch.randn(n, generator=generator, device="cpu") * 7).to(dtype)
            device = f"cuda:{rank}" if name != "host" else "cpu"
            for op in ("SUM", "AVG") if dtype != torch.float16 else ("SUM",):
                y = x.clone().to(device)
                dist.all_reduce(y, getattr(dist.ReduceOp, op))
                out = torch.empty(n, dtype=dtype, device=device)
                dist.reduce_scatter(out, [x.to(device).roll(i) for i in range(size)], getattr(dist.ReduceOp, op))
                for what, t in (("all_reduce", y), ("reduce_scatter", out)):
                    t = t.cpu()
                    found[f"{dtype} {n} {op} {what}"] = hashlib.sha256((torch.view_as_real(t) if dtype.is_complex else t).view(torch.uint8).numpy().tobytes()).hexdigest()
    Path(folder, f"{name}_{rank}").write_text(json.dumps(found))


def deterministic(rank, size, folder):
    hashes(rank, size, folder, "library")
    torch.use_deterministic_algorithms(True)
    hashes(rank, size, folder, "asked")
    torch.use_deterministic_algorithms(False)
    hashes(rank, size, folder, "host")


def ordered(rank, size, folder):
    hashes(rank, size, folder, "ordered")


def test_ordered_sums_have_the_bits_of_the_hosts(tmp_path, monkeypatch):
    on_ranks(tmp_path, 3, deterministic, str(tmp_path))
    monkeypatch.setenv("NARU_REDUCE", "ordered")
    (tmp_path / "other").mkdir()
    on_ranks(tmp_path / "other", 3, ordered, str(tmp_path))
    for rank in range(3):
        library, asked, host, by_variable = (json.loads((tmp_path / f"{name}_{rank}").read_text()) for name in ("library", "asked", "host", "ordered"))
        assert [case for case in host if not asked[case] == host[case] == by_variable[case]] == []
        assert library["torch.float32 40001 SUM all_reduce"] != host["torch.float32 40001 SUM all_reduce"]  # the stand-in adds in another order


def anyhow(rank, size):
    """Strides, views of one storage and of several, empty tensors, coalesced calls."""
    base = torch.arange(12.0).reshape(3, 4) + rank
    before = base._version
    dist.all_reduce(base.t()[1:3])
    assert base._version > before
    assert base[:, 1:3].sum().item() == sum(x * size + size * (size - 1) / 2 for x in (1, 2, 5, 6, 9, 10))
    dist.all_reduce(torch.zeros(0))
    several = [torch.full((3,), float(rank + i)) for i in range(4)] + [torch.full((2,), rank, dtype=torch.int16)]
    dist.all_reduce_coalesced(several)
    assert [t[0].item() for t in several] == [size * i + size * (size - 1) / 2 for i in range(4)] + [size * (size - 1) / 2]
    out = torch.zeros(2, size).t()
    dist.all_gather([out[r] for r in range(size)], torch.tensor([rank, rank + 0.5]))
    assert out.tolist() == [[r, r + 0.5] for r in range(size)]
    whole = torch.zeros(size, 2)
    dist.all_gather_into_tensor(whole, torch.full((1, 2), float(rank)))
    assert whole[:, 0].tolist() == list(range(size))
    received = torch.zeros(size)
    dist.all_to_all_single(received, torch.arange(float(size)) + 10 * rank)
    assert received.tolist() == [10 * r + rank for r in range(size)]
    wrong = torch.ones(2, device="cpu")
    if size > 1:
        with pytest.raises(ValueError, match=rf"all_gather: all tensors must be on one device, got cuda:{rank} and cpu|got cpu and cuda:{rank}"):
            dist.all_gather([torch.zeros(2), *[wrong] * (size - 1)], torch.zeros(2))
        with pytest.raises(RuntimeError, match="NCCL can't receive from any rank"):
            dist.recv(torch.zeros(1))
    dist.barrier()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_tensors_may_lie_anyhow(tmp_path, size):
    on_ranks(tmp_path, size, anyhow)


def calls_of(log, body):
    os.environ["NARU_FAKE_LOG"] = log
    body()
    torch.cuda.synchronize()
    del os.environ["NARU_FAKE_LOG"]
    Path(log).touch()
    names = [line.split()[1] for line in Path(log).read_text().splitlines()]
    Path(log).unlink()
    return [name for name in names if name.startswith("nccl") and name != "ncclCommGetAsyncError"]


def counted(rank, size, folder):
    log = f"{folder}/calls_{rank}"
    x, whole = torch.ones(2), torch.zeros(2 * size)
    dist.all_reduce(x)

    def group(*names):
        return ["ncclGroupStart", *names, "ncclGroupEnd"]

    assert calls_of(log, lambda: dist.all_reduce(x)) == group("ncclAllReduce")
    assert calls_of(log, lambda: dist.all_gather_into_tensor(whole, x)) == group("ncclAllGather")
    assert calls_of(log, lambda: dist.reduce_scatter_tensor(x, whole)) == group("ncclReduceScatter")
    assert calls_of(log, lambda: dist.all_reduce_coalesced([torch.ones(1), torch.ones(2)])) == group("ncclAllReduce", "ncclAllReduce")
    both = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, torch.zeros(2), 1 - rank)]
    assert calls_of(log, lambda: [w.wait() for w in dist.batch_isend_irecv(both)]) == group("ncclSend", "ncclRecv")
    assert calls_of(log, dist.barrier) == []
    model = DDP(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)), bucket_cap_mb=1e-5)
    assert calls_of(log, lambda: model(torch.ones(1, 4)).sum().backward()).count("ncclGroupStart") == 4
    with model.no_sync():
        assert calls_of(log, lambda: model(torch.ones(1, 4)).sum().backward()) == []


def test_each_collective_is_a_call_of_the_library(tmp_path):
    on_ranks(tmp_path, 2, counted, str(tmp_path))


# --- the host waits for nothing


def overlapped(rank, size, folder):
    asked = Path(folder, "asked")
    x = torch.full((1000,), float(rank + 1))
    dist.all_reduce(x.clone())  # connects
    torch.cuda.synchronize()
    if rank == 1:
        until(asked.exists)
    work = dist.all_reduce(x, async_op=True)
    assert rank == 1 or not work.is_completed()
    assert work.wait()
    y = x * 2
    z = torch.full((1000,), float(rank + 1))
    dist.all_reduce(z)
    future = dist.all_reduce(y, async_op=True).get_future().then(lambda f: f.value()[0] / 2)
    w = future.wait() + z
    if rank == 0:  # all that was put on streams before rank 1 has called anything
        asked.touch()
    assert w.tolist() == [9.0] * 1000 and work.is_completed() and work.is_success() and work.exception() is None
    with pytest.raises(RuntimeError, match="not done when the timeout ends"):
        if rank == 1:
            raise RuntimeError("not done when the timeout ends")
        dist.all_reduce(torch.ones(1), async_op=True).wait(timedelta(milliseconds=50))
    if rank == 1:
        time.sleep(0.2)
        dist.all_reduce(torch.ones(1))
    # Memory that Python has let go of stays until the work on it is done.
    for i in range(20):
        dist.all_reduce(torch.full((5000,), float(i)), async_op=True)
        torch.full((5000,), -1.0)
    kept = [torch.full((5000,), float(i)) for i in range(20)]
    for t in kept:
        dist.all_reduce(t, async_op=True)
    assert all(t.cpu().equal(torch.full((5000,), 2.0 * i, device="cpu")) for i, t in enumerate(kept))


def test_the_host_waits_for_nothing(tmp_path):
    on_ranks(tmp_path, 2, overlapped, str(tmp_path))


def leaves_first(rank, size):
    for _ in range(3):
        x = torch.full((100_000,), float(rank))
        dist.broadcast(x, src=1)
    if rank == 1:
        return
    time.sleep(0.5)
    assert x[0].item() == 1
    with pytest.raises(dist.DistBackendError, match="rank 1 has left the group"):
        dist.all_reduce(x)
        x.sum().item()


def test_a_rank_may_leave_when_it_has_done_its_part(tmp_path):
    on_ranks(tmp_path, 2, leaves_first)


def sub(rank, size):
    """A mesh of two dimensions: groups of their own communicators, used in turn."""
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    x = torch.full((10,), float(rank))
    for _ in range(5):
        works = [dist.all_reduce(x, dist.ReduceOp.AVG, group=rows, async_op=True), dist.all_reduce(x, dist.ReduceOp.AVG, group=columns, async_op=True)]
        for work in works:
            work.wait()
    assert x.tolist() == [1.5] * 10


def test_groups_of_a_mesh_have_communicators_of_their_own(tmp_path):
    on_ranks(tmp_path, 4, sub)


# --- graphs


def captured(rank, size):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    other.load_state_dict(net.state_dict())
    data = [torch.randn(6, 4) + rank for _ in range(5)]
    for view in (False, True):
        plain, model = DDP(other, gradient_as_bucket_view=view), DDP(net, gradient_as_bucket_view=view, bucket_cap_mb=1e-5)
        shared, mine = torch.zeros(6, 4), [torch.optim.SGD(m.parameters(), 0.1) for m in (plain, model)]

        def step(model, optimizer, x):
            optimizer.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        for m, optimizer in zip((plain, model), mine):
            step(m, optimizer, data[0])
        shared.copy_(data[1])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step(model, mine[1], shared)
        for x in data[1:]:
            shared.copy_(x)
            graph.replay()
            assert loss.item() == step(plain, mine[0], x).item()
        for a, b in zip(net.parameters(), other.parameters()):
            assert torch.equal(a, b)
        everywhere = [torch.empty_like(net[0].weight) for _ in range(size)]
        dist.all_gather(everywhere, net[0].weight.detach())
        assert all(torch.equal(t, everywhere[0]) for t in everywhere)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_step_of_data_parallel_training_is_captured_and_replayed(tmp_path, size):
    on_ranks(tmp_path, size, captured)


# --- failures


def die(rank, size, path, told, when):
    join(rank, size, path)
    x = torch.ones(100_000)
    if when != "joining":
        dist.all_reduce(x)
        torch.cuda.synchronize()
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError, match="rank 1 is gone") as error:
        dist.all_reduce(x)
        x.sum().item()
    if when == "within":
        assert "was in all_reduce(SUM) of 100000 elements of float32 [100000] (the group's collective number 2)" in str(error.value) or "failed: rank 1" in str(error.value)
    with pytest.raises(dist.DistBackendError, match="the group can't be used any more: .*rank 1 is gone"):
        dist.all_reduce(x)
    Path(told, str(rank)).touch()
    dist.destroy_process_group()


@pytest.mark.parametrize("when", ["within", "joining"])
def test_a_rank_that_is_killed_is_named_by_all(tmp_path, when):
    told = tmp_path / "told"
    told.mkdir()
    assert started(tmp_path, 3, die, str(told), when) == [0, -signal.SIGKILL, 0] and sorted(os.listdir(told)) == ["0", "2"]


def replayed(rank, size, path):
    join(rank, size, path)
    x = torch.ones(10)
    dist.all_reduce(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(x)
    graph.replay()
    assert x[0].item() == size * size
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    graph.replay()
    with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
        x[0].item()


def test_also_in_a_graph(tmp_path):
    assert started(tmp_path, 2, replayed) == [0, -signal.SIGKILL]


def late(rank, size, path, told):
    join(rank, size, path)
    x = torch.ones(10)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.barrier()
    dist.set_timeout(timedelta(seconds=1))
    if rank == 2:
        until(lambda: len(os.listdir(told)) == 2)
        with pytest.raises(dist.DistBackendError, match="can't be used any more: .*nothing has come from rank 2"):
            dist.all_reduce(x)
        return
    work = dist.all_reduce(x, async_op=True)
    with pytest.raises(dist.DistBackendError, match=r"all_reduce\(SUM\) of 10 elements of float32 \[10\] \(the group's collective number 2\) on rank \d timed out after 1000 ms: nothing has come from rank 2"):
        work.wait(timedelta(seconds=30))
    Path(told, str(rank)).touch()


def test_who_does_not_come_in_time_is_named(tmp_path, monkeypatch):
    told = tmp_path / "told"
    told.mkdir()
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", str(tmp_path / "calls_"))
    assert started(tmp_path, 3, late, str(told)) == [0, 0, 0]
    for rank in range(3):  # each wrote what it has called; rank 2's second call was refused
        written = pickle.loads((tmp_path / f"calls_{rank}").read_bytes())
        assert "nothing has come from rank 2" in written["reason"]
        calls = [entry for entry in written["entries"] if entry["profiling_name"] == "nccl:all_reduce"]
        assert [(call["collective_seq_id"], call["state"]) for call in calls] == [(1, "completed"), (2, "started")][: 1 if rank == 2 else 2]
        assert all(call["input_sizes"] == call["output_sizes"] == [[10]] and call["input_dtypes"] == ["float32"] and not call["is_p2p"] for call in calls)
        assert calls[0]["time_created_ns"] <= calls[0]["time_discovered_started_ns"] <= calls[0]["time_discovered_completed_ns"]
        assert all(call["frames"][0]["filename"].endswith("nccl_cases.py") for call in calls)


def reported(rank, size, path):
    os.environ["NARU_FAKE_NCCL_ERROR"] = "1:3"
    join(rank, size, path)
    x = torch.ones(10)
    for _ in range(2):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    work = dist.all_reduce(x, async_op=True)
    with pytest.raises(dist.DistBackendError, match=r"[NR]CCL reports ncclRemoteError: a peer has failed while rank 1 was in all_reduce\(SUM\) of 10 elements"):
        work.wait(timedelta(seconds=30))
    assert isinstance(work.exception(), dist.DistBackendError) and not work.is_success()
    with pytest.raises(dist.DistBackendError, match="ncclRemoteError"):
        x.tolist()


def test_an_error_that_the_library_reports_ends_the_group_on_all(tmp_path):
    assert started(tmp_path, 3, reported) == [0, 0, 0]


def refused(rank, size, path):
    join(rank, size, path)
    x = torch.ones(10)
    os.environ["NARU_FAKE_ERROR"] = "ncclAllReduce=2" if rank == 0 else ""
    with pytest.raises(dist.DistBackendError, match="NCCL: a call failed: ncclSystemError: it was asked to fail while rank 0 was in all_reduce"):
        dist.all_reduce(x)
        x.tolist()


def test_a_call_that_the_library_refuses_raises_at_once(tmp_path):
    assert started(tmp_path, 2, refused) == [0, 0]


def different(rank, size, path):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    join(rank, size, path)
    dist.all_reduce(torch.ones(3))
    with pytest.raises(dist.DistBackendError, match="ranks do not call the same: rank . is in all_reduce"):
        dist.all_reduce(torch.ones(2 + rank))


def test_calls_are_compared_if_that_is_asked_for(tmp_path):
    assert started(tmp_path, 2, different) == [0, 0]


def same_gpu(rank, size, path):
    torch.set_num_threads(1)
    dist.init_process_group("nccl", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=30))
    with pytest.raises(dist.DistBackendError, match="ranks 0 and 1 use the same GPU, .*which NCCL refuses: choose another for each rank by torch.cuda.set_device"):
        dist.all_reduce(torch.ones(1, device="cuda:0"))


def versions(rank, size, path):
    os.environ["NARU_FAKE_NCCL_VERSION"] = str(22803 + rank)
    join(rank, size, path)
    with pytest.raises(dist.DistBackendError, match="rank 0 has NCCL 2.28.3 and rank 1 NCCL 2.28.4: install the same version"):
        dist.all_reduce(torch.ones(1))


def without(rank, size, path):
    if rank == 1:
        os.environ["NARU_NCCL_LIBRARY"] = "/nowhere"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        join(rank, size, path)
    assert [str(w.message) for w in told] == [] if rank else "NCCL can't be used: rank 1: process groups through the host's memory (no NCCL" in str(told[0].message)
    x = torch.full((3,), float(rank))
    dist.all_reduce(x)
    assert x.tolist() == [1, 1, 1] and dist.group.WORLD._engine.device_transport() == ""


@pytest.mark.parametrize("body", [same_gpu, versions, without], ids=lambda body: body.__name__)
def test_ranks_that_the_library_can_not_join(tmp_path, body):
    assert started(tmp_path, 2, body) == [0, 0]


def named(rank, size, path):
    backend_of(rank)
    for backend, by_library in ((None, True), ("cpu:gloo,cuda:nccl", True), ("gloo", False), ("cpu:gloo,cuda:gloo", False)):
        dist.init_process_group(backend, init_method=f"file://{path}_{backend}", rank=rank, world_size=size)
        assert bool(dist.group.WORLD._engine.device_transport()) == by_library
        part = dist.new_group([0, 1])
        for group in (None, part):
            x, y = torch.ones(1), torch.ones(1, device="cpu")
            dist.all_reduce(x, group=group)
            dist.all_reduce(y, group=group)
            assert x.item() == y.item() == 2
        dist.destroy_process_group()


def test_the_backends_name_says_what_carries_tensors_on_devices(tmp_path):
    assert started(tmp_path, 2, named) == [0, 0]
