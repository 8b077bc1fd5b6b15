"""What joins the ranks of a group of processes, for tests that run over each kind."""
import os

import naru as torch
import naru.distributed as dist
import pytest

needs_mpi = pytest.mark.skipif(not dist.is_mpi_available(), reason="no library of MPI with the standard ABI: pip install mpich, or NARU_MPI")
# The tensors of the tests are on cuda devices, which NCCL joins; test_nccl.py runs them so, in a process that has the libraries of tests/fakes.
ON_CUDA = bool(os.environ.get("NARU_TEST_NCCL"))
TRANSPORTS = ["nccl"] if ON_CUDA else ["shared", pytest.param("mpi", marks=needs_mpi)]


def use_transport(monkeypatch, transport):
    """Ranks that a test starts are joined so."""
    if transport == "nccl":
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")  # ranks compare their calls, as the other engines always do
    else:
        monkeypatch.setenv("NARU_DISTRIBUTED_TRANSPORT", transport)


def backend_of(rank):
    """The backend's name for a rank. Over NCCL, its tensors are on a device of its own from now on."""
    if not ON_CUDA:
        return "gloo"
    torch.cuda.set_device(rank)
    torch.set_default_device(f"cuda:{rank}")
    return "nccl"
