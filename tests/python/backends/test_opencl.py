"""Devices of kind xpu, on PoCL: the same bits as the cpu, and behavior specific to such devices."""
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import naru
from naru.testing.operator_cases import CASES, as_tuple, bits, layouts, result_bits, with_few_complex
from opencl import faulty, need_xpu, processors_count
from random_programs import SHAPES, Both


@pytest.fixture(autouse=True)
def xpu():
    with processors_count():
        need_xpu()
        yield "xpu:0"


@pytest.mark.parametrize("case", with_few_complex(CASES), ids=lambda c: c.name)
def test_an_operator_and_its_gradient_give_the_bits_of_cpu(case, xpu):
    before = naru.are_deterministic_algorithms_enabled()
    naru.use_deterministic_algorithms(True)
    try:
        assert result_bits(case, xpu) == result_bits(case)
    finally:
        naru.use_deterministic_algorithms(before)


# Each layout needs other kernels, which take a tenth of a second to compile: a few operators represent each kind.
LAYOUTS = ["add", "where", "tanh", "lerp", "sum(0)", "sum(1, keepdim)", "sum((0, 2))", "argmax(1)", "argmin(0)", "cumsum(1)", "cumsum(0)", "softmax(0)",
           "index mixed", "gather", "scatter_add", "sort", "topk", "matmul", "matmul broadcast", "layer_norm", "transpose clone", "cat"]


@pytest.mark.parametrize("case", [c for c in CASES if c.name in LAYOUTS], ids=lambda c: c.name)
@pytest.mark.parametrize("dtype", [naru.float32, naru.float64], ids=str)
def test_other_layouts_and_types_give_the_bits_of_cpu(case, dtype, xpu):
    naru.use_deterministic_algorithms(True)
    try:
        arrays = case.operands(1)
        results = {}
        for device in ("cpu", xpu):
            kinds = [layouts(a, device, dtype) for a in arrays]
            for name in ("contiguous", "transposed", "offset", "strided"):
                out = case.run(*[k.get(name, k["contiguous"]) for k in kinds])
                results[device, name] = [bits(t) for t in as_tuple(out)]
        for name in ("contiguous", "transposed", "offset", "strided"):
            assert results[xpu, name] == results["cpu", name], name
    finally:
        naru.use_deterministic_algorithms(False)


TYPES = [naru.bool, naru.uint8, naru.int8, naru.int16, naru.int32, naru.int64, naru.float16, naru.bfloat16, naru.float32, naru.float64]


@pytest.mark.parametrize("to", TYPES, ids=str)
def test_conversions_between_all_types_give_the_bits_of_cpu(to, xpu):
    special = [0.0, -0.0, 0.5, 1.5, 2.5, -1.7, 300.25, -70000.0, 65504.0, 65520.0, 1e-7, 6e-8, 1e-45, 3e9, -3e9, 1e19, -1e19, 3.4e38, float("inf"), -float("inf")]
    results = {}
    for device in ("cpu", xpu):
        results[device] = []
        for of in TYPES:
            with np.errstate(all="ignore"):
                if of.is_floating_point:
                    values = naru.tensor(special, dtype=naru.float64).to(of)
                else:
                    values = naru.tensor([0, 1, 2, 127, -128, 200, -30000, 2**31 - 1, -2**31, 2**40 + 3, -2**62], dtype=naru.int64).to(of)
            there = values.to(device)
            there = (there.to(to) if to != of else there.clone()).cpu()
            results[device].append(bits(there.float() if to == naru.bfloat16 else there))  # NumPy has no bfloat16
    for of, a, b in zip(TYPES, results["cpu"], results[xpu]):
        assert a == b, f"{of} to {to}"


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_random_numbers_have_the_bits_of_cpu(size, xpu):
    for make in (lambda d: naru.rand(size, device=d), lambda d: naru.randn(size, device=d), lambda d: naru.randint(0, 1000, (size,), device=d),
                 lambda d: naru.randperm(size, device=d), lambda d: naru.bernoulli(naru.full((size,), 0.3, device=d))):
        seen = []
        for d in ("cpu", xpu):
            naru.manual_seed(7)
            seen.append(bits(make(d)))
        assert seen[0] == seen[1]


def test_copies_go_between_every_two_kinds_of_device(xpu):
    x = naru.arange(1000.0)
    for there in (xpu, "cuda:0", "mps:0", "cpu"):
        for back in ("cuda:1", xpu, "cpu"):
            y = x.to(there).to(back)
            assert y.device == naru.device(back) and bits(y) == bits(x)


def test_overlapping_copies_within_a_device_move_whole(xpu):
    x = naru.arange(100.0, device=xpu)
    want = x.cpu().clone()
    want[10:60] = want[:50].clone()
    x[10:60] = x[:50].clone()
    assert bits(x) == bits(want)


def test_a_tensor_is_on_xpu_and_prints_so(xpu):
    x = naru.ones(2, device=xpu)
    assert x.is_xpu and x.device.type == "xpu" and "device='xpu:0'" in repr(x)
    p = naru.xpu.get_device_properties(0)
    assert p.name and p.total_memory > 0
    with pytest.raises(TypeError, match="cpu"):
        x.numpy()


def test_memory_is_counted_and_given_back(xpu):
    naru.xpu.empty_cache()
    before = naru.xpu.memory_allocated()
    x = naru.ones(1 << 20, device=xpu)
    naru.xpu.synchronize()
    assert naru.xpu.memory_allocated() == before + (4 << 20)
    del x
    assert naru.xpu.memory_allocated() == before
    naru.xpu.empty_cache()


def test_a_size_the_device_does_not_have_is_an_out_of_memory_error(xpu):
    with pytest.raises(naru.OutOfMemoryError, match="xpu"):
        naru.empty(1 << 44, device=xpu).fill_(0)
    assert float(naru.ones(3, device=xpu).sum()) == 3


def test_streams_and_events_order_work(xpu):
    s = naru.Stream(device=xpu)
    x = naru.zeros(1000, device=xpu)
    for i in range(20):
        with s if i % 2 else naru.xpu.current_stream():
            x += 1
    start, end = naru.Event(device=xpu, enable_timing=True), naru.Event(device=xpu, enable_timing=True)
    start.record()
    y = x * 2
    y = y.sin()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0 and end.query()
    assert bits(x) == bits(naru.full((1000,), 20.0))


def train(device):
    """A network on handwritten digits, a few rounds with each of two optimizers: the losses and the weights in the end."""
    load_digits = pytest.importorskip("sklearn.datasets", reason="the digits are scikit-learn's, which this Python does not have").load_digits

    digits = load_digits()
    x = naru.tensor(digits.data[:1024] / 16, dtype=naru.float32).to(device)
    t = naru.tensor(digits.target[:1024]).to(device)
    naru.manual_seed(3)
    nn = naru.nn
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.LayerNorm(48), nn.Dropout(0.1), nn.Linear(48, 10)).to(device)
    losses = []
    for optimizer in (naru.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), naru.optim.Adam(model.parameters(), lr=0.01)):
        for i in range(24):
            at = naru.randperm(1024, device=device)[:64]
            loss = nn.functional.cross_entropy(model(x[at]), t[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(bits(loss))
    model.eval()
    right = int((model(x).argmax(1) == t).sum())
    return losses, [bits(p) for p in model.parameters()], right


def test_a_whole_training_run_ends_in_the_same_bits_on_cpu_a_virtual_device_and_xpu(xpu):
    naru.use_deterministic_algorithms(True)
    try:
        wanted = train("cpu")
        assert wanted[2] > 900
        for device in ("cuda:0", xpu):
            assert train(device) == wanted, device
    finally:
        naru.use_deterministic_algorithms(False)


def test_random_programs_do_what_numpy_does(xpu):
    kinds = ["new", "view", "inplace", "assign", "mask", "positions", "reduce", "cat", "copy"]
    rng = np.random.default_rng(1)
    for example in range(12):
        both = Both(SHAPES[example % 2], xpu)
        with np.errstate(all="ignore"):
            for _ in range(12):
                both.run(kinds[rng.integers(9)], rng.integers(8), rng.integers(8), int(rng.integers(6)), int(rng.integers(-3, 4)))
        both.check()


def run_python(code: str, **environment):
    """In a process of its own, which compiles with the headers of the driver."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_FAKE_OPENCL_HEADERS": "", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_second_start_of_a_program_compiles_nothing(tmp_path):
    program = """
        import json, naru
        from naru import _C
        x = naru.arange(1000.0, device="xpu")
        y = (x * 0.5).exp().sum() + x.cumsum(0)[7] + x.sort()[0][3]
        print(json.dumps([_C._kernel_cache()["compilations"], y.item()]))
    """
    first, second = (json.loads(run_python(program, NARU_CACHE_DIR=str(tmp_path / "kernels"))) for _ in range(2))
    assert first[0] > 0 and second[0] == 0 and first[1] == second[1]
    # A damaged entry is compiled again, with the same result.
    for i, entry in enumerate(sorted((tmp_path / "kernels").glob("*.kernel"))):
        data = bytearray(entry.read_bytes())
        entry.write_bytes(data[: len(data) // 2] if i % 2 else bytes(data[:-20]) + bytes(20))
    third = json.loads(run_python(program, NARU_CACHE_DIR=str(tmp_path / "kernels")))
    assert third == first


def test_a_device_without_float64_does_everything_else():
    out = run_python("""
        import naru
        assert not naru.xpu.get_device_properties(0).has_fp64
        x = naru.arange(1.0, 300.0).to("xpu")
        for f in (lambda a: (a / 7).exp().sum(), lambda a: a.sqrt().tanh(), lambda a: a.half().cumsum(0), lambda a: (a % 3.5).sort()[0], lambda a: naru.rand(5, device=a.device)):
            naru.manual_seed(1)
            there = f(x).cpu()
            naru.manual_seed(1)
            assert there.tolist() == f(x.cpu()).tolist()
        try:
            x.double()
        except TypeError as e:
            print(e)
    """, NARU_OPENCL_FP64="0")
    assert "float64" in out and "xpu:0" in out


def test_what_keeps_opencl_from_being_used_is_said(tmp_path):
    why = "import naru; print(naru._C._availability('xpu'))"
    out = run_python(why, NARU_OPENCL_LIBRARY=str(tmp_path / "libOpenCL.so.1"))
    assert "'no library'" in out and str(tmp_path) in out and "apt install" in out
    out = run_python(why, OCL_ICD_VENDORS=str(tmp_path))
    assert "'no library'" in out and "no platform" in out


def test_a_kernel_with_more_shared_memory_than_a_group_has_is_an_error(xpu):
    text = "kernel void k(float* b) {{ shared float s[{}]; int i = local_id(0); s[i] = i; barrier(); b[i] = s[i]; }}"
    out = naru.zeros(4, device=xpu)
    naru.kernel(text.format(4), "k")(out, blocks=1, threads=4)
    with pytest.raises(RuntimeError, match="shared arrays take 400000000 bytes, and a group has"):
        naru.kernel(text.format(100000000), "k")(out, blocks=1, threads=4)
    assert out.tolist() == [0, 1, 2, 3]


def test_processors_are_no_xpu_devices_unless_asked_for():
    code = "import naru; print(naru.xpu.device_count(), naru.best_device(), naru._C.why_unavailable('xpu'))"
    out = run_python(code, NARU_OPENCL_CPU="0")
    assert out.startswith("0 ") or "xpu" not in out.split()[1]
    assert run_python("import naru; print(naru.xpu.device_count())").split()[0] != "0"


def test_asking_for_devices_leaves_no_thread_and_a_child_may_use_them():
    out = run_python("""
        import os, naru
        assert naru.xpu.device_count() > 0
        print(len(os.listdir("/proc/self/task")))
        child = os.fork()
        if child == 0:
            os._exit(0 if float(naru.ones(3, device="xpu").sum()) == 3 else 1)
        print(os.waitpid(child, 0)[1])
        naru.ones(3, device="xpu").sum().item()
        child = os.fork()
        if child == 0:
            try:
                naru.ones(3, device="xpu").sum().item()
            except RuntimeError as e:
                os._exit(0 if "forked subprocess" in str(e) else 1)
            os._exit(2)
        print(os.waitpid(child, 0)[1])
    """, NARU_CACHE_DIR="").split()
    assert out == ["1", "0", "0"]


@pytest.mark.parametrize("shared", ["1", "0"])
def test_devices_of_several_platforms_are_used_side_by_side(shared):
    out = run_python("""
        import naru
        print(naru.xpu.device_count())
        x, y = naru.arange(1000.0, device="xpu:0"), naru.arange(1000.0, device="xpu:1")
        for _ in range(20):
            x, y = x + 1, y * 0.5 + x.to("xpu:1")
            x += y.to("xpu:0")
        a, b = naru.arange(1000.0), naru.arange(1000.0)
        for _ in range(20):
            a, b = a + 1, b * 0.5 + a
            a += b
        print(x.cpu().tolist() == a.tolist(), y.cpu().tolist() == b.tolist())
        try:
            x + y
        except RuntimeError as e:
            print("xpu:0" in str(e) and "xpu:1" in str(e))
    """, **faulty(platforms=2), NARU_OPENCL_SVM=shared).split()
    assert out == ["2", "True", "True", "True"]


@pytest.mark.parametrize("shared", ["1", "0"])
def test_a_tensor_larger_than_a_buffer_may_be_is_an_error_that_says_so(shared):
    out = run_python("""
        import naru
        x = naru.ones(1 << 20, device="xpu")
        try:
            naru.empty(3 << 20, device="xpu")
        except naru.OutOfMemoryError as e:
            print(e)
        print([float(naru.ones(1 << 20, device="xpu").sum()) for _ in range(8)] == [float(1 << 20)] * 8, float(x.sum()) == 1 << 20)
    """, **faulty(largest=8 << 20), NARU_OPENCL_SVM=shared)
    assert "Tried to allocate 12.00 MiB" in out and "at most 8.00 MiB in one piece" in out and "True True" in out


FAULTS = [("launch", -5, "OutOfMemoryError", "CL_OUT_OF_RESOURCES"), ("launch", -52, "RuntimeError", "CL_INVALID_KERNEL_ARGS"),
          ("events", -9999, "RuntimeError", "-9999"), ("lost", -2, "DeviceUnavailableError", "the device is gone")]


@pytest.mark.parametrize("what, code, kind, text", FAULTS, ids=[f"{w}{c}" for w, c, _, _ in FAULTS])
@pytest.mark.parametrize("shared", ["1", "0"])
def test_an_error_of_the_driver_is_told_where_somebody_waits_and_ends_nothing(what, code, kind, text, shared, tmp_path):
    out = run_python("""
        import naru
        x = naru.zeros(1000, device="xpu")
        x.cpu()
        failed = 0
        for _ in range(60):
            x += 1
            x.sin()
            try:
                naru.xpu.synchronize()
            except RuntimeError as e:
                failed += 1
                said = e
        print(failed > 0, type(said).__name__, said)
        x = y = None
        naru.xpu.empty_cache()
        print(float(naru.ones(3).sum()))
    """, **faulty(**{what: f"{code}@40"}), NARU_OPENCL_SVM=shared, NARU_CACHE_DIR=str(tmp_path))
    first, last = out.splitlines()[0], out.splitlines()[-1]
    assert first.startswith(f"True {kind} ") and text in first and last == "3.0", out


def test_what_the_compiler_says_is_in_the_reason_why_a_device_cannot_be_used(tmp_path):
    out = run_python("import naru; print(naru._C.why_unavailable('xpu'))", **faulty(build=1), NARU_CACHE_DIR=str(tmp_path))
    assert "error: not today" in out and "refused a kernel" in out


@pytest.mark.parametrize("shared", ["1", "0"])
def test_what_a_device_does_not_support_is_done_by_the_cpu_without_copies_where_the_host_shares_its_memory(shared):
    out = run_python("""
        import naru
        calls = {"sort": lambda x: x.sort(0).values, "exp": lambda x: ((x + 1).exp() * 2)[1:], "matmul": lambda x: x @ x.t(), "sum": lambda x: x.sum(1),
                 "gather": lambda x: x.gather(0, naru.zeros(1, 6, dtype=naru.int64, device=x.device)), "cumsum": lambda x: x.t().cumsum(1)}
        there, here = naru.arange(30.0, device="xpu").reshape(5, 6).sin(), naru.arange(30.0).reshape(5, 6).sin()
        try:
            there.exp()
        except NotImplementedError as e:
            print("'aten::exp' is not currently implemented for the XPU device" in str(e))
        naru.fallback.set_policy("count")
        for call in calls.values():
            there += 1
            here += 1
            got = call(there)
            assert got.device.type == "xpu" and ((got * 2).cpu().tolist() == (call(here) * 2).tolist())
        uses = {use.op: use for use in naru.fallback.report()}
        print(sorted(uses) == sorted(calls), all(use.calls == 1 for use in uses.values()), sum(use.bytes for use in uses.values()))
    """, NARU_OPENCL_WITHOUT="sort,exp,matmul,sum,gather,cumsum", NARU_OPENCL_SVM=shared, NARU_VIRTUAL="").split()
    assert out[:3] == ["True", "True", "True"] and (out[3] == "0") == (shared == "1" and memory_is_shared())


def memory_is_shared():
    return naru.xpu.get_device_properties(0).is_integrated


@pytest.mark.parametrize("shared", ["1", "0"])
def test_copies_to_and_from_the_host_are_whole_whatever_is_under_way(shared):
    out = run_python("""
        import naru
        x, same = naru.arange(100000.0, device="xpu"), naru.arange(100000.0)
        s = naru.Stream(device="xpu")
        ok = True
        for i in range(30):
            x += 1
            same += 1
            ok &= x[7::5].cpu().tolist() == same[7::5].tolist() and x[i].item() == same[i].item()
            x[i] = 5.0
            same[i] = 5.0
            fresh = same.to("xpu")
            with s:
                other = fresh * 2
            same *= 0.5
            x.copy_(same)
            ok &= other.cpu().tolist() == (fresh.cpu() * 2).tolist()
            pinned = same.pin_memory()
            late = pinned.to("xpu", non_blocking=True)
            pinned += 1
            ok &= late.cpu().tolist() == same.tolist()
        print(ok, x.cpu().tolist() == same.tolist())
    """, NARU_OPENCL_SVM=shared).split()
    assert out == ["True", "True"]


@pytest.mark.parametrize("loops", ["0", "1"])
def test_a_device_without_float64_computes_it_in_integers_with_the_bits_of_the_cpu(loops):
    out = run_python(f"""
        import naru
        from naru import special
        x = naru.cat([naru.linspace(-12, 30, 3001), naru.logspace(-44, 38, 999), -naru.logspace(-30, 30, 500), naru.tensor([0.0, -0.0, 1.0, naru.inf, -naru.inf, naru.nan])])
        functions = {{"sin": naru.sin, "cos": naru.cos, "tan": naru.tan, "pow": lambda a: a ** 1.7, "erfc": naru.erfc, "lgamma": naru.lgamma, "digamma": naru.digamma,
                     "zeta": lambda a: special.zeta(a.detach().abs() / 9 + 1.5, a), "erfcx": special.erfcx, "log_ndtr": special.log_ndtr, "ndtri": lambda a: special.ndtri(a / 30), "ndtr": special.ndtr, "entr": special.entr,
                     "i0": naru.i0, "i0e": special.i0e, "i1": special.i1, "i1e": special.i1e}}
        def bits(t):
            return [(v != v) or v for v in t.view(naru.int32).masked_fill(t.isnan(), 7).tolist()]
        for name, f in functions.items():
            results = []
            for device in ("xpu", "cpu"):
                a = x.detach().to(device).requires_grad_()
                y = f(a)
                y.backward(naru.ones_like(y))
                results.append((bits(y.detach()), bits(a.grad)))
            assert results[0] == results[1], name
        for make in (lambda d: naru.arange(0.0, 5, 0.3, device=d), lambda d: naru.linspace(0, 1, 7, device=d), lambda d: naru.logspace(0, 1, 7, device=d),
                     lambda d: naru.arange(5, device=d), lambda d: (naru.ones(5, device=d) * 3).exp().std(), lambda d: naru.arange(0.0, 3000, 0.7, dtype=naru.bfloat16, device=d)):
            there = make("xpu")
            assert there.device.type == "xpu" and there.dtype == make("cpu").dtype and there.tolist() == make("cpu").tolist()
        print(naru.fallback.report())
    """, NARU_OPENCL_FP64="0", NARU_OPENCL_LOOPS=loops).split()
    assert out == ["[]"]


def test_doctor_says_that_a_device_has_no_float64():
    done = subprocess.run([sys.executable, "-m", "naru", "doctor", "xpu"], capture_output=True, text=True, check=True,
                          env={**os.environ, "NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": "", "NARU_OPENCL_FP64": "0"})
    assert "xpu:0 has no float64" in done.stdout


@pytest.mark.parametrize("kind", ["int", "unsigned int", "long", "unsigned long", "char", "unsigned char"])
def test_whole_numbers_are_divided_in_kernels_as_on_the_host(kind, xpu):
    dtype = {"int": naru.int32, "unsigned int": naru.int32, "long": naru.int64, "unsigned long": naru.int64, "char": naru.int8, "unsigned char": naru.uint8}[kind]
    edge = naru.tensor([0, 1, 5, 7, naru.iinfo(dtype).max, naru.iinfo(dtype).min, *([-1, -7] if dtype.is_signed else [])], dtype=dtype)
    a, b = (t.reshape(-1).contiguous() for t in naru.meshgrid(edge, edge, indexing="ij"))
    name = str(dtype).split(".")[1].replace("uint8", "unsigned char").replace("int8", "char").replace("int32", "int").replace("int64", "long")
    source = f"""kernel void k(const {name}* a, const {name}* b, long* o) {{
      int i = global_id(0); {kind} x = a[i], y = b[i]; {kind} z = x; {kind} t[2]; int at = 0; t[0] = t[1] = x;
      z /= y; t[at++] %= y; o[4 * i] = x / y; o[4 * i + 1] = x % y ^ (x ^ y) / (y | 2); o[4 * i + 2] = z; o[4 * i + 3] = t[0] ^ at ^ (int)((float)(x & 15) / 2);
    }}"""
    results = []
    for device in ("cpu", xpu):
        out = naru.zeros(4 * a.numel(), dtype=naru.int64, device=device)
        naru.kernel(source, "k")(a.to(device), b.to(device), out, grid=a.numel())
        results.append(out.tolist())
    assert results[0] == results[1]
