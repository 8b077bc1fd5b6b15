"""Further names of torch.distributed: newer forms of collectives, split groups, handlers, timeouts, the fake backend, differentiable collectives."""
import importlib
import threading
from datetime import timedelta

import naru as torch
import naru.distributed as dist
import naru.distributed.nn.functional as F
import naru.multiprocessing as mp
import pytest
from distributed_support import TRANSPORTS, backend_of, use_transport
from naru.nn.parallel import DistributedDataParallel


def _begin(rank, body, size, path):
    torch.set_num_threads(1)
    dist.init_process_group(backend_of(rank), init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    body(rank, size)
    dist.destroy_process_group()


def on_ranks(tmp_path, size, body):
    mp.start_processes(_begin, args=(body, size, str(tmp_path / "store")), nprocs=size, start_method="fork")


@pytest.fixture
def alone():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def forms(rank, size):
    out = torch.zeros(2 * size)
    dist.all_gather_single(out, torch.full((2,), float(rank)))
    assert out.tolist() == [0, 0, 1, 1, 2, 2]
    part = torch.zeros(1)
    dist.reduce_scatter_single(part, torch.arange(3.0) + rank)
    assert part.item() == 3 * rank + 3
    lists = [[torch.zeros(2), torch.zeros(1, dtype=torch.int64)] for _ in range(size)]
    work = dist.all_gather_coalesced(lists, [torch.full((2,), rank + 0.5), torch.tensor([rank])], async_op=True)
    work.wait()
    assert [(a.tolist(), b.item()) for a, b in lists] == [([r + 0.5] * 2, r) for r in range(size)]
    with pytest.raises(ValueError, match="a list of 1 tensors for each of the group's 3 ranks"):
        dist.all_gather_coalesced(lists, [torch.zeros(2)])


def splits(rank, size):
    for _ in range(2):  # a second split of the same group does not find the first one's keys
        mine = dist.split_group(split_ranks=[[0, 2]])
        assert (mine is None) == (rank == 1)
        if mine is not None:
            assert mine.ranks == [0, 2] and mine.rank() == rank // 2
            x = torch.tensor([rank])
            dist.all_reduce(x, group=mine)
            assert x.item() == 2
            inner = dist.split_group(mine, [[1], [0]], timeout=timedelta(seconds=7), group_desc="one")
            assert inner.ranks == [rank] and inner.group_desc == "one" and inner._engine.timeout() == 7000
    for wrong in ([[0, 0]], [[0], [0]], [[3]], [[]]):
        with pytest.raises(ValueError, match="lists of ranks from 0 to 2, each at most once"):
            dist.split_group(split_ranks=wrong)


def gradients(rank, size):
    def leaf():
        return torch.tensor([1.0 + rank, 2.0], requires_grad=True)

    x = leaf()
    y = F.reduce(x, dst=1)
    (y * (rank + 1)).sum().backward()  # rank 1's gradient counts
    assert x.grad.tolist() == [2, 2] and (rank != 1 or y.tolist() == [6, 6])
    x = leaf()
    parts = F.gather(x, dst=2)
    sum((i + 1) * p.sum() for i, p in enumerate(parts)).backward()
    assert x.grad.tolist() == [rank + 1] * 2 and (rank != 2 or [p[0].item() for p in parts] == [1, 2, 3])
    leaves = [torch.full((2,), 10.0 * i + rank, requires_grad=True) for i in range(size)]
    y = F.scatter(leaves, src=0)
    assert y.tolist() == [10 * rank] * 2
    (y * (rank + 1)).sum().backward()
    assert [t.grad.tolist() for t in leaves] == [[i + 1] * 2 if rank == 0 else [0, 0] for i in range(size)]
    leaves = [torch.full((2,), float(i), requires_grad=True) for i in range(size)]
    y = F.reduce_scatter(torch.zeros(2), leaves)
    assert y.tolist() == [3 * rank] * 2
    (y * (rank + 1)).sum().backward()
    assert [t.grad.tolist() for t in leaves] == [[i + 1] * 2 for i in range(size)]
    # Rank r sends i + 1 elements to rank i.
    leaves = [torch.full((i + 1,), float(rank), requires_grad=True) for i in range(size)]
    got = F.all_to_all([torch.zeros(rank + 1) for _ in range(size)], leaves)
    assert [t.tolist() for t in got] == [[r] * (rank + 1) for r in range(size)]
    sum((i + 1) * t.sum() for i, t in enumerate(got)).backward()
    assert [t.grad.tolist() for t in leaves] == [[rank + 1] * (i + 1) for i in range(size)]
    x = torch.arange(6.0, requires_grad=True)
    y = F.all_to_all_single(torch.zeros(size * (rank + 1)), x, [rank + 1] * size, [1, 2, 3])
    assert y.tolist() == [[0], [1, 2], [3, 4, 5]][rank] * size
    (y * (rank + 1)).sum().backward()
    assert x.grad.tolist() == [1, 2, 2, 3, 3, 3]
    with pytest.raises(ValueError, match="the 4 rows of input do not divide among 3 ranks; give input_split_sizes"):
        F.all_to_all_single(torch.zeros(3), torch.zeros(4))


@pytest.mark.parametrize("body", [forms, splits, gradients], ids=lambda body: body.__name__)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_on_three_ranks(tmp_path, monkeypatch, body, transport):
    use_transport(monkeypatch, transport)
    on_ranks(tmp_path, 3, body)


def test_a_hook_may_name_its_bucket(alone):
    def hook(state, bucket: dist.GradBucket) -> torch.futures.Future:
        assert isinstance(bucket, dist.GradBucket) and bucket.is_last()
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 2)
        return future

    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    model.register_comm_hook(None, hook)
    model(torch.ones(1, 2)).sum().backward()
    assert model.module.weight.grad.tolist() == [[2, 2]]


def test_timeouts_can_be_set(alone):
    dist.set_timeout(timedelta(seconds=3))
    assert dist.group.WORLD._engine.timeout() == 3000
    dist._set_pg_timeout(timedelta(seconds=4), dist.group.WORLD)
    assert dist.group.WORLD._engine.timeout() == 4000
    with pytest.raises(TypeError, match="Expected timeout argument to be of type datetime.timedelta, got 3"):
        dist.set_timeout(3)
    with pytest.raises(ValueError, match="Invalid process group specified"):
        dist.set_timeout(timedelta(seconds=3), dist.GroupMember.NON_GROUP_MEMBER)


def test_programs_meet_by_handlers_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("naru.distributed.rendezvous"), "_handlers", {})  # the attribute is the function
    seen = []

    def handler(url, timeout):
        seen.append((url, timeout))
        yield dist.HashStore(), 0, 1

    dist.register_rendezvous_handler("home", handler)
    with pytest.raises(RuntimeError, match="Rendezvous handler for home:// already registered"):
        dist.register_rendezvous_handler("home", handler)
    dist.init_process_group(init_method="home://kitchen?table=1", rank=0, world_size=1, timeout=timedelta(seconds=9))
    assert dist.get_world_size() == 1 and seen == [("home://kitchen?table=1&rank=0&world_size=1", timedelta(seconds=9))]
    dist.destroy_process_group()
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/store?rank=0&world_size=1"))
    store.set("a", "b")
    assert (rank, size, store.get("a")) == (0, 1, b"b")
    with pytest.raises(RuntimeError, match="No rendezvous handler for carrier://"):
        next(dist.rendezvous("carrier://pigeon", rank=0, world_size=1))
    with pytest.raises(RuntimeError, match="`url` must be a string"):
        next(dist.rendezvous(7))


def test_backends_of_devices_have_names(alone):
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    assert dist.get_default_backend_for_device("cpu") == "gloo" == dist.get_default_backend_for_device(torch.device("cpu"))
    assert dist.get_default_backend_for_device("cuda") == "nccl"
    with pytest.raises(ValueError, match="Default backend not registered for device : meta"):
        dist.get_default_backend_for_device("meta")


def test_a_fake_group_plays_one_rank_of_many():
    dist.init_process_group("fake", rank=5, world_size=1024)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (5, 1024, "fake")
        model = DistributedDataParallel(torch.nn.Linear(3, 2))
        model(torch.ones(4, 3)).sum().backward()
        assert model.module.weight.grad.tolist() == [[4] * 3] * 2
        out = torch.zeros(1024)
        dist.all_gather_into_tensor(out, torch.ones(1))
        assert out.sum().item() == 1024
        half = dist.new_group(range(0, 1024, 5))
        assert (half.rank(), half.size()) == (1, 205)
        dist.barrier()
        with pytest.raises(ValueError, match="src must be a rank of the group"):
            dist.broadcast(out, group_src=1024)
    finally:
        dist.destroy_process_group()
    with pytest.raises(ValueError, match="Invalid backend: 'fake'"):
        dist.init_process_group("cpu:gloo,cuda:fake", store=dist.HashStore(), rank=0, world_size=1)


# --- stores


@pytest.fixture(params=["hash", "prefix", "file", "tcp"])
def store(request, tmp_path):
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "keys"))
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return dist.HashStore() if request.param == "hash" else dist.PrefixStore("mine", dist.HashStore())


def test_stores_append_and_list(store):
    store.append("log", "one ")
    store.append("log", b"two")
    store.set("a", "")
    assert store.get("log") == b"one two" and store.list_keys() == ["a", "log"] and store.has_extended_api()
    twin = store.clone()
    twin.set("b", "x")
    assert store.get("b") == b"x"
    store.multi_set(["c", "d"], ["1", "2"])
    assert store.multi_get(["d", "c"]) == [b"2", b"1"]


def test_queues_are_in_order_and_give_each_value_once(store):
    with pytest.raises(dist.QueueEmptyError, match="the queue work is empty"):
        store.queue_pop("work", block=False)
    for i in range(3):
        store.queue_push("work", str(i))
    assert store.queue_len("work") == 3 and store.queue_pop("work") == b"0" and store.queue_len("work") == 2
    assert [store.queue_pop("work", block=False) for _ in range(2)] == [b"1", b"2"] and store.queue_len("work") == 0
    store.set_timeout(timedelta(milliseconds=30))
    with pytest.raises(dist.DistStoreError, match="wait timeout"):
        store.queue_pop("work")
    store.set_timeout(timedelta(seconds=60))
    clones, taken = [store.clone() for _ in range(4)], []

    def take(mine):
        for _ in range(10):
            taken.append(int(mine.queue_pop("work")))

    threads = [threading.Thread(target=take, args=(clone,)) for clone in clones]
    for thread in threads:
        thread.start()
    for i in range(40):
        store.queue_push("work", str(i))
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(40))
