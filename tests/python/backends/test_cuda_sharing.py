"""Sharing memory of cuda devices with other libraries, and user kernels with features that only such devices have. Uses the stand-in libraries (see
test_cuda.py), whose default stream plays another library's stream: work on it runs as late as allowed."""
import re

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
for device in "cuda", "cpu":  # large ones are waited for without Python's lock
    large = torch.zeros(1 << 22, device=device)
    assert large.data_ptr() == large.untyped_storage().data_ptr() != 0
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


SHARED_BYTES = """
import naru
text = '''kernel void turn(float* x, int n) {
  shared float part[naru_shared_bytes / sizeof(float)];
  for (int i = local_id(0); i < n; i += 64) part[i] = x[i];
  barrier();
  for (int i = local_id(0); i < n; i += 64) x[i] = part[n - 1 - i];
}'''
native = '''extern "C" __global__ void turn(float* x, int n) {
  extern __shared__ float part[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = part[n - 1 - i];
}'''
for source in text, native:
    turn = naru.kernel(source, "turn")
    for n in 1000, 25600, 50000:
        x = naru.arange(float(n), device="cuda:0")
        turn(x, n, blocks=1, threads=64, shared=4 * n)
        assert naru.equal(x.cpu(), naru.arange(float(n)).flip(0)), n
    for device, most in ("cuda:0", 232448), ("cuda:1", 65536):
        try:
            turn(naru.zeros(most, device=device), 10, blocks=1, threads=64, shared=most + 4)
            naru.cuda.synchronize(device)
            raise SystemExit("not refused")
        except RuntimeError as error:
            assert f"{device}: a kernel whose groups share {most + 4} bytes; at most {most} are possible there" in str(error), error
print("right")
"""


def test_a_users_kernel_may_share_as_much_as_the_device_gives_to_those_who_ask(environment):
    code, said = run(environment, "-c", SHARED_BYTES)
    assert (code, said) == (0, "right\n")


def test_kernels_have_names_that_tell_what_they_do(environment, tmp_path):
    texts = tmp_path / "texts"
    program = "import naru; x = naru.ones(5, device='cuda'); print((x * 2 + x).tolist(), naru.softmax(x, 0).sum().item())"
    code, said = run({**environment, "NARU_KERNEL_TEXTS": str(texts), "NARU_CACHE_DIR": str(tmp_path / "cache")}, "-c", program)
    assert code == 0, said
    names = {m[1] for f in texts.glob("*.cu") for m in re.finditer(r"^KERNEL\(\d+\) (\w+)\(", f.read_text(), re.MULTILINE)}
    assert "naru_map_mul_add_f32" in names and all(name.startswith("naru_") for name in names), names
