"""What joins the ranks of a group of processes, for tests that run over each kind."""
import naru.distributed as dist
import pytest

needs_mpi = pytest.mark.skipif(not dist.is_mpi_available(), reason="no library of MPI with the standard ABI: pip install mpich, or NARU_MPI")
TRANSPORTS = ["shared", pytest.param("mpi", marks=needs_mpi)]
