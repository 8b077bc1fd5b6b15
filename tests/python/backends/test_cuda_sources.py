"""CUDA C++ kernels run on every device; what has no translation is rejected with its name and line."""
import naru
import numpy as np
import pytest
from kernel_cases import device, guarded, raises  # noqa: F401

SEED = """
// kernal function
__global__ void VecAdd(float *A, float *B, float *C)
{
	int i = threadIdx.x;
    C[i] = A[i] + B[i];
}

int main()
{
	...
    VecAdd<<<1, N>>> (A, B, C);
    ...
}
"""


def test_the_kernel_of_a_tutorial_runs_with_its_host_program_around_it(device):
    a, b, c = naru.randn(300, device=device), naru.randn(300, device=device), naru.zeros(300, device=device)
    naru.kernel(SEED, "VecAdd")(a, b, c, blocks=1, threads=300)
    assert naru.equal(c, a + b)


PLACES = """
#include <cuda_runtime.h>
extern "C" {
__global__ void __launch_bounds__(256) VecAdd(const float* __restrict__ A, float* const B, float* C, int N) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}
}
__global__ void places(int* out, int n) {  // threadIdx.x in a comment is no word
  unsigned int x = threadIdx.x + blockIdx.x * blockDim.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n) return;
  int* const row = out + 4 * (y * n + x);
  row[0] = x; row[1] = y; row[2] = blockDim.x * 100 + gridDim.x; row[3] = (2 * blockIdx.x * blockDim.x + threadIdx.x) - 1 > 5u;
}
"""


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_a_guarded_kernel_writes_no_further_than_its_guard(n, device):
    a, b = naru.randn(n, device=device), naru.randn(n, device=device)
    out, whole = guarded(n, device)
    k = naru.kernel(PLACES, "VecAdd")
    k(a, b, out, n, blocks=(n + 255) // 256, threads=256)
    assert naru.equal(out, a + b) and (whole[:32] == -7).all() and (whole[32 + n :] == -7).all()
    out.zero_()
    k(a, b, out, n, grid=n)
    assert naru.equal(out, a + b) and (whole[32 + n :] == -7).all()
    assert repr(k) == "<kernel void VecAdd(const float* A, float* B, float* C, int N)>"


def test_places_are_unsigned_and_a_block_is_as_wide_as_it_was_asked_for_at_the_grids_end_too(device):
    out = naru.zeros(6, 50, 4, dtype=naru.int32, device=device)
    naru.kernel(PLACES, "places")(out, 50, grid=(50, 6), threads=(16, 4))
    x, y = np.meshgrid(np.arange(50), np.arange(6))
    wanted = np.stack([x, y, np.full_like(x, 1604), ((2 * (x // 16) * 16 + x % 16 - 1) % 2**32 > 5)], -1)
    np.testing.assert_array_equal(out.cpu().numpy(), wanted)


TILED = """
#define ROWS 16
const int COLUMNS = ROWS;
constexpr unsigned int STEP = 16u;
static __device__ __forceinline__ float dot(const float* left, const float* right, int stride) {
  float sum = 0.f;
  for (int k = 0; k < STEP; ++k) sum += left[k] * right[k * stride];
  return sum;
}
__device__ float at(const float* m, int row, int column, int rows, int columns);
template <typename T> __device__ T unused(T x) { return x; }
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[ROWS][STEP];
  __shared__ float right[STEP][COLUMNS];
  const int row = blockIdx.y * ROWS + threadIdx.y, column = blockIdx.x * COLUMNS + threadIdx.x;
  float sum = float(0);
  for (int t = 0; t < k; t += STEP) {
    left[threadIdx.y][threadIdx.x] = at(a, row, t + threadIdx.x, m, k);
    right[threadIdx.y][threadIdx.x] = at(b, t + threadIdx.y, column, k, n);
    __syncthreads();
    sum += dot(left[threadIdx.y], &right[0][threadIdx.x], COLUMNS);
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
__device__ float at(const float* m, int row, int column, int rows, int columns) {
  return row < rows && column < columns ? m[row * columns + column] : 0.0f;
}
"""


def test_a_tiled_product_whose_helpers_take_pointers_to_tensors_and_to_shared_arrays(device):
    m, n, k = 50, 33, 70
    a, b = naru.randint(-9, 9, (m, k), device=device).float(), naru.randint(-9, 9, (k, n), device=device).float()
    c = naru.zeros(m, n, device=device)
    naru.kernel(TILED, "matmul")(a, b, c, m, n, k, blocks=((n + 15) // 16, (m + 15) // 16), threads=(16, 16))
    np.testing.assert_array_equal(c.cpu().numpy(), a.cpu().numpy() @ b.cpu().numpy())


COUNTS = """
using real = float;
struct Pair { int low, high; };
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ void widen(int x, Pair* p) { p->low = min(p->low, x); p->high = max(p->high, x); }
__device__ int bucket_of(real x) { return static_cast<int>(x * 4) & 3; }
__global__ void kernel(const float* global, int* histogram, float* sum, int* extremes, int half, long long count) {
  __shared__ int shared[4];
  __shared__ float total;
  auto local = threadIdx.x;
  if (local < 4) shared[local] = 0;
  if (local == 0) total = 0;
  __syncthreads();
  const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  Pair p = {INT_MAX, INT_MIN};
  for (unsigned long long i = first; i < count; i += blockDim.x * gridDim.x) {
    const int b = bucket_of(__ldg(&global[i]));
    atomicAdd(&shared[b], 1);
    atomicAdd(&total, weights[b] * half);
    widen(b, &p);
  }
  __syncthreads();
  if (local < 4) atomicAdd(histogram + local, shared[local]);
  if (local == 0) atomicAdd(sum, total);
  atomicMin(&extremes[0], p.low);
  atomicMax(&extremes[1], p.high);
  atomicCAS(&extremes[2], 7, 8);
  atomicExch(&extremes[3], (int)reinterpret_cast<const unsigned char*>(global)[0]);
}
"""


def test_a_histogram_with_atomics_and_names_that_mean_something_to_the_dialect(device):
    x = naru.rand(5000, device=device)
    histogram, total = naru.zeros(4, dtype=naru.int32, device=device), naru.zeros(1, device=device)
    extremes = naru.tensor([99, -99, 7, 0], dtype=naru.int32, device=device)
    naru.kernel(COUNTS, "kernel")(x, histogram, total, extremes, 2, 5000, blocks=3, threads=128)
    found = (x.cpu().numpy() * np.float32(4)).astype(int)
    wanted = np.bincount(found, minlength=4)
    np.testing.assert_array_equal(histogram.cpu().numpy(), wanted)
    assert total.item() == 2 * (wanted * [1, 2, 3, 4]).sum()
    assert extremes.tolist() == [0, 3, 8, x.cpu().numpy().view(np.uint8)[0]]


SUMS = """
__global__ void sums(const float* x, float* out, int n) {
  extern __shared__ __align__(16) float part[];
  static __shared__ int first;
  float* mine = part + threadIdx.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  *mine = i < n ? x[i] : 0.0f;
  if (threadIdx.x == 0) first = blockIdx.x;
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    __syncthreads();
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
  }
  if (threadIdx.x == 0) out[first] = part[0];
}
"""


def test_a_shared_array_is_as_long_as_the_call_says(device):
    x, out = naru.randint(0, 9, (500,), device=device).float(), naru.zeros(8, device=device)
    k = naru.kernel(SUMS, "sums")
    for threads in (64, 128):
        blocks = (500 + threads - 1) // threads
        k(x, out, 500, blocks=blocks, threads=threads, shared=4 * threads)
        assert out[:blocks].sum() == x.sum()
    with raises(ValueError, "a shared array without a length", "shared=1024"):
        k(x, out, 500, blocks=4, threads=128)
    with raises(ValueError, "shared=-1", "0 to 1048576"):
        k(x, out, 500, blocks=4, threads=128, shared=-1)


GENERIC = """
__global__ void generic(const float* x, const double* y, const int* n, float* of_float, double* of_double) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  of_float[8 * i] = exp(x[i]) - expf(x[i]);
  of_float[8 * i + 1] = abs(x[i] - 2.5f);
  of_float[8 * i + 2] = fmax(x[i], 1.0f) + max(x[i], NAN);
  of_float[8 * i + 3] = sizeof(sqrt(x[i])) + 10 * sizeof(pow(x[i], y[i])) + 100 * sizeof(std::floor(n[i]));
  of_float[8 * i + 4] = __fdividef(x[i], 4.0f) + __saturatef(x[i]);
  of_float[8 * i + 5] = __popc(n[i]) + 100 * __clz(n[i]) + 10000 * __ffs(n[i]);
  of_float[8 * i + 6] = __int_as_float(__float_as_int(x[i])) + __float2int_rn(x[i]);
  of_float[8 * i + 7] = min(n[i], 3) + fma(x[i], x[i], floor(x[i]));
  of_double[i] = sqrt(y[i]) + abs(-y[i]) + max(n[i], 2ull);
}
"""


def test_mathematics_is_that_of_the_arguments_type(device):
    x, y = naru.tensor([0.5, 2.0, 3.5]), naru.tensor([2.0, 3.0, 5.0], dtype=naru.float64)
    n = naru.tensor([1, 6, 2**30], dtype=naru.int32)
    out, doubles = naru.zeros(3, 8), naru.zeros(3, dtype=naru.float64)
    operands = [t.to(device) for t in (x, y, n, out, doubles)]
    naru.kernel(GENERIC, "generic")(*operands, grid=3)
    f, b, k = x.numpy(), y.numpy(), n.numpy()
    ones, zeros, first = np.array([1, 2, 1]), np.array([31, 29, 1]), np.array([1, 2, 31])
    wanted = np.stack([0 * f, abs(f - 2.5), np.maximum(f, 1) + f, 0 * f + 4 + 80 + 800, f / 4 + np.clip(f, 0, 1), ones + 100 * zeros + 10000 * first,
                       f + np.rint(f), np.minimum(k, 3) + f * f + np.floor(f)], -1)
    np.testing.assert_array_equal(operands[3].cpu().numpy(), wanted.astype(np.float32))
    np.testing.assert_array_equal(operands[4].cpu().numpy(), np.sqrt(b) + b + np.maximum(k, 2))


def test_half_precision_and_a_second_kernel_of_the_source_as_derivative(device):
    source = """#include <cuda_fp16.h>
    __global__ void square(const __half* x, float* y) { int i = threadIdx.x; float v = __half2float(x[i]); y[i] = v * v; }
    __global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
    __global__ void twice_backward(const float* grad_y, float* grad_x) { grad_x[threadIdx.x] = 2 * grad_y[threadIdx.x]; }
    """
    x, y = naru.tensor([1.5, 2.0, -3.0], device=device), naru.empty(3, device=device)
    naru.kernel(source, "square")(x.half(), y, blocks=1, threads=3)
    assert y.tolist() == [2.25, 4.0, 9.0]
    leaf = x.requires_grad_()
    naru.kernel(source, "twice", backward="twice_backward")(leaf, y, blocks=1, threads=3)
    y.sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


REFUSED = [
    ("__shfl_down_sync(0xffffffff, x[i], 1);", "`__shfl_down_sync`: items of a warp", 10),
    ("printf(\"%d\", i);", "`printf`: kernels print nothing", 10),
    ("float4 v;", "`float4`: vector types", 10),
    ("auto f = [&](int k) { return k; };", "a lambda", 10),
    ("int& r = i;", "a reference", 10),
    ("other<<<1, 1>>>(x);", "kernels start no kernels", 10),
    ("x[i] = norm3df(1, 2, 3);", "`norm3df` is no function of the source", 10),
    ("extern __shared__ float s[]; extern __shared__ int t[];", "a second shared array without a length", 10),
    ("if (i) { __shared__ float s[4]; s[0] = 1; }", "shared arrays stand at the top", 10),
    ("dim3 d = threadIdx;", "`dim3`: it is the host's", 10),
    ("int n = my::size;", "`::`", 10),
    ("x[i] = twice<float>(1.0f);", "'twice' is a template", 1),
    ("x[i] = upto(3);", "'upto' has a default for a parameter", 2),
    ("x[i] = first(x) + first(part);", "'first' is given a shared array for `p` here and a tensor on line 10", 10),
    ("x[i] = host_only();", "'host_only' is a function of the host", 4),
]


@pytest.mark.parametrize("statement, words, line", REFUSED, ids=[row[1] for row in REFUSED])
def test_what_has_no_translation_is_refused_by_name_and_line(statement, words, line):
    source = f"""template <typename T> __device__ T twice(T x) {{ return x + x; }}
__device__ int upto(int n, int m = 3) {{ return n + m; }}
__device__ float first(const float* p) {{ return p[0]; }}
__host__ float host_only() {{ return 1; }}
__global__ void fine(float* x) {{ x[threadIdx.x] = 1; }}
__global__ void f(float* x) {{
  __shared__ float part[4];
  // __syncthreads() and <<<
  int i = threadIdx.x; part[0] = 0;
  {statement}
}}"""
    x = naru.zeros(4)
    with pytest.raises(NotImplementedError) as refused:
        naru.kernel(source, "f")(x, blocks=1, threads=4)
    assert words in str(refused.value) and f"(line {line}: " in str(refused.value), str(refused.value)
    if line == 1:  # what another kernel uses does not affect this one
        naru.kernel(source, "fine")(x, blocks=1, threads=4)
        assert x.tolist() == [1, 1, 1, 1]


def test_what_a_compiler_refuses_is_told_in_the_lines_of_the_cuda_source(device):
    source = "// one\n__device__\nfloat twice(float x) {\n  return x + x; }\n__global__ void f(float* x) {\n  x[threadIdx.x] =\n    twice(nothing);\n}"
    with raises(RuntimeError, "'f'", "line 7", r"twice\(nothing\);"):
        naru.kernel(source, "f")(naru.zeros(1, device=device), blocks=1, threads=1)


def test_a_header_of_ones_own_and_variables_that_outlive_a_kernel_are_refused_where_they_stand():
    for line, words in [('#include "own.h"', "header `own.h`"), ("#include <cooperative_groups.h>", "header `cooperative_groups.h`"),
                        ("__device__ int counter;", "outlives the kernel"), ("__constant__ float w[3];", "the host fills in later"),
                        ("namespace mine { int f(); }", "no namespaces"), ("struct P { int x; int twice() { return 2 * x; } };", "'P' is more than a struct")]:
        source = f"\n{line}\n__global__ void f(float* x) {{ x[threadIdx.x] = 1; }}"
        with raises(NotImplementedError, words, "line 2"):
            naru.kernel(source, "f")(naru.zeros(1), blocks=1, threads=1)
