"""The rocm backend, which never ran on a GPU. It runs over small libraries that stand in for AMD's driver and hipRTC (tests/fakes: the driver is the one
that stands in for NVIDIA's, under HIP's names), and its kernels are compiled by AMD's own hipRTC where that is found, which needs no GPU."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import naru
import pytest
from fakes import FAKES, needs_fakes
from kernel_texts import has_more_than_numbers

HOME = Path(__file__).resolve().parents[3]

pytestmark = [
    needs_fakes,
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler, which stands for hipRTC here"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    whole = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")}
    return {
        **whole,
        "NARU_CUDA_LIBRARY": "/nowhere",
        "NARU_ROCM_LIBRARY": str(FAKES / "libhip.so"),
        "NARU_HIPRTC_LIBRARY": str(FAKES / "libhiprtc.so"),
        "NARU_HIPBLASLT_LIBRARY": str(FAKES / "libhipblaslt.so"),
        "NARU_MIOPEN_LIBRARY": str(FAKES / "libMIOpen.so"),
        "NARU_RCCL_LIBRARY": str(FAKES / "librccl.so"),
        "NARU_ROCM_DEVICE_NODE": "/dev/null",
        "NARU_FAKE_GPUS": "0000:01:00.0 a 9.0 2048 gfx90a:sramecc+:xnack-;0000:02:00.0 b 10.3 2048 gfx1030",
        "PYTHONPATH": str(Path(naru.__file__).resolve().parents[1]),
        "NARU_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "NARU_VIRTUAL": "mps:1",
        "NARU_TEST_DEVICES": "rocm",
    }


def run(environment, *command):
    done = subprocess.run([sys.executable, *command], env=environment, cwd=HOME, capture_output=True, text=True, timeout=1200)
    return done.returncode, done.stdout + done.stderr


# The operator cases in parts, because all together exceed the time limit of one test; a share of them by default, as their kernels are cuda's. The last
# part first: test_cuda.py, which runs beside this, begins with the first, and each finds the libraries that the other has compiled.
ALL = os.environ.get("NARU_TEST_KERNELS") == "all"
PARTS, OTHERS = (range(5, -1, -1), range(4)) if ALL else ((5,), (0, 2))


@pytest.mark.parametrize("file, part, least", [*(("test_operators.py", f"{k}/6", 150) for k in PARTS), *(("test_each_device.py", f"{k}/4", 100) for k in OTHERS), ("test_kernel*.py", "0/1", 60), ("test_graphs.py", "0/1", 20)])
def test_what_holds_on_every_device_holds_there(environment, file, part, least):
    code, said = run({**environment, "NARU_TEST_PART": part}, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "rocm", *map(str, sorted(HOME.glob(f"tests/python/*/{file}"))))
    assert code == 0, said[-4000:]
    assert int(re.search(r"(\d+) passed", said)[1]) >= least, said[-300:]


PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
x, y = torch.randn(64, 20), torch.randint(0, 4, (64,))
def train(device):
    import copy
    net = copy.deepcopy(model).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    return [loss.detach().cpu(), *(p.detach().cpu() for p in net.parameters())]
torch.use_deterministic_algorithms(True)
ours = train("cpu")
a = torch.randn(1000, device="rocm:0")
for device in ("rocm:0", "rocm:1", "cuda:0", "cuda:1"):
    assert all(torch.equal(a, b) for a, b in zip(ours, train(device))), device
    assert torch.equal(a.to(device).to("cpu"), a.cpu()), device
kept = torch.ones(5, device="cuda:0")
print(torch.cuda.memory_allocated(0) > 0)
"""


def test_a_training_run_ends_in_the_bits_of_the_cpu_on_wavefronts_of_either_size(environment, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    assert run(environment, "-m", "naru", "run", str(tmp_path / "train.py")) == (0, "True\n")


NAMES = """
import json, torch
from torch import version
p = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
x = torch.ones(3, device="cuda") if p else None
try:
    on_rocm = torch.ones(2, device="rocm").is_cuda
except RuntimeError:
    on_rocm = None
print(json.dumps({
    "hip": version.hip, "cuda": version.cuda, "names": [q.name for q in p], "architectures": [q.gcnArchName for q in p], "warps": [q.warp_size for q in p],
    "type": x is not None and (x.device.type, x.is_cuda, torch.cuda.current_device(), torch.from_dlpack(x).data_ptr() == x.data_ptr(), x.__dlpack_device__()[0]),
    "rocm": on_rocm,
}))
"""
GFX = ["gfx90a:sramecc+:xnack-", "gfx1030"]


def test_cuda_names_amds_devices_where_there_is_none_of_nvidias(environment, tmp_path):
    (tmp_path / "names.py").write_text(NAMES)

    def names(environment):
        code, said = run(environment, "-m", "naru", "run", str(tmp_path / "names.py"))
        assert code == 0, said
        return json.loads(said)

    assert names(environment) == {"hip": "6.4", "cuda": None, "names": GFX, "architectures": GFX, "warps": [64, 32], "type": ["cuda", True, 0, True, 10], "rocm": False}
    nvidia = {**environment, "NARU_CUDA_LIBRARY": str(FAKES / "libcuda.so"), "NARU_NVRTC_LIBRARY": str(FAKES / "libnvrtc.so"), "NARU_CUDA_DEVICE_NODE": "/dev/null"}
    found = names(nvidia)
    assert found["hip"] is None and found["type"][-1] == 2 and found["warps"] == [32, 32] and found["rocm"] is False
    neither = {**environment, "NARU_ROCM_LIBRARY": "/nowhere/libamdhip64.so"}
    assert names(neither) == {"hip": None, "cuda": None, "names": [], "architectures": [], "warps": [], "type": False, "rocm": None}
    code, said = run(neither, "-m", "naru", "doctor", "cuda")
    assert code == 1 and "amdhip64" not in said  # NVIDIA's driver is what is missing there


def test_devices_and_doctor_say_that_it_never_ran_on_a_gpu(environment):
    code, said = run(environment, "-m", "naru", "devices")
    lines = [line for line in said.splitlines() if line.startswith(("rocm:", "cuda:"))]
    assert code == 0 and len(lines) == 4
    for line in lines:
        assert re.search(r"HIP 6\.4 +hipRTC 9\.0, hipBLASLt, MIOpen 3\.4\.1, RCCL 2\.28\.3; never run by naru's authors on a GPU of AMD's.* +not tested$", line), line
    code, said = run(environment, "-m", "naru", "doctor", "rocm")
    assert code == 0 and "rocm: available, 2 devices\n  libraries: hipRTC 9.0, hipBLASLt, MIOpen 3.4.1, RCCL 2.28.3; never run" in said


SHARED = """
import naru as torch

class Other:  # another library's array: all that it tells of itself
    def __init__(self, tensor):
        self.tensor = tensor
    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()
    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

for device, number in (("rocm:0", 0), ("rocm:1", 1), ("cuda:1", 1)):
    x = torch.arange(6.0, device=device).reshape(2, 3) * 2
    assert x.__dlpack_device__() == (10, number), x.__dlpack_device__()
    array = Other(x.t())
    y = torch.from_dlpack(array)
    assert y.device == torch.device("cuda", number) and y.data_ptr() == x.data_ptr() and y.stride() == (1, 3)
    y.add_(1)
    del array
    assert x.tolist() == [[1, 3, 5], [7, 9, 11]], x
    del x
    assert (y * 1).tolist() == [[1, 7], [3, 9], [5, 11]]
print("shared")
"""


def test_memory_is_handed_to_other_libraries_and_taken_from_them_where_it_lies(environment):
    """What comes from others has PyTorch's name of the device."""
    assert run(environment, "-c", SHARED) == (0, "shared\n")


REFUSED = """
import os, warnings
import naru
x = naru.ones(3, device="cuda")
os.environ["NARU_FAKE_ERROR"] = "hipGraphInstantiateWithFlags=801"
g = naru.Graph()
with warnings.catch_warnings(record=True) as said, naru.graph(g):
    warnings.simplefilter("always")
    x.add_(1)
    x.mul_(2).sum()
g.replay()
print([str(w.message) for w in said], x.tolist())
os.environ["NARU_FAKE_ERROR"] = "hipModuleLaunchKernel=700"
try:
    (x * 2).tolist()
except naru.DeviceLostError as error:
    print(error)
"""


def test_errors_have_hips_names(environment):
    code, said = run(environment, "-c", REFUSED)
    told = "device cuda:0 replays a graph as single instructions, which is slower: device cuda:0: hipGraphInstantiateWithFlags failed with 801 hipErrorUnknown (an error)"
    lost = "device 'cuda:0' was lost: hipModuleLaunchKernel failed with 700 hipErrorIllegalAddress (an error). Everything on it is gone"
    assert code == 0 and said.startswith(f"[{told!r}] [4.0, 4.0, 4.0]\n{lost}"), said


def test_a_gpu_whose_architecture_is_not_named_is_an_error_that_says_so(environment, tmp_path):
    code, said = run({**environment, "NARU_CACHE_DIR": str(tmp_path), "NARU_FAKE_ERROR": "hipGetDevicePropertiesR0600=1"}, "-c", "import naru; print(naru.why_unavailable('rocm'))")
    assert code == 0 and "AMD's ROCm does not name the architecture of gfx90a:sramecc+:xnack-. Update it, or use device 'cpu'" in said


ROOTS = """
import naru
x = naru.tensor([0.0, -0.0, 1e-45, 3e-39, 2.0, 0.1, 3.4028235e38, float("inf"), -1.0])
x = naru.cat([x, naru.rand(4000) * 10 ** naru.randn(4000)])
ours, theirs = x.sqrt(), x.to("rocm").sqrt().cpu()
print(naru.equal(ours.nan_to_num(), theirs.nan_to_num()), naru.equal(ours.isnan(), theirs.isnan()), str(ours[1].item()), str(theirs[1].item()))
"""


def test_roots_are_rounded_correctly_by_a_function_of_our_own(environment):
    """hipRTC's may be one unit off. With the processor's root, which is exact, this shows that what is exact stays so."""
    assert run(environment, "-c", ROOTS) == (0, "True True -0.0 -0.0\n")


def test_process_groups_over_rccl(environment):
    """RCCL has NCCL's functions, so NCCL's stand-in over this driver is RCCL's; nccl_cases.py says what holds. All else of it is the same code as for NCCL."""
    gpus = ";".join(f"0000:0{i + 1}:00.0 {i + 10:x} 9.0 2048 gfx90a" for i in range(4))
    chosen = "reductions_are or ordered_sums or killed or captured or reports"
    code, said = run({**environment, "NARU_FAKE_GPUS": gpus, "NARU_TEST_NCCL": "1"}, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, "tests/python/distributed/nccl_cases.py")
    assert code == 0, said[-6000:]
    assert int(re.search(r"(\d+) passed", said)[1]) >= 8 and "skipped" not in said, said[-300:]
    code, said = run({**environment, "NARU_RCCL_LIBRARY": "/nowhere"}, "-m", "naru", "doctor", "rocm")
    assert code == 0 and "process groups through the host's memory (no RCCL: install AMD's package rccl)" in said


HIPRTC = ("libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5")
# Debian's packages, unpacked by `./run test` where the system has none.
UNPACKED = HOME / "build/hiprtc/usr/lib/x86_64-linux-gnu"


def real_hiprtc():
    """AMD's own compiler, which needs no GPU: (its name or file, the environment that it needs), or None. A child tries it, as it leaves threads."""
    for folder in ("", "/opt/rocm/lib/", f"{UNPACKED}/"):
        there = {**os.environ, **({"LD_LIBRARY_PATH": f"{UNPACKED}:{os.environ.get('LD_LIBRARY_PATH', '')}"} if folder.startswith(str(UNPACKED)) else {})}
        for name in HIPRTC:
            if subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({folder + name!r})"], env=there, capture_output=True).returncode == 0:
                return folder + name, there
    return None


# Those of wavefronts of 64 and of 32 lanes. (Debian 12's hipRTC ends the process where it is asked for gfx1100.)
TARGETS = ("gfx90a", "gfx1030")
OPTIONS = re.findall(r'"(-[^"]*)"', re.search(r"kOptions\[\] = \{(.*)\};", (HOME / "src/backends/rocm/compiler.cpp").read_text())[1])


def asked_of_hiprtc(hiprtc, jobs):
    """What is wrong with each job, (target, whole or only as C++, files); and the CPU time."""
    library, there = hiprtc
    support = Path(__file__).parents[1] / "support"
    asked = json.dumps({"library": library, "options": OPTIONS, "jobs": jobs})
    done = subprocess.run([sys.executable, support / "hiprtc_child.py"], input=asked, env={**there, "PYTHONPATH": str(support)}, capture_output=True, text=True, timeout=1200)
    lines = done.stdout.splitlines()
    if done.returncode != 0:
        return [json.loads(line) for line in lines] + [f"hipRTC ended with {done.returncode}: {done.stderr[-2000:]}"] * (len(jobs) - len(lines)), 0
    return [json.loads(line) for line in lines[:-1]], float(lines[-1])


@pytest.mark.parametrize("part", range(6))
def test_amds_compiler_takes_every_text(tmp_path, part):
    """Each kernel that the tests above asked for, forty at once, as hipRTC's beginning takes longer than a text. Those with shared memory and the like are
    compiled for both targets. The others load numbers, compute and store: they are read and checked as C++, and a quarter of them is compiled, for one target
    each. Which texts it took is kept beside them, and they are not compiled again."""
    hiprtc = real_hiprtc()
    if hiprtc is None:
        pytest.skip("hipRTC is not on this machine (`./run test` unpacks Debian's; or apt install libamdhip64-5 libhiprtc-builtins5)")
    assert len(OPTIONS) == 4
    bad = tmp_path / "bad.hip"
    bad.write_text('extern "C" __global__ void k(float* x) { x[0] = y; }')
    for whole in (True, False) if part == 0 else ():
        assert "undeclared identifier" in asked_of_hiprtc(hiprtc, [(TARGETS[0], whole, [str(bad)])])[0][0]
    files = sorted((FAKES / "kernels").glob("*.hip"))
    assert len(files) > 300
    files = files[part::6]  # all together exceed the time limit of one test on a busy machine
    known = FAKES / "kernels" / f"taken_by_hiprtc_{part}"
    taken = set().union(*(f.read_text().split() for f in known.parent.glob("taken_by_hiprtc_*")))
    left = {(target, whole): {} for target in TARGETS for whole in (True, False)}
    for file in files:
        text = file.read_bytes()
        digest = hashlib.sha256(f"{hiprtc[0]} {OPTIONS}".encode() + text).hexdigest()
        for number, target in enumerate(TARGETS):
            turn, more = int(digest[:2], 16), has_more_than_numbers(text)
            whole, mark = more or turn % 8 < 2, f"{digest}-{target}"
            if (more or turn % 2 == number) and mark not in taken:
                left[target, whole][str(file)] = mark
    jobs = [(*how, list(names)[i : i + 40]) for how, names in left.items() for i in range(0, len(names), 40)]
    shares = [jobs[i::2] for i in range(2)]
    with ThreadPoolExecutor(len(shares)) as several:
        answers = list(several.map(lambda share: asked_of_hiprtc(hiprtc, share), shares))
    wrong = []
    for share, (found, _) in zip(shares, answers):
        for (target, whole, names), said in zip(share, found, strict=True):
            wrong += [(target, whole, names, said)] if said else []
            taken |= set() if said else {left[target, whole][name] for name in names}
    known.write_text("\n".join(sorted(taken)))
    alone = [(target, name, said) for target, whole, names, _ in wrong[:2] for name in names for said in asked_of_hiprtc(hiprtc, [(target, whole, [name])])[0] if said]
    assert not wrong, f"{len(wrong)} of {len(jobs)} jobs: {(alone or wrong)[0]}"
    print(f"{sum(map(len, left.values()))} texts, {sum(seconds for _, seconds in answers):.0f} s of CPU")


HEADERS = r"""
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <cstddef>
#include <type_traits>
#include "backends/gpu/driver.h"
// As many parameters of the same sizes: an address is a pointer there, and a number here.
template <class R, class... A, class S, class... B>
constexpr bool alike(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...);
}
using naru::backends::gpu::Driver;
#define CHECK(field, name) static_assert(alike(decltype(Driver::field.function){}, static_cast<std::decay_t<decltype(::name)>>(nullptr)), #name);
"""
# C++ has templates of these names, too.
OVERLOADED = {"hipMalloc": "hipError_t (*)(void**, size_t)", "hipHostMalloc": "hipError_t (*)(void**, size_t, unsigned)"}


def test_numbers_and_functions_are_those_of_amds_headers(tmp_path):
    places = [Path("/usr/include"), Path("/opt/rocm/include"), HOME / "build/hiprtc/usr/include"]
    include = next((p for p in places if (p / "hip/hip_runtime_api.h").exists()), None)
    if include is None:
        pytest.skip("HIP's headers are not on this machine (Debian: libamdhip64-dev)")
    driver, api = ((HOME / "src/backends/rocm" / name).read_text() for name in ("driver.cpp", "api.cpp"))
    functions = re.findall(r"^  F\((\w+), (hip\w+)\)", (HOME / "src/backends/rocm/api.h").read_text(), re.MULTILINE)
    same = "".join(f"CHECK({field}, {name})\n" for field, name in functions if name not in OVERLOADED)
    same += "".join(f"static_assert(alike(decltype(Driver::{field}.function){{}}, static_cast<{OVERLOADED[name]}>(&{name})));\n" for field, name in functions if name in OVERLOADED)
    errors = re.findall(r"^    case (\d+): +// (hip\w+)", api, re.MULTILINE) + re.findall(r'\{(\d+), "(hip\w+)"', driver)
    attributes = [number for line in re.findall(r"_attributes? = (\{[^}]*\}|\d+),", driver) for number in re.findall(r"\d+", line)]
    assert len(errors) > 15 and len(functions) > 40
    named = ("ComputeCapabilityMajor", "ComputeCapabilityMinor", "MultiprocessorCount", "WarpSize", "MaxThreadsPerBlock", "MaxThreadsPerMultiProcessor",
             "MaxRegistersPerMultiprocessor", "MaxSharedMemoryPerBlock", "L2CacheSize")  # fmt: skip
    assert len(attributes) == len(named)
    numbers = {"kNotReady": "hipErrorNotReady", "kOutOfMemory": "hipErrorOutOfMemory", "kPeerAccessAlreadyEnabled": "hipErrorPeerAccessAlreadyEnabled",
               "kNonBlockingStream": "hipStreamNonBlocking", "kOrderEvent": "hipEventDisableTiming", "kPortableMemory": "hipHostMallocPortable",
               "kRelaxedCapture": "hipStreamCaptureModeRelaxed", "kFunctionSharedBytes": "HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES"}  # fmt: skip
    pairs = [*errors, *((n, f"hipDeviceAttribute{a}") for n, a in zip(attributes, named)), *((f"naru::backends::gpu::{ours}", theirs) for ours, theirs in numbers.items())]
    same += "".join(f'static_assert(static_cast<int>({ours}) == static_cast<int>({theirs}), "{theirs}");\n' for ours, theirs in pairs)
    offsets = dict(re.findall(r'\{"(hipGetDeviceProperties\w*)", (\d+)\}', driver))
    newer = "hipGetDevicePropertiesR0600" in (include / "hip/hip_runtime_api.h").read_text()
    offset = offsets["hipGetDevicePropertiesR0600" if newer else "hipGetDeviceProperties"]
    same += f"static_assert(offsetof(hipDeviceProp_t, gcnArchName) == {offset});\n"
    (tmp_path / "numbers.cpp").write_text(HEADERS + same)
    compiler = ["c++", "-std=c++20", "-fsyntax-only", "-w", f"-I{HOME}/src", f"-I{HOME}/include", f"-I{include}"]
    done = subprocess.run([*compiler, str(tmp_path / "numbers.cpp")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
