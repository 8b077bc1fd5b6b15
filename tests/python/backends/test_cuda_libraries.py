"""cuFFT, cuSOLVER and cuDNN, with small stand-in libraries (tests/fakes); and whether naru's own declarations of the driver and of all libraries
agree with NVIDIA's headers and libraries. No GPU is used."""
import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_cuda import HOME, environment, pytestmark, run  # noqa: F401


FOURIER = """
import naru
naru.fallback.set_policy("count")
x = naru.arange(12.0).reshape(3, 4)
there = x.to("cuda").requires_grad_()
y = naru.fft.rfft(there)
naru.fft.irfft(y * 2, n=4).square().sum().backward()
g = naru.Graph()
with naru.graph(g):
    z = naru.fft.fft(there.detach(), dim=0)
g.replay()
print((y.cpu() - naru.fft.rfft(x)).abs().max().item() < 1e-5, (there.grad.cpu() - 8 * x).abs().max().item() < 1e-4, (z.cpu() - naru.fft.fft(x, dim=0)).abs().max().item() < 1e-5)
print(sorted({use.op for use in naru.fallback.report()}))
"""


def test_fourier_transforms_are_the_librarys_where_it_is_there_and_else_a_counted_fallback(environment):
    assert run(environment, "-c", FOURIER) == (0, "True True True\n[]\n")
    code, said = run({**environment, "NARU_CUFFT_LIBRARY": "/nowhere"}, "-c", FOURIER.replace("with naru.graph(g):", "if True:").replace("g.replay()", ""))
    assert (code, said) == (0, "True True True\n['fft', 'irfft', 'rfft']\n")
    code, said = run({**environment, "NARU_CUFFT_LIBRARY": "/nowhere"}, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "Fourier transforms on the cpu (no cuFFT: pip install nvidia-cufft-cu12, or the CUDA toolkit)" in said


SOLVING = """
import naru
naru.fallback.set_policy("count")
a, b = naru.tensor([[4.0, 1.0], [1.0, 3.0]]), naru.tensor([[1.0], [2.0]])
there = a.to("cuda").requires_grad_()
x = naru.linalg.solve(there, b.to("cuda"))
x.sum().backward()
w = naru.linalg.eigvalsh(there.detach()).cpu() - naru.linalg.eigvalsh(a)
s = naru.linalg.svdvals(naru.stack([there.detach(), 2 * there.detach()])).cpu() - naru.linalg.svdvals(naru.stack([a, 2 * a]))
q, r = naru.linalg.qr(there.detach())
print(all(difference.abs().max().item() < 1e-5 for difference in (x.cpu() - naru.linalg.solve(a, b), w, s, (q @ r).cpu() - a)), naru.linalg.cholesky(there.detach()).cpu().tolist() == naru.linalg.cholesky(a).tolist())
for wrong in (lambda: naru.linalg.solve(naru.zeros(2, 2, device="cuda"), b.to("cuda")), lambda: naru.linalg.cholesky(-naru.eye(2, device="cuda")),
              lambda: naru.linalg.svd(naru.full((2, 3), float("nan"), device="cuda"))):
    try:
        wrong()
    except naru.linalg.LinAlgError as e:
        print(e)
print(sorted({use.op for use in naru.fallback.report()}))
"""


def test_systems_are_solved_by_the_library_where_it_is_there_and_else_by_a_counted_fallback(environment):
    told = ("True True\ntorch.linalg.solve: The solver failed because the input matrix is singular.\n"
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite).\n"
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.\n")
    assert run(environment, "-c", SOLVING) == (0, f"{told}[]\n")
    code, said = run({**environment, "NARU_CUSOLVER_LIBRARY": "/nowhere"}, "-c", SOLVING)
    assert (code, said) == (0, f"{told}['cholesky', 'eigh', 'geqrf', 'lu_factor', 'lu_solve', 'orgqr', 'svd']\n")


CONVOLVING = """
import naru
x, w, b = naru.randn(2, 4, 7, 6), naru.randn(6, 2, 3, 3), naru.randn(6)
there, filters = x.to("cuda", memory_format=naru.channels_last).requires_grad_(), w.to("cuda").requires_grad_()
y = naru.nn.functional.conv2d(there, filters, b.to("cuda"), stride=2, padding=1, groups=2)
y.square().sum().backward()
here, own = x.double().requires_grad_(), w.double().requires_grad_()
wanted = naru.nn.functional.conv2d(here, own, b.double(), stride=2, padding=1, groups=2)
wanted.square().sum().backward()
print(y.is_contiguous(memory_format=naru.channels_last), *((got.detach().cpu() - of.detach()).abs().max().item() < 1e-4 for got, of in ((y, wanted), (there.grad, here.grad), (filters.grad, own.grad))))
print(naru.backends.cudnn.version(), naru.backends.cudnn.is_acceptable(there), naru.backends.cudnn.is_acceptable(x))
"""


def test_convolutions_are_the_librarys_where_it_is_there_and_else_by_own_kernels(environment, tmp_path):
    log = tmp_path / "calls"
    assert run({**environment, "NARU_FAKE_LOG": str(log)}, "-c", CONVOLVING) == (0, "True True True True\n91900 True False\n")
    assert re.findall(r"cudnnBackendExecute", log.read_text()) == 3 * ["cudnnBackendExecute"]
    assert run({**environment, "NARU_CUDNN_LIBRARY": "/nowhere"}, "-c", CONVOLVING) == (0, "True True True True\nNone False False\n")
    code, said = run({**environment, "NARU_CUDNN_LIBRARY": "/nowhere"}, "-m", "naru", "doctor", "cuda")
    assert code == 0 and "own kernels for convolutions (no cuDNN: pip install nvidia-cudnn-cu12, or NVIDIA's package of cuDNN 9)" in said


NUMBERS = r"""
#include "backends/cuda/api.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/cudnn.h"
#include "backends/cuda/cufft.h"
#include "backends/cuda/cusolver.h"
#include "backends/gpu/nccl.h"
constexpr long long kOurs[] = {OURS};
#if __has_include(<cufft.h>)
#include <cufft.h>
#endif
#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>
#include <cstddef>
#include <type_traits>
namespace ours = naru::backends::cuda;
// As many parameters, each a pointer or a number of the same size.
template <class R, class... A, class S, class... B>
constexpr bool alike(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
}
#undef cuEventElapsedTime
#define LT(name, parameters) static_assert(alike(decltype(ours::CublasLt::name){}, decltype(&::cublasLt##name){}), #name);
#define DRIVER(field, name) static_assert(alike(decltype(naru::backends::gpu::Driver::field.function){}, decltype(&::name){}), #name);
static_assert(alike(decltype(ours::CublasLt::cublasLtGetVersion){}, decltype(&::cublasLtGetVersion){}));
NARU_BLASLT(LT)
#if __has_include(<cufft.h>)
#define FFT(result, name, parameters) static_assert(alike(decltype(ours::Cufft::name){}, decltype(&::name){}), #name);
NARU_CUFFT(FFT)
#endif
#if __has_include(<cusolverDn.h>)
#define SOLVER(result, name, parameters) static_assert(alike(decltype(ours::Cusolver::name){}, decltype(&::name){}), #name);
NARU_CUSOLVER(SOLVER)
#endif
#if __has_include(<cudnn.h>)
#define DNN(result, name, parameters) static_assert(alike(decltype(ours::Cudnn::name){}, decltype(&::name){}), #name);
NARU_CUDNN(DNN)
#endif
#if __has_include(<nccl.h>)
#define COLLECTIVE(result, name, parameters) static_assert(alike(decltype(naru::backends::gpu::NcclFunctions::name){}, decltype(&::name){}), #name);
NARU_NCCL(COLLECTIVE)
static_assert(offsetof(naru::backends::gpu::ncclConfig_t, magic) == offsetof(::ncclConfig_t, magic) && offsetof(naru::backends::gpu::ncclConfig_t, version) == offsetof(::ncclConfig_t, version));
constexpr ::ncclConfig_t kConfig = NCCL_CONFIG_INITIALIZER;
static_assert(offsetof(naru::backends::gpu::ncclConfig_t, blocking) == offsetof(::ncclConfig_t, blocking) && naru::backends::gpu::ncclConfig_t().magic == kConfig.magic);
#endif
NARU_CUDA(DRIVER)
NARU_CUDA_GRAPHS(DRIVER)
using Ours = ours::cublasLtMatmulHeuristicResult_t;
using Theirs = ::cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(Ours) == sizeof(Theirs) && offsetof(Ours, workspaceSize) == offsetof(Theirs, workspaceSize) && offsetof(Ours, state) == offsetof(Theirs, state));
"""


def headers():
    """A folder with NVIDIA's headers, None where there is none."""
    places = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include", *(p for s in sys.path if s for p in (Path(s) / "nvidia").glob("*/include"))]
    return next((p for p in places if all((p / name).exists() for name in ("cublasLt.h", "cuda.h", "nvrtc.h"))), None)


def source(name):
    return (HOME / "src" / name).read_text()


def declared_functions(header):
    """The names in a header's lists of functions, those for each type spelled out."""
    text = source(f"backends/{header}")
    names = re.findall(r"^  F\((?:int|size_t|const char\*), (\w+),", text, re.MULTILINE)
    typed = re.findall(r"^  F\(int, (\w+)##letter##([\w#]+),", text, re.MULTILINE)
    of_uses = re.findall(r"^  F\(int, (\w+)##use(?:##(\w+))?,", text, re.MULTILINE)
    names += [f"{before}{use}{behind}" for use in re.findall(r"^  NARU_\w+_USE\(F, (\w+),", text, re.MULTILINE) for before, behind in of_uses]
    for letter, kind in re.findall(r"^  NARU_\w+_TYPED\(F, (\w), (\w+)\)", text, re.MULTILINE):
        names += [f"{before}{letter}{behind.replace('kind##', kind)}" for before, behind in typed]
    return names


def blaslt_functions(prefix):
    """Those of cuBLASLt or hipBLASLt."""
    return [f"{prefix}GetVersion", *(prefix + name for name in re.findall(r"^  F\((\w+),", source("backends/gpu/blaslt.h"), re.MULTILINE))]


def probe_functions():
    """What the probe calls: the driver's name, and the type that naru gives it."""
    found = re.findall(r"^  int \(\*(\w+)\)(\(.*\)) = nullptr;", source("runtime/device/gpu_driver.cpp"), re.MULTILINE)
    types = {name: f"int (*){parameters}" for name, parameters in found if name != "properties"}  # asked of AMD's driver only
    names = dict(re.findall(r'^    \.(\w+) = "(cu\w+)"', source("backends/cuda/driver.cpp"), re.MULTILINE))
    assert len(types) == 10 and set(names) == set(types)
    return [(names[field], types[field].replace("Uuid", "void")) for field in types]


def nvrtc_functions():
    """The same of NVRTC: what every run-time compiler has, and what only this one has."""
    shared = re.findall(r"F\((int|const char\*), (\w+),\s*(\([^()]*\))\)", source("backends/gpu/compiler.h"))
    found = {f"nvrtc{name}": f"{result} (*){parameters}" for result, name, parameters in shared}
    own = dict(re.findall(r'find\((\w+), "(\w+)"\)', source("backends/cuda/compiler.cpp")))
    header = source("backends/cuda/compiler.h")
    types = dict(re.findall(r"^  int \(\*(\w+)\)(\(.*\)) = nullptr;", header, re.MULTILINE))
    kinds = {"Sized": "(Program, size_t*)", "Copied": "(Program, char*)"}
    types |= {name: kinds[kind] for kind, names in re.findall(r"^  (Sized|Copied) (.*);", header, re.MULTILINE) for name in re.findall(r"(\w+) = nullptr", names)}
    assert len(shared) == 7 and len(own) == 6 and set(own) == set(types)
    found |= {f"nvrtc{own[field]}": f"int (*){types[field]}" for field in own}
    return [(name, kind.replace("Program", "void*")) for name, kind in found.items()]


ATTRIBUTES = ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT", "WARP_SIZE", "MAX_THREADS_PER_BLOCK", "MAX_THREADS_PER_MULTIPROCESSOR",
              "MAX_REGISTERS_PER_MULTIPROCESSOR", "MAX_SHARED_MEMORY_PER_BLOCK", "L2_CACHE_SIZE")  # fmt: skip


# Numbers that the table of drivers has (backends/gpu/driver.h).
NUMBERS_OF_DRIVERS = {
    "kSuccess": "CUDA_SUCCESS", "kOutOfMemory": "CUDA_ERROR_OUT_OF_MEMORY", "kNotReady": "CUDA_ERROR_NOT_READY",
    "kPeerAccessAlreadyEnabled": "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "kNonBlockingStream": "CU_STREAM_NON_BLOCKING", "kTimingEvent": "CU_EVENT_DEFAULT",
    "kOrderEvent": "CU_EVENT_DISABLE_TIMING", "kPortableMemory": "CU_MEMHOSTALLOC_PORTABLE", "kRelaxedCapture": "CU_STREAM_CAPTURE_MODE_RELAXED",
    "kFunctionSharedBytes": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES", "kFunctionMaxDynamicSharedBytes": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
}  # fmt: skip


def test_numbers_and_functions_are_those_of_nvidias_headers(tmp_path):
    """What naru declares of the driver, NVRTC, cuBLASLt, cuFFT, cuSOLVER, cuDNN and NCCL itself, as it needs no header to build."""
    include = headers()
    if include is None:
        pytest.skip("NVIDIA's headers are not on this machine (the CUDA toolkit has them)")
    headers_of = {"cuda/api.h": "cuda.h", "cuda/cublaslt.h": "cublasLt.h", "cuda/cufft.h": "cufft.h", "cuda/cusolver.h": "cusolverDn.h", "cuda/cudnn.h": "cudnn.h", "gpu/nccl.h": "nccl.h"}
    names, ours = [], []
    for header, theirs in headers_of.items():
        if (include / theirs).exists():
            found = re.findall(r"^  (?:F\()?((?:CU|nccl)\w+)(?: =|,) -?\d", source(f"backends/{header}"), re.MULTILINE)
            names += found
            ours += [f"naru::backends::{header.split('/')[0]}::{name}" for name in found]
    assert len(names) > 35
    same = "".join(f'static_assert(naru::backends::gpu::{ours} == {theirs}, "{theirs}");\n' for ours, theirs in NUMBERS_OF_DRIVERS.items())
    same += "".join(f'static_assert({number} == {name}, "{name}");\n' for name, number in re.findall(r"constexpr int (CU_\w+) = (\d+);", source("backends/cuda/api.cpp")))
    same += "".join(f'static_assert(kOurs[{i}] == static_cast<long long>({name}), "{name}");\n' for i, name in enumerate(names))
    driver = source("backends/cuda/driver.cpp")
    errors = re.findall(r"^    case (\d+): +// (CUDA_ERROR_\w+)", source("backends/cuda/api.cpp"), re.MULTILINE) + re.findall(r'\{(\d+), "(CUDA_ERROR_\w+)"', driver)
    assert len(errors) > 25
    attributes = [number for line in re.findall(r"_attributes? = (\{[^}]*\}|\d+),", driver) for number in re.findall(r"\d+", line)]
    assert len(attributes) == len(ATTRIBUTES)
    theirs = (include / "cuda.h").read_text()
    if int(re.search(r"#define CUDA_VERSION (\d+)", theirs)[1]) < 13000:  # old headers, which lack the newest entries
        errors = [(number, name) for number, name in errors if f"{name} " in theirs]
    for number, name in [*errors, *((n, f"CU_DEVICE_ATTRIBUTE_{a}") for n, a in zip(attributes, ATTRIBUTES))]:
        same += f'static_assert({number} == {name}, "{name}");\n'
    for name, kind in [*probe_functions(), *nvrtc_functions()]:
        same += f'static_assert(alike(static_cast<{kind}>(nullptr), decltype(&::{name}){{}}), "{name}");\n'
    (tmp_path / "numbers.cpp").write_text(NUMBERS.replace("OURS", ", ".join(ours)) + same)
    compiler = ["c++", "-std=c++20", "-fsyntax-only", "-D__CUDA_API_VERSION_INTERNAL", f"-I{HOME}/src", f"-I{HOME}/include", f"-I{include}"]
    done = subprocess.run([*compiler, str(tmp_path / "numbers.cpp")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]


def test_nvidias_libraries_have_the_functions_by_the_names_that_naru_asks_for():
    """The driver's by the toolkit's stub, which needs no GPU to be opened."""
    wanted = {
        "libcuda.so": re.findall(r"^  F\(\w+, (cu\w+)\)", source("backends/cuda/api.h"), re.MULTILINE) + [name for name, _ in probe_functions()],
        "libnvrtc.so.*": [name for name, _ in nvrtc_functions()],
        "libcublasLt.so.*": blaslt_functions("cublasLt"),
        "libcusolver.so.*": declared_functions("cuda/cusolver.h"),
        "libcufft.so.*": declared_functions("cuda/cufft.h"),
        "libcudnn.so.*": declared_functions("cuda/cudnn.h"),
        "libnccl.so.*": declared_functions("gpu/nccl.h"),
    }
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    places = [home / "lib64", home / "lib64/stubs", *(p for s in sys.path if s for p in (Path(s) / "nvidia").glob("*/lib"))]
    seen = 0
    for pattern, functions in wanted.items():
        assert len(functions) > 10
        for library in {f.resolve() for place in places for f in place.glob(pattern)}:
            opened = ctypes.CDLL(str(library))
            assert not [name for name in functions if not hasattr(opened, name)], library
            seen += 1
    if seen == 0:
        pytest.skip("none of NVIDIA's libraries is on this machine (the CUDA toolkit has them)")
