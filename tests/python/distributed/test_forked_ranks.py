"""A child forked by a rank is not a rank: it can't act for its parent."""
import gc
import os
import signal
import threading
import time
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
        signal.alarm(60)  # a child that waits for a thread of its parent ends without a word
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


def idle_group(folder):
    begin(0, folder, 1)
    dist.all_reduce(torch.ones(1), async_op=True).wait()
    return [dist.destroy_process_group]


def group_that_sends(folder):
    begin(0, folder, 1)
    works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(20)]
    return [works.clear, dist.destroy_process_group]


def stream_of_a_device(folder):
    held = [torch.cuda.Stream("cuda:0") for _ in range(40)]  # more than are kept for reuse
    for stream in held:
        with torch.cuda.stream(stream):
            torch.ones(3, device="cuda:0").add_(1)
    return [held.clear]


def loader(folder):
    data = torch.utils.data.TensorDataset(torch.randn(100, 3))
    held = [iter(torch.utils.data.DataLoader(data, batch_size=2, num_workers=2))]
    next(held[0])
    return [held.clear]


def stores(folder):
    server = dist.TCPStore("localhost", 0, 1, True, wait_for_workers=False)
    held = [server, dist.TCPStore("localhost", server.port, 1, False), dist.HashStore(), dist.FileStore(str(folder / "f"), 1)]
    for store in held[1:3]:
        threading.Thread(target=store.get, args=("key",), daemon=True).start()

    def end():
        for store in held[1:3]:
            store.set("key", "value")

    return [end, held.clear]


@pytest.mark.parametrize("begun", [idle_group, group_that_sends, stream_of_a_device, loader, stores])
def test_a_child_may_end_what_its_parent_began(tmp_path, begun):
    """Threads that worked or waited in the parent don't exist in the child, which waits for none of them."""
    ends = begun(tmp_path)
    time.sleep(0.05)  # threads are idle by now, or not: both must do

    def end():
        for step in ends if begun is not stores else ends[1:]:
            step()
        gc.collect()
        return "ended"

    try:
        assert in_child(end) == "ended"
    finally:
        for step in ends:
            step()
