"""What each rank has called last, written to a file when a group fails."""
import os
import pickle
import re
import signal
import subprocess
import sys
from datetime import timedelta

import naru as torch
import naru.distributed as dist
import naru.multiprocessing as mp
import pytest
from distributed_support import TRANSPORTS
from ranks import on_ranks


def dies(rank, size, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    half = dist.new_group([0, 1], group_desc="half")
    if rank < 2:
        dist.broadcast(torch.ones(2, 3, dtype=torch.float16), src=0, group=half)
    dist.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError, match=re.escape(f"(what this rank has called is in {folder}/calls_{rank})")):
        dist.all_reduce(torch.ones(3))  # the line that the file names


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_survivors_write_what_they_have_called(tmp_path, monkeypatch, transport):
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", str(tmp_path / "calls_"))
    monkeypatch.setenv("NARU_DISTRIBUTED_TRANSPORT", transport)
    ranks = [mp.get_context("fork").Process(target=dies, args=(rank, 3, str(tmp_path))) for rank in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
    assert [rank.exitcode for rank in ranks] == [0, 0, -signal.SIGKILL]
    assert sorted(path.name for path in tmp_path.glob("calls_*")) == ["calls_0", "calls_1"]
    with open(__file__) as own:
        line = next(number for number, text in enumerate(own, 1) if "# the line that the file names" in text and "next(" not in text)
    for rank in range(2):
        told = pickle.loads((tmp_path / f"calls_{rank}").read_bytes())
        assert told["rank"] == rank and "rank 2 is gone" in told["reason"]
        assert {group["desc"]: group["ranks"] for group in told["pg_config"].values()} == {"default_pg": "[0, 1, 2]", "half": "[0, 1]"}
        library = "mpi" if transport == "mpi" else "gloo"
        names = [(entry["profiling_name"], entry["process_group"][1], entry["state"], entry["input_dtypes"]) for entry in told["entries"]]
        assert names == [(f"{library}:broadcast", "half", "completed", ["float16"]), (f"{library}:barrier", "default_pg", "completed", []), (f"{library}:all_reduce", "default_pg", "started", ["float32"])]
        last = told["entries"][-1]
        assert last["frames"][0]["filename"].endswith("test_flight_recorder.py") and last["frames"][0]["line"] == line
        assert last["input_sizes"] == [[3]] and last["duration_ms"] is None and last["timeout_ms"] == 60_000
        assert told["entries"][0]["time_created_ns"] <= told["entries"][0]["time_discovered_completed_ns"] <= last["time_created_ns"]


def wrong(rank, size):
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1 + rank))


@pytest.mark.parametrize("variables", [{"TORCH_FR_DUMP_ON_TIMEOUT": "0"}, {"TORCH_FR_BUFFER_SIZE": "0"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}])
def test_nothing_is_written_where_that_is_asked_for(tmp_path, variables):
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nimport test_flight_recorder as t; from pathlib import Path; t.on_ranks(Path({str(tmp_path)!r}), 2, t.wrong)"
    environment = {**os.environ, **variables, "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "calls_"), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=100)
    assert not list(tmp_path.glob("calls_*"))
