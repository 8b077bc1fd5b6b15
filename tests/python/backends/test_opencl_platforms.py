"""Several OpenCL platforms of which one does not work, and drivers that are opened without the loader, libOpenCL. PoCL is the one that works."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakes import FAKES, HOME, needs_fakes
from opencl import faulty, need_xpu, processors_count

pytestmark = needs_fakes


@pytest.fixture(autouse=True)
def xpu():
    with processors_count():
        need_xpu()
        yield


PROGRAM = """
import naru
naru.use_deterministic_algorithms(True)
print(naru.xpu.device_count())
a, b = naru.randn(40, 50), naru.randn(50, 30)
def compute(device):
    x, y = a.to(device).detach().clone().requires_grad_(), b.to(device)
    z = (x @ y).relu().sum(0).cumsum(0).sort().values
    z.square().sum().backward()
    return [z.detach().cpu(), x.grad.cpu(), (x.detach() > 0).nonzero().cpu(), x.detach().to(naru.float16).t().contiguous().cpu()]
print(all(naru.equal(p, q) for p, q in zip(compute("cpu"), compute("xpu"))))
"""


def run(program, **environment):
    base = {k: v for k, v in os.environ.items() if k not in ("NARU_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES")}
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, timeout=300, cwd=HOME,
                          env={**base, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "PYTHONPATH": str(Path(sys.modules["naru"].__file__).resolve().parents[1]), **environment})  # fmt: skip
    return done.returncode, done.stdout, done.stderr


# What the broken platform does, and what is said of it.
BROKEN = [("crash", r"platform 0: it ended a process that asked it for its devices: signal 6"), ("devices", r"Broken: clGetDeviceIDs failed with CL_OUT_OF_HOST_MEMORY \(-6\)"),
          ("empty", None), ("context", r"\(Broken\): .*CL_INVALID_DEVICE"), ("context-crash", r"\(Broken\): .*signal 6")]  # fmt: skip


@pytest.mark.parametrize("how, told", BROKEN, ids=[how for how, _ in BROKEN])
def test_a_platform_that_does_not_work_leaves_the_devices_of_the_others(how, told):
    code, said, wrong = run(["-c", PROGRAM], **faulty(broken=how))
    assert code == 0 and said.split()[:2] == ["1", "True"], said + wrong
    code, said, wrong = run(["-m", "naru", "doctor", "xpu"], **faulty(broken=how))
    assert code == 0 and "xpu: available, 1 device" in said, said + wrong
    assert re.search("left out: .*" + told, said) if told else "left out" not in said, said


def driver_of_pocl():
    lists = sorted(Path("/etc/OpenCL/vendors").glob("pocl*.icd"))
    if not lists:
        pytest.skip("PoCL is not on this machine (Debian: pocl-opencl-icd)")
    return lists[0].read_text().strip()


def test_drivers_are_opened_without_a_loader_and_those_that_do_not_work_left_out():
    pocl, bad = driver_of_pocl(), str(FAKES / "libopencl_driver.so")
    for how in ("crash", "error", "none"):
        drivers = {"NARU_OPENCL_DRIVERS": f"{bad},/nowhere/libdriver.so,{pocl},{pocl}", "NARU_FAKE_OPENCL_DRIVER": how}
        code, said, wrong = run(["-c", PROGRAM], **drivers)
        assert code == 0 and said.split()[:2] == ["1", "True"], said + wrong
        code, said, wrong = run(["-m", "naru", "doctor", "xpu"], **drivers)
        assert code == 0 and (f"left out: {bad}: it ended a process that asked it for its devices: signal 6" in said) == (how == "crash"), said + wrong
    code, said, wrong = run(["-c", "import naru; print(naru.why_unavailable('xpu'))"], NARU_OPENCL_DRIVERS=bad, NARU_FAKE_OPENCL_DRIVER="error")
    assert code == 0 and said.startswith(f"no driver library: none of {bad} is a driver that works"), said + wrong


def test_without_a_loaders_list_drivers_are_found_by_their_names():
    """In a file system of its own, which has no /etc/OpenCL; a loader finds nothing there."""
    own = ["unshare", "--mount", "bash", "-c"]
    if subprocess.run([*own, "mount -t tmpfs none /etc/OpenCL"], capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system of its own (unshare)")
    if Path(driver_of_pocl()).name != "libpocl.so.2.10.0" and not list(Path("/usr/lib").rglob("libpocl.so.2")):
        pytest.skip("this PoCL is not one whose name naru knows (libpocl.so.2)")
    environment = {k: v for k, v in os.environ.items() if k not in ("NARU_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES")}
    program = "import naru; print(naru.xpu.device_count(), (naru.arange(5.0, device='xpu') * 2).sum().item())"
    done = subprocess.run([*own, f'mount -t tmpfs none /etc/OpenCL && exec "{sys.executable}" -c "$PROGRAM"'], capture_output=True, text=True, timeout=300,
                          env={**environment, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "PROGRAM": program})  # fmt: skip
    assert done.returncode == 0 and done.stdout == "1 20.0\n", done.stdout + done.stderr


PLACES = """
#include <CL/cl_icd.h>
#include <cstddef>
#define NARU_PLACE(name, index) static_assert(offsetof(cl_icd_dispatch, name) == (index) * sizeof(void*), #name);
TABLES
"""


def test_functions_are_at_their_places_in_the_loaders_table(tmp_path):
    if not Path("/usr/include/CL/cl_icd.h").exists():
        pytest.skip("CL/cl_icd.h is not on this machine (Debian: opencl-c-headers)")
    text = (HOME / "src/backends/opencl/drivers.h").read_text()
    rows = re.findall(r"^  F\((cl\w+), (\d+)\)", text, re.MULTILINE)
    header = (HOME / "src/backends/opencl/api.h").read_text()
    declared = re.findall(r"^  F\((?:\w+\*?), (cl\w+),", header, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(set(declared) - {"clGetPlatformIDs"})
    (tmp_path / "places.cpp").write_text(PLACES.replace("TABLES", "\n".join(f"NARU_PLACE({name}, {index})" for name, index in rows)))
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-DCL_TARGET_OPENCL_VERSION=300", "-w", str(tmp_path / "places.cpp")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
