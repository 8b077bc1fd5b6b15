"""Convolutions and windows on PoCL with kernels in the style for GPUs: neighboring items read neighboring elements, tiles in local memory."""
import os
import subprocess
import sys
import textwrap

import pytest
from opencl import need_xpu, processors_count

NAMES = ["conv1d", "conv2d wide", "conv2d strided", "conv3d", "conv_transpose2d", "max_pool2d", "avg_pool2d", "interpolate bicubic", "pad reflect"]
PROGRAM = """
    import naru
    from naru.testing.operator_cases import CASES, result_bits
    naru.use_deterministic_algorithms(True)
    for case in CASES:
        if case.name in NAMES:
            assert result_bits(case, "xpu:0") == result_bits(case), case.name
            print(case.name)
"""


@pytest.mark.parametrize("loops", ["0", "1"])
def test_images_give_the_bits_of_cpu_in_both_styles_of_kernels(loops):
    with processors_count():
        need_xpu()
    environment = {**os.environ, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_OPENCL_LOOPS": loops}
    done = subprocess.run([sys.executable, "-c", f"NAMES = {NAMES}\n" + textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(NAMES)
