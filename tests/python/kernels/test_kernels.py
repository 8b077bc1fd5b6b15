"""naru.kernel: user-defined kernels on every kind of device."""
import naru
import numpy as np
import pytest
from kernel_cases import device, guarded, MATMUL, TWICE, VEC_ADD  # noqa: F401


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
