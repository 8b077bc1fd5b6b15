"""Kernels rendered for devices with compilers equal the cpu bit for bit: on PoCL, rendered as for a GPU and as for a processor."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opencl import need_xpu, processors_count
from rendered_programs import KINDS


@pytest.mark.parametrize("loops", ("0", "1"))
@pytest.mark.parametrize("kind", KINDS)
def test_random_calls_have_the_bits_of_the_cpu(kind, loops):
    with processors_count():
        need_xpu()
    environment = {**os.environ, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_OPENCL_LOOPS": loops}
    program = Path(__file__).parents[1] / "support" / "rendered_programs.py"
    done = subprocess.run([sys.executable, program, "xpu:0", kind], capture_output=True, text=True, timeout=900, env=environment)
    assert done.stdout == f"{kind} []\n", done.stdout + done.stderr[-3000:]
