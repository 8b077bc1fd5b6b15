"""Process groups over NCCL, on the libraries that stand in for NVIDIA's (tests/fakes; nccl.cpp says how unkind it is). No GPU is used. What holds for all
kinds of engines is in the other files here, which run over NCCL too; nccl_cases.py has what is NCCL's alone."""
import re
import shutil
from pathlib import Path

import pytest
from fakes import cuda_environment, needs_fakes, run

HERE = Path(__file__).parent
pytestmark = [needs_fakes, pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler, which stands for NVRTC here")]


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    gpus = ";".join(f"0000:0{i + 1}:00.0 {i + 10:x} 9.0 2048 H100" for i in range(4))
    return {**cuda_environment(tmp_path_factory.mktemp("cache"), gpus), "NARU_TEST_NCCL": "1"}


@pytest.mark.parametrize(("file", "least"), [("test_distributed.py", 4), ("test_more_collectives.py", 3), ("nccl_cases.py", 26)])
def test_over_nccl(four, file, least):
    code, said = run(four, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["-k", "nccl"] if file != "nccl_cases.py" else []), str(HERE / file))
    assert code == 0, said[-6000:]
    assert int(re.search(r"(\d+) passed", said)[1]) >= least and "skipped" not in said, said[-300:]


def test_doctor_says_which_library_there_is(four):
    code, said = run(four, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "NCCL 2.28.3" in said
    code, said = run({**four, "NARU_NCCL_LIBRARY": "/nowhere"}, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "process groups through the host's memory (no NCCL: pip install nvidia-nccl-cu12, or NVIDIA's package of NCCL)" in said


ASKED = """
import warnings
import naru.distributed as dist
print(dist.is_nccl_available(), dist.is_backend_available("nccl"))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
print(dist.group.WORLD._engine.device_transport(), [str(w.message) for w in told])
"""


def test_a_program_is_told_if_it_can_not_have_the_library(four):
    assert run(four, "-c", ASKED) == (0, "True True\nNCCL 2.28.3 []\n")
    code, said = run({**four, "NARU_NCCL_LIBRARY": "/nowhere"}, "-c", ASKED)
    assert code == 0 and said.startswith("False False\n [\"NCCL can't be used: process groups through the host's memory (no NCCL") and "Tensors on devices go through the host's memory" in said
    code, said = run({**four, "NARU_VIRTUAL": "cuda:2"}, "-c", ASKED)
    assert code == 0 and "virtual devices have no NCCL" in said
