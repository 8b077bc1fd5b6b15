"""torch.mps.compile_shader: kernels in Metal's language, translated to naru's dialect."""
import naru as torch
import pytest

from kernel_cases import KINDS

SOURCE = """
#include <metal_stdlib>
using namespace metal;
constant float weights[2] = {1, 2};
static inline float twice(device const float* p, uint i) { return 2 * metal::precise::exp(p[i]); }
/* The numbers of
   buffers give the order of arguments. */
kernel void scaled(device float* out [[buffer(1)]], constant float& by [[buffer(2)]], const device float* x [[buffer(0)]],  // a comment, with (
                   uint i [[thread_position_in_grid]]) {
  out[i] = by * twice(x, i) + sqrt(x[i]) * weights[i & 1];
}
[[kernel]] void places(device int* out, uint2 at [[thread_position_in_grid]], uint2 all [[threads_per_grid]]) {
  out[at.y * all.x + at.x] = at.x + 10 * at.y;
}
kernel void turned(device const int* x, device int* out, uint i [[thread_position_in_threadgroup]], uint at [[threadgroup_position_in_grid]],
                   uint n [[threads_per_threadgroup]]) {
  threadgroup int tile[64];
  tile[i] = x[at * n + i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at * n + i] = tile[n - 1 - i];
}
"""


@pytest.mark.parametrize("device", [k for k in KINDS if k.split(":")[0] in ("cpu", "cuda", "mps")])
def test_kernels_in_metals_language_run_on_every_device(device):
    library = torch.mps.compile_shader(SOURCE)
    assert {"scaled", "places", "turned"} <= set(dir(library))
    x = torch.linspace(0, 1, 6)
    out = torch.zeros(6, device=device)
    library.scaled(x.to(device), out, 0.5)
    assert torch.allclose(out.cpu(), x.exp() + x.sqrt() * torch.tensor([1.0, 2.0]).repeat(3), rtol=1e-6)
    grid = torch.zeros(3, 4, dtype=torch.int32, device=device)
    library.places(grid.reshape(-1), threads=(4, 3))
    assert grid.tolist() == [[c + 10 * r for c in range(4)] for r in range(3)]
    numbers = torch.arange(64, dtype=torch.int32)
    back = torch.zeros(64, dtype=torch.int32, device=device)
    library.turned(numbers.to(device), back, threads=64, group_size=16)
    assert torch.equal(back.cpu(), numbers.reshape(4, 16).flip(1).reshape(-1))


@pytest.mark.parametrize("body, what", [("float4 v = x[0];", "vectors"), ("half h = 1;", "half"), ("int n = as_type<int>(x[0]);", "as_type"), ("x[0] = abs(x[0]);", "abs"), ("x[0] = simd_sum(x[0]);", "SIMD")])  # fmt: skip
def test_what_the_dialect_lacks_is_an_error_that_says_so(body, what):
    with pytest.raises(NotImplementedError, match=f"which have no .*{what}.*naru.kernel"):
        torch.mps.compile_shader(f"kernel void k(device float* x) {{ {body} }}")


def test_other_errors_of_sources_name_what_is_wrong():
    with pytest.raises(ValueError, match="has no `kernel void name"):
        torch.mps.compile_shader("float f(float x) { return x; }")
    with pytest.raises(ValueError, match="is missing"):
        torch.mps.compile_shader("kernel void k(device float* x { }")
    with pytest.raises(NotImplementedError, match=r"\[\[simdgroup_index_in_threadgroup\]\]"):
        torch.mps.compile_shader("kernel void k(device float* x, uint i [[simdgroup_index_in_threadgroup]]) { }")
    library = torch.mps.compile_shader("kernel void k(device float* x) { x[0] = 1; }")
    with pytest.raises(AttributeError, match="no kernel 'j'; it has k"):
        library.j  # noqa: B018
    with pytest.raises(TypeError, match="float32"):
        library.k(torch.zeros(1, dtype=torch.int32))
