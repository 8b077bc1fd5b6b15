"""Virtual devices for the whole run, so that tests can use several kinds of device on any machine."""
import faulthandler
import gc
import importlib.util
import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("NARU_VIRTUAL", "cuda:2,mps:1")
if "NARU_TEST_DEVICES" not in os.environ:
    for hides in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        os.environ.pop(hides, None)
    # PoCL compiles in half the time what it need not read its own headers for (tests/fakes/opencl_headers.cpp).
    top = Path(importlib.util.find_spec("naru").origin).resolve().parents[2]
    if found := next((p for p in (top / "tests/fakes/libopencl.so", top / "build/release/tests/fakes/libopencl.so") if p.exists()), None):
        os.environ.setdefault("NARU_OPENCL_LIBRARY", str(found))
        os.environ.setdefault("NARU_FAKE_OPENCL_HEADERS", "own")
# The kernel cache is off: PoCL has one of its own, and few kernels are asked for twice (the test of the cache enables it).
os.environ.setdefault("NARU_CACHE_DIR", "")

# tools/test.py asks a run that does not end for the stacks of its processes.
if (stacks := os.environ.get("NARU_TEST_STACKS")) and hasattr(faulthandler, "register"):  # Windows has no such signals
    faulthandler.register(signal.SIGUSR1, file=open(Path(stacks, str(os.getpid())), "w", encoding="utf-8"), all_threads=True)  # noqa: SIM115

# A shell makes background processes ignore SIGINT, which the programs that tests interrupt would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for tools

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import naru  # noqa: E402

# Where tests fork ranks that use cuda devices (test_nccl.py) nothing here may ask the driver, which a forked process can't use then.
FORKS = "NARU_TEST_NCCL" in os.environ
# The first device of every registered kind (the virtual ones above and those of the machine), or of the kinds in NARU_TEST_DEVICES.
DEVICES = [d["device"] for d in ([] if FORKS else naru._C.devices()) if d["index"] == 0 and d["kind"] in os.environ.get("NARU_TEST_DEVICES", d["kind"]).split(",")]


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"the list of operators runs on {', '.join(DEVICES)}")
    for kind in ("cuda", "rocm", "xpu", "mps"):
        if not naru._C.is_available(kind):
            terminalreporter.write_line(f"  not on {kind}: {naru.why_unavailable(kind)}" + (" (test_opencl.py has it through PoCL)" if kind == "xpu" else ""))


# The files whose tests take longest, even if they have few tests: they run first when files run in parallel, so that none is left over at the end.
LONG = ("test_cuda", "test_rocm", "test_ways", "test_rendered_kernels", "test_opencl", "test_fuzz", "test_data_worker_ends", "test_headers", "test_layout_programs", "test_gpu_check", "test_cuda_attention", "test_seeds",
        "test_packaging", "test_programs", "test_building", "test_interrupts", "test_layers", "test_autograd_memory")  # fmt: skip


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The long files first; every n-th test from the k-th on, where NARU_TEST_PART is "k/n"."""
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    if part := os.environ.get("NARU_TEST_PART"):
        first, step = map(int, part.split("/"))
        items[:] = items[first::step]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Where all devices of the run are Apple's (test_metal.py), the rest of a test that needs float64 is left out, and said to be."""
    try:
        return (yield)
    except TypeError as error:
        if os.environ.get("NARU_TEST_DEVICES") != "mps" or "the MPS framework doesn't support float64" not in str(error):
            raise
        pytest.skip("it needs float64, which the device does not have")


@pytest.fixture(params=DEVICES)
def device(request):
    """Every kind of device that is registered, virtual ones included."""
    return request.param


@pytest.fixture
def own_matmuls():
    """naru's own matrix products, whose bits are the same everywhere; they are the library's otherwise."""
    naru.use_deterministic_algorithms(True)
    yield
    naru.use_deterministic_algorithms(False)


def settings():
    """What is set for the whole process, by name."""
    found = {f"backends.{m}.{n}": v for m in naru.backends.__all__ for n, v in vars(getattr(naru.backends, m)).items()
             if type(v) in (bool, int, str, type(None)) and not n.startswith("__")}  # fmt: skip
    found |= {
        asked.__name__: asked()
        for asked in (
            naru.are_deterministic_algorithms_enabled, naru.get_deterministic_debug_mode, naru.get_default_device, naru.get_default_dtype,
            naru.get_float32_matmul_precision, naru.get_num_threads, naru.get_printoptions, naru.is_anomaly_enabled, naru.is_autocast_cpu_enabled,
            naru.is_autocast_enabled, naru.is_grad_enabled, naru.is_inference_mode_enabled,
            *((naru.cuda.current_device, naru.cuda.current_stream) if not FORKS and naru.cuda.is_available() else ()),
        )
    }  # fmt: skip
    found["the names of classes"] = naru.nn.Linear.__module__  # as_torch() renames modules to torch's
    return found | {f"environ.{n}": os.environ[n] for n in os.environ if n.startswith("NARU_")}


@pytest.fixture(autouse=True, scope="module")
def garbage_is_sought_among_what_is_new():
    """What was there before a file's tests is not looked through again: thousands of tests, and the objects of other files, make a collection take 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def settings_stay():
    """A test leaves what is set for the process as it found it: which tests share a process differs from run to run."""
    before = settings()
    yield
    after = settings()
    assert {n: after.get(n) for n in before | after if before.get(n) != after.get(n)} == {}, "set by this test and not put back"


@pytest.fixture(autouse=True)
def seeded():
    naru.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def falls_back(request):
    """Cases of what only hosts compute run on every device all the same; all others must be native."""
    case = request.node.callspec.params.get("case") if hasattr(request.node, "callspec") else None
    if {"library", "host"} & set(getattr(case, "extra", {})):
        with naru.fallback.policy("count"):
            yield
    else:
        yield
