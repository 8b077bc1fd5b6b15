"""Kernels for the tests of `naru kernelcheck`, and mutants of them. Each kernel is right; a mutant lacks a barrier, has an index that is shifted by one, or
lacks an initialisation (a line that ends in // init)."""
import re

import numpy as np

N = 256


def floats(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n).astype("f4")


def ints(n, most, seed=0):
    return np.random.default_rng(seed).integers(0, most, n).astype("i4")


class Checked:
    """source: CUDA C++ with one kernel `k`. arguments: arrays (those of `out` are results) and numbers. expected: the results, computed by numpy."""

    def __init__(self, name, source, blocks, threads, arguments, expected, shared=0):
        self.name, self.source, self.blocks, self.threads = name, source.strip() + "\n", blocks, threads
        self.arguments, self.expected, self.shared = arguments, expected, shared


A, B = floats(N), floats(N, 1)
M, W = floats(32 * 32).reshape(32, 32), floats(32 * 32, 2).reshape(32, 32)
K = ints(N, 16)


def out(*shape, dtype="f4"):
    return np.zeros(shape, dtype)


def inclusive(x, width):
    return np.concatenate([np.cumsum(row.astype("f8")) for row in x.reshape(-1, width)]).astype("f4")


KERNELS = [
    Checked("add", """
__global__ void k(const float* a, const float* b, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i] + b[i];
}""", 4, 64, [A, B, out(N)], lambda: A + B),
    Checked("reverse", """
__global__ void k(const float* a, float* out) {
  __shared__ float tile[64];
  int t = threadIdx.x, base = blockIdx.x * 64;
  tile[t] = a[base + t];
  __syncthreads();
  out[base + t] = tile[63 - t];
}""", 4, 64, [A, out(N)], lambda: A.reshape(4, 64)[:, ::-1].ravel()),
    Checked("block_sums", """
__global__ void k(const float* a, float* out) {
  __shared__ float part[128];
  int t = threadIdx.x;
  part[t] = a[blockIdx.x * 128 + t];
  __syncthreads();
  for (int n = 64; n > 0; n /= 2) {
    if (t < n) part[t] = part[t] + part[t + n];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}""", 2, 128, [A, out(2)], lambda: A.reshape(2, 128).sum(1)),
    Checked("warp_sums", """
__global__ void k(const float* a, float* out) {
  __shared__ float part[4];
  int t = threadIdx.x;
  float x = a[blockIdx.x * 128 + t];
  for (int n = 16; n > 0; n /= 2) x += __shfl_down_sync(0xffffffffu, x, n);
  if (t % 32 == 0) part[t / 32] = x;
  __syncthreads();
  if (t == 0) out[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}""", 2, 128, [A, out(2)], lambda: A.reshape(2, 128).sum(1)),
    Checked("transpose", """
__global__ void k(const float* a, float* out) {
  __shared__ float tile[16][17];
  int x = threadIdx.x, y = threadIdx.y, bx = blockIdx.x * 16, by = blockIdx.y * 16;
  tile[y][x] = a[(by + y) * 32 + bx + x];
  __syncthreads();
  out[(bx + y) * 32 + by + x] = tile[x][y];
}""", (2, 2), (16, 16), [M, out(32, 32)], lambda: M.T),
    Checked("product", """
__global__ void k(const float* a, const float* b, float* out) {
  __shared__ float left[8][8], right[8][8];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
  float sum = 0;
  for (int n = 0; n < 32; n += 8) {
    left[y][x] = a[row * 32 + n + x];
    right[y][x] = b[(n + y) * 32 + column];
    __syncthreads();
    for (int j = 0; j < 8; ++j) sum += left[y][j] * right[j][x];
    __syncthreads();
  }
  out[row * 32 + column] = sum;
}""", (4, 4), (8, 8), [M, W, out(32, 32)], lambda: M @ W),
    Checked("stencil", """
__global__ void k(const float* a, float* out) {
  __shared__ float tile[66];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tile[t + 1] = a[i];
  if (t == 0) tile[0] = i > 0 ? a[i - 1] : 0.0f;
  if (t == 63) tile[65] = i < 255 ? a[i + 1] : 0.0f;
  __syncthreads();
  out[i] = tile[t] + tile[t + 1] + tile[t + 2];
}""", 4, 64, [A, out(N)], lambda: np.convolve(np.pad(A, 1), np.ones(3, "f4"), "valid")),
    Checked("scan", """
__global__ void k(const float* a, float* out) {
  __shared__ float s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = a[i];
  __syncthreads();
  for (int n = 1; n < 64; n *= 2) {
    float x = t >= n ? s[t - n] : 0.0f;
    __syncthreads();
    s[t] += x;
    __syncthreads();
  }
  out[i] = s[t];
}""", 4, 64, [A, out(N)], lambda: inclusive(A, 64)),
    Checked("histogram", """
__global__ void k(const int* a, int* out) {
  __shared__ int count[16];
  int t = threadIdx.x;
  if (t < 16) count[t] = 0;  // init
  __syncthreads();
  atomicAdd(&count[a[blockIdx.x * 64 + t]], 1);
  __syncthreads();
  if (t < 16) atomicAdd(&out[t], count[t]);
}""", 4, 64, [K, out(16, dtype="i4")], lambda: np.bincount(K, minlength=16)),
    Checked("softmax", """
__global__ void k(const float* a, float* out) {
  __shared__ float s[32];
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  float x = a[i];
  s[t] = x;
  __syncthreads();
  float most = s[0];
  for (int j = 1; j < 32; ++j) most = fmaxf(most, s[j]);
  __syncthreads();
  x = expf(x - most);
  s[t] = x;
  __syncthreads();
  float sum = 0;
  for (int j = 0; j < 32; ++j) sum += s[j];
  out[i] = x / sum;
}""", 32, 32, [M, out(32, 32)], lambda: (lambda e: e / e.sum(1, keepdims=True))(np.exp(M - M.max(1, keepdims=True)))),
    Checked("bitonic_sort", """
__global__ void k(const float* a, float* out) {
  __shared__ float s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = a[i];
  __syncthreads();
  for (int size = 2; size <= 64; size *= 2)
    for (int n = size / 2; n > 0; n /= 2) {
      int other = t ^ n;
      if (other > t) {
        bool up = (t & size) == 0;
        float x = s[t], y = s[other];
        if ((x > y) == up) { s[t] = y; s[other] = x; }
      }
      __syncthreads();
    }
  out[i] = s[t];
}""", 4, 64, [A, out(N)], lambda: np.sort(A.reshape(4, 64), 1).ravel()),
    Checked("argmax", """
__global__ void k(const float* a, int* out) {
  __shared__ float value[64];
  __shared__ int place[64];
  int t = threadIdx.x;
  value[t] = a[blockIdx.x * 64 + t];
  place[t] = t;  // init
  __syncthreads();
  for (int n = 32; n > 0; n /= 2) {
    if (t < n && value[t + n] > value[t]) {
      value[t] = value[t + n];
      place[t] = place[t + n];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = place[0];
}""", 4, 64, [A, out(4, dtype="i4")], lambda: A.reshape(4, 64).argmax(1)),
    Checked("last_block", """
__device__ int done = 0;
__global__ void k(const float* a, float* part, float* out) {
  __shared__ float s[64];
  __shared__ bool last;
  int t = threadIdx.x;
  s[t] = a[blockIdx.x * 64 + t];
  __syncthreads();
  for (int n = 32; n > 0; n /= 2) {
    if (t < n) s[t] += s[t + n];
    __syncthreads();
  }
  if (t == 0) {
    part[blockIdx.x] = s[0];
    __threadfence();
    last = atomicAdd(&done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float sum = 0;
    for (int j = 0; j < gridDim.x; ++j) sum += part[j];
    out[0] = sum;
    done = 0;
  }
}""", 4, 64, [A, out(4), out(1)], lambda: (A.reshape(4, 64).sum(1), A.sum().reshape(1))),
    Checked("dynamic", """
__global__ void k(const float* a, float* out) {
  extern __shared__ float s[];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = a[i];
  __syncthreads();
  out[i] = s[t] - s[t ^ 32];
}""", 4, 64, [A, out(N)], lambda: (A.reshape(4, 2, 32) - A.reshape(4, 2, 32)[:, ::-1]).ravel(), shared=256),
    Checked("row_norms", """
__global__ void k(const float* a, float* out) {
  __shared__ float sum;
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  if (t == 0) sum = 0;  // init
  __syncthreads();
  atomicAdd(&sum, a[i] * a[i]);
  __syncthreads();
  out[i] = a[i] * rsqrtf(sum);
}""", 32, 32, [M, out(32, 32)], lambda: M / np.sqrt((M * M).sum(1, keepdims=True))),
    Checked("vectors", """
__global__ void k(const float* a, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 x = ((const float4*)a)[i];
  out[4 * i] = x.w; out[4 * i + 1] = x.z; out[4 * i + 2] = x.y; out[4 * i + 3] = x.x;
}""", 2, 32, [A, out(N)], lambda: A.reshape(-1, 4)[:, ::-1].ravel()),
    Checked("compact", """
__global__ void k(const float* a, float* out, int* count) {
  __shared__ int base;
  __shared__ int from[2];
  int t = threadIdx.x;
  bool keep = a[t] > 0;
  unsigned all = __ballot_sync(0xffffffffu, keep);
  if (t % 32 == 0) from[t / 32] = __popc(all);
  if (t == 0) base = 0;  // init
  __syncthreads();
  int before = base + (t >= 32 ? from[0] : 0) + __popc(all & ((1u << (t % 32)) - 1));
  if (keep) out[before] = a[t];
  if (t == 0) count[0] = from[0] + from[1];
}""", 1, 64, [A[:64].copy(), out(64), out(1, dtype="i4")],
            lambda: (np.pad(A[:64][A[:64] > 0], (0, int((A[:64] <= 0).sum()))), np.array([(A[:64] > 0).sum()]))),
    Checked("double_buffer", """
__global__ void k(const float* a, float* out) {
  __shared__ float s[2][32];
  int t = threadIdx.x;
  s[0][t] = a[t];
  for (int n = 0; n < 7; ++n) {
    __syncthreads();
    s[(n + 1) % 2][t] = s[n % 2][(t + 1) % 32];
  }
  out[t] = s[1][t];
}""", 1, 32, [A[:32].copy(), out(32)], lambda: np.roll(A[:32], -7)),
    Checked("warp_exchange", """
__global__ void k(const float* a, float* out) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = a[t];
  __syncwarp();
  out[t] = s[t ^ 1];
}""", 1, 64, [A[:64].copy(), out(64)], lambda: A[:64].reshape(-1, 2)[:, ::-1].ravel()),
    Checked("loads_by_two", """
__global__ void k(const float* a, const float* w, float* out) {
  __shared__ float weights[8];
  __shared__ float tile[71];
  int t = threadIdx.x, base = blockIdx.x * 64;
  if (t < 8) weights[t] = w[t];
  for (int j = t; j < 71; j += 64) tile[j] = a[base + j];
  __syncthreads();
  float sum = 0;
  for (int j = 0; j < 8; ++j) sum += weights[j] * tile[t + j];
  out[base + t] = sum;
}""", 3, 64, [A[:199].copy(), B[:8].copy(), out(192)], lambda: np.convolve(A[:199], B[:8][::-1], "valid")),
]


def mutants(kernel):
    """(what, line, source) of each mutant."""
    lines = kernel.source.split("\n")
    found = []

    def mutant(what, number, line):
        found.append((what, number + 1, "\n".join([*lines[:number], line, *lines[number + 1 :]])))

    for number, line in enumerate(lines):
        for barrier in ("__syncthreads();", "__syncwarp();"):
            if barrier in line:
                mutant("barrier dropped", number, line.replace(barrier, ""))
        if line.endswith("// init"):
            mutant("initialisation left out", number, "")
        if re.search(r"__shared__|__global__|__device__", line):
            continue
        for match in re.finditer(r"\b\w+(?:\[[^][]*(?:\[[^][]*\])?[^][]*\])+", line):
            # The innermost brackets behind the last name: of tile[y][x] that is x, of count[a[i]] the outer index.
            depth, begin = 0, match.end() - 1
            for place in range(match.end() - 1, match.start(), -1):
                depth += {"]": 1, "[": -1}.get(line[place], 0)
                if depth == 0:
                    begin = place
                    break
            mutant("index shifted", number, line[: begin + 1] + "1 + " + line[begin + 1 :])
    return found
