"""Groups that go on without some of their ranks."""
import os
import re
import signal
from datetime import timedelta

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from distributed_support import needs_mpi
from naru.distributed import _shrink
from ranks import on_ranks

CONTEXT = mp.get_context("fork")


def goes_on(rank, size, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{folder.rpartition(':')[2]}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    half = dist.new_group([0, 1, 3])
    dist.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError, match="rank 2 is gone"):
        dist.all_reduce(torch.ones(100_000))
    # Not of the default group: global ranks stay.
    if rank != 1:
        pair = dist.shrink_group([1], group=half)
        assert (pair.size(), dist.get_process_group_ranks(pair), pair.group_desc) == (2, [0, 3], f"{half.group_name}:shrunk")
        x = torch.tensor([rank])
        dist.all_reduce(x, group=pair)
        assert x.item() == 3
    made = dist.shrink_group([2])
    assert made is dist.group.WORLD and made.group_desc == "default:shrunken" and dist.get_pg_count() == 1
    assert (dist.get_rank(), dist.get_world_size(), dist.get_process_group_ranks()) == ({0: 0, 1: 1, 3: 2}[rank], 3, [0, 1, 2])
    for n in (1, 100_000):
        x = torch.full((n,), float(dist.get_rank()))
        dist.all_reduce(x)
        assert x.unique().tolist() == [3]
    dist.all_reduce(x, group=dist.new_group())
    made = dist.shrink_group([1], shrink_flags=dist.SHRINK_ABORT) if dist.get_rank() != 1 else None
    if made:
        x = torch.ones(3)
        dist.all_reduce(x)
        assert x.tolist() == [2, 2, 2]
        dist.destroy_process_group()


def test_ranks_go_on_after_one_has_died():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    port = store.port
    del store
    ranks = [CONTEXT.Process(target=goes_on, args=(rank, 4, f"tcp:{port}")) for rank in range(4)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(100)
    assert [rank.exitcode for rank in ranks] == [0, 0, -signal.SIGKILL, 0]


def without_store(rank, size, port, results):
    _shrink._PATIENCE = timedelta(seconds=0.5)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError, match="rank 0 is gone"):
        dist.barrier()
    with pytest.raises(dist.DistNetworkError) as caught:
        dist.shrink_group([0])
    results.put(str(caught.value))


def test_a_store_that_has_ended_with_its_rank_is_told():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    port = store.port
    del store
    results = CONTEXT.Queue()
    ranks = [CONTEXT.Process(target=without_store, args=(rank, 3, port, results)) for rank in range(3)]
    for rank in ranks:
        rank.start()
    for _ in range(2):
        assert results.get(timeout=60).startswith("shrink_group: the ranks that remain can't meet, because the store has ended with its rank: ")
    for rank in ranks:
        rank.join(60)
    assert [rank.exitcode for rank in ranks] == [-signal.SIGKILL, 0, 0]


def aborts(rank, size):
    if rank == 1:
        with pytest.raises(dist.DistBackendError, match="rank 0 called abort"):
            dist.recv(torch.ones(3), 0)
        return
    pending = dist.all_reduce(torch.ones(3), async_op=True)
    made = dist.shrink_group([1], shrink_flags=dist.SHRINK_ABORT)
    with pytest.raises(dist.DistBackendError, match="rank 0 called abort"):
        pending.wait()
    assert made.size() == 1


def test_operations_in_progress_are_aborted(tmp_path):
    on_ranks(tmp_path, 2, aborts)


@pytest.fixture
def pretended():
    dist.init_process_group("fake", rank=1, world_size=4)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (((0,),), TypeError, "ranks_to_exclude must be a list of ranks, such as [1, 3], got tuple"),
        (([],), ValueError, "ranks_to_exclude is empty"),
        (([0], None, 2), ValueError, "shrink_flags must be SHRINK_DEFAULT (0) or SHRINK_ABORT (1), got 2"),
        (([0, "1"],), TypeError, "ranks_to_exclude must hold integers, got str at 1"),
        (([4],), ValueError, "rank 4 in ranks_to_exclude is not a rank of the group, 0 to 3"),
        (([0, 0],), ValueError, "rank 0 is twice in ranks_to_exclude"),
        (([0, 1, 2, 3],), ValueError, "ranks_to_exclude has all 4 ranks"),
        (([1],), RuntimeError, "this is rank 1, which is to be excluded: only those that remain call this"),
        (([0], dist.GroupMember.NON_GROUP_MEMBER), ValueError, "this process is not a member of the group"),
    ],
)
def test_what_is_refused(pretended, arguments, error, says):
    with pytest.raises(error, match=re.escape(says)):
        dist.shrink_group(*arguments)
    assert dist.get_world_size() == 4


def test_one_rank_is_not_shrunk():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match="a group of 1 can't be shrunk"):
            dist.shrink_group([0])
    finally:
        dist.destroy_process_group()


def by_mpi(rank, size):
    group = dist.new_group(backend="mpi")
    with pytest.raises(NotImplementedError, match="ranks joined by MPI can't go on without others"):
        dist.shrink_group([1 - rank], group=group)
    dist.barrier(group=group)


@needs_mpi
def test_ranks_joined_by_mpi_are_refused(tmp_path):
    on_ranks(tmp_path, 2, by_mpi)
