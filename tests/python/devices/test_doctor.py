"""Reasons why a kind of device is unusable, as `naru doctor` and `why_unavailable` report them. Each state is produced by a small stand-in for the
driver, in a separate process."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import FAKES, TOP

import naru
from naru import _C

TWO = "00000000:65:00.0 1a 8.0 40000 NVIDIA A100;00000000:17:00.0 2b 9.0 80000 NVIDIA H100"
H100, A100 = "GPU-0000002b-0000-0000-0000-000000000000", "GPU-0000001a-0000-0000-0000-000000000000"


def environment(**variables):
    """The environment without virtual devices and with the small drivers; a value None takes the variable out."""
    variables = {
        "NARU_VIRTUAL": None, "CUDA_VISIBLE_DEVICES": None, "CUDA_DEVICE_ORDER": None, "HIP_VISIBLE_DEVICES": None,
        "NARU_CUDA_LIBRARY": str(FAKES / "libcuda.so"), "NARU_ROCM_LIBRARY": str(FAKES / "libhip.so"),
        "NARU_NVRTC_LIBRARY": str(FAKES / "libnvrtc.so"), "NARU_HIPRTC_LIBRARY": "/nowhere/libhiprtc.so", "NARU_OPENCL_LIBRARY": "/nowhere/libOpenCL.so.1", "NARU_CUDA_DEVICE_NODE": "/dev/null", "NARU_ROCM_DEVICE_NODE": "/dev/null",
        **variables,
    }  # fmt: skip
    full = {**os.environ, **variables}
    return {k: v for k, v in full.items() if v is not None}


def python(text, **variables):
    """What a program prints."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env=environment(**variables))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def why(kind="cuda", **variables):
    return python(f"import naru; print(naru.why_unavailable('{kind}'))", **variables)


STATES = {
    "no library": (
        "cuda", {"NARU_CUDA_LIBRARY": "/nowhere/libcuda.so.1"},
        "no driver library: /nowhere/libcuda.so.1: cannot open shared object file", "Install the NVIDIA driver ("),
    "a library of another kind": (
        "cuda", {"NARU_CUDA_LIBRARY": "libc.so.6"}, "no driver library: libc.so.6 has no function cuInit", "Install the NVIDIA driver ("),
    "driver too old": (
        "cuda", {"NARU_FAKE_GPUS": TWO, "NARU_FAKE_VERSION": "10020"},
        "the NVIDIA driver is too old: it supports CUDA 10.2, naru needs CUDA 11.2", "Update the NVIDIA driver to 460.27 or newer"),
    "no device node": (
        "cuda", {"NARU_CUDA_DEVICE_NODE": "/nowhere/nvidia[0-9]*"},
        "the NVIDIA driver is installed, but there is no /nowhere/nvidia[0-9]*", "Load its module (sudo modprobe nvidia"),
    "hidden": ("cuda", {"CUDA_VISIBLE_DEVICES": "", "NARU_FAKE_GPUS": TWO}, 'CUDA_VISIBLE_DEVICES="" hides every device', "Unset CUDA_VISIBLE"),
    "hidden by -1": (
        "cuda", {"CUDA_VISIBLE_DEVICES": "-1", "NARU_FAKE_GPUS": TWO}, "CUDA_VISIBLE_DEVICES=-1 hides every device", "Unset CUDA_VISIBLE"),
    "hidden by an index that is not there": (
        "cuda", {"CUDA_VISIBLE_DEVICES": "2", "NARU_FAKE_GPUS": TWO},
        f"CUDA_VISIBLE_DEVICES=2 hides every device; there are 0: NVIDIA A100 {A100}", "Unset CUDA_VISIBLE"),
    "unsupported architecture": (
        "cuda", {"NARU_FAKE_GPUS": "0000:01:00.0 1 3.5 12000 Tesla K40"},
        "Tesla K40 has compute capability 3.5, and naru's kernels need 5.0", "Use a newer device"),
    "no GPU": ("cuda", {}, "cuInit failed with 100 CUDA_ERROR_NO_DEVICE: the driver finds no GPU", "If `nvidia-smi -L`"),
    "another driver than module": (
        "cuda", {"NARU_FAKE_ERROR": "cuInit=803"},
        "cuInit failed with 803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: library and kernel module", "Restart the machine"),
    "fabric not up": ("cuda", {"NARU_FAKE_ERROR": "cuInit=802"}, "cuInit failed with 802 CUDA_ERROR_SYSTEM_NOT_READY", "Start its manager"),
    "an unknown code": ("cuda", {"NARU_FAKE_ERROR": "cuInit=12345"}, "cuInit failed with 12345: an error that naru", "Look the code up"),
    "an error after initialisation": (
        "cuda", {"NARU_FAKE_GPUS": TWO, "NARU_FAKE_ERROR": "cuDeviceGetName=999"}, "cuDeviceGetName failed with 999 CUDA_ERROR_UNKNOWN", "sudo"),
    "a driver that crashes": (
        "cuda", {"NARU_FAKE_GPUS": TWO, "NARU_FAKE_CRASH": "cuInit"}, "cuInit failed with signal 6 (Aborted)", "Restart the machine"),
    "no compiler": (
        "cuda", {"NARU_FAKE_GPUS": TWO, "NARU_NVRTC_LIBRARY": "/nowhere/libnvrtc.so"},
        "no driver library: /nowhere/libnvrtc.so", "Install NVRTC, CUDA's run-time compiler (pip install nvidia-cuda-nvrtc"),
    "a compiler that knows no such device": (
        "cuda", {"NARU_FAKE_GPUS": "0000:01:00.0 1 6.1 8000 GTX 1080"},
        "the first kernel on cuda:0 (GTX 1080) failed with an error: device cuda:0: NVRTC 12.9 makes no code for GTX 1080, of compute capability 6.1",
        "Update its driver"),
    "a kernel that fails": (
        "cuda", {"NARU_FAKE_GPUS": TWO, "NARU_FAKE_FAULT": "1"},
        "the first kernel on cuda:1 (NVIDIA H100) failed with an error: device 'cuda:1' was lost: cu", "Update its driver"),
    "rocm: no library": (
        "rocm", {"NARU_ROCM_LIBRARY": "/nowhere/libamdhip64.so"}, "no driver library: /nowhere/libamdhip64.so", "Install AMD's ROCm ("),
    "rocm: too old": ("rocm", {"NARU_FAKE_VERSION": "40300000"}, "AMD's ROCm is too old: it supports HIP 4.3, naru needs HIP 5.2", "Update AMD's"),
    "rocm: no device node": ("rocm", {"NARU_ROCM_DEVICE_NODE": "/nowhere/kfd"}, "AMD's ROCm is installed, but there is no /nowhere/kfd", "Load"),
    "rocm: hidden": ("rocm", {"HIP_VISIBLE_DEVICES": "-1"}, "HIP_VISIBLE_DEVICES=-1 hides every device", "Unset HIP_VISIBLE_DEVICES"),
    "rocm: too old a device": (
        "rocm", {"NARU_FAKE_GPUS": "0000:01:00.0 1 8.3 8000 Radeon R9"}, "Radeon R9 has architecture gfx 8.3, and naru's kernels need 9.0", "Use"),
    "rocm: error": ("rocm", {"NARU_FAKE_ERROR": "hipInit=35"}, "hipInit failed with 35 hipErrorInsufficientDriver", "Update the amdgpu module"),
    "rocm: no compiler": (
        "rocm", {"NARU_FAKE_GPUS": "0000:01:00.0 1f 9.4 192000 AMD Instinct"},
        "no driver library: /nowhere/libhiprtc.so", "Install hipRTC, HIP's run-time compiler (Debian: apt install libamdhip64-5"),
    "rocm: a kernel that fails": (
        "rocm", {"NARU_FAKE_GPUS": "0000:01:00.0 1f 9.4 192000 AMD Instinct", "NARU_HIPRTC_LIBRARY": str(FAKES / "libhiprtc.so"), "NARU_FAKE_FAULT": "0"},
        "the first kernel on rocm:0 (AMD Instinct) failed with an error: device 'rocm:0' was lost: hip", "Update its driver"),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_one_reason_and_its_one_remedy(state):
    kind, variables, reason, remedy = STATES[state]
    text = why(kind, **variables)
    assert text.startswith(reason), text
    assert f". {remedy}" in text, text


def test_metal_needs_macos():
    assert why("mps").startswith("needs macOS") or sys.platform == "darwin"


def chosen(**variables):
    """The names of the devices, in naru's order."""
    return eval(python("import naru; print([d['name'] for d in naru._C.devices() if d['kind'] == 'cuda'])", **variables))


def test_devices_come_in_the_drivers_order_which_the_environment_may_choose():
    assert chosen(NARU_FAKE_GPUS=TWO) == ["NVIDIA A100", "NVIDIA H100"]
    assert chosen(NARU_FAKE_GPUS=TWO, CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["NVIDIA H100", "NVIDIA A100"]
    assert chosen(NARU_FAKE_GPUS=TWO, CUDA_DEVICE_ORDER="FASTEST_FIRST") == ["NVIDIA A100", "NVIDIA H100"]
    many = ";".join(f"0000:{bus:02X}:00.0 {bus:x} 9.0 1000 bus {bus}" for bus in (0x9A, 0x0B, 0xE1, 0x02))
    assert chosen(NARU_FAKE_GPUS=many, CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["bus 2", "bus 11", "bus 154", "bus 225"]
    assert chosen(NARU_FAKE_GPUS=many) == ["bus 154", "bus 11", "bus 225", "bus 2"]


@pytest.mark.parametrize("value, names", [("0", ["NVIDIA A100"]), ("1,0", ["NVIDIA H100", "NVIDIA A100"]), ("1,5,0", ["NVIDIA H100"]),
                                          (A100, ["NVIDIA A100"]), ("GPU-0000001a", ["NVIDIA A100"]), ("GPU-000000,0", None),
                                          ("GPU-0000002b,0", ["NVIDIA H100", "NVIDIA A100"]), ("1,1", None)])  # fmt: skip
def test_cuda_visible_devices_chooses_by_index_and_uuid_and_gives_the_order(value, names):
    if names is None:
        assert why(NARU_FAKE_GPUS=TWO, CUDA_VISIBLE_DEVICES=value).startswith(f"CUDA_VISIBLE_DEVICES={value} hides every device")
    else:
        assert chosen(NARU_FAKE_GPUS=TWO, CUDA_VISIBLE_DEVICES=value) == names


def test_probing_opens_no_context_and_initialises_no_driver_in_this_process(tmp_path):
    log = tmp_path / "calls"
    pid = python(
        "import naru, os; naru.is_available('cuda'); naru.is_available('cuda'); naru.why_unavailable('cuda'); print(os.getpid())",
        NARU_FAKE_GPUS=TWO, NARU_FAKE_LOG=str(log),
    )  # fmt: skip
    calls = [line.split() for line in log.read_text().splitlines()]
    assert [name for _, name in calls].count("cuDeviceGetCount") == 1, "a driver was asked twice"
    assert pid not in {process for process, _ in calls}
    # A child process tries a kernel on each device and opens contexts for that; the driver, slow to start, is started in the child and in the parent.
    assert [name for _, name in calls].count("cuDevicePrimaryCtxRetain") == 2
    assert [name for _, name in calls].count("cuInit") == 2


def test_a_driver_and_devices_that_were_found_right_are_not_tried_again_by_the_next_process(tmp_path):
    def starts(**variables):
        log = tmp_path / "calls"
        assert python("import naru; print(naru.is_available('cuda'))", **{"NARU_FAKE_GPUS": TWO, "NARU_CACHE_DIR": str(tmp_path / "cache"), "NARU_FAKE_LOG": str(log), **variables}) == "True"
        calls = log.read_text()
        log.unlink()
        return calls.count("cuInit\n")

    assert [starts() for _ in range(3)] == [2, 1, 1]
    assert starts(NARU_SELF_CHECK="1") == 2  # an explicit self-check
    assert starts(NARU_FAKE_GPUS=TWO.replace(" 1a ", " 3c ")) == 2  # another device
    assert starts(NARU_FAKE_VERSION="12060") == 2
    failing = {"NARU_FAKE_GPUS": TWO.replace(" 1a ", " 4d "), "NARU_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # a failure is tried again
        assert why(**failing, NARU_FAKE_FAULT="0").startswith("the first kernel on cuda:0")
    assert why(**failing) == ""


def test_importing_and_computing_on_cpu_asks_no_driver(tmp_path):
    log = tmp_path / "calls"
    python("import naru; (naru.ones(3) + 1).sum().item(); naru.device('cuda:3')", NARU_FAKE_GPUS=TWO, NARU_FAKE_LOG=str(log))
    assert not log.exists()


def test_a_forked_child_knows_what_its_parent_found(tmp_path):
    log = tmp_path / "calls"
    text = python(
        "import naru, os\nnaru.is_available('cuda')\nif os.fork() == 0:\n    print(naru.why_unavailable('cuda'), flush=True)\n    os._exit(0)\nos.wait()",
        NARU_FAKE_GPUS=TWO, NARU_FAKE_LOG=str(log),
    )  # fmt: skip
    assert text == ""
    assert log.read_text().count("cuDeviceGetCount") == 1


def test_the_error_on_use_contains_the_reason_and_the_remedy():
    text = python(
        "import naru\nd = naru.device('cuda')\ntry: naru.ones(1, device=d)\nexcept RuntimeError as e: print(e)", CUDA_VISIBLE_DEVICES="")
    assert text == "device 'cuda' is not available: " + why(CUDA_VISIBLE_DEVICES="")


VIRTUAL = """
import naru
print(naru.cuda.device_count(), [naru.cuda.get_device_properties(i).pci_bus_id - 1 for i in range(naru.cuda.device_count())])
"""


@pytest.mark.parametrize("value, seen", [("2", "1 [2]"), ("3,0", "2 [3, 0]"), ("", "0 []"), ("0,0", "0 []"),
                                         ("GPU-76697274-7561-6c00-0001-000000000001,0", "2 [1, 0]")])  # fmt: skip
def test_cuda_visible_devices_chooses_among_virtual_devices_as_among_real_ones(value, seen):
    assert python(VIRTUAL, NARU_VIRTUAL="cuda:4", CUDA_VISIBLE_DEVICES=value) == seen
    set_by_program = f"import os; os.environ['CUDA_VISIBLE_DEVICES'] = '{value}'\n" + VIRTUAL
    assert python(set_by_program, NARU_VIRTUAL="cuda:4") == seen


def test_hidden_virtual_devices_say_so():
    assert why(NARU_VIRTUAL="cuda:3", CUDA_VISIBLE_DEVICES="").startswith('CUDA_VISIBLE_DEVICES="" hides every device; NARU_VIRTUAL gives 3. Unset ')
    assert why(NARU_VIRTUAL="rocm:1", HIP_VISIBLE_DEVICES="-1", kind="rocm").startswith("HIP_VISIBLE_DEVICES=-1 hides every device")


def test_devices_that_the_program_asks_for_are_all_visible():
    text = "import naru\nwith naru.virtual('cuda', count=3): print(naru.cuda.device_count(), end=' ')\nwith naru.virtual('mps'):\n" + "".join(
        f"    {line}\n" for line in VIRTUAL.splitlines())
    assert python(text, NARU_VIRTUAL="cuda:4", CUDA_VISIBLE_DEVICES="2,1") == "3 2 [2, 1]"


WRONG = {"NARU_VIRTUAL": "cuda:2,mps:1", "NARU_VIRTUAL_WRONG": "cuda:1"}


def test_a_device_whose_kernels_give_wrong_numbers_is_not_available():
    text = why(**WRONG)
    assert text.startswith("a kernel ran on cuda:1 and gave wrong numbers: -71.42857 * 0.1 + -71.42857 is "), text
    assert "`naru selftest cuda:1` shows which operators are wrong" in text
    assert python("import naru; print(naru.cuda.device_count(), naru.best_device().type)", **WRONG) == "0 mps"
    status, out, _ = command("doctor", **WRONG)
    assert status == 0 and "cuda: not available (wrong numbers)" in out.splitlines() and "mps: available, 1 device" in out.splitlines()
    assert python("import naru; print(naru.is_available('cuda'))", **WRONG, NARU_SELF_CHECK="0") == "True"


def test_selftest_shows_what_is_wrong_with_such_a_device():
    status, text, _ = command("selftest", "cuda:1", "--quick", **WRONG)
    assert status == 1 and "wrong: exp, contiguous, float32: " in text and text.rstrip().endswith("some WRONG")
    assert command("selftest", "cuda:0", "--quick", **WRONG)[0] == 0


def test_without_any_device_the_cpu_is_best_and_the_accelerator_says_why():
    text = python("""
import naru, json
best = naru.best_device()
words = {kind: naru.why_unavailable(kind) for kind in ("cuda", "rocm", "xpu", "mps")}
assert best == naru.device("cpu") and best.others == words and all(words.values())
assert not naru.accelerator.is_available() and naru.accelerator.current_accelerator() is None
assert naru.accelerator.why_unavailable() == "\\n".join(f"{kind}: {why}" for kind, why in words.items())
try:
    naru.accelerator.current_device_index()
except RuntimeError as error:
    print(naru.accelerator.why_unavailable() in str(error))
""")
    assert text == "True"


def command(*arguments, **variables):
    """(exit status, output, errors) of the naru command."""
    done = subprocess.run([sys.executable, "-m", "naru", *arguments], capture_output=True, text=True, timeout=120, env=environment(**variables))
    return done.returncode, done.stdout, done.stderr


def test_doctor_gives_a_reason_and_a_remedy_for_each_kind():
    status, text, _ = command("doctor", CUDA_VISIBLE_DEVICES="", NARU_VIRTUAL="xpu:2")
    assert status == 0
    lines = text.splitlines()
    assert "cpu: available, 1 device" in lines and "xpu: available, 2 devices" in lines
    at = lines.index("cuda: not available (hidden by environment)")
    reason, remedy = lines[at + 1], lines[at + 2]
    assert f"{reason.removeprefix('  reason: ')}. {remedy.removeprefix('  remedy: ')}" == why(CUDA_VISIBLE_DEVICES="")
    assert "mps: not available (other system)" in lines or sys.platform == "darwin"


def test_doctor_of_a_kind_says_with_its_status_whether_it_is_available():
    status, text, _ = command("doctor", "cuda", NARU_VIRTUAL="cuda")
    assert status == 0 and re.fullmatch(r"cuda: available, 1 device\n  libraries: .+\n", text)
    assert command("doctor", "cuda", CUDA_VISIBLE_DEVICES="")[0] == 1
    status, _, errors = command("doctor", "tpu")
    assert status == 2 and "the kinds are cpu, cuda, rocm, xpu, mps" in errors
    assert command("doctor", "cuda", "--fast")[0] == 2
    found = json.loads(command("doctor", "cuda", "--json", CUDA_VISIBLE_DEVICES="")[1])
    assert [(d["kind"], d["available"], d["state"]) for d in found] == [("cuda", False, "hidden by environment")]


def test_devices_is_a_table_and_json():
    status, text, _ = command("devices", NARU_VIRTUAL="cuda:2", NARU_VIRTUAL_MEMORY="64M")
    assert status == 0
    head, *rows = (line.split("  ") for line in text.splitlines())
    assert [c for c in head if c][:5] == ["device", "kind", "index", "name", "memory"]
    rows = [[c.strip() for c in row if c] for row in rows]
    assert [row[:6] for row in rows[1:3]] == [[f"cuda:{i}", "cuda", str(i), "Virtual cuda", "64 MiB", "64 MiB"] for i in range(2)]
    assert rows[0][0] == "cpu" and rows[0][-1] == "tested" and rows[1][-1] == "virtual"
    assert text.splitlines()[-1].startswith("not available: ") and "mps" in text.splitlines()[-1]
    found = json.loads(command("devices", "--json", NARU_VIRTUAL="cuda:2")[1])
    assert [d["device"] for d in found["devices"]] == ["cpu", "cuda:0", "cuda:1"]
    assert len({d["uuid"] for d in found["devices"]}) == 3
    assert found["not_available"]["rocm"]["reason"]
