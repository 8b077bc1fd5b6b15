"""The cuda backend on top of small libraries that stand in for NVIDIA's driver, NVRTC and cuBLASLt (tests/fakes). They have a separate address
space for device memory, run work as late as allowed, compile kernels with the host's C++ compiler, and accumulate products in float64. The tests
show that naru makes correct requests; no GPU is used."""
import ctypes
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import naru
import pytest
from fakes import FAKES, HOME, TOP, cuda_environment, needs_fakes, run
from kernel_texts import has_more_than_numbers, in_one

pytestmark = [
    needs_fakes,
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler, which stands for NVRTC here"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return cuda_environment(tmp_path_factory.mktemp("cache"))


# The operator cases in parts, because all together exceed the time limit of one test; a third of them by default, as each kernel is compiled.
PARTS = range(6) if os.environ.get("NARU_TEST_KERNELS") == "all" else (2, 5)


@pytest.mark.parametrize("file, part, least", [*(("test_operators.py", f"{k}/6", 150) for k in PARTS), ("test_each_device.py", "0/1", 150), ("test_kernel*.py", "0/1", 60), ("test_graphs.py", "0/1", 20)])
def test_what_holds_on_every_device_holds_there(environment, file, part, least):
    code, said = run({**environment, "NARU_TEST_PART": part}, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "cuda", *map(str, sorted(HOME.glob(f"tests/python/*/{file}"))))
    assert code == 0, said[-4000:]
    assert int(re.search(r"(\d+) passed", said)[1]) >= least, said[-300:]


@pytest.mark.parametrize("kind", ("selections", "rows", "long_rows", "column_sums", "batch_norms", "gathers", "random_pools", "overwritten"))
def test_random_calls_have_the_bits_of_the_cpu(environment, kind):
    code, said = run(environment, "tests/python/support/rendered_programs.py", "cuda:0", kind)
    assert code == 0 and said == f"{kind} []\n", said[-4000:]


def test_the_kernel_of_a_tutorial_is_compiled_as_it_is_written(environment):
    code, said = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "cuda and tutorial", "tests/python/backends/test_cuda_sources.py")
    assert code == 0 and re.search(r"^1 passed", said, re.MULTILINE), said[-4000:]


def test_devices_and_doctor_say_which_gpus_it_never_ran_on(environment):
    code, said = run(environment, "-m", "naru", "devices")
    libraries = r"NVRTC .*, cuBLASLt .*, cuFFT .*, cuSOLVER .*, cuDNN .*, NCCL "
    tried, other = (next(line for line in said.splitlines() if line.startswith(name)) for name in ("cuda:0", "cuda:1"))
    assert code == 0 and re.search(libraries + r"[0-9.]+ +tested$", tried), said
    assert re.search(libraries + r".*never run by naru's authors on a GPU of its compute capability +not tested$", other), said
    code, said = run(environment, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "cuda: available, 2 devices\n  libraries: NVRTC 12.9, cuBLASLt 12.9.5, cuFFT 11.3.3, cuSOLVER 11.7.1, cuDNN 9.19.0, NCCL 2.28.3" in said
    code, said = run({**environment, "NARU_CUBLASLT_LIBRARY": "/nowhere"}, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "own kernels for products (no cuBLASLt: pip install nvidia-cublas-cu12, or the CUDA toolkit)" in said
    code, said = run({**environment, "NARU_FAKE_VERSION": "11080"}, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "own kernels for products (cuBLASLt 12.9.5 needs a driver of CUDA 12, this one is of CUDA 11: pip install nvidia-cublas-cu11," in said


SHARED = """
import naru as torch

class Other:  # another library's array: all that it tells of itself
    def __init__(self, tensor):
        self.tensor, self.asked = tensor, None
    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()
    def __dlpack__(self, **options):
        self.asked = options
        return self.tensor.__dlpack__(**options)

for device, number in (("cuda:0", 0), ("cuda:1", 1)):
    x = torch.arange(6.0, device=device).reshape(2, 3) * 2
    assert x.__dlpack_device__() == (2, NUMBERS[number]), x.__dlpack_device__()
    array = Other(x.t())
    y = torch.from_dlpack(array)
    assert array.asked == {"max_version": (1, 0), "stream": 1}
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == (1, 3)
    y.add_(1)
    del array
    assert x.tolist() == [[1, 3, 5], [7, 9, 11]], x
    del x
    torch.cuda.empty_cache()
    assert (y * 1).tolist() == [[1, 7], [3, 9], [5, 11]]
    assert torch.from_dlpack(Other(y), copy=True).data_ptr() != y.data_ptr()
    assert torch.from_dlpack(Other(y), device="cpu").tolist() == y.tolist()
    said = y.__cuda_array_interface__
    handle = torch.cuda.current_stream(device).cuda_stream
    assert handle > 2 and said == {"typestr": "<f4", "shape": (3, 2), "strides": (4, 12), "data": (y.data_ptr(), False), "stream": handle, "version": 3}, said
    assert torch.ones(2, dtype=torch.bool, device=device).__cuda_array_interface__["typestr"] == "|b1"
    for refused in (torch.ones(2, device=device, dtype=torch.bfloat16), torch.ones(2), torch.ones(2, device="mps")):
        assert not hasattr(refused, "__cuda_array_interface__")
    try:
        torch.ones(2, device=device, requires_grad=True).__cuda_array_interface__
        raise SystemExit("one that requires grad was handed over")
    except RuntimeError:
        pass
try:
    torch.from_dlpack(Other(torch.ones(1, device="mps")))
    raise SystemExit("a virtual device's memory was handed over")
except BufferError as error:
    assert "device type 12" in str(error)
print("shared")
"""


def test_memory_is_handed_to_other_libraries_and_taken_from_them_where_it_lies(environment):
    for visible, numbers in (("0,1", "(0, 1)"), ("1,0", "(1, 0)")):
        code, said = run({**environment, "CUDA_VISIBLE_DEVICES": visible}, "-c", SHARED.replace("NUMBERS", numbers))
        assert code == 0 and said.endswith("shared\n"), (visible, said)


# The driver lists the T4 first, although the H100 comes first by PCI address.
TURNED = "0000:02:00.0 b 7.5 2048 T4;0000:01:00.0 a 9.0 2048 H100"


@pytest.mark.parametrize("value, names", [("0", ["T4"]), ("1", ["H100"]), ("1,0", ["H100", "T4"]), (None, ["T4", "H100"])])
def test_the_driver_is_opened_with_the_devices_that_it_was_asked_for(environment, value, names):
    there = {k: v for k, v in environment.items() if k not in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")}
    there |= {"NARU_FAKE_GPUS": TURNED, **({"CUDA_VISIBLE_DEVICES": value} if value else {})}
    program = "import os, naru; print([naru.cuda.get_device_name(i) for i in range(naru.cuda.device_count()) if naru.ones(2, device=f'cuda:{i}').sum().item() == 2], os.environ.get('CUDA_DEVICE_ORDER'))"
    assert run(there, "-c", program) == (0, f"{names} None\n")  # not set, so that other libraries in the process count devices as before
    order = {"0": ["H100"], "1": ["T4"], "1,0": ["T4", "H100"], None: ["H100", "T4"]}[value]
    assert run({**there, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "-c", program) == (0, f"{order} PCI_BUS_ID\n")


FIRST = """
import ctypes, os
assert ctypes.CDLL(os.environ["NARU_CUDA_LIBRARY"]).cuInit(0) == 0
import naru
print([(naru.cuda.get_device_name(i), naru.ones(3, device=f"cuda:{i}").sum().item()) for i in range(naru.cuda.device_count())])
"""


@pytest.mark.parametrize("value, names", [(None, ["T4", "H100"]), ("0", ["T4"]), ("0,1", ["T4", "H100"])])
def test_a_library_that_has_the_driver_in_use_already_is_no_hindrance_and_gives_the_order(environment, value, names):
    """PyTorch, say, in the same process: no child of it can ask the driver anything, which has read CUDA_VISIBLE_DEVICES its own way."""
    there = {k: v for k, v in environment.items() if k not in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")}
    there |= {"NARU_FAKE_GPUS": TURNED, **({"CUDA_VISIBLE_DEVICES": value} if value else {})}
    code, said = run(there, "-c", FIRST)
    assert (code, said) == (0, f"{[(name, 3.0) for name in names]}\n")


@pytest.mark.parametrize("value, names", [(None, ["T4", "H100"]), ("0", ["T4"]), ("1,0", ["H100", "T4"])])
def test_a_debugger_that_follows_no_child_can_have_the_driver_asked_in_the_process(environment, value, names, tmp_path):
    there = {k: v for k, v in environment.items() if k not in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")}
    there |= {"NARU_FAKE_GPUS": TURNED, "NARU_PROBE": "here", "NARU_FAKE_LOG": str(tmp_path / "calls"), **({"CUDA_VISIBLE_DEVICES": value} if value else {})}
    code, said = run(there, "-c", "import os, naru; print(os.getpid(), [naru.cuda.get_device_name(i) for i in range(naru.cuda.device_count())])")
    assert code == 0 and said.endswith(f" {names}\n")
    assert {line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()} == {said.split()[0]}


def test_a_slice_of_a_device_has_a_number_of_its_own(environment):
    program = "import naru; print([str(naru.cuda.get_device_properties(i).uuid) for i in range(2)], naru.pick(uuid=naru.cuda.get_device_properties(1).uuid))"
    whole = "0000000a-0000-0000-0000-000000000000", "0000000b-0000-0000-0000-000000000000"
    assert run(environment, "-c", program) == (0, f"{list(whole)} cuda:1\n")
    slices = [uuid[:-1] + number for uuid, number in zip(whole, "12")]
    assert run({**environment, "NARU_FAKE_MIG": "1"}, "-c", program) == (0, f"{slices} cuda:1\n")
    # Drivers before CUDA 11.4 lack this function.
    assert run({**environment, "NARU_FAKE_MIG": "1", "NARU_FAKE_ERROR": "cuDeviceGetUuid_v2=1"}, "-c", program) == (0, f"{list(whole)} cuda:1\n")


REFUSED_GRAPH = """
import os, warnings
import naru
x = naru.ones(3, device="cuda")
os.environ["NARU_FAKE_ERROR"] = "cuGraphInstantiateWithFlags=801"
for _ in range(2):
    g = naru.Graph()
    with warnings.catch_warnings(record=True) as said, naru.graph(g):
        warnings.simplefilter("always")
        x.add_(1)
        x.mul_(2).sum()
    g.replay()
    print([str(w.message).split(": ")[0] for w in said], x.tolist())
"""


def test_a_graph_that_the_driver_refuses_is_told_once_and_done_one_by_one(environment):
    code, said = run(environment, "-c", REFUSED_GRAPH)
    told = "device cuda:0 replays a graph as single instructions, which is slower"
    assert (code, said) == (0, f"[{told!r}] [4.0, 4.0, 4.0]\n[] [10.0, 10.0, 10.0]\n")


FIRST_PRODUCT = """
import naru
a, out = naru.arange(6.0, device="cuda").reshape(2, 3), naru.zeros(2, 2, device="cuda")
g = naru.Graph()
with naru.graph(g):
    out.copy_(a @ a.t() + 1)
for _ in range(2):
    g.replay()
print(out.tolist())
"""


def test_a_graph_may_hold_the_first_product_of_a_process(environment, tmp_path):
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", FIRST_PRODUCT) == (0, "[[6.0, 15.0], [15.0, 51.0]]\n")
    assert log.read_text().count(" cublasLtMatmul\n") == 1


def test_texts_of_kernels_are_kept_where_a_folder_is_named(environment, tmp_path):
    texts = tmp_path / "texts"
    there = {**environment, "NARU_KERNEL_TEXTS": str(texts), "NARU_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # the second time they are in the cache
        shutil.rmtree(texts, ignore_errors=True)
        assert run(there, "-c", "import naru; print((naru.ones(5, device='cuda') + 2).sum().item())") == (0, "15.0\n")
    assert texts.exists() and all("__global__" in file.read_text() for file in texts.glob("*.cu")) and len(list(texts.iterdir())) >= 1


IN_PLACE = """
import naru
real = naru.ones(1000, device="cuda:0")
assert real.sum().item() == 1000
twice = naru.kernel("kernel void twice(float* x, int k) { x[global_id(0)] *= k; }", "twice")
with naru.virtual("cuda:2(launch_delay=1ms)"):
    x = naru.ones(1000, device="cuda:0")
    side = naru.cuda.Stream()
    twice(x, 2, grid=1000)
    with naru.cuda.stream(side):
        twice(x, 3, grid=1000)
    twice(x, 5, grid=1000)
    assert x.sum().item() == 30000
twice(real, 7, grid=1000)
print(real.sum().item())
"""


def test_virtual_devices_in_place_of_real_ones_have_streams_of_their_own(environment):
    assert run(environment, "-c", IN_PLACE) == (0, "7000.0\n")


PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
x, y = torch.randn(64, 20), torch.randint(0, 4, (64,))
torch.use_deterministic_algorithms(True)
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
ours = train("cpu")
a = torch.randn(1000, device="cuda:0")
for device in (f"cuda:{i}" for i in range(torch.cuda.device_count())):
    assert all(torch.equal(a, b) for a, b in zip(ours, train(device))), device
    assert torch.equal(a.to(device).to("cpu"), a.cpu()), device
s = torch.cuda.Stream()
with torch.cuda.stream(s):
    b = a * 2
assert torch.equal((b + a).cpu(), a.cpu() * 3)
print(torch.cuda.get_device_name(0), torch.cuda.device_count(), torch.cuda.memory_allocated(0) > 0)
"""


def test_a_training_run_ends_in_the_bits_of_the_cpu(environment, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    code, said = run(environment, "-m", "naru", "run", str(tmp_path / "train.py"))
    assert (code, said) == (0, "H100 2 True\n")


PRODUCTS = """
import itertools, torch
F = torch.nn.functional
torch.manual_seed(0)
CASES = {
    "mm": (lambda a, b: a @ b, [(33, 40), (40, 19)]),
    "matmul of a transposed": (lambda a, b: a.t() @ b.t(), [(40, 33), (19, 40)]),
    "mv": (lambda a, b: a @ b, [(33, 40), (40,)]),
    "dot": (lambda a, b: a @ b, [(400,), (400,)]),
    "bmm": (lambda a, b: torch.bmm(a, b), [(3, 5, 7), (3, 7, 6)]),
    "matmul, heads": (lambda a, b: a.transpose(1, 2) @ b.transpose(1, 2).transpose(2, 3), [(2, 9, 3, 8), (2, 9, 3, 8)]),
    "matmul, broadcast": (lambda a, b: a @ b, [(2, 1, 5, 7), (3, 7, 4)]),
    "linear": (F.linear, [(6, 11), (4, 11), (4,)]),
    "linear of rank 3": (F.linear, [(2, 6, 11), (4, 11), (4,)]),
    "addmm": (torch.addmm, [(4,), (6, 11), (11, 4)]),
    "addmm of a matrix": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), [(6, 4), (6, 11), (11, 4)]),
    "slices": (lambda a, b: a[:, ::2] @ b[1:, 1:], [(6, 20), (11, 8)]),
}
STEP = {torch.float32: 2.0 ** -23, torch.float64: 2.0 ** -52, torch.float16: 2.0 ** -10, torch.bfloat16: 2.0 ** -7}

# Operands and the gradient that comes in are rounded to dtype, and then taken as `as_type`.
def results(f, operands, dtype, device, as_type=None):
    seen = lambda t: t.to(dtype).to(as_type or dtype).to(device).detach()
    leaves = [seen(t).requires_grad_() for t in operands]
    y = f(*leaves)
    torch.manual_seed(1)
    y.backward(seen(torch.randn(y.shape, dtype=torch.float64)))
    return [t.detach().cpu() for t in (y, *(leaf.grad for leaf in leaves))]

for (name, (f, shapes)), (dtype, step) in itertools.product(CASES.items(), STEP.items()):
    operands = [torch.randn(s, dtype=torch.float64) for s in shapes]
    exact = results(f, operands, dtype, "cpu", torch.float64)
    for got, wanted in zip(results(f, operands, dtype, "cuda"), exact):
        # At most four roundings of results, and those of a sum of at most 400 products.
        bound = 4 * step * max(1, wanted.abs().max().item()) + 400 * STEP[torch.float64 if dtype == torch.float64 else torch.float32]
        assert (got.double() - wanted).abs().max() <= bound, (name, dtype, (got.double() - wanted).abs().max(), bound)
    torch.use_deterministic_algorithms(True)
    ours, theirs = (results(f, operands, dtype, d) for d in ("cpu", "cuda"))
    torch.use_deterministic_algorithms(False)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs)), (name, dtype)

a, b = torch.randn(40, 60, device="cuda"), torch.randn(60, 50, device="cuda")
exact = a.cpu().double() @ b.cpu().double()
def error(): return ((a @ b).cpu().double() - exact).abs().max().item()
assert error() < 1e-5
torch.set_float32_matmul_precision("high")
assert 1e-4 < error() < 1e-1
torch.backends.cuda.matmul.allow_tf32 = False
assert error() < 1e-5
print("right")
"""
# A vendor library may choose which products to split into parts; the stand-in does so for these.
SHORT_SUMS = """
import torch
torch.manual_seed(0)
a, b = (torch.rand(2, 4096, dtype=torch.float16, device="cuda") for _ in range(2))
exact = a.cpu().double() @ b.cpu().double().t()
def error(): return ((a @ b.t()).cpu().double() - exact).abs().max().item()
rough = error()
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
assert error() <= 0.5 < rough < 40
print("right")
"""


def test_products_of_the_library_are_within_bounds_and_deterministic_ones_have_the_bits_of_the_cpu(environment, tmp_path):
    log = tmp_path / "calls"
    for text in (PRODUCTS, SHORT_SUMS):
        (tmp_path / "products.py").write_text(text)
        code, said = run({**environment, "NARU_FAKE_LOG": str(log)}, "-m", "naru", "run", str(tmp_path / "products.py"))
        assert (code, said) == (0, "right\n")
    assert len(re.findall("cublasLtMatmul$", log.read_text(), re.MULTILINE)) > 130
    code, said = run({**environment, "NARU_CUBLASLT_LIBRARY": "/nowhere"}, "-c", "import naru; a = naru.ones(3, 4, device='cuda'); print((a @ a.t()).sum().item())")
    assert (code, said) == (0, "36.0\n")


def real_nvrtc():
    """NVIDIA's own compiler, which needs no GPU: from the loader's folders, a toolkit or a wheel."""
    places = [Path("/usr/local/cuda/lib64"), *(Path(p) / "nvidia" for p in sys.path if p)]
    found = [str(f) for place in places for f in sorted(place.glob("**/libnvrtc.so.*")) if "alt" not in f.name]
    for name in ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", *found):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def refused(nvrtc, text, *target):
    """What NVRTC says against a text; '' if it compiles."""
    options = [*target, "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "-default-device", "--std=c++17"]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None) == 0
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*map(str.encode, options)))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return f"{code}: {log.value.decode(errors='replace')}" if code else ""


def can_fail_as_machine_code(text):
    """Whether a text has what only the steps behind the language's can refuse; instructions by name are among that."""
    return has_more_than_numbers(text, rb"\basm\b")


def test_nvidias_compiler_takes_every_text(environment):
    """Each kernel that the tests above asked for, forty at once, as NVRTC's beginning takes longer than a text. All are read and checked as C++ (-dlto ends
    there); machine code takes seven times as long. It is made of all that can fail then, and of each tenth of the others, which load numbers, compute and
    store: for three generations of GPUs in turn. Of these others each third is read, all with NARU_TEST_KERNELS=all."""
    nvrtc = real_nvrtc()
    if nvrtc is None:
        pytest.skip("NVRTC is not on this machine (pip install nvidia-cuda-nvrtc, or the CUDA toolkit)")
    texts = [f.read_bytes() for f in sorted((FAKES / "kernels").glob("*.cu"))]
    assert len(texts) > 300
    simple = [text for text in texts if not can_fail_as_machine_code(text)]
    made = [*(text for text in texts if can_fail_as_machine_code(text)), *simple[::10]]
    assert len(simple) > 100 and len(made) > len(simple) / 10 + 100

    read = texts if os.environ.get("NARU_TEST_KERNELS") == "all" else [*(text for text in texts if can_fail_as_machine_code(text)), *simple[1::3]]
    jobs = []
    for some, last in ((read, ["-dlto"]), (made, [])):
        parts = [some[i : i + 40] for i in range(0, len(some), 40)]
        jobs += [(part, [f"--gpu-architecture={('sm_75', 'sm_90', 'sm_120')[i % 3]}", *last]) for i, part in enumerate(parts)]
    with ThreadPoolExecutor(os.cpu_count()) as several:
        wrong = [(said, *job) for job, said in zip(jobs, several.map(lambda job: refused(nvrtc, in_one(job[0]), *job[1]), jobs)) if said]
    alone = [said for _, some, target in wrong for text in some if (said := refused(nvrtc, text, *target))]
    assert not wrong, f"{len(alone) or 'none alone'} of {len(texts)}: {(alone or wrong[0])[0][:2000]}"
