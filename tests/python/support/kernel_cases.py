"""Helpers for the tests of naru.kernel: the devices, and sources used by several tests."""
import os

import naru
from opencl import need_xpu, processors_count
import pytest

# All kinds of device but rocm, or those in NARU_TEST_DEVICES.
KINDS = [d for d in ("cpu", "cuda:0", "mps:0", "xpu:0", "rocm:0") if d.split(":")[0] in os.environ.get("NARU_TEST_DEVICES", "cpu,cuda,mps,xpu").split(",")]


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
TWICE = "kernel void twice(float* x, float factor) { x[global_id(0)] *= factor; }"


def raises(kind, *words):
    return pytest.raises(kind, match="(?s)" + ".*".join(f"(?=.*{w})" for w in words))
