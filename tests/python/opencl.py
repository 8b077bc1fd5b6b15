"""xpu devices for a test: PoCL's, where it is installed."""
import contextlib
import os

import pytest

import naru


@contextlib.contextmanager
def processors_count():
    """OpenCL devices that are the processor itself count as xpu devices."""
    before = os.environ.get("NARU_OPENCL_CPU")
    os.environ["NARU_OPENCL_CPU"] = "1"
    try:
        yield
    finally:
        os.environ.pop("NARU_OPENCL_CPU")
        if before is not None:
            os.environ["NARU_OPENCL_CPU"] = before


def need_xpu():
    if naru.xpu.device_count() == 0:
        pytest.skip(f"no xpu device: {naru._C.why_unavailable('xpu')}; ./run test installs pocl-opencl-icd")
