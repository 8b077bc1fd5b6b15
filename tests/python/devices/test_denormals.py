"""A device may take denormal float32 numbers for zero: it says so, and all other bits are the cpu's. Here it is a virtual one."""
import os
import subprocess
import sys

import pytest

import naru
from naru.testing.operator_cases import CASES, result_bits, with_few_complex


@pytest.fixture(scope="module")
def flushing():
    with naru.virtual("cuda", without=["denormals"]):
        yield "cuda:0"


def test_denormals_count_as_zero_there_and_nowhere_else(flushing):
    x = naru.tensor([1e-40, -1e-40, 2.0 ** -126, 1.0])
    if naru.tensor([1e-40]).to(flushing).mul(1).item() != 0:
        pytest.skip("this processor does not flush denormals on demand")
    assert x.to(flushing).mul(1).tolist() == [0, 0, 2.0 ** -126, 1]
    assert x.to(flushing).mul(0.5).tolist() == [0, 0, 0, 0.5]
    assert x.mul(1).tolist() == x.tolist()  # the cpu's own threads
    assert x.to(flushing).clone().tolist() == x.tolist()  # copies are bytes
    small = naru.tensor([6e-8, -6e-5], dtype=naru.float16)
    assert small.to(flushing).mul(1).tolist() == small.tolist()


@pytest.mark.parametrize("case", with_few_complex(CASES)[::8], ids=lambda c: c.name)
def test_all_other_bits_are_those_of_the_cpu(case, flushing):
    before = naru.are_deterministic_algorithms_enabled()
    naru.use_deterministic_algorithms(True)
    try:
        assert result_bits(case, flushing) == result_bits(case)
    finally:
        naru.use_deterministic_algorithms(before)


@pytest.mark.parametrize("option, said", [("without=denormals", True), ("memory=64MiB", False)])
def test_doctor_says_so(option, said):
    done = subprocess.run([sys.executable, "-m", "naru", "doctor", "cuda"], capture_output=True, text=True, check=True,
                          env={**os.environ, "NARU_VIRTUAL": f"cuda:2({option})"})
    assert ("cuda:1 may take denormal float32 numbers for zero" in done.stdout) is said, done.stdout
