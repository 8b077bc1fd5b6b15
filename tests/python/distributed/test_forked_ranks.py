"""A child forked by a rank is not a rank: it can't act for its parent."""
import os
import warnings
from datetime import timedelta

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from distributed_support import TRANSPORTS


def in_child(body):
    """What `body` returns in a forked child, as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        read, write = os.pipe()
        child = os.fork()
    if child == 0:
        try:
            text = body()
        except BaseException as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}"
        os.write(write, str(text).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read().decode()
    os.waitpid(child, 0)
    return text


def refused(call):
    """The names of those among the group's calls that a forked child may make all the same."""

    def text():
        try:
            call()
        except RuntimeError as error:
            return "" if "forked from a rank of a group" in str(error) else f"{call}: {error}"
        return f"{call}: accepted"

    return text


def calls(size):
    x, other = torch.full((1,), 100.0), [torch.zeros(1) for _ in range(size)]
    yield lambda: dist.all_reduce(x)
    yield lambda: dist.all_reduce(x, async_op=True).wait()
    yield lambda: dist.broadcast(x, 0)
    yield lambda: dist.all_gather(other, x)
    yield lambda: dist.reduce_scatter(x, other)
    yield lambda: dist.all_to_all(other, [x] * size)
    yield lambda: dist.all_gather_object([None] * size, 1)
    yield dist.barrier
    if size > 1:
        yield lambda: dist.send(x, 1 - dist.get_rank())
        yield lambda: dist.recv(x, 1 - dist.get_rank())
        yield lambda: dist.new_group([0, 1])


def begin(rank, folder, size):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=timedelta(seconds=30))


def work(rank, folder, transport):
    torch.set_num_threads(1)
    os.environ["NARU_DISTRIBUTED_TRANSPORT"] = transport
    begin(rank, folder, 2)
    if rank == 0:
        waiting = dist.irecv(torch.zeros(1), src=1, tag=7)
        found = in_child(lambda: "".join(refused(call)() for call in (*calls(2), waiting.wait)))
        assert found == "", found
        # It may call what needs no other rank, and create its own group.
        assert in_child(lambda: (dist.get_rank(), dist.get_world_size())) == "(0, 2)"

        def own_group():
            dist.destroy_process_group()
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
            x = torch.ones(1)
            dist.all_reduce(x)
            return x.item()

        assert in_child(own_group) == "1.0"
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == 2
    if rank == 1:
        dist.send(x, 0, tag=7)
    else:
        waiting.wait()
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_forked_child_does_not_take_its_parents_place(tmp_path, transport):
    mp.start_processes(work, (str(tmp_path), transport), 2, start_method="fork")


def test_nor_in_a_group_of_one(tmp_path):
    begin(0, tmp_path, 1)
    try:
        dist.all_reduce(torch.ones(1), async_op=True).wait()  # the thread does not exist in the child
        assert in_child(lambda: "".join(refused(call)() for call in calls(1))) == ""
    finally:
        dist.destroy_process_group()


def test_a_childs_store_of_a_file_does_not_delete_it(tmp_path):
    store = dist.FileStore(str(tmp_path / "store"), 1)
    store.set("key", "value")

    def drop():
        nonlocal store
        del store
        return "dropped"

    assert in_child(drop) == "dropped"
    assert (tmp_path / "store").exists() and store.get("key") == b"value"


def test_a_child_serves_no_store_of_its_parents(monkeypatch):
    monkeypatch.delenv("NARU_STORE_TOKEN", raising=False)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    store.set("key", "value")
    assert in_child(lambda: store.get("key")) == "b'value'"  # over its own connection
    text = in_child(lambda: dist.TCPStore("127.0.0.1", store.port, is_master=True, multi_tenant=True))
    assert text.startswith("DistNetworkError: The server socket has failed to listen"), text
    assert store.get("key") == b"value"
