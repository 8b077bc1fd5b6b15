"""Processes that mpirun or srun has started find their ranks and each other by env://."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from naru.distributed import _launchers

OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_RANK": "1", "PMIX_NAMESPACE": "prterun-a-7@1"}
MPIEXEC = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_FD": "9"}
SLURM = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_JOB_NODELIST": "node[07-08]"}
BATCH = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "node[07-08]"}  # what a batch script has, and leaves to what it starts
TORCHRUN = {"RANK": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "a", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("environ", "rank", "size", "local", "told"),
    [
        (TORCHRUN, 2, 3, None, ("a", 1)),
        ({**SLURM, **TORCHRUN, "LOCAL_RANK": "0"}, 2, 3, 0, ("a", 1)),  # srun has started torchrun
        (OPEN_MPI, 1, 4, 1, "127.0.0.1"),
        ({**BATCH, **OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 1, 4, 1, "node07"),
        ({**OPEN_MPI, "MASTER_ADDR": "b", "MASTER_PORT": "2"}, 1, 4, 1, ("b", 2)),
        (MPIEXEC, 3, 4, 1, None),
        ({**BATCH, **MPIEXEC}, 3, 4, 1, None),
        ({**MPIEXEC, "MASTER_ADDR": "b", "MASTER_PORT": "2"}, 3, 4, 1, ("b", 2)),
        (SLURM, 5, 8, 1, "node07"),
        ({**SLURM, "MASTER_PORT": "2"}, 5, 8, 1, ("node07", 2)),
        ({**SLURM, "SLURM_STEP_NODELIST": "node08"}, 5, 8, 1, "127.0.0.1"),
        ({**SLURM, "PMIX_RANK": "5"}, 5, 8, 1, "node07"),  # srun --mpi=pmix
        ({**SLURM, "PMI_RANK": "5", "PMI_SIZE": "8"}, 5, 8, None, ("node07", 3)),  # srun --mpi=pmi2
        ({"PMIX_RANK": "1", "WORLD_SIZE": "2", "PMIX_NAMESPACE": "x", "MASTER_ADDR": "c"}, 1, 2, None, "c"),
    ],
)
def test_who_a_process_is(environ, rank, size, local, told):
    if told == ("node07", 3):  # PMI_* alone do not say which host is the first
        environ = {**environ, "MASTER_ADDR": "node07", "MASTER_PORT": "3"}
    place = _launchers.place(-1, -1, environ)
    assert (place.rank, place.size, _launchers.local_rank(environ)) == (rank, size, local)
    found = _launchers.address(place, 0, environ)
    if not isinstance(told, str):
        assert found == told
        return
    assert found is not None and found[0] == told and 20000 <= found[1] < 30000
    other = {name: "6" if name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID") else value for name, value in environ.items()}
    other |= {name: "7" for name in ("OMPI_COMM_WORLD_SIZE",) if name in environ}
    assert _launchers.address(place, 0, other) == found != _launchers.address(place, 1, environ)  # the same for each rank, another the next time


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({}, "environment variable RANK expected, but not set; torchrun sets it, mpirun and srun set their own"),
        ({"RANK": "0"}, "environment variable WORLD_SIZE expected"),
        ({"SLURM_NTASKS": "4"}, "environment variable RANK expected"),  # the shell of a job
        ({"RANK": "0", "WORLD_SIZE": "2"}, "environment variable MASTER_ADDR expected"),
        ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, "environment variable MASTER_PORT expected"),
        ({"PMI_RANK": "0"}, "PMI_RANK is set and PMI_SIZE is not, and mpiexec sets both"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_SIZE is set and OMPI_COMM_WORLD_RANK is not"),
        ({"SLURM_PROCID": "0"}, "SLURM_PROCID is set and SLURM_NTASKS is not, and srun sets both"),
        ({**OPEN_MPI, "PMI_RANK": "0", "PMI_SIZE": "4"}, "OMPI_COMM_WORLD_RANK is 1 and PMI_RANK is 0, so who has started this process is not clear"),
        ({**OPEN_MPI, "PMIX_RANK": "2"}, "OMPI_COMM_WORLD_RANK is 1 and PMIX_RANK is 2"),
        ({**OPEN_MPI, "RANK": "0"}, "RANK is 0 and OMPI_COMM_WORLD_RANK is 1"),
        ({**MPIEXEC, "WORLD_SIZE": "8"}, "WORLD_SIZE is 8 and PMI_SIZE is 4"),
        ({**MPIEXEC, "PMI_RANK": "4"}, "rank 4 of 4 processes, by the variables of mpiexec"),
        ({**SLURM, "SLURM_PROCID": "x"}, "the environment variable SLURM_PROCID must be a number, got 'x'"),
        ({"PMIX_RANK": "1"}, "its variables do not say how many there are"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "Open MPI's mpirun does not say on which host rank 0 is"),
        ({name: value for name, value in OPEN_MPI.items() if name != "PMIX_NAMESPACE"}, "MASTER_PORT expected, but not set; Open MPI's mpirun gives the processes nothing in common"),
        ({name: value for name, value in SLURM.items() if "ID" not in name or "PROC" in name}, "environment variable MASTER_PORT expected"),
    ],
)
def test_variables_that_say_too_little_or_too_much(environ, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        _launchers.address(_launchers.place(-1, -1, environ), 0, environ)


def test_arguments_come_before_variables():
    assert _launchers.place(1, 2, {"MASTER_ADDR": "a", "MASTER_PORT": "1", **MPIEXEC})[:2] == (1, 2)
    with pytest.raises(ValueError, match="RANK is 0 and PMI_RANK is 3"):
        _launchers.place(0, -1, MPIEXEC)


@pytest.mark.parametrize(("nodes", "first"), [("a", "a"), ("a,b", "a"), ("n[3,5-7],b", "n3"), ("r[1-2]n[007-100]x", "r1n007x"), ("a-b.c[1]", "a-b.c1")])
def test_the_first_host_of_slurms_lists(nodes, first):
    assert _launchers.first_host(nodes) == first


def test_a_list_without_a_host_is_refused():
    with pytest.raises(ValueError, match="a list of hosts as Slurm writes them is wanted"):
        _launchers.first_host(",a")


PROGRAM = """
import os, torch, torch.distributed as dist
for turn in range(2):
    dist.init_process_group()
    x = torch.tensor([dist.get_rank()])
    dist.all_reduce(x)
    if dist.get_rank() == 0:
        print("sum", x.item(), "of", dist.get_world_size(), dist.get_node_local_rank(), os.environ.get("NARU_STORE_TOKEN", "") != "", flush=True)
    dist.destroy_process_group()
"""


def started_by(command, tmp_path, **more):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}
    environment.pop("NARU_STORE_TOKEN", None)
    return subprocess.Popen([*command, sys.executable, "-m", "naru", "run", str(program)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_with_slurms_variables_meet(tmp_path):
    variables = {**SLURM, "SLURM_NTASKS": "3", "SLURM_STEP_NODELIST": "node[08]", "SLURM_JOB_ID": str(os.getpid())}
    ranks = [started_by([], tmp_path, **{**variables, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}) for rank in range(3)]
    told = [rank.communicate(timeout=100) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * 3 and told[0][0] == "sum 3 of 3 0 False\n" * 2, told


def test_mpiexec_starts_processes_that_find_each_other(tmp_path):
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ.get("PATH", "")]))
    if mpiexec is None or "HYDRA" not in subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60).stdout:
        pytest.skip("no mpiexec of MPICH's: pip install mpich")
    done = started_by([mpiexec, "-n", "3"], tmp_path)
    out, err = done.communicate(timeout=100)
    assert (done.returncode, out) == (0, "sum 3 of 3 0 True\n" * 2), (out, err)
