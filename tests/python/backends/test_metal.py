"""The metal backend, which never ran on a GPU. It runs over a library that stands in for Objective-C's run time and for Metal (tests/fakes/metal.cpp), which ends the
process where a message, a reference or an order of calls is wrong; kernels in Metal's language are compiled by the machine's own compiler."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import naru
import pytest
from fakes import FAKES, needs_fakes, run

HOME = Path(__file__).resolve().parents[3]

pytestmark = [
    needs_fakes,
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler, which stands for Metal's here"),
]

# Each kernel takes a tenth of a second to compile, and the operators need thousands: every 40th test by default, all with NARU_TEST_KERNELS=all.
ALL = os.environ.get("NARU_TEST_KERNELS") == "all"


# What a device without float64 can't do: mathematics in a kernel and a captured step that take naru's functions over float64, and a test of float64 itself.
# Statistics of channels and groups are two passes in float32 there, with other bits (docs/architecture.md).
FLOAT64 = [
    "tests/python/devices/test_each_device.py::test_an_operator_and_its_gradient_give_the_bits_of_cpu[mps:0-batch_norm]",
    "tests/python/devices/test_each_device.py::test_an_operator_and_its_gradient_give_the_bits_of_cpu[mps:0-batch_norm (N, C)]",
    "tests/python/devices/test_each_device.py::test_an_operator_and_its_gradient_give_the_bits_of_cpu[mps:0-group_norm]",
    "tests/python/devices/test_each_device.py::test_an_operator_and_its_gradient_give_the_bits_of_cpu[mps:0-instance_norm]",
    "tests/python/devices/test_each_device.py::test_an_operator_and_its_gradient_give_the_bits_of_cpu[mps:0-var(0)]",
    "tests/python/devices/test_each_device.py::test_an_operator_and_its_gradient_give_the_bits_of_cpu[mps:0-complex var]",
    "tests/python/kernels/test_kernel_errors.py::test_arguments_that_do_not_fit_are_refused_by_name[mps:0]",
    "tests/python/kernels/test_kernels.py::test_mathematics_has_the_bits_of_the_operators_on_every_device[mps:0-torch.float32]",
    "tests/python/devices/test_graphs.py::test_a_training_loop_of_replayed_steps_ends_in_the_same_bits[mps:0-adam]",
    "tests/python/devices/test_graphs.py::test_a_training_loop_of_replayed_steps_ends_in_the_same_bits[mps:0-adamw]",
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return {
        **os.environ,
        "NARU_CUDA_LIBRARY": "/nowhere",
        "NARU_METAL_LIBRARY": str(FAKES / "libmetal.so"),
        "PYTHONPATH": str(Path(naru.__file__).resolve().parents[1]),
        "NARU_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "NARU_VIRTUAL": "cuda:1",
        "NARU_TEST_DEVICES": "mps",
    }


@pytest.mark.parametrize("file, parts, all_parts, least", [("test_operators.py", 40, 4, 25), ("test_each_device.py", 40, 4, 10), ("test_kernel*.py", 8, 1, 6), ("test_graphs.py", 4, 1, 4)])
def test_what_holds_on_every_device_holds_there(environment, file, parts, all_parts, least):
    """What needs float64 inside falls back to the cpu, as PYTORCH_ENABLE_MPS_FALLBACK=1 has it."""
    for k in range(all_parts if ALL else 1):
        part = f"{k}/{all_parts if ALL else parts}"
        code, said = run({**environment, "NARU_TEST_PART": part, "NARU_FALLBACK": "count"}, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "mps", *(f"--deselect={name}" for name in FLOAT64), *map(str, sorted(HOME.glob(f"tests/python/*/{file}"))))
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
ours, theirs = train("cpu"), train("mps")
print([bool(torch.allclose(a, b, rtol=1e-5, atol=1e-6)) for a, b in zip(ours, theirs)] == [True] * len(ours), torch.mps.current_allocated_memory() >= 0)
"""


def test_a_training_run_ends_where_the_cpu_s_does(environment, tmp_path):
    """LayerNorm takes float64 on the cpu where rows need it, so that bits may differ there."""
    (tmp_path / "train.py").write_text(PROGRAM)
    assert run({**environment, "PYTORCH_ENABLE_MPS_FALLBACK": "1"}, "-W", "ignore", "-m", "naru", "run", str(tmp_path / "train.py")) == (0, "True True\n")


REFERENCES = """
import ctypes, gc, os, naru
fake = ctypes.CDLL(os.environ["NARU_METAL_LIBRARY"])
alive = lambda: {name: fake.fake_metal_alive(name.encode()) for name in ("MTLBuffer", "MTLCommandBuffer", "MTLComputeCommandEncoder", "NSString", "NSError", "NSArray",
                                                                         "MTLFunction", "MTLLibrary", "MTLCompileOptions", "MTLSharedEvent", "MTLCommandQueue",
                                                                         "MPSMatrix", "MPSMatrixDescriptor", "MPSMatrixMultiplication")}
s = naru.Stream("mps")
def work():
    x = naru.arange(1000.0, device="mps")
    with s:
        y = (x * 2).reshape(10, 100).sum(1)
    z = y.sort().values.cumsum(0) + x[:10].flip(0)
    try:
        x[naru.tensor([2000], device="mps")].cpu()
    except IndexError:
        pass
    z = z + (x.view(10, 100) @ x.view(100, 10)).sum(0) * 0
    copy = naru.empty(10).copy_(z, non_blocking=True)
    return z.tolist(), copy.tolist()
for _ in range(3):
    work()
naru.mps.synchronize(); gc.collect(); naru.mps.empty_cache()
before = alive()
for _ in range(20):
    work()
naru.mps.synchronize(); gc.collect(); naru.mps.empty_cache()
after = alive()
assert before == after, (before, after)
assert after["NSString"] == after["NSError"] == after["NSArray"] == after["MTLComputeCommandEncoder"] == after["MTLLibrary"] == after["MPSMatrix"] == after["MPSMatrixDescriptor"] == 0, after
print("same")
"""


def test_no_object_of_metals_is_left_behind(environment):
    assert run({**environment, "NARU_FALLBACK": "count"}, "-c", REFERENCES) == (0, "same\n")


ROWS = re.compile(r'^  F\(([^,]+), (\w+), "([\w:]+)",(?: | *\\\n *)\((.*)\)\)', re.MULTILINE)
CODES = {"id": "@", "bool": "B", "SEL": ":", "const char*": "*", "UInteger": "Q", "uint64_t": "Q", "Integer": "q", "id*": "^@", "void*": "^v", "const void*": "^v", "void": "v", "double": "d", "uint32_t": "I", "MTLSize": "{QQQ}"}  # fmt: skip


def test_messages_have_the_types_that_metal_has():
    """The backend's table of messages, and the stand-in's methods, which were written down apart from it."""
    fake = ctypes.CDLL(str(FAKES / "libmetal.so"))
    fake.fake_metal_types.restype = ctypes.c_char_p
    rows = ROWS.findall((HOME / "src/backends/metal/objc.h").read_text())
    assert len(rows) > 45
    for result, _, selector, parameters in rows:
        types = [p.strip() for p in parameters.split(",") if p.strip()]
        assert selector.count(":") == len(types), selector
        assert fake.fake_metal_types(selector.encode()).decode() == CODES[result] + "@:" + "".join(CODES[t] for t in types), selector


PRODUCTS = """
import random
import naru
random.seed(3), naru.manual_seed(3)

def laid(x):
    # The same elements on the device: transposed, with gaps, or at an offset.
    way = random.randrange(4)
    if way == 1:
        return x.transpose(-2, -1).contiguous().to("mps").transpose(-2, -1)
    if way == 2:
        wide = naru.zeros(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype, device="mps")
        wide[..., 1 : 1 + x.shape[-1]].copy_(x.to("mps"))
        return wide[..., 1 : 1 + x.shape[-1]]
    if way == 3:
        flat = naru.zeros(x.numel() + 1, dtype=x.dtype, device="mps")
        flat[1:].copy_(x.reshape(-1).to("mps"))
        return flat[1:].view(x.shape)
    return x.to("mps")

for case in range(100):
    dtype, unit = random.choice([(naru.float32, 2.0 ** -22), (naru.float16, 2.0 ** -10), (naru.bfloat16, 2.0 ** -7)])
    batch = random.choice([(), (), (1,), (3,), (2, 2)])
    m, n, k = (random.choice([1, 2, 5, 16, 33]) for _ in range(3))
    a, b, c = naru.randn(*batch, m, k).to(dtype), naru.randn(*batch, k, n).to(dtype), naru.randn(n).to(dtype)
    biased = not batch and random.random() < 0.5
    got = (naru.addmm(c.to("mps"), laid(a), laid(b)) if biased else laid(a) @ laid(b)).cpu().double()
    wanted = a.double() @ b.double() + (c.double() if biased else 0)
    size = a.double().abs() @ b.double().abs() + c.double().abs()
    # The product and its sum with the bias are rounded, each to half a unit; sums are in float32.
    assert bool(((got - wanted).abs() <= (wanted.abs() + c.double().abs()) * unit + size * 2.0 ** -20).all()), (case, dtype, batch, m, n, k, biased)
print("right")
"""


def test_products_of_every_layout_are_those_of_performance_shaders(environment, tmp_path):
    log = tmp_path / "products"
    assert run({**environment, "NARU_FAKE_MPS_LOG": str(log)}, "-c", PRODUCTS) == (0, "right\n")
    lines = log.read_text().splitlines()
    # bfloat16 is no type of MPSMatrixMultiplication's, and what lies no whole rows apart is left to naru's own kernels.
    assert 40 < len(lines) < 80 and not [line for line in lines if "bfloat16" in line]
    for some in ("left transposed", "right transposed", "float16", "float32", "3 of them", "4 of them"):
        assert some in "\n".join(lines), some
    log.unlink()
    for without in ({"NARU_MPS_LIBRARY": "/nowhere"}, {"NARU_FAKE_MPS_NONE": "1"}, {"NARU_FAKE_METAL_NIL": "initWithBuffer:offset:descriptor:@1"},
                    {"NARU_FAKE_METAL_NIL": "initWithDevice:transposeLeft:transposeRight:resultRows:resultColumns:interiorColumns:alpha:beta:@1"}):  # fmt: skip
        assert run({**environment, "NARU_FAKE_MPS_LOG": str(log), **without}, "-c", PRODUCTS.replace("range(100)", "range(20)")) == (0, "right\n")
        assert not log.exists()


ORDER = """
import naru
a, b = naru.randn(20, 30), naru.randn(30, 20)
naru.use_deterministic_algorithms(True)
assert naru.equal(a @ b, (a.to("mps") @ b.to("mps")).cpu())
naru.use_deterministic_algorithms(False)
x, y = a.to("mps"), b.to("mps")
s, main = naru.Stream("mps"), naru.accelerator.current_stream("mps")
for i in range(30):  # products between kernels that write what they read, on two streams
    x.add_(1)
    z = x @ y
    y.mul_(0.99)
    with s:
        s.wait_stream(main)
        w = (z - 1) @ z.t()
    main.wait_stream(s)
    x.add_(w.mean() * 0)
own, other = a.double(), b.double()
for i in range(30):
    own = own + 1
    wanted = own @ other
    other = other * naru.tensor(0.99).double()
print(((z.cpu().double() - wanted).abs() <= wanted.abs() * 1e-4 + 1e-2).all().item(), ((w.cpu().double() - (wanted - 1) @ wanted.t()).abs() <= 1e-2 * wanted.abs().max() ** 2).all().item())
"""


def test_products_are_in_the_order_of_the_stream_and_deterministic_ones_are_own_kernels(environment):
    assert run(environment, "-c", ORDER) == (0, "True True\n")


SHARED = """
import naru
x = naru.arange(6.0, device="mps").reshape(2, 3) * 2
assert naru._C._describe_device(x.device)["unified"]
try:
    x.numpy()
except TypeError as error:
    print(error)
a = x.t().numpy(force=True)
b = naru.from_dlpack(x.__dlpack__(dl_device=(1, 0), copy=False)).numpy()
assert a.__array_interface__["data"][0] == b.__array_interface__["data"][0] == x.data_ptr(), "a copy"
x += 1
naru.mps.synchronize()
print(a.tolist(), b.tolist(), str(x))
del x
print(a.sum())
"""


def test_the_host_sees_memory_where_it_lies(environment):
    code, said = run(environment, "-c", SHARED)
    assert code == 0, said
    assert said.splitlines() == [
        "can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        "[[1.0, 7.0], [3.0, 9.0], [5.0, 11.0]] [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]] tensor([[ 1.,  3.,  5.],",
        "        [ 7.,  9., 11.]], device='mps:0')",
        "36.0",
    ], said


REFUSED = """
import naru
for make in (lambda: naru.ones(2, dtype=naru.float64, device="mps"), lambda: naru.ones(2, dtype=naru.float64).to("mps"), lambda: naru.ones(2, device="mps").double()):
    try:
        make()
    except TypeError as error:
        print(str(error).split(" (")[0])
try:
    naru.empty(3 << 28, device="mps").fill_(1).cpu()
except naru.OutOfMemoryError as error:
    print(str(error).split(". ")[0])
x = naru.ones(3, device="mps")
try:
    naru.kernel("kernel void k(float* x) { int i = global_id(0); x[i] = y; }", "k")(x, grid=3)
except RuntimeError as error:
    print("line 1" in str(error), "Metal's compiler (Apple M3, Version 15.1 (Build 24B83))" in str(error), "y" in str(error))
print((x * 2).tolist())
"""


def test_what_is_refused_is_refused_in_words_that_help(environment):
    code, said = run(environment, "-c", REFUSED)
    float64 = "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead."
    assert code == 0 and said.splitlines() == [float64] * 3 + ["MPS backend out of memory", "True True True", "[2.0, 2.0, 2.0]"], said


@pytest.mark.parametrize("end, kind, text", [("8@4", "OutOfMemoryError", "Insufficient Memory"), ("2@4", "RuntimeError", "GPU Timeout")])
def test_work_that_metal_ends_is_an_error_at_the_next_wait(environment, end, kind, text):
    program = """
import naru
x = naru.ones(5, device="mps")
for i in range(10):
    try:
        y = (x + i).tolist()
        assert y == [1.0 + i] * 5, y
    except RuntimeError as error:
        print(type(error).__name__, error)
print("went on")
"""
    code, said = run({**environment, "NARU_FAKE_METAL_END": end, "NARU_SELF_CHECK": "0"}, "-c", program)
    lines = said.splitlines()
    assert code == 0 and len(lines) == 2 and lines[1] == "went on", said
    assert lines[0].startswith(f"{kind} device mps:0: work ended with an error of Metal's: ") and text in lines[0], said


@pytest.mark.parametrize("selector", ["newBufferWithLength:options:", "newCommandQueue", "newSharedEvent", "commandBuffer", "newComputePipelineStateWithFunction:error:", "newLibraryWithSource:options:error:"])  # fmt: skip
def test_what_metal_does_not_give_is_an_error(environment, selector):
    program = """
import naru
try:
    print(naru.ones(5, device="mps").sin().tolist())
except RuntimeError as error:
    print("error", str(error)[:300])
"""
    code, said = run({**environment, "NARU_FAKE_METAL_NIL": f"{selector}@1", "NARU_SELF_CHECK": "0", "NARU_FALLBACK": "count"}, "-c", program)
    assert code == 0 and said.startswith("error"), said


FLUSHED = """
import naru
h = naru.arange(-32768, 32767, dtype=naru.int32).to(naru.int16).view(naru.float16)
h = h[~h.isnan()]
ours, theirs = h.float(), h.to("mps").float().cpu()
print(naru.equal(ours, theirs), naru.equal(theirs.to("mps").half().cpu(), h))
x = naru.tensor([1e-40, 2e-38, 1.0], device="mps")
print((x * 0.5).tolist()[0], (x * 1).cpu()[2].item())
"""


def test_halves_are_read_right_where_denormal_numbers_are_flushed(environment):
    """As Apple's GPUs may: what float32 has below 1.2e-38 is 0 there, and float16's denormal numbers, which are none in float32, are not."""
    assert run({**environment, "NARU_FAKE_METAL_FLUSH": "1"}, "-c", FLUSHED) == (0, "True True\n0.0 1.0\n")
    assert run(environment, "-c", FLUSHED)[1].splitlines()[0] == "True True"


def why(environment, **variables):
    code, said = run({**environment, **variables}, "-c", "import naru; print(naru.why_unavailable('mps'))")
    assert code == 0, said
    return said


def test_each_state_has_its_reason(environment):
    assert why(environment) == "\n"
    assert why(environment, NARU_METAL_LIBRARY="/nowhere/Metal").startswith("no driver library: /nowhere/Metal")
    assert why(environment, NARU_FAKE_METAL="").startswith("Metal is installed, but there is no GPU that it lists")
    assert why(environment, NARU_FAKE_METAL="AMD Radeon Pro 5500M|2002|8192|0").startswith("AMD Radeon Pro 5500M has another make, and naru's kernels need a GPU of Apple's own (M1 or newer)")
    assert why(environment, NARU_METAL_LIBRARY="").startswith("needs macOS") or sys.platform == "darwin"
    assert "gave wrong numbers" in why(environment, NARU_FAKE_METAL_WRONG="1")


def test_devices_and_doctor_say_that_it_never_ran_on_a_gpu(environment):
    code, said = run({**environment, "NARU_FAKE_METAL": "Apple M1|1007|512|1;AMD Radeon|2002|8192|0;Apple M3|1009|2048|1"}, "-m", "naru", "devices")
    lines = [line for line in said.splitlines() if line.startswith("mps:")]
    assert code == 0 and len(lines) == 2, said
    for line, name in zip(lines, ("Apple M1", "Apple M3")):
        assert name in line and "never run by naru's authors on a GPU of Apple's" in line and line.endswith("not tested"), line
    for variables, libraries in (({}, "MetalPerformanceShaders, own kernels for convolutions"), ({"NARU_MPS_LIBRARY": "/nowhere"}, "own kernels for products and convolutions")):
        code, said = run({**environment, **variables}, "-m", "naru", "doctor", "mps")
        assert code == 0 and f"libraries: {libraries}; never run" in said, said
    assert code == 0 and "mps: available" in said and "never run by naru's authors on a GPU of Apple's" in said, said


MPS = """
import naru as torch
torch.mps.manual_seed(3)
state = torch.mps.get_rng_state("mps")
a = torch.rand(4, device="mps")
torch.mps.set_rng_state(state, "mps")
assert torch.equal(a, torch.rand(4, device="mps")) and a.device.type == "mps"
torch.mps.empty_cache()
assert torch.mps.current_allocated_memory() >= 16 and torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
assert torch.mps.recommended_max_memory() == 2048 << 20 and torch.mps.device_count() == 1 and torch.backends.mps.get_name() == "Apple M3"
start, end = torch.mps.Event(True), torch.mps.Event(enable_timing=True)
start.record(); b = a * 2; end.record(); end.synchronize()
assert start.elapsed_time(end) >= 0 and end.query()
with torch.mps.profiler.profile(mode="interval,event"):
    b += 1
assert not torch.mps.profiler.is_metal_capture_enabled()
torch.mps.set_per_process_memory_fraction(0.0001)
try:
    torch.empty(1 << 20, device="mps").fill_(0)
except torch.OutOfMemoryError as error:
    print("limited")
torch.mps.synchronize()
"""


def test_torch_mps_is_whole(environment):
    assert run(environment, "-W", "ignore", "-c", MPS) == (0, "limited\n")


def test_clang_takes_the_texts_with_address_spaces_of_their_own():
    """Metal's compiler is clang, where a pointer of one address space is none of another. Kernels that the tests above asked for, but for users' own."""
    clang = shutil.which("clang++")
    if clang is None:
        pytest.skip("clang++ is not on this machine (Debian: clang)")
    files = sorted((FAKES / "kernels").glob("*.metal"))
    assert files
    texts = [text for text in (f.read_text() for f in files) if "naru_args" not in text and "MAKE4" in text]
    assert len(texts) > 20
    texts = texts if ALL else texts[:: max(1, len(texts) // 60)]
    header = f'#include "{HOME}/tests/fakes/metal_stdlib.h"\n'
    for first in range(0, len(texts), 20):
        parts = []
        for number, text in enumerate(texts[first : first + 20]):
            # An array of a group is static in C++; a vector is made by braces; each text stands in a namespace, and its macros are forgotten behind it.
            text = re.sub(r"\bLOCAL(\s+[\w ]+\s+\w+\s*\[)", r"static LOCAL\1", text.replace("#include <metal_stdlib>", ""))
            text = text.replace("t##x4(a, b, c, d)", "t##x4{a, b, c, d}")
            macros = set(re.findall(r"#define (\w+)", text))
            parts.append(f"namespace n{number} {{\n{text}\n}}\n" + "".join(f"#undef {m}\n" for m in sorted(macros)))
        command = [clang, "-x", "c++", "-std=gnu++14", "-fsyntax-only", "-w", "-Wno-c++11-narrowing", "-DFAKE_SPACES", "-"]
        done = subprocess.run(command, input=header + "".join(parts), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[:4000]
