"""xpu devices for a test: PoCL's, where it is installed."""
import contextlib
import os
from pathlib import Path

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


TOP = Path(naru.__file__).resolve().parents[2]
FAKES = [TOP / "tests/fakes", TOP / "build/release/tests/fakes"]


def faulty(**settings):
    """The environment of a process whose OpenCL is the machine's own, but for what tests/fakes/opencl.cpp does to it."""
    found = next((p / "libopencl.so" for p in FAKES if (p / "libopencl.so").exists()), None)
    if not found:
        pytest.skip("tests/fakes has no libopencl.so: there was no libOpenCL.so.1 on this machine when it was built")
    return {"NARU_OPENCL_LIBRARY": str(found), **{f"NARU_FAKE_OPENCL_{k.upper()}": str(v) for k, v in settings.items()}}
