"""torch.distributed: processes that compute together. Each test starts a group once and checks many things with it."""
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from distributed_support import ON_CUDA, TRANSPORTS, backend_of, use_transport
from naru.distributed.rendezvous import meet
from naru.distributed.run import _host_and_port, _Plan, parse_args
from naru.nn.parallel import DistributedDataParallel as DDP

ROOT = Path(__file__).resolve().parents[3]


def _begin(rank, body, size, path, rest):
    torch.set_num_threads(1)
    dist.init_process_group(backend_of(rank), init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    body(rank, size, *rest)
    if dist.is_initialized():
        dist.destroy_process_group()


def on_ranks(tmp_path, size, body, *rest):
    mp.start_processes(_begin, args=(body, size, str(tmp_path / "store"), rest), nprocs=size, start_method="fork")


# --- collectives


def exchange(rank, size):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized()) == (rank, size, "nccl" if ON_CUDA else "gloo", True)
    x = torch.arange(3.0) + rank
    assert dist.all_reduce(x) is None and x.tolist() == [6, 10, 14]
    x = torch.full((2, 2), float(rank + 1))
    dist.all_reduce(x.t(), op=dist.ReduceOp.PRODUCT)
    assert x.tolist() == [[24, 24], [24, 24]]
    for op, wanted in (("AVG", 1.5), ("MIN", 0), ("MAX", 3)):
        x = torch.tensor([float(rank)])
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        assert x.item() == wanted
    with contextlib.nullcontext() if ON_CUDA else torch.virtual("cuda", count=1):
        on_device = torch.full((2,), rank, device="cuda")
        dist.all_reduce(on_device)
        assert on_device.tolist() == [6, 6] and on_device.device == torch.device("cuda", rank if ON_CUDA else 0)
    x = torch.tensor([rank])
    dist.broadcast(x, src=2)
    assert x.item() == 2
    parts = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(parts, torch.tensor([rank * 10]))
    assert torch.cat(parts).tolist() == [0, 10, 20, 30]
    whole = torch.zeros(8)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
    assert whole.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    dist.gather(torch.tensor([rank]), parts if rank == 1 else None, dst=1)
    assert rank != 1 or torch.cat(parts).tolist() == [0, 1, 2, 3]
    x = torch.zeros(1)
    dist.scatter(x, [torch.tensor([i + 0.5]) for i in range(size)] if rank == 0 else None, src=0)
    assert x.item() == rank + 0.5
    dist.reduce_scatter_tensor(x, torch.arange(4.0))
    assert x.item() == 4 * rank
    x = torch.tensor([1.0])
    dist.reduce(x, dst=3)
    assert x.item() == (4 if rank == 3 else 1)
    # Rank r sends r + 1 rows to each rank.
    out = torch.zeros(10)
    dist.all_to_all_single(out, torch.full(((rank + 1) * 4,), float(rank)), [1, 2, 3, 4], [rank + 1] * 4)
    assert out.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert work.get_future().then(lambda f: f.value()[0].tolist()).wait() == [4, 4]
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None


def objects(rank, size):
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "t": torch.ones(rank)})
    assert [f["rank"] for f in found] == [0, 1, 2, 3] and [f["t"].numel() for f in found] == [0, 1, 2, 3]
    told = ["a", rank] if rank == 1 else [None, None]
    dist.broadcast_object_list(told, src=1)
    assert told == ["a", 1]
    mine = [None]
    dist.scatter_object_list(mine, [str(i) * i for i in range(size)] if rank == 2 else None, src=2)
    assert mine == [str(rank) * rank]
    all_of_them = [None] * size if rank == 3 else None
    dist.gather_object(rank, all_of_them, dst=3)
    assert rank != 3 or all_of_them == [0, 1, 2, 3]


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    x, y = torch.full((3,), float(rank)), torch.zeros(3)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, y, left)]):
        work.wait()
    assert y.tolist() == [left] * 3
    x, y = x.cpu(), y.cpu()  # NCCL has no tags, and no messages from any rank
    if rank == 0:
        assert sorted(dist.recv(y, tag=7) for _ in range(3)) == [1, 2, 3]
    else:
        dist.send(x, 0, tag=7)
    if rank == 0:
        dist.send_object_list([{"k": 1}], dst=1)
    elif rank == 1:
        got = [None]
        assert dist.recv_object_list(got, src=0) == 0 and got == [{"k": 1}]


def groups(rank, size):
    odd = dist.new_group([1, 3])
    if rank in (1, 3):
        x = torch.tensor([rank])
        dist.all_reduce(x, group=odd)
        assert x.item() == 4 and dist.get_rank(odd) == rank // 2 and dist.get_process_group_ranks(odd) == [1, 3]
        dist.broadcast(x, src=3, group=odd)
        assert dist.get_global_rank(odd, 1) == 3 and dist.get_group_rank(odd, 3) == 1
    else:
        assert odd is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(odd) == -1
        with pytest.warns(UserWarning, match="does not belong to the given group"):
            assert dist.all_reduce(torch.ones(1), group=odd) is None
    mine, all_of_them = dist.new_subgroups(2)
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mine)
    assert x.item() == (1 if rank < 2 else 5) and len(all_of_them) == 2
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=20))


def refusals(rank, size):
    with pytest.raises(ValueError, match="trying to initialize the default process group twice"):
        dist.init_process_group("gloo", init_method="env://")
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.BAND with float32"):
        dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND)
    with pytest.raises(TypeError, match=r"all_reduce\(\): tensor must be Tensor, not list"):
        dist.all_reduce([1.0])
    with pytest.raises(ValueError, match="Global rank 9 is not part of group"):
        dist.broadcast(torch.ones(1), src=9)
    with pytest.raises(ValueError, match="destination rank should not be the same"):
        dist.send(torch.ones(1), rank)
    with pytest.raises(ValueError, match="one tensor for each of the group's 4 ranks, got 1"):
        dist.all_gather([torch.ones(1)], torch.ones(1))
    with pytest.raises(RuntimeError, match="to_dense"):
        dist.all_reduce(torch.eye(2).to_sparse())


def everything(rank, size):
    for part in (exchange, objects, messages, groups, refusals):
        part(rank, size)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_collectives_messages_objects_and_groups(tmp_path, monkeypatch, transport):
    use_transport(monkeypatch, transport)
    on_ranks(tmp_path, 4, everything)


class Code:
    def __reduce__(self):
        return os.getpid, ()


def only_data(rank, size):
    """weights_only: tensors and plain data come, code does not run."""
    plain = {"a": [1, 2.5, "x", 1j, None, {3}], "b": (torch.float16, torch.Size([2]), torch.device("cpu"))}
    sent = [plain, torch.arange(3.0)] if rank == 0 else [None, None]
    dist.broadcast_object_list(sent, src=0, weights_only=True)
    assert sent[0] == plain and sent[1].tolist() == [0, 1, 2]
    if rank == 0:
        dist.send_object_list([Code()], dst=1)
        dist.send_object_list([Code()], dst=1)
    else:
        got = [None]
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            dist.recv_object_list(got, src=0, weights_only=True)
        assert got == [None]
        dist.recv_object_list(got, src=0)
        assert got == [os.getpid()]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_objects_are_read_as_data_where_that_is_asked_for(tmp_path, monkeypatch, transport):
    use_transport(monkeypatch, transport)
    on_ranks(tmp_path, 2, only_data)


# --- the launcher


def test_options_of_torchrun_come_as_variables(monkeypatch):
    """Kubeflow's Trainer gives a pod its options as PET_*; without them each pod would train alone."""
    for name, value in {"NNODES": "4", "NPROC_PER_NODE": "2", "NODE_RANK": "3", "MASTER_ADDR": "node-0", "MASTER_PORT": "1234", "MAX_RESTARTS": "5"}.items():
        monkeypatch.setenv(f"PET_{name}", value)
    args = parse_args(["train.py"])
    assert (args.nnodes, args.nproc_per_node, args.node_rank, args.master_addr, args.master_port, args.max_restarts) == ("4", "2", 3, "node-0", 1234, 5)
    plan = _Plan(args)
    told = plan.environment(1, 0, "")
    assert (told["RANK"], told["WORLD_SIZE"], told["MASTER_ADDR"], told["MASTER_PORT"]) == ("7", "8", "node-0", "1234")
    assert parse_args(["--nnodes=1", "train.py"]).nnodes == "1"  # the command line counts more
    monkeypatch.setenv("PET_STANDALONE", "true")
    assert parse_args(["train.py"]).standalone is True


@pytest.mark.parametrize(("endpoint", "parts"), [("[::1]:29500", ("::1", 29500)), ("[fe80::1]", ("fe80::1", None)), ("fe80::1", ("fe80::1", None)), ("host:7", ("host", 7)), ("host", ("host", None))])
def test_an_endpoint_may_be_an_address_of_ipv6(endpoint, parts):
    assert _host_and_port(endpoint) == parts
    with pytest.raises(ValueError, match="wanted HOST or HOST:PORT"):
        _host_and_port("host:x")


def test_a_later_attempt_does_not_see_the_keys_of_an_earlier_one(monkeypatch):
    server = dist.TCPStore("127.0.0.1", 0, 1, True, wait_for_workers=False)
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(server.port)}.items():
        monkeypatch.setenv(name, value)
    stores = []
    for attempt in ("0", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", attempt)
        store, rank, size = meet("env://")
        assert (rank, size) == (1, 2)
        stores.append(store)
    stores[0].set("who", "the first attempt")
    assert not stores[1].check(["who"])
    stores[1].set("who", "the second")
    assert stores[0].get("who") == b"the first attempt" and stores[1].get("who") == b"the second"


# --- failures


def mismatch(rank, size):
    with pytest.raises(dist.DistBackendError, match=r"ranks do not call the same"):
        dist.all_reduce(torch.ones(2 + rank))
    with pytest.raises(dist.DistBackendError, match="can't be used any more"):
        dist.barrier()


def die(rank, size, started):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 2:
        time.sleep(0.3)  # it waits for a rank that waits for the dead one
    with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
        if rank == 0:
            dist.all_reduce(torch.ones(100_000))
        else:
            x = torch.ones(1)
            dist.recv(x, src=0)
            x.item()  # over NCCL the host waits only here
    Path(started, str(rank)).touch()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_one_rank_does_wrong_is_told_on_all(tmp_path, monkeypatch, transport):
    use_transport(monkeypatch, transport)
    on_ranks(tmp_path, 3, mismatch)
    told = tmp_path / "told"
    told.mkdir()
    running = mp.start_processes(_begin, (die, 3, str(tmp_path / "other"), (str(told),)), 3, join=False, start_method="fork")
    for process in running.processes:
        process.join(30)
    assert [p.exitcode for p in running.processes] == [0, -signal.SIGKILL, 0] and sorted(os.listdir(told)) == ["0", "2"]


# --- DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.spare = torch.nn.Linear(6, 300), torch.nn.Linear(300, 3), torch.nn.Linear(2, 2)
        self.norm = torch.nn.BatchNorm1d(300)

    def forward(self, x, spare=False):
        x = torch.relu(self.norm(self.first(x)))
        return self.second(x) + (self.spare(x[:, :2]).sum() if spare else 0)


def data():
    torch.manual_seed(1)
    return torch.randn(4, 8, 6), torch.randint(0, 3, (4, 8))


def losses_alone(net, sync=False):
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    found = []
    for x, y in zip(*data()):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def losses_shared(rank, model, optimizer, spare=lambda i: False):
    found = []
    for i, (x, y) in enumerate(zip(*data())):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[rank::2], spare(i)), y[rank::2])
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach(), dist.ReduceOp.AVG)
        found.append(loss.item())
    return found


def fresh(seed=0):
    torch.manual_seed(seed)
    return Net()


def average(state, bucket):
    assert bucket.buffer().numel() == sum(p.numel() for p in bucket.parameters()) == sum(g.numel() for g in bucket.gradients())
    state.append(bucket.index())
    return dist.all_reduce(bucket.buffer() / dist.get_world_size(), async_op=True).get_future()


def trained(rank, size):
    # Batch statistics over all processes give the same losses as one process with the whole batch.
    wanted = losses_alone(fresh())
    variants = [{}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.001}, {"static_graph": True}, {"find_unused_parameters": True}]
    for options in variants:
        unused = not (options.get("static_graph") or options.get("find_unused_parameters"))
        net = fresh(rank)  # rank 0's parameters are broadcast
        if unused:
            net.spare.requires_grad_(False)
        model = DDP(torch.nn.SyncBatchNorm.convert_sync_batchnorm(net), **options)
        found = losses_shared(rank, model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))
        assert found == pytest.approx(wanted, rel=2e-5), options
        assert list(model.state_dict())[0] == "module.first.weight"
        assert net.spare.weight.grad is None
    # Hooks.
    for hook, state in ((average, []), (torch.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook, None)):
        net = fresh()
        net.spare.requires_grad_(False)
        model = DDP(torch.nn.SyncBatchNorm.convert_sync_batchnorm(net))
        model.register_comm_hook(state, hook)
        assert losses_shared(rank, model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)) == pytest.approx(wanted, rel=2e-5)
        assert state is None or state[:1] == [0]


def unused_here_and_there(rank, size):
    net = fresh()
    model = DDP(net, find_unused_parameters=True)
    model(data()[0][0], spare=rank == 1).sum().backward()
    both = [torch.zeros(2, 2) for _ in range(2)]
    dist.all_gather(both, net.spare.weight.grad)
    assert both[0].equal(both[1]) and both[0].abs().sum() > 0
    strict = DDP(fresh())
    strict(torch.ones(4, 6)).sum().backward()
    with pytest.raises(RuntimeError, match=r"Expected to have finished reduction in the prior iteration.*spare\.weight, spare\.bias"):
        strict(torch.ones(4, 6))


def accumulated(rank, size):
    linear = torch.nn.Linear(2, 1, bias=False)
    model = DDP(linear)
    x = torch.full((1, 2), float(rank + 1))
    with model.no_sync():
        model(x).sum().backward()
    assert linear.weight.grad.tolist() == [[rank + 1] * 2]
    model(x).sum().backward()
    assert linear.weight.grad.tolist() == [[3.0, 3.0]]
    linear.weight.grad = None
    with model.join():  # rank 1 has two more batches
        for _ in range(1 + 2 * rank):
            linear.weight.grad = None
            model(x).sum().backward()
    assert linear.weight.grad.tolist() == ([[1.5, 1.5]] if rank == 0 else [[1.0, 1.0]])
    with pytest.raises(RuntimeError, match="doesn't have any parameters that require a gradient"):
        DDP(torch.nn.ReLU())
    with pytest.raises(RuntimeError, match="the modules of ranks 0 and 1 differ"):
        DDP(torch.nn.Linear(2, 2 + rank))
    dist.barrier()


def sharded(rank, size):
    from naru.distributed.optim import ZeroRedundancyOptimizer

    wanted, net = [], fresh()
    net.spare.requires_grad_(False)
    plain = torch.optim.AdamW(net.parameters(), lr=0.01, betas=(0.8, 0.9))
    mine = fresh()
    mine.spare.requires_grad_(False)
    mine_optimizer = ZeroRedundancyOptimizer(mine.parameters(), torch.optim.AdamW, lr=0.01, betas=(0.8, 0.9), fused=False)
    for model, optimizer in ((DDP(net), plain), (DDP(mine), mine_optimizer)):
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
        for x, y in zip(*data()):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[rank::2]), y[rank::2]).backward()
            optimizer.step()
            schedule.step()
    for a, b in zip(net.parameters(), mine.parameters()):
        assert torch.equal(a, b)
    assert len(mine_optimizer.optim.state) < len(plain.state)
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        mine_optimizer.state_dict()
    mine_optimizer.consolidate_state_dict(to=1)
    if rank == 1:
        theirs, whole = mine_optimizer.state_dict(), plain.state_dict()
        assert theirs["state"].keys() == whole["state"].keys()
        for i, state in whole["state"].items():
            assert torch.equal(theirs["state"][i]["exp_avg"], state["exp_avg"].cpu()), i
    mine_optimizer.load_state_dict(plain.state_dict())
    mine_optimizer.step()


def parallel(rank, size):
    for part in (trained, unused_here_and_there, accumulated, sharded):
        part(rank, size)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_training_in_two_processes_is_training_with_the_whole_batch(tmp_path, monkeypatch, transport):
    use_transport(monkeypatch, transport)
    on_ranks(tmp_path, 2, parallel)


def test_a_sampler_asks_the_group():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    assert list(torch.utils.data.DistributedSampler(range(3), shuffle=False)) == [0, 1, 2]
    dist.destroy_process_group()


# --- torchrun

PROGRAM = """
import os, sys
import torch, torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    dist.init_process_group()
    rank = int(os.environ["LOCAL_RANK"])
    x = torch.tensor([rank + 1])
    dist.all_reduce(x)
    words = ("sum", x.item(), "of", dist.get_world_size(), os.environ["OMP_NUM_THREADS"], *sys.argv[1:])
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    if "fail" in sys.argv and rank == 1 and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < 1:
        raise ValueError("this rank fails")
    dist.barrier()
    dist.destroy_process_group()
main()
"""


def torchrun(tmp_path, *arguments):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "NARU_NUM_THREADS")}
    command = [sys.executable, "-m", "naru", *arguments]
    command[command.index("SCRIPT")] = str(script)
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)


def test_torchrun_starts_processes_that_find_each_other(tmp_path):
    done = torchrun(tmp_path, "torchrun", "--standalone", "--nproc-per-node=2", "SCRIPT", "--lr", "0.1")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["sum 3 of 2 1 --lr 0.1"] * 2), done.stderr


def test_torchrun_ends_all_where_one_fails_and_starts_anew_where_it_may(tmp_path):
    done = torchrun(tmp_path, "run", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "SCRIPT", "fail")
    assert done.returncode == 1 and "program.py FAILED" in done.stderr and "ValueError: this rank fails" in done.stderr
    again = torchrun(tmp_path, "torchrun", "--standalone", "--nproc_per_node=2", "--max-restarts=1", "SCRIPT", "fail")
    assert again.returncode == 0 and "starting all anew (1 of 1)" in again.stderr and again.stdout.count("sum 3 of 2") == 4


def test_the_modules_that_torch_distributed_is_made_of_have_its_names():
    from naru.distributed import constants, distributed_c10d

    assert distributed_c10d.init_process_group is dist.init_process_group
    assert constants.default_pg_timeout is dist.default_pg_timeout and constants.default_pg_timeout.total_seconds() == 1800
    with pytest.raises(NotImplementedError):
        distributed_c10d._get_default_group()
