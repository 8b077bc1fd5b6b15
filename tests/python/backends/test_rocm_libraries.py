"""hipBLASLt and MIOpen on rocm, over small stand-ins (tests/fakes: cuBLASLt's, with hipBLASLt's names and numbers; MIOpen's sums in float64, by definition);
and whether naru's own declarations agree with AMD's headers and libraries. No GPU is used."""
import re
import subprocess
from pathlib import Path

import pytest

from test_rocm import HOME, environment, pytestmark, run  # noqa: F401
from fakes import FAKES

PRELUDE = """
import os, random, sys
import naru
from naru.nn import functional as F
naru.manual_seed(5)
random.seed(5)
DTYPES = {naru.float32: 2.0 ** -22, naru.float64: 2.0 ** -51, naru.float16: 2.0 ** -10, naru.bfloat16: 2.0 ** -7}  # two roundings of the result

def laid(x, device):
    # The same elements on the device: with other strides, gaps, or an offset that no vector load is aligned to.
    way, n = random.randrange(4), x.dim()
    if way == 1:
        order = random.sample(range(n), n)
        return x.permute(order).contiguous().to(device).permute([order.index(d) for d in range(n)])
    if way == 2:
        wide = naru.zeros(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype, device=device)
        wide[..., 1 : 1 + x.shape[-1]].copy_(x.to(device))
        return wide[..., 1 : 1 + x.shape[-1]]
    if way == 3:
        flat = naru.zeros(x.numel() + 1, dtype=x.dtype, device=device)
        flat[1:].copy_(x.reshape(-1).to(device))
        return flat[1:].view(x.shape)
    return x.to(device)

def near(got, wanted, size, unit):
    # unit: of the dtype; size: the sum of the terms' sizes, which bounds what sums in float32 may lose.
    return bool(((got.cpu().double() - wanted).abs() <= wanted.abs() * unit + size * max(unit, 2.0 ** -20) * 2.0 ** -2 + 1e-7).all())
"""
PRODUCTS = """
for case in range(120):
    dtype, unit = random.choice(list(DTYPES.items()))
    batch = random.choice([(), (1,), (3,), (2, 2)])
    m, n, k = (random.choice([1, 2, 5, 16, 33]) for _ in range(3))
    a, b, c = naru.randn(*batch, m, k).to(dtype), naru.randn(*batch, k, n).to(dtype), naru.randn(n).to(dtype)
    x, y, z = laid(a, "rocm"), laid(b, "rocm"), laid(c, "rocm")
    if random.random() < 0.2:
        b, y = b[..., :1].expand(*batch, k, n), y[..., :1].expand(*batch, k, n)
    biased = not batch and random.random() < 0.5
    got = naru.addmm(z, x, y) if biased else x @ y
    size = a.double().abs() @ b.double().abs() + (c.double().abs() if biased else 0)
    wanted = a.double() @ b.double() + (c.double() if biased else 0)
    assert near(got, wanted, size, unit), (case, dtype, batch, m, n, k, biased, (got.cpu().double() - wanted).abs().max())
print("right")
"""
CONVOLUTIONS = """
for case in range(90):
    dtype, unit = random.choice(list(DTYPES.items()))
    dims = random.choice([1, 2, 2, 3])
    groups, each, out = random.choice([1, 1, 2, 4]), random.choice([1, 2, 3]), random.choice([1, 2, 5])
    kernel = [random.choice([1, 2, 3]) for _ in range(dims)]
    stride, padding, dilation = ([random.choice(numbers) for _ in range(dims)] for numbers in ([1, 2], [0, 1], [1, 2]))
    x = naru.randn(random.choice([1, 3]), groups * each, *(random.choice([6, 7]) for _ in range(dims))).to(dtype)
    w, b = naru.randn(groups * out, each, *kernel).to(dtype), naru.randn(groups * out).to(dtype)
    conv = [F.conv1d, F.conv2d, F.conv3d][dims - 1]
    last = dims == 2 and random.random() < 0.3
    there = [laid(t, "rocm").detach().requires_grad_() for t in (x, w, b)]
    images = there[0].to(memory_format=naru.channels_last) if last else there[0]
    arguments = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    got = conv(images, there[1], there[2], **arguments)
    grad = naru.randn(*got.shape).to(dtype)
    got.backward(laid(grad, "rocm"))
    def computed(magnitudes):
        own = [(t.double().abs() if magnitudes else t.double().clone()).requires_grad_() for t in (x, w, b)]
        y = conv(*own, **arguments)
        y.backward(grad.double().abs() if magnitudes else grad.double())
        return [y.detach(), own[0].grad, own[1].grad]
    for what, result, wanted, size in zip(("y", "dx", "dw"), (got.detach(), there[0].grad, there[1].grad), computed(False), computed(True)):
        assert near(result, wanted, size, unit), (case, what, dtype, list(x.shape), list(w.shape), arguments, last, (result.cpu().double() - wanted).abs().max())
print("right")
"""


def counts(log):
    names = re.findall(r"\d+ (\w+)", log.read_text()) if log.exists() else []
    return {name: names.count(name) for name in names}


def test_products_of_every_type_and_layout_are_the_librarys(environment, tmp_path):
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", PRELUDE + PRODUCTS) == (0, "right\n")
    assert counts(log)["hipblasLtMatmul"] == 120


def test_convolutions_of_every_type_and_layout_are_the_librarys_but_for_float64(environment, tmp_path):
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", PRELUDE + CONVOLUTIONS) == (0, "right\n")
    found = counts(log)
    wide = PRELUDE + CONVOLUTIONS.replace("list(DTYPES.items())", "[(naru.float64, 2.0 ** -51)]").replace("range(90)", "range(20)")
    for name in ("Forward", "BackwardData", "BackwardWeights"):
        assert 45 < found[f"miopenConvolution{name}Immediate"] < 90  # a quarter is float64
    log.unlink()
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", wide) == (0, "right\n")
    assert not [name for name in counts(log) if "Immediate" in name]


BOTH = """
operands = [naru.randn(2, 4, 7, 6), naru.randn(6, 2, 3, 3), naru.randn(6), naru.randn(9, 5), naru.randn(5, 4)]
def compute(change):
    x, w, b, p, q = (change(t).detach().clone() for t in operands)
    x.requires_grad_(), w.requires_grad_()
    y = F.conv2d(x, w, b, stride=2, padding=1, groups=2)
    y.square().sum().backward()
    return [t.detach().cpu() for t in (p @ q, y, x.grad, w.grad)]
naru.use_deterministic_algorithms(DETERMINISTIC)
ours, theirs, exact, sizes = (compute(change) for change in (lambda t: t, lambda t: t.to("rocm"), lambda t: t.double(), lambda t: t.double().abs()))
print([naru.equal(a, b) for a, b in zip(ours, theirs)], all(near(*each, 2.0 ** -22) for each in zip(theirs, exact, sizes)))
"""


def test_deterministic_algorithms_are_own_kernels_with_the_bits_of_the_cpu(environment, tmp_path):
    log = tmp_path / "calls"
    said = run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", PRELUDE + BOTH.replace("DETERMINISTIC", "True"))
    assert said == (0, "[True, True, True, True] True\n")
    assert not [name for name in counts(log) if name.startswith(("hipblasLt", "miopen"))]


TROUBLES = [("NARU_HIPBLASLT_LIBRARY", "/nowhere"), ("NARU_HIPBLASLT_LIBRARY", str(FAKES / "librccl.so")), ("NARU_MIOPEN_LIBRARY", "/nowhere"),
            ("NARU_FAKE_ERROR", "hipblasLtCreate=1"), ("NARU_FAKE_ERROR", "hipblasLtMatmulAlgoGetHeuristic=3"),
            ("NARU_FAKE_ERROR", "hipblasLtMatmul=7"), ("NARU_FAKE_ERROR", "miopenCreate=1"), ("NARU_FAKE_ERROR", "miopenSetTensorDescriptor=3"),
            ("NARU_FAKE_ERROR", "miopenSetConvolutionAttribute=3"), ("NARU_FAKE_ERROR", "miopenConvolutionForwardGetSolutionCount=6"),
            ("NARU_FAKE_ERROR", "miopenConvolutionBackwardDataCompileSolution=8"), ("NARU_FAKE_CONV_REFUSES", "all"),
            ("NARU_FAKE_CONV_REFUSES", "run"), ("NARU_FAKE_CONV_REFUSES", "compile"), ("NARU_FAKE_CONV_WORKSPACE", "99999999999"),
            ("NARU_FAKE_WORKSPACE", "999999999"), ("NARU_FAKE_NO_ALGORITHM", "1")]  # fmt: skip
# What these leave to a slower solution of the library's own.
NEXT = {"run", "compile", "99999999999"}


@pytest.mark.parametrize("variable, value", TROUBLES)
def test_what_a_library_refuses_is_done_by_its_next_solution_or_by_own_kernels(environment, tmp_path, variable, value):
    log = tmp_path / "calls"
    code, said = run({**environment, "NARU_FAKE_LOG": str(log), variable: value}, "-c", PRELUDE + BOTH.replace("DETERMINISTIC", "False"))
    assert code == 0 and said.endswith("] True\n") and said.count("\n") == 1, said
    launches = [name for name in counts(log) if name.startswith("miopenConvolution") and name.endswith("Immediate")]
    assert len(launches) == 3 or value not in NEXT


FAILING = """
def said(error, compute):
    os.environ["NARU_FAKE_ERROR"] = error
    try:
        compute().tolist()
        print(error, "is not told")
    except (RuntimeError, naru.OutOfMemoryError) as e:
        print(f"{type(e).__name__}: {e}")
    del os.environ["NARU_FAKE_ERROR"]
a, x, w = naru.ones(5, 5, device="rocm"), naru.ones(1, 2, 6, 5, device="rocm"), naru.ones(3, 2, 3, 3, device="rocm")
assert (a @ a).sum().item() == 125
said("hipblasLtMatmul=6@1", lambda: a @ a)
said("hipblasLtMatmul=2@1", lambda: a @ a)
said("miopenConvolutionForwardImmediate=7@1", lambda: F.conv2d(x, w))
said("miopenConvolutionForwardImmediate=4@1", lambda: F.conv2d(x, w))
said("miopenSetStream=5@1", lambda: F.conv2d(x, w))
print(F.conv2d(x, w).sum().item(), (a @ a).sum().item())
"""


def test_a_failure_is_an_error_with_the_librarys_words_and_the_device_goes_on(environment):
    of, own = "convolution of x 1 x 2 x 6 x 5, w 3 x 2 x 3 x 3 and y 1 x 3 x 4 x 3", "`use_deterministic_algorithms(True)` takes naru's own kernels"
    product = "on rocm:0 for the matrix product of 5 x 5 and 5 x 5, float32."
    assert run(environment, "-c", PRELUDE + FAILING) == (0, (
        f"RuntimeError: HIP error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasLtMatmul` {product} {own}\n"
        f"OutOfMemoryError: HIP error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasLtMatmul` {product} Use smaller tensors, or free some\n"
        f"RuntimeError: MIOpen error: miopenStatusUnknownError (an unknown error of the stand-in) when calling `miopenConvolutionForwardImmediate` on rocm:0 for {of}. {own}\n"
        f"OutOfMemoryError: MIOpen error: miopenStatusAllocFailed (an error) when calling `miopenConvolutionForwardImmediate` on rocm:0 for {of}. Use smaller tensors, or free some\n"
        f"RuntimeError: MIOpen error: miopenStatusInternalError (an error) when calling `miopenSetStream` on rocm:0 for {of}. {own}\n"
        "648.0 125.0\n"))  # fmt: skip


def test_doctor_says_what_is_done_without_the_libraries_and_what_to_install(environment):
    code, said = run({**environment, "NARU_HIPBLASLT_LIBRARY": "/nowhere", "NARU_MIOPEN_LIBRARY": "/nowhere"}, "-m", "naru", "doctor", "rocm")
    assert code == 0 and "own kernels for products (no hipBLASLt: install AMD's package hipblaslt, of ROCm 6 or newer)" in said
    assert "own kernels for convolutions (no MIOpen: install AMD's package miopen-hip)" in said


GRAPH = """
x, w, a = naru.randn(1, 2, 6, 5, device="cuda"), naru.randn(3, 2, 3, 3, device="cuda"), naru.randn(12, 4, device="cuda")
g = naru.Graph()
with naru.graph(g):
    y = F.conv2d(x, w).reshape(3, 12) @ a
first = y.clone()
for _ in range(3):
    x.copy_(naru.randn(1, 2, 6, 5))
    g.replay()
    own = F.conv2d(x.cpu().double(), w.cpu().double()).reshape(3, 12) @ a.cpu().double()
    assert near(y, own, own.abs() + 50, 2.0 ** -22)
print("right")
"""


def test_graphs_hold_the_libraries_calls(environment, tmp_path):
    """Solutions are compiled, and handles made, before the driver captures."""
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", PRELUDE + GRAPH) == (0, "right\n")
    found = counts(log)
    assert found["hipGraphLaunch"] == 3 and found["hipblasLtMatmul"] == found["miopenConvolutionForwardImmediate"] <= 2


def source(name):
    return (HOME / "src/backends" / name).read_text()


def miopen_functions():
    text = source("rocm/miopen.h")
    of_uses = re.findall(r"^  F\(int, miopenConvolution##use##(\w+),", text, re.MULTILINE)
    uses = re.findall(r"^  NARU_MIOPEN_USE\(F, (\w+)\)", text, re.MULTILINE)
    return re.findall(r"^  F\((?:int|const char\*), (miopen\w+),", text, re.MULTILINE) + [f"miopenConvolution{use}{name}" for use in uses for name in of_uses]


def hipblaslt_functions():
    return ["hipblasLt" + name for name in re.findall(r"^  F\((\w+),", source("gpu/blaslt.h"), re.MULTILINE)]


NUMBERS = r"""
#define __HIP_PLATFORM_AMD__
#include "backends/rocm/hipblaslt.h"
#include "backends/rocm/miopen.h"
constexpr long long kOurs[] = {OURS};
#if __has_include(<hipblaslt/hipblaslt.h>)
#include <hipblaslt/hipblaslt.h>
#endif
#if __has_include(<miopen/miopen.h>)
#include <miopen/miopen.h>
#endif
#include <cstddef>
#include <type_traits>
namespace ours = naru::backends::rocm;
// As many parameters, each a pointer or a number of the same size.
template <class R, class... A, class S, class... B>
constexpr bool alike(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
}
#if __has_include(<hipblaslt/hipblaslt.h>)
#define LT(name, parameters) static_assert(alike(decltype(ours::HipblasLt::name){}, decltype(&::hipblasLt##name){}), #name);
NARU_BLASLT(LT)
using Ours = ours::hipblasLtMatmulHeuristicResult_t;
using Theirs = ::hipblasLtMatmulHeuristicResult_t;
static_assert(sizeof(Ours) == sizeof(Theirs) && offsetof(Ours, workspaceSize) == offsetof(Theirs, workspaceSize) && offsetof(Ours, state) == offsetof(Theirs, state));
#endif
#if __has_include(<miopen/miopen.h>)
#define DNN(result, name, parameters) static_assert(alike(decltype(ours::Miopen::name){}, decltype(&::name){}), #name);
NARU_MIOPEN(DNN)
using Mine = ours::miopenConvSolution_t;
using Its = ::miopenConvSolution_t;
static_assert(sizeof(Mine) == sizeof(Its) && offsetof(Mine, workspace_size) == offsetof(Its, workspace_size) && offsetof(Mine, solution_id) == offsetof(Its, solution_id));
#endif
"""


def test_numbers_and_functions_are_those_of_amds_headers(tmp_path):
    places = [Path("/usr/include"), Path("/opt/rocm/include")]
    include = next((p for p in places if (p / "hipblaslt/hipblaslt.h").exists() or (p / "miopen/miopen.h").exists()), None)
    if include is None:
        pytest.skip("the headers of hipBLASLt and MIOpen are not on this machine (AMD's packages hipblaslt-dev and miopen-hip-dev)")
    names = []
    for header, theirs in (("hipblaslt.h", "hipblaslt/hipblaslt.h"), ("miopen.h", "miopen/miopen.h")):
        if (include / theirs).exists():
            names += re.findall(r"^  (?:F\()?((?:HIP|miopen|MIOPEN)\w+)(?: =|,) \d", source(f"rocm/{header}"), re.MULTILINE)
    assert len(names) > 10
    text = NUMBERS.replace("OURS", ", ".join(f"naru::backends::rocm::{name}" for name in names))
    text += "".join(f'static_assert(kOurs[{i}] == static_cast<long long>({name}), "{name}");\n' for i, name in enumerate(names))
    (tmp_path / "numbers.cpp").write_text(text)
    compiler = ["c++", "-std=c++20", "-fsyntax-only", "-w", f"-I{HOME}/src", f"-I{HOME}/include", f"-I{include}"]
    done = subprocess.run([*compiler, str(tmp_path / "numbers.cpp")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]


def test_amds_libraries_have_the_functions_by_the_names_that_naru_asks_for():
    """By the names in their files, as opening them needs HIP's run time."""
    wanted = {"libhipblaslt.so.*": hipblaslt_functions(), "libMIOpen.so.*": miopen_functions()}
    places = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/opt/rocm/lib")]
    seen = 0
    for pattern, functions in wanted.items():
        assert len(functions) > 12
        for library in {f.resolve() for place in places for f in place.glob(pattern)}:
            text = library.read_bytes()
            assert not [name for name in functions if f"\0{name}\0".encode() not in text], library
            seen += 1
    if seen == 0:
        pytest.skip("neither hipBLASLt nor MIOpen is on this machine (AMD's packages hipblaslt and miopen-hip)")
