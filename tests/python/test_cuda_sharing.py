"""Memory of cuda devices in the hands of other libraries, and users' kernels with what only such devices have. Over the libraries in place of NVIDIA's (see test_cuda.py), whose default
stream stands for another library's: work there is done as late as may be."""
import pytest
from test_cuda import environment, pytestmark, run  # noqa: F401

LENT = """
import ctypes, os
import naru as torch
cuda = ctypes.CDLL(os.environ["NARU_CUDA_LIBRARY"])

def address(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]

def copied(to, source):  # by the other library, on its default stream
    assert cuda.cuMemcpyDtoDAsync_v2(ctypes.c_ulonglong(to), ctypes.c_ulonglong(source), ctypes.c_size_t(4000), ctypes.c_void_p(1)) == 0

borrowed = torch.zeros(1000, device="cuda")
reused = 0
for options in {}, {"stream": 1}, {"stream": 12345}, {"stream": -1}:
    x = torch.ones(1000, device="cuda")
    loan = x.__dlpack__(**options)
    there = address(loan)
    copied(borrowed.data_ptr(), there)
    del x, loan  # the loan ends, but the device has not read it yet
    others = [torch.full((1000,), 7.0, device="cuda") for _ in range(200)]
    reused += there in [t.data_ptr() for t in others]
    torch.cuda.synchronize()
    assert borrowed.sum().item() == 1000, options
assert reused >= 2, reused  # else nothing was shown
print("in order")
"""


def test_what_was_lent_is_not_overwritten_before_the_borrowers_device_has_read_it(environment):
    assert run(environment, "-c", LENT) == (0, "in order\n")


ADDRESSES = """
import ctypes, os
import naru as torch
cuda = ctypes.CDLL(os.environ["NARU_CUDA_LIBRARY"])

def copied(to, source, stream):
    assert cuda.cuMemcpyDtoDAsync_v2(ctypes.c_ulonglong(to.data_ptr()), ctypes.c_ulonglong(source.data_ptr()), ctypes.c_size_t(4000), ctypes.c_void_p(stream)) == 0

x, y = torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")
x += 1
copied(y, x, 1)  # what is under way is done when the address is given
torch.cuda.synchronize()  # waits for all, as PyTorch's does
assert y.sum().item() == 2000
handle = torch.cuda.current_stream().cuda_stream
x += 1
copied(y, x, handle)  # behind the addition, before the product
x *= 100
assert y.sum().item() == 3000 and x.sum().item() == 300000
# An address that somebody knows costs nothing later.
calls = os.environ["NARU_FAKE_LOG"] = os.environ["CALLS"]
for _ in range(16):
    x.add_(y)
x.sum()
del os.environ["NARU_FAKE_LOG"]
names = [line.split()[1] for line in open(calls)] if os.path.exists(calls) else []
assert not {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"} & set(names), names
print("right")
"""


def test_an_address_is_given_when_the_values_are_there_and_costs_later_operators_nothing(environment, tmp_path):
    assert run({**environment, "NARU_FUSE": "0", "CALLS": str(tmp_path / "calls")}, "-c", ADDRESSES) == (0, "right\n")


INEXACT = """
import naru, sys
dialect = "kernel void f(const float* x, float* y, float b) { int i = global_id(0); y[i] = x[i] * x[i] - b; }"
native = "extern \\"C\\" __global__ void f(const float* x, float* y, float b) { int i = threadIdx.x; y[i] = x[i] * x[i] - b; }"
x = naru.full((4,), 1 + 2.0**-12, device=sys.argv[1])
for source in dialect, native:
    for options in {}, {"exact": True}, {"exact": False}:
        y = naru.zeros(4, device=x.device)
        naru.kernel(source, "f", **options)(x, y, 1 + 2.0**-11, blocks=1, threads=4)
        print(y[0].item() * 2**24)
"""


def test_a_users_kernel_is_contracted_only_where_the_program_wants_speed_before_bits(environment):
    if " fma " not in open("/proc/cpuinfo").read():
        pytest.skip("the machine in place of the GPU has no such instruction")
    for device in "cuda:0", "cuda:1":
        assert run(environment, "-c", INEXACT, device) == (0, "0.0\n0.0\n1.0\n" * 2), device
    assert run(environment, "-c", INEXACT, "cpu") == (0, "0.0\n" * 6)
