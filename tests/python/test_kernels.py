"""naru.kernel: kernels of the user's own, on every kind of device."""
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import naru
from opencl import need_xpu, processors_count

# Every kind there is; or those that NARU_TEST_DEVICES names.
KINDS = [d for d in ("cpu", "cuda:0", "mps:0", "xpu:0") if d.split(":")[0] in os.environ.get("NARU_TEST_DEVICES", d.split(":")[0]).split(",")]


@pytest.fixture(params=KINDS)
def device(request):
    with processors_count():
        if request.param.startswith("xpu"):
            need_xpu()
        yield request.param


VEC_ADD = """
kernel void vec_add(const float* a, const float* b, float* out) {
  int i = global_id(0);
  out[i] = a[i] + b[i];
}
kernel void vec_add_by_groups(const float* A, const float* B, float* C) {
  int i = group_id(0) * local_size(0) + local_id(0);
  C[i] = A[i] + B[i];
}
kernel void vec_add_one_group(const float* A, const float* B, float* C)
{
  int i = local_id(0);
  C[i] = A[i] + B[i];
}
"""


def guarded(n, device, value=-7.0):
    """n elements to write, and the whole memory they lie in, which has more on both sides."""
    whole = naru.full((n + 64,), value, device=device)
    return whole[32 : 32 + n], whole


@pytest.mark.parametrize("n", [1, 5, 255, 256, 257, 1000, 70001])
def test_a_grid_runs_exactly_n_items_and_touches_nothing_beyond(n, device):
    k = naru.kernel(VEC_ADD, "vec_add")
    a, b = naru.randn(n, device=device), naru.randn(n, device=device)
    out, whole = guarded(n, device)
    k(a, b, out, grid=n)
    assert naru.equal(out, a + b)
    assert (whole[:32] == -7).all() and (whole[32 + n :] == -7).all()


@pytest.mark.parametrize("grid, threads", [((5, 1), (2, 2)), ((1, 5), (2, 2)), ((5,), (2, 3, 4)), ((3, 5, 2), (4, 4, 4)), (7, 1), ((1, 1, 1), (1, 1, 8))])
def test_each_item_of_a_grid_runs_once_whatever_the_groups(grid, threads, device):
    source = """
    kernel void count(int* x) { atomic_add(&x[(global_id(2) * 8 + global_id(1)) * 8 + global_id(0)], 1); }
    kernel void count_and_meet(int* x) { barrier(); atomic_add(&x[(global_id(2) * 8 + global_id(1)) * 8 + global_id(0)], 1); barrier(); }
    """
    for name in ("count", "count_and_meet"):
        x = naru.zeros(8, 8, 8, dtype=naru.int32, device=device)
        naru.kernel(source, name)(x, grid=grid, threads=threads)
        wanted = np.zeros((8, 8, 8), np.int32)
        n = (grid if isinstance(grid, tuple) else (grid,)) + (1, 1)
        wanted[: n[2], : n[1], : n[0]] = 1
        np.testing.assert_array_equal(x.cpu().numpy(), wanted)


@pytest.mark.parametrize("name, blocks, threads", [("vec_add_by_groups", 6, 50), ("vec_add_by_groups", (3,), (100,)), ("vec_add_one_group", 1, 300),
                                                   ("vec_add", 300, 1), ("vec_add", (3, 1), (100, 1, 1))])
def test_blocks_and_threads_run_their_product(name, blocks, threads, device):
    a, b = naru.randn(300, device=device), naru.randn(300, device=device)
    out, whole = guarded(300, device)
    naru.kernel(VEC_ADD, name)(a, b, out, blocks=blocks, threads=threads)
    assert naru.equal(out, a + b)
    assert (whole[:32] == -7).all() and (whole[332:] == -7).all()


MATMUL = """
#define TILE 16
kernel void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  shared float left[TILE][TILE];
  shared float right[TILE][TILE];
  int row = global_id(1), col = global_id(0), y = local_id(1), x = local_id(0);
  float sum = 0;
  for (int t = 0; t < k; t += TILE) {
    left[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0;
    right[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0;
    barrier();
    for (int i = 0; i < TILE; i++) sum += left[y][i] * right[i][x];
    barrier();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
"""


@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (50, 33, 70)])
def test_a_tiled_product_with_shared_arrays_and_barriers(m, n, k, device):
    a, b, c = naru.randn(m, k, device=device), naru.randn(k, n, device=device), naru.zeros(m, n, device=device)
    naru.kernel(MATMUL, "matmul")(a, b, c, m, n, k, blocks=((n + 15) // 16, (m + 15) // 16), threads=(16, 16))
    chain = np.zeros((m, n), np.float32)
    left, right = a.cpu().numpy(), b.cpu().numpy()
    for i in range(k):
        chain += left[:, i : i + 1] * right[i : i + 1]
    np.testing.assert_array_equal(c.cpu().numpy(), chain)


SUM = """
kernel void block_sum(const float* x, float* sums) {
  shared float part[256];
  int i = local_id(0), n = local_size(0);
  part[i] = x[global_id(0)];
  for (int step = 128; step > 0; step /= 2) {
    barrier();
    if (i < step && i + step < n) part[i] += part[i + step];
  }
  if (i == 0) sums[group_id(0)] = part[0];
}
"""


@pytest.mark.parametrize("n", [256, 1024, 1000, 100, 257])
def test_a_reduction_of_blocks_whose_last_one_is_smaller(n, device):
    x = naru.randint(0, 100, (n,), device=device).float()
    sums, whole = guarded((n + 255) // 256, device)
    naru.kernel(SUM, "block_sum")(x, sums, grid=n, threads=256)
    assert sums.sum() == x.sum()
    assert (whole[:32] == -7).all() and (whole[32 + len(sums) :] == -7).all()


BLUR = """
static float pixel(const float* image, int x, int y) { return image[y * global_size(0) + x]; }
kernel void blur(const float* image, float* out) {
  int x = global_id(0), y = global_id(1), w = global_size(0), h = global_size(1);
  float sum = 0;
  int count = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (x + dx >= 0 && x + dx < w && y + dy >= 0 && y + dy < h) {
        sum += pixel(image, x + dx, y + dy);
        count++;
      }
  out[y * w + x] = sum / count;
}
"""


@pytest.mark.parametrize("threads", [None, (8, 8), (64, 1)])
def test_a_grid_of_two_dimensions_with_a_helper_that_knows_where_it_runs(threads, device):
    image = naru.rand(37, 53, device=device)
    out = naru.zeros(37, 53, device=device)
    naru.kernel(BLUR, "blur")(image, out, grid=(53, 37), threads=threads)
    padded = np.pad(image.cpu().numpy(), 1)
    sums, counts = np.zeros((37, 53), np.float32), np.zeros((37, 53), np.float32)
    ones = np.pad(np.ones((37, 53), np.float32), 1)
    for dy in range(3):
        for dx in range(3):
            sums += padded[dy : dy + 37, dx : dx + 53]
            counts += ones[dy : dy + 37, dx : dx + 53]
    np.testing.assert_array_equal(out.cpu().numpy(), sums / counts)


WEIGHTS = """
typedef struct { float left, right; } sides;
constant float weights[3] = {1, 2, 1};
constant int most = 3;
static float weigh(constant float* w, sides s, float x) { return w[0] * s.left + w[1] * x + w[2] * s.right; }
kernel void smooth(const float* x, float* out, int n) {
  int i = global_id(0);
  sides s = {i > 0 ? x[i - 1] : 0, i + 1 < n ? x[i + 1] : 0};
  out[i] = weigh(weights, s, x[i]) + weights[1] * most;
}
"""


def test_constants_and_structures_of_the_source(device):
    x = naru.arange(10.0, device=device)
    out = naru.zeros(10, device=device)
    naru.kernel(WEIGHTS, "smooth")(x, out, 10, grid=10)
    wanted = np.convolve(np.arange(10.0), [1, 2, 1], "same") + 6
    assert out.tolist() == wanted.tolist()


POINTERS = """
typedef float real;
float total(const float* row, int n) {
  float sum = 0;
  for (const float* p = row; p < row + n; p++) sum += *p;
  return sum;
}
float total_shared(shared const float* values, int n) { float sum = 0; for (int i = 0; i < n; i++) sum += values[i]; return sum; }
inline float total_own(private const float* values, int n) { float sum = 0; for (int i = 0; i < n; i++) sum += values[i]; return sum; }
const unsigned char* second(const unsigned char* bytes) { return bytes + 4; }
kernel void pointers(const float* x, const unsigned char* bytes, float* out, int columns) {
  shared float values[4];
  float own[4];
  const float* row = x + global_id(0) * columns;
  shared float* first = values;
  first[local_id(0)] = row[0];
  barrier();
  for (int i = 0; i < 4; i++) own[i] = row[i] * columns;
  real product = 2 * row[1];
  out[global_id(0)] = total(row, columns) + 1000 * total_shared(values, 4) + total_own(own, 4) + product * 0 + *second(bytes);
}
"""


def test_pointers_lead_into_tensors_shared_arrays_and_arrays_of_the_item(device):
    x = naru.randint(0, 10, (8, 5), device=device).float()
    out = naru.zeros(8, device=device)
    naru.kernel(POINTERS, "pointers")(x, naru.arange(9, dtype=naru.uint8, device=device), out, 5, blocks=2, threads=4)
    wanted = x.sum(1) + 1000 * x[:, 0].view(2, 4).sum(1).repeat_interleave(4) + 5 * x[:, :4].sum(1) + 4
    assert naru.equal(out, wanted)


WHERE = """
kernel void where_am_i(long* out) {
  int n = 18;
  long i = (global_id(2) * global_size(1) + global_id(1)) * global_size(0) + global_id(0);
  for (int d = 0; d < 3; d++) {
    out[i * n + d] = global_id(d);
    out[i * n + 3 + d] = group_id(d);
    out[i * n + 6 + d] = local_id(d);
    out[i * n + 9 + d] = local_size(d);
    out[i * n + 12 + d] = num_groups(d);
    out[i * n + 15 + d] = global_size(d);
  }
}
kernel void where_with_barrier(long* out) {
  shared int meeting[1];
  meeting[0] = 1;
  barrier();
  int n = 18;
  long i = (global_id(2) * global_size(1) + global_id(1)) * global_size(0) + global_id(0);
  for (int d = 0; d < 3; d++) {
    out[i * n + d] = global_id(d);
    out[i * n + 3 + d] = group_id(d);
    out[i * n + 6 + d] = local_id(d);
    out[i * n + 9 + d] = local_size(d);
    out[i * n + 12 + d] = num_groups(d);
    out[i * n + 15 + d] = global_size(d);
  }
}
"""


@pytest.mark.parametrize("name", ["where_am_i", "where_with_barrier"])
def test_every_word_for_the_place_says_the_same_on_every_device(name, device):
    grid, threads = (7, 5, 3), (4, 2, 2)
    out = naru.full((3, 5, 7, 18), -1, device=device)
    naru.kernel(WHERE, name)(out, grid=grid, threads=threads)
    z, y, x = np.meshgrid(*(np.arange(n) for n in grid[::-1]), indexing="ij")
    place = np.stack([x, y, z], -1)
    t, n = np.array(threads), np.array(grid)
    groups = np.broadcast_to((n + t - 1) // t, place.shape)
    wanted = np.concatenate([place, place // t, place % t, np.minimum(t, n - place // t * t), groups, np.broadcast_to(n, place.shape)], -1)
    np.testing.assert_array_equal(out.cpu().numpy(), wanted)


NUMBERS = """
kernel void numbers(double* out, bool b, char c, unsigned char uc, short s, unsigned short us, int i, unsigned u, long l, unsigned long ul, float f, double d) {
  out[0] = b; out[1] = c; out[2] = uc; out[3] = s; out[4] = us; out[5] = i; out[6] = u; out[7] = l; out[8] = ul; out[9] = f; out[10] = d;
}
"""


def test_numbers_of_every_type_arrive(device):
    values = [True, -128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**53), 2**53, 0.1, 0.1]
    out = naru.zeros(11, dtype=naru.float64, device=device)
    naru.kernel(NUMBERS, "numbers")(out, *values, grid=1)
    assert out.tolist() == [1, -128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**53), 2**53, float(np.float32(0.1)), 0.1]


TYPES = {"bool": naru.bool, "char": naru.int8, "unsigned char": naru.uint8, "short": naru.int16, "int": naru.int32, "long": naru.int64, "float": naru.float32,
         "double": naru.float64}


@pytest.mark.parametrize("name", TYPES)
def test_pointers_of_every_type_see_their_tensors(name, device):
    source = f"kernel void copy(const {name}* x, {name}* y) {{ int i = global_id(0); y[i] = x[i]; }}"
    x = (naru.arange(100, device=device) % 2 if name == "bool" else naru.arange(-50, 50, device=device)).to(TYPES[name])
    y = naru.zeros(100, dtype=TYPES[name], device=device)
    naru.kernel(source, "copy")(x, y, grid=100)
    assert naru.equal(x, y)


@pytest.mark.parametrize("name, dtype", [("half", naru.float16), ("bfloat16", naru.bfloat16)])
def test_16_bit_floats_are_converted_by_functions(name, dtype, device):
    source = f"kernel void twice(const {name}* x, {name}* y) {{ int i = global_id(0); y[i] = float_to_{name}({name}_to_float(x[i]) * 2.0f); }}"
    x = naru.randn(1000, device=device).to(dtype)
    y = naru.zeros(1000, dtype=dtype, device=device)
    naru.kernel(source, "twice")(x, y, grid=1000)
    assert naru.equal(y, x * 2)


ONE = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma sqrt rsqrt".split()
TWO = ["pow", "atan2", "fmod", "hypot"]


@pytest.mark.parametrize("dtype", [naru.float32, naru.float64], ids=str)
def test_mathematics_has_the_bits_of_the_operators_on_every_device(dtype, device):
    type_, f = ("float", "f") if dtype == naru.float32 else ("double", "")
    lines = [f"out[{k} * n + i] = {name}{f}(x[i]);" for k, name in enumerate(ONE)]
    lines += [f"out[{len(ONE) + k} * n + i] = {name}{f}(x[i], y[i]);" for k, name in enumerate(TWO)]
    source = f"kernel void maths(const {type_}* x, const {type_}* y, {type_}* out, int n) {{ int i = global_id(0); {' '.join(lines)} }}"
    special = naru.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 1e30, -1e30, float("inf"), -float("inf"), float("nan")])
    x, y = (naru.cat([special, naru.randn(500) * 3, naru.rand(500)]).to(dtype) for _ in range(2))
    y = y.flip(0)
    out = naru.zeros(len(ONE) + len(TWO), len(x), dtype=dtype, device=device)
    naru.kernel(source, "maths")(x.to(device), y.to(device), out, len(x), grid=len(x))
    wanted = [getattr(naru, name)(x) for name in ONE] + [getattr(naru, name)(x, y) for name in TWO]
    for name, mine, theirs in zip(ONE + TWO, out.cpu(), wanted):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), err_msg=name)
        assert naru.equal(naru.signbit(mine[~mine.isnan()]), naru.signbit(theirs[~theirs.isnan()])), name


MATHS = """
float expf_of(float x) { return expf(x); }
float tanh(float x) { return x + 1000; }
float clamp(float x);
float clamp(float x) { return tanh(x); }
float k(float x) { int k = 1; return clamp(x) + k - 1; }
kernel void maths(const float* x, float* out, int n) {
  int i = global_id(0), GROUP = 5, f32 = 3;
  float v = x[i];
  out[0 * n + i] = expf_of(v); out[1 * n + i] = k(v) + GROUP + f32; out[2 * n + i] = cbrtf(v); out[3 * n + i] = fminf(v, 0.5f);
  out[4 * n + i] = fmaxf(v, 0.0f); out[5 * n + i] = floorf(v); out[6 * n + i] = min(i, 3) + max(i, 5); out[7 * n + i] = fmaf(v, v, 1.0f);
  out[8 * n + i] = v > 0 ? INFINITY : NAN; out[9 * n + i] = copysignf(2.0f, v) + fabsf(v) + roundf(v) + truncf(v) + ldexpf(v, 3) + abs(-i);
}
"""


def test_the_other_functions_of_c_are_there_and_a_source_may_have_names_of_its_own(device):
    x = naru.randn(100, device=device)
    out = naru.zeros(10, 100, device=device)
    naru.kernel(MATHS, "maths")(x, out, 100, grid=100)
    v, i = x.cpu().double().numpy(), np.arange(100)
    wanted = np.stack([np.exp(v), v + 1008, np.cbrt(v), np.minimum(v, 0.5), np.maximum(v, 0), np.floor(v), np.minimum(i, 3) + np.maximum(i, 5), v * v + 1,
                       np.where(v > 0, np.inf, np.nan), np.copysign(2, v) + np.abs(v) + np.trunc(v + np.copysign(0.5, v)) + np.trunc(v) + v * 8 + i])
    np.testing.assert_allclose(out.cpu().numpy(), wanted, rtol=2e-6, atol=1e-6)


COUNTS = """
kernel void count(const int* x, int* counts) { atomic_add(&counts[x[global_id(0)]], 1); }
"""


def test_items_may_add_to_one_place(device):
    x = naru.randint(0, 10, (5000,), dtype=naru.int32, device=device)
    counts = naru.zeros(10, dtype=naru.int32, device=device)
    naru.kernel(COUNTS, "count")(x, counts, grid=5000)
    assert counts.tolist() == np.bincount(x.cpu().numpy(), minlength=10).tolist()


TWICE = "kernel void twice(float* x, float factor) { x[global_id(0)] *= factor; }"


def test_a_kernel_may_write_what_it_reads_and_such_writes_count(device):
    x = naru.arange(1000.0, device=device)
    before = x._version
    naru.kernel(TWICE, "twice")(x, 2, grid=1000)
    assert x._version == before + 1 and naru.equal(x, naru.arange(1000.0, device=device) * 2)


def test_work_before_and_behind_a_kernel_stays_in_order(device):
    twice = naru.kernel(TWICE, "twice")
    x = naru.ones(1000, device=device)
    y = x + 1
    y = y * 3
    twice(y, 2.0, grid=1000)
    z = y + 1
    twice(y, 10, grid=1000)
    assert (z == 13).all() and (y == 120).all()


def test_a_view_of_a_larger_tensor_is_written_where_it_lies(device):
    x = naru.ones(4, 100, device=device)
    naru.kernel(TWICE, "twice")(x[2], 5, grid=100)
    assert x.sum(1).tolist() == [100, 100, 500, 100]


def test_a_kernel_waits_for_nothing(device):
    twice = naru.kernel(TWICE, "twice")
    x = naru.ones(1000, device=device)
    twice(x, 2, grid=1000)
    naru.accelerator.synchronize() if device != "cpu" else None
    with naru.count_syncs() as syncs:
        y = x + 1
        for _ in range(5):
            twice(y, 2, grid=1000)
    assert len(list(syncs)) == 0
    assert (y == 96).all()


def test_streams_order_themselves_around_kernels():
    twice = naru.kernel(TWICE, "twice")
    with naru.virtual("cuda:2(launch_delay=2ms)"):
        x = naru.ones(1000, device="cuda:0")
        side = naru.cuda.Stream()
        twice(x, 2, grid=1000)
        with naru.cuda.stream(side):
            twice(x, 3, grid=1000)
        twice(x, 5, grid=1000)
        there = x.to("cuda:1", non_blocking=True)
        twice(there, 7, grid=1000)
        twice(x, 11, grid=1000)
        assert (there == 210).all() and (x == 330).all()


def test_a_grid_without_items_runs_nothing(device):
    x = naru.ones(3, device=device)
    naru.kernel(TWICE, "twice")(x, 2, grid=0)
    naru.kernel(TWICE, "twice")(x[:0], 2, grid=(4, 0))
    assert x.tolist() == [1, 1, 1]


# --- what does not fit


def raises(kind, *words):
    return pytest.raises(kind, match="(?s)" + ".*".join(f"(?=.*{w})" for w in words))


def test_arguments_that_do_not_fit_are_refused_by_name(device):
    k = naru.kernel(VEC_ADD, "vec_add")
    a = naru.ones(4, device=device)
    with raises(TypeError, "takes 3 arguments", r"const float\* a, const float\* b, float\* out", "got 2"):
        k(a, a, grid=4)
    with raises(TypeError, "parameter 'b'", "wants a torch.float32 tensor", "torch.int64", r"b.to\(torch.float32\)"):
        k(a, naru.ones(4, dtype=naru.int64, device=device), a.clone(), grid=4)
    with raises(TypeError, "parameter 'out'", "torch.float64", "dtype=torch.float32"):
        k(a, a, a.double(), grid=4)
    with raises(ValueError, "parameter 'a'", "contiguous", r"a.contiguous\(\)"):
        k(naru.ones(4, 4, device=device).t(), a, a.clone(), grid=4)
    with raises(TypeError, "parameter 'b'", "got a number"):
        k(a, 3.0, a.clone(), grid=4)
    with raises(TypeError, "parameter 'b' wants a tensor or a number", "str"):
        k(a, "a", a.clone(), grid=4)
    other = "mps:0" if device == "cpu" else "cpu"
    with raises(RuntimeError, "Expected all tensors to be on the same device", "parameter 'a'", "parameter 'b'", r"b.to\("):
        k(a, naru.ones(4, device=other), a.clone(), grid=4)
    with raises(RuntimeError, "same device", "parameter 'out'"):
        k(a, a, naru.ones((), device=other), grid=4)


def test_numbers_that_do_not_fit_are_refused_by_name():
    k = naru.kernel("kernel void f(float* x, int i, unsigned char c, float f, bool b, unsigned long ul) { x[0] = i; }", "f")
    x = naru.ones(1)
    for arguments, kind, words in [((1.5, 0, 0, 0, 0), TypeError, ["parameter 'i'", "wants an integer", "1.5"]),
                                   ((2**31, 0, 0, 0, 0), ValueError, ["parameter 'i'", "-2147483648 to 2147483647", "2147483648", "long"]),
                                   ((0, 256, 0, 0, 0), ValueError, ["parameter 'c'", "0 to 255", "256"]),
                                   ((0, -1, 0, 0, 0), ValueError, ["parameter 'c'", "-1", "signed"]),
                                   ((0, 0, 1e300, 0, 0), ValueError, ["parameter 'f'", "double"]),
                                   ((0, 0, 0, 2, 0), TypeError, ["parameter 'b'", "True or False"]),
                                   ((0, 0, 0, 0, -1), ValueError, ["parameter 'ul'", "-1"]),
                                   ((x, 0, 0, 0, 0), TypeError, ["parameter 'i'", "wants a number", r"i.item\(\)"])]:
        with raises(kind, *words):
            k(x, *arguments, grid=1)
    k(x, 7, 255, float("inf"), True, 2**63 - 1, grid=1)
    assert x.item() == 7


def test_extents_that_make_no_sense_are_refused(device):
    k = naru.kernel(TWICE, "twice")
    x = naru.ones(4, device=device)
    for extent, kind, words in [({}, TypeError, ["how many items", "neither"]), ({"blocks": 2}, TypeError, ["blocks= and threads="]),
                                ({"threads": 2}, TypeError, ["how many items"]), ({"grid": 4, "blocks": 1, "threads": 4}, TypeError, ["either grid"]),
                                ({"grid": -1}, ValueError, ["grid", "0 or more"]), ({"grid": (1, 1, 1, 1)}, ValueError, ["4 dimensions"]),
                                ({"blocks": 0, "threads": 4}, ValueError, ["blocks", "1 or more"]), ({"grid": "4"}, TypeError, ["grid", "str"]),
                                ({"grid": 1.5}, TypeError, ["grid", "float"]), ({"grid": ()}, ValueError, ["grid"]),
                                ({"blocks": 1, "threads": (64, 64)}, ValueError, ["4096 items", "at most 1024", "fewer threads"])]:
        with raises(kind, *words):
            k(x, 2, **extent)
    assert x.tolist() == [1, 1, 1, 1]


def test_a_kernel_that_is_not_in_the_source_is_refused_with_those_that_are():
    with raises(ValueError, "no kernel 'vec_sub'", "'vec_add', 'vec_add_by_groups'"):
        naru.kernel(VEC_ADD, "vec_sub")


@pytest.mark.parametrize("source, words", [
    ("void f(float* x) {}", ["no kernel in the source", "kernel void vec_add"]),
    ("", ["no kernel in the source"]),
    ("\nkernel int f(float* x) {}", ["kernel void name", "line 2: kernel int f"]),
    ("kernel void f(float* x {}", ["no closing bracket", "line 1"]),
    ("kernel void f(float* x) {", ["no closing `}`"]),
    ("kernel void f(float* x);", ["not followed by `{`"]),
    ("kernel void f(float x[]) {}", ["is an array", "float x"]),
    ("kernel void f(float** x) {}", ["pointer to a pointer"]),
    ("kernel void f(float*) {}", ["no name or no type"]),
    ("kernel void f(float* x,) {}", ["is empty"]),
    ("kernel void f(float* x, thing y) {}", ["of type 'thing'", "not one of"]),
    ("kernel void f(unsigned* x) {}", ["points to 'unsigned'", "no such type"]),
    ("kernel void f(float* x, half h) {}", ["pass a float"]),
    ("kernel void f(float* x, int x) {}", ["two parameters", "'x'"]),
    ("kernel void f(float* x) {}\nkernel void f(int* x) {}", ["two kernels are called 'f'", "line 2"]),
    ("kernel void f(const float* x) {}", ["nothing to write to", "float\\* out"]),
    ("kernel void f() {}", ["nothing to write to"]),
    ("int g(int n) { return n ? g(n - 1) : 0; }\nkernel void f(int* x) { x[0] = g(3); }", ["'g' calls itself", "line 1"]),
])
def test_a_source_that_can_not_be_read_is_refused_with_its_line(source, words):
    with raises(ValueError, *(w.replace("(", r"\(").replace("{", r"\{").replace("}", r"\}") for w in words)):
        naru.kernel(source, "f")


def test_what_the_compiler_refuses_is_shown_with_the_line(device):
    source = "// one\nkernel void f(const float* a,\n              float* out) {\n  int i = global_id(0);\n  out[i] = a[i] + nothing;  /* here\n  */\n  out[i] = 3\n}\n"
    k = naru.kernel(source, "f")
    x = naru.ones(3, device=device)
    with raises(RuntimeError, r"naru\.kernel 'f'", "compiler", "line 5: .*nothing", r"out\[i\] = a\[i\] \+ nothing;"):
        k(x, x.clone(), grid=3)
    with raises(RuntimeError, r"line [78]:.*(expected|;)"):  # or where the next word stands
        k(x, x.clone(), grid=3)
    assert (x + 1).tolist() == [2, 2, 2]  # the device goes on


def test_a_function_that_does_not_exist_is_refused_before_it_runs(device):
    k = naru.kernel("kernel void f(float* x) {\n  x[0] = missing(1);\n}", "f")
    with raises(RuntimeError, "line 2:", "missing"):
        k(naru.ones(1, device=device), grid=1)


def test_a_function_that_is_declared_and_never_defined_is_refused_by_name(device):
    k = naru.kernel("float missing(float x);\nkernel void f(float* x) {\n  x[0] = missing(1);\n}", "f")
    with raises(RuntimeError, "naru.kernel 'f'", "refused", "missing"):
        k(naru.ones(1, device=device), grid=1)


def test_other_kernels_of_the_source_are_not_compiled(device):
    source = "kernel void good(float* x) { x[0] = 5; }\nkernel void bad(float* x) {\n  x[0] = nothing;\n}"
    x = naru.ones(1, device=device)
    naru.kernel(source, "good")(x, grid=1)
    with raises(RuntimeError, "'bad'", "line 3"):
        naru.kernel(source, "bad")(x, grid=1)
    assert x.item() == 5


CUDA = """
__global__ void VecAdd(float *A, float *B, float *C)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    C[i] = A[i] + B[i];
}
"""


def test_cuda_source_runs_on_a_real_cuda_device_and_is_refused_elsewhere_with_its_equivalent(device):
    k = naru.kernel(CUDA, "VecAdd")
    x, out = naru.arange(300.0, device=device), naru.zeros(300, device=device)
    if any(d["device"] == device and d["backend"] == "cuda" for d in naru._C.devices()):
        k(x, x, out, grid=299)
        assert naru.equal(out[:299], x[:299] * 2) and out[299] == 0
        k(x, x, out, blocks=3, threads=100)
        assert naru.equal(out, x * 2)
        with pytest.raises(RuntimeError, match="1 x 70000 x 1 groups; at most 65535"):
            k(x, x, out, blocks=(1, 70000), threads=1)
            out.cpu()
        with pytest.raises(RuntimeError, match="1 x 1 x 65 items; at most 64"):
            k(x, x, out, blocks=1, threads=(1, 1, 65))
            out.cpu()
        return
    with pytest.raises(NotImplementedError, match="real cuda devices only") as refused:
        k(x, x, out, grid=300)
    text = str(refused.value)
    naru.kernel(text[text.index("kernel void VecAdd") :], "VecAdd")(x, x, out, blocks=3, threads=100)
    assert naru.equal(out, x * 2)


def test_a_barrier_that_some_items_do_not_meet_is_an_error_where_the_host_runs_it():
    source = "kernel void f(float* x) { if (local_id(0) < 3) barrier(); x[global_id(0)] = 1; }"
    with raises(RuntimeError, r"'f': some items of a group met a barrier\(\)"):
        naru.kernel(source, "f")(naru.ones(8), grid=8, threads=4)


@pytest.mark.parametrize("size, fits", [(1000, True), (6000, False)])
def test_arrays_of_the_items_own_are_bounded_where_items_meet_at_barriers(size, fits):
    source = f"""kernel void f(float* x) {{
      float own[{size}];
      for (int i = 0; i < {size}; i++) own[i] = x[i % 8] + i;
      barrier();
      float sum = 0;
      for (int i = 0; i < {size}; i++) sum += own[(i * 7 + (int)x[0]) % {size}];
      x[global_id(0)] = sum;
    }}"""
    x = naru.zeros(8)
    if fits:
        naru.kernel(source, "f")(x, grid=8)
        assert (x == size * (size - 1) / 2).all()
        return
    with raises(RuntimeError, "'f': its items have arrays of their own beyond 16384 bytes", "shared arrays"):
        naru.kernel(source, "f")(x, grid=8)
    source = source.replace("barrier();", "")
    naru.kernel(source, "f")(x[:1].clone(), grid=0)
    naru.kernel(source, "f")(x, grid=1)
    assert x[0] > 0


# --- derivatives

CUBE = """
kernel void cube(const double* x, double scale, double* y) { int i = global_id(0); y[i] = scale * x[i] * x[i] * x[i]; }
kernel void cube_backward(const double* x, double scale, const double* grad_y, double* grad_x) {
  int i = global_id(0);
  grad_x[i] = scale * 3 * x[i] * x[i] * grad_y[i];
}
"""


def cube_with(backward):
    k = naru.kernel(CUBE, "cube", backward=backward)

    def f(x):
        y = naru.empty_like(x)
        k(x, 0.5, y, grid=x.numel())
        return y

    return f


def by_function(ctx, grad):
    assert ctx.grid == (6,) and ctx.blocks is None
    return ctx["scale"] * 3 * ctx["x"] ** 2 * grad


@pytest.mark.parametrize("backward", ["cube_backward", by_function, lambda ctx, grad: {"x": 1.5 * ctx["x"] ** 2 * grad}], ids=["kernel", "function", "by name"])
def test_a_kernel_with_a_backward_is_differentiable(backward, device):
    x = naru.randn(2, 3, dtype=naru.float64, device=device, requires_grad=True)
    assert naru.autograd.gradcheck(lambda x: cube_with(backward)(x * 2) * x, [x])
    y = cube_with(backward)(x)
    assert y.requires_grad and y.grad_fn.name() == "cubeBackward"
    y.sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 1.5 * x.detach().cpu().numpy() ** 2)


def test_a_backward_function_has_a_derivative_of_its_own():
    x = naru.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=naru.float64, requires_grad=True)
    (g,) = naru.autograd.grad(cube_with(by_function)(x).sum(), x, create_graph=True)
    (gg,) = naru.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(gg.numpy(), 3 * x.detach().numpy())


PAIR = """
kernel void pair(const double* a, const double* b, double* sum, double* product) {
  int i = global_id(0);
  sum[i] = a[i] + b[i];
  product[i] = a[i] * b[i];
}
kernel void pair_backward(const double* a, const double* b, const double* grad_sum, const double* grad_product, double* grad_a, double* grad_b) {
  int i = global_id(0);
  grad_a[i] = grad_sum[i] + grad_product[i] * b[i];
  grad_b[i] = grad_sum[i] + grad_product[i] * a[i];
}
"""


@pytest.mark.parametrize("use", ["sum", "product", "both", "views"])
def test_several_outputs_each_have_their_gradient(use, device):
    k = naru.kernel(PAIR, "pair", backward="pair_backward")

    def f(a, b):
        if use == "views":
            whole = naru.zeros(2, 6, dtype=naru.float64, device=device)
            outs = [whole[0], whole[1]]
            k(a, b, *outs, grid=6)
            return (whole * naru.arange(12.0, dtype=naru.float64, device=device).view(2, 6)).sum()
        outs = [naru.empty_like(a), naru.empty_like(a)]
        k(a, b, *outs, grid=6)
        return {"sum": outs[0], "product": outs[1], "both": outs[0] * outs[1]}[use]

    a, b = (naru.randn(6, dtype=naru.float64, device=device, requires_grad=True) for _ in range(2))
    assert naru.autograd.gradcheck(f, [a, b])


SCALE = """
kernel void scale(const double* s, double* x) { int i = global_id(0); x[i] = x[i] * s[i]; }
kernel void scale_backward(const double* s, const double* x, double* grad_x, double* grad_s) {
  int i = global_id(0);
  grad_s[i] = grad_x[i] * x[i] / s[i];
  grad_x[i] = grad_x[i] * s[i];
}
"""


def test_a_kernel_in_place_passes_the_gradient_on(device):
    k = naru.kernel(SCALE, "scale", backward="scale_backward")

    def f(s, x):
        y = x * 3
        k(s, y, grid=6)
        return y * y

    s, x = (naru.rand(6, dtype=naru.float64, device=device).add(0.5).requires_grad_() for _ in range(2))
    assert naru.autograd.gradcheck(f, [s, x])

    def g(s, x):
        y = (x * 3).view(2, 3)
        k(s[:3], y[1], grid=3)
        return y * y

    assert naru.autograd.gradcheck(g, [s, x])


def test_without_a_backward_the_derivative_is_an_error_and_not_zero():
    k = naru.kernel(CUBE, "cube")
    x, y = naru.ones(3, dtype=naru.float64, requires_grad=True), naru.empty(3, dtype=naru.float64)
    k(x, 1, y, grid=3)
    with raises(RuntimeError, "derivative for the kernel 'cube' is not known", "backward=", r"no_grad\(\)"):
        y.sum().backward()
    with naru.no_grad():
        z = naru.empty(3, dtype=naru.float64)
        k(x, 1, z, grid=3)
    assert not z.requires_grad


def test_a_leaf_that_requires_grad_is_not_written():
    leaf = naru.ones(3, requires_grad=True)
    with raises(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation", "kernel twice, parameter 'x'"):
        naru.kernel(TWICE, "twice")(leaf, 2, grid=3)
    with naru.no_grad():
        naru.kernel(TWICE, "twice")(leaf, 2, grid=3)
    assert leaf.tolist() == [2, 2, 2]


def test_an_input_that_was_written_since_is_an_error_in_backward():
    x = naru.ones(6, dtype=naru.float64, requires_grad=True) * 2
    y = cube_with("cube_backward")(x)
    x.add_(1)
    with raises(RuntimeError, "modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("backward, words", [
    ("kernel void b(const float* x, const float* grad_z, float* grad_x) {}", ["'grad_z'", "neither a forward argument nor grad_X"]),
    ("kernel void b(const int* x, const float* grad_y, float* grad_x) {}", ["'x'", "differs from the forward's const float"]),
    ("kernel void b(float* x, const float* grad_y, float* grad_x) {}", ["'x'", "must be const"]),
    ("kernel void b(const float* grad_y, const float* grad_x, float* y) {}", ["'grad_x'", "can't be const"]),
    ("kernel void b(const int* grad_y, float* grad_x) {}", ["'grad_y'", "pointer of the type"]),
])
def test_a_backward_kernel_whose_parameters_do_not_fit_is_refused(backward, words):
    source = "kernel void f(const float* x, float* y) { y[0] = x[0]; }\n" + backward
    with raises(ValueError, *words):
        naru.kernel(source, "f", backward="b")
    with raises(ValueError, "no kernel 'c'"):
        naru.kernel(source, "f", backward="c")
    with raises(TypeError, "backward must be"):
        naru.kernel(source, "f", backward=3)


def test_a_backward_function_that_returns_what_does_not_fit_is_refused():
    x = naru.ones(6, dtype=naru.float64, requires_grad=True)
    for answer, kind, words in [((1, 2, 3), TypeError, ["returned int for 'x'"]), ((None, None, None), RuntimeError, ["returned 3 gradients", "wanted 1"]),
                                ({"z": None}, ValueError, ["'z'"]), (naru.ones(2, dtype=naru.float64), RuntimeError, ["shape", "2"])]:
        y = cube_with(lambda ctx, grad, answer=answer: answer)(x)
        with raises(kind, *words):
            y.sum().backward()


# --- programs


def run_python(program, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


def test_without_a_compiler_the_error_says_what_to_install(tmp_path):
    done = run_python("""
        import naru
        try:
            naru.kernel("kernel void f(float* x) { x[0] = 1; }", "f")(naru.ones(1), grid=1)
        except RuntimeError as error:
            print(error)
        print((naru.ones(3) + 1).sum().item())
        """, PATH=str(tmp_path), CC="")
    assert done.returncode == 0, done.stderr
    assert "there is no C compiler" in done.stdout and "apt-get install gcc" in done.stdout and "CC" in done.stdout and "6.0" in done.stdout


def test_the_second_start_of_a_program_compiles_nothing(tmp_path):
    program = """
        import naru
        x = naru.ones(3)
        naru.kernel("kernel void f(float* x) { x[global_id(0)] += 1; }", "f")(x, grid=3)
        print(x.tolist(), naru._C._kernel_cache()["compilations"])
        """
    first, second = (run_python(program, NARU_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout == "[2.0, 2.0, 2.0] 1\n", first.stderr
    assert second.stdout == "[2.0, 2.0, 2.0] 0\n", second.stderr


def test_a_program_with_kernels_runs_under_naru_run(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(f"""
        import torch
        k = torch.kernel({VEC_ADD!r}, "vec_add")
        for device in ("cpu", "mps"):
            a, b = torch.arange(1000.0, device=device), torch.ones(1000, device=device)
            out = torch.empty(1000, device=device)
            k(a, b, out, grid=1000)
            print(device, out.sum().item())
        """))
    done = subprocess.run([sys.executable, "-m", "naru", "run", str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "cpu 500500.0\nmps 500500.0\n", done.stderr


def test_threads_of_python_may_call_one_kernel_at_a_time_of_their_own():
    from concurrent.futures import ThreadPoolExecutor

    k = naru.kernel(MATMUL, "matmul")

    def work(seed):
        a = naru.full((64, 64), float(seed))
        c = naru.zeros(64, 64)
        for _ in range(5):
            k(a, naru.eye(64), c, 64, 64, 64, blocks=(4, 4), threads=(16, 16))
        return naru.equal(a, c)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
