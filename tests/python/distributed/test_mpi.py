"""Ranks joined by MPI: how they start, what they compute, and what they say of each other's end. tests/python/distributed/test_distributed.py and others
have the collectives and messages, over each kind of transport."""
import hashlib
import os
import random
import re
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
from distributed_support import needs_mpi

ROOT = Path(__file__).resolve().parents[3]
CONTEXT = mp.get_context("fork")
# How many random moments of a death are tried.
KILLS = int(os.environ.get("NARU_TEST_KILLS", "20"))


def join(rank, size, path, seconds=60, backend="mpi"):
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=path, rank=rank, world_size=size, timeout=timedelta(seconds=seconds))


def _begin(rank, body, size, path, rest):
    join(rank, size, path)
    body(rank, size, *rest)
    if dist.is_initialized():
        dist.destroy_process_group()


def on_ranks(tmp_path, size, body, *rest, path=None):
    mp.start_processes(_begin, args=(body, size, path or f"file://{tmp_path}/store", rest), nprocs=size, start_method="fork")


def until(found, seconds=60):
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return value


@pytest.fixture
def nothing_left():
    """Nothing of MPI's is left in /dev/shm. (A start of MPI in another test has names there for a moment.)"""
    yield
    until(lambda: not [name for name in os.listdir("/dev/shm") if "mpich" in name or "naru_" in name])


def test_the_abis_numbers_are_those_of_its_header():
    header = Path(sys.prefix, "include", "mpi_abi.h")
    if not header.exists():
        pytest.skip(f"no header of the ABI: {header}")
    text = header.read_text()
    own = (ROOT / "src" / "distributed" / "mpi_library.h").read_text()
    handles = {"mpi_world": "MPI_COMM_WORLD", "mpi_self": "MPI_COMM_SELF", "mpi_info_null": "MPI_INFO_NULL", "mpi_errors_return": "MPI_ERRORS_RETURN", "mpi_no_request": "MPI_REQUEST_NULL", "mpi_byte": "MPI_BYTE"}
    for name, theirs in handles.items():
        number = re.search(rf"{name}\(\) noexcept {{ return mpi_handle\((0x\w+)\)", own)[1]
        assert int(number, 16) == int(re.search(rf"#define {theirs}\s+\(\(\w+\)(0x\w+)\)", text)[1], 16), name
    values = {"kMpiSuccess": "MPI_SUCCESS", "kMpiAnySource": "MPI_ANY_SOURCE", "kMpiAnyTag": "MPI_ANY_TAG", "kMpiUndefined": "MPI_UNDEFINED", "kMpiErrorInStatus": "MPI_ERR_IN_STATUS", "kMpiThreadFunneled": "MPI_THREAD_FUNNELED"}
    for name, theirs in values.items():
        assert int(re.search(rf"{name} = (-?\d+)", own)[1]) == int(re.search(rf"\b{theirs}\s+= *(-?\d+)", text)[1]), name
    for name, parameters in re.findall(r"F\((MPI_\w+), \((.*?)\)\)", own):
        assert len(parameters.split(",")) == len(re.search(rf"int {name}\((.*?)\);", text)[1].split(",")), name


# --- results


def hashes(rank, size, folder):
    digest = hashlib.sha256()
    generator = torch.Generator().manual_seed(rank)
    for dtype in (torch.float32, torch.float16, torch.float64, torch.int8, torch.complex64):
        for n in (1, 3, 1000, 1025, 40_000, 1_000_003):
            x = (torch.randn(n, generator=generator) * 7).to(dtype)
            dist.all_reduce(x)
            digest.update(torch.view_as_real(x).numpy().tobytes() if dtype.is_complex else x.numpy().tobytes())
    Path(folder, f"{dist.group.WORLD._engine.transport()}_{rank}").write_text(digest.hexdigest())


@needs_mpi
def test_sums_have_the_bits_that_shared_memory_gives(tmp_path, nothing_left):
    on_ranks(tmp_path, 3, hashes, str(tmp_path))
    mp.start_processes(_shared, args=(str(tmp_path),), nprocs=3, start_method="fork")
    found = {path.read_text() for path in tmp_path.glob("*_[0-9]")}
    assert len(list(tmp_path.glob("MPI_*"))) == len(list(tmp_path.glob("shared memory_*"))) == 3 and len(found) == 1


def _shared(rank, folder):
    join(rank, 3, f"file://{folder}/shared", backend="gloo")
    hashes(rank, 3, folder)
    dist.destroy_process_group()


def many(rank, size):
    x = torch.full((300,), float(rank))
    dist.all_reduce(x)
    assert x.min().item() == x.max().item() == size * (size - 1) / 2
    x = torch.full((50_000,), float(rank))  # each rank reduces a part
    dist.all_reduce(x)
    assert x.min().item() == x.max().item() == size * (size - 1) / 2
    x = torch.tensor([rank])
    dist.broadcast(x, src=size - 1)
    assert x.item() == size - 1
    dist.barrier()


@needs_mpi
def test_sixty_four_ranks(tmp_path, nothing_left):
    on_ranks(tmp_path, 64, many, path=f"tcp://127.0.0.1:{free_port()}")


def free_port():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    return store.port


def groups(rank, size):
    """Groups come and go, and MPI stays."""
    for turn in range(3):
        halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        x = torch.tensor([rank])
        dist.all_reduce(x, group=halves[rank // 2])
        assert x.item() == (1, 5)[rank // 2]
        other = dist.new_group(backend="gloo")  # shared memory
        assert other._engine.transport() == "shared memory"
        dist.all_reduce(x, group=other)
        assert x.item() == 12
        dist.destroy_process_group(halves[rank // 2])
    dist.destroy_process_group()
    join(rank, size, os.environ["SECOND"])
    x = torch.tensor([1])
    dist.all_reduce(x)
    assert x.item() == size


@needs_mpi
def test_groups_come_and_go(tmp_path, monkeypatch, nothing_left):
    monkeypatch.setenv("SECOND", f"file://{tmp_path}/second")
    on_ranks(tmp_path, 4, groups)


def sent_before_the_end(rank, size):
    """What a rank has sent before it leaves arrives, even if it is received later."""
    if rank == 0:
        dist.broadcast(torch.arange(100_000), src=0)
        dist.isend(torch.arange(1000), 1)
    else:
        time.sleep(0.5)
        x, y = torch.zeros(100_000, dtype=torch.int64), torch.zeros(1000, dtype=torch.int64)
        dist.broadcast(x, src=0)
        dist.recv(y, 0)
        assert x.equal(torch.arange(100_000)) and y.equal(torch.arange(1000))
        with pytest.raises(dist.DistBackendError, match="rank 0 has left the group"):
            dist.barrier()


@needs_mpi
def test_what_was_sent_arrives_after_its_sender_has_left(tmp_path, nothing_left):
    on_ranks(tmp_path, 2, sent_before_the_end)


# --- where it can't be used


def test_a_missing_library_is_named_on_all_ranks(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_mpi; test_mpi.alone({str(tmp_path)!r}, int(sys.argv[1]))"
    ranks = [subprocess.Popen([sys.executable, "-c", code, str(rank)], stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(
        {"NARU_MPI": "/nowhere/libmpi_abi.so.1"} if rank == 1 or not dist.is_mpi_available() else {}), PYTHONPATH=os.pathsep.join(sys.path))) for rank in range(2)]
    texts = [rank.communicate(timeout=60)[0] for rank in ranks]
    for text in texts:
        assert "the ranks can't be joined by MPI: rank" in text and "/nowhere/libmpi_abi.so.1" in text and "pip install 'mpich" in text, texts


def alone(folder, rank):
    try:
        join(rank, 2, f"file://{folder}/store")
    except dist.DistBackendError as error:
        print(error)


@needs_mpi
def test_an_error_in_mpis_start_is_raised(tmp_path, nothing_left):
    """It does not end the process, as MPI_Init would."""
    results = CONTEXT.Queue()
    ranks = [CONTEXT.Process(target=without_network, args=(rank, f"file://{tmp_path}/store", results)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    texts = [results.get(timeout=60) for _ in ranks]
    for rank in ranks:
        rank.join(60)
    assert [rank.exitcode for rank in ranks] == [0, 0] and any("MPI can't be started: " in text for text in texts), texts
    assert all(re.search("MPI can't be started|rank [01] is gone|MPI has failed in its process", text) for text in texts), texts


def without_network(rank, path, results):
    os.environ.update(MPIR_CVAR_CH4_NETMOD="ofi", FI_PROVIDER="none")
    try:
        join(rank, 2, path)
    except dist.DistBackendError as error:
        results.put(str(error))


def other_ranks(rank, size):
    """Ranks 0 and 1 start MPI as a group of two, and then want a third one."""
    two = dist.new_group([0, 1], backend="mpi")
    if rank < 2:
        assert two._engine.transport() == "MPI"
    with pytest.raises(dist.DistBackendError, match="rank 2 has not started MPI together with rank 0"):
        dist.new_group(backend="mpi")
    dist.barrier()


def _begin_shared(rank, body, size, path):
    join(rank, size, path, backend="gloo")
    body(rank, size)


@needs_mpi
def test_a_process_starts_mpi_once(tmp_path, nothing_left):
    mp.start_processes(_begin_shared, args=(other_ranks, 3, f"file://{tmp_path}/store"), nprocs=3, start_method="fork")


# --- death


def busy(rank, size, path, results, heartbeat):
    os.environ["NARU_HEARTBEAT_SECONDS"] = heartbeat
    calls = 0
    try:
        join(rank, size, path, seconds=15)
        results.put(("joined", rank, ""))
        x = torch.ones(100_000)
        while True:
            dist.all_reduce(x.fill_(1))
            calls += 1
            if calls % 3 == 0:
                dist.barrier()
            if calls % 4 == 0:
                dist.broadcast(x, src=calls % size)
            if calls % 5 == 0:
                dist.send(x, (rank + 1) % size) if rank % 2 else dist.recv(x, (rank - 1) % size)
    except dist.DistError as error:
        results.put(("error", rank, str(error)))


@needs_mpi
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_dead_rank_is_named_by_all_others(tmp_path, seed, nothing_left):
    """It is killed or stopped while it computes with the others; or killed while MPI starts."""
    rng = random.Random(seed)
    size, victim = rng.choice([(2, 0), (2, 1), (4, 0), (4, 1), (4, 3)])
    how, starting = rng.choice([(signal.SIGKILL, False), (signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGSTOP, False)])
    results = CONTEXT.Queue()
    path = f"file://{tmp_path}/store"
    ranks = [CONTEXT.Process(target=busy, args=(rank, size, path, results, "1.5" if how == signal.SIGSTOP else "")) for rank in range(size)]
    try:
        for rank in ranks:
            rank.start()
        if not starting:
            for _ in range(size):
                assert results.get(timeout=60)[0] == "joined"
        time.sleep(rng.random() * (0.5 if starting else 0.1))
        os.kill(ranks[victim].pid, how)
        texts = {}
        while len(texts) < size - 1:
            kind, rank, text = results.get(timeout=60)
            if kind == "error":
                texts[rank] = text
        wrong = {rank: text for rank, text in texts.items() if f"rank {victim} is gone" not in text}
        if starting:  # it may not even have come
            absent = rf"rank {victim} did not connect|(The client socket has|wait) timed? ?out|keys: /group/0/(host|rank|mpi)/"
            wrong = {rank: text for rank, text in wrong.items() if not re.search(absent, text)}
        assert not wrong, (victim, how, starting, wrong)
        if how == signal.SIGSTOP:
            ranks[victim].kill()
        for rank in ranks:
            rank.join(60)
        assert [rank.exitcode for rank in ranks] == [-signal.SIGKILL if rank == victim else 0 for rank in range(size)]
    finally:
        for rank in ranks:
            if rank.pid:
                rank.kill()


def ends_in_an_exception(rank, size):
    if rank == 1:
        raise KeyError("wrong")
    with pytest.raises(dist.DistBackendError, match="rank 1 (is gone|has left)"):
        dist.all_reduce(torch.ones(10))


@needs_mpi
def test_a_rank_that_raises_is_named(tmp_path, nothing_left):
    with pytest.raises(mp.ProcessRaisedException, match="wrong"):
        on_ranks(tmp_path, 2, ends_in_an_exception)
