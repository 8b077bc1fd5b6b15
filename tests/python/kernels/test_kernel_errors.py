"""naru.kernel: invalid kernels and arguments are rejected with clear messages."""
import naru
import pytest
from kernel_cases import device, raises, TWICE, VEC_ADD  # noqa: F401


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
    with raises(RuntimeError, r"line [78]:.*(expected|;)"):  # or at the position of the next token
        k(x, x.clone(), grid=3)
    assert (x + 1).tolist() == [2, 2, 2]  # the device still works


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


def test_cuda_source_is_bounded_by_the_grid_and_by_a_real_devices_limits(device):
    k = naru.kernel(CUDA, "VecAdd")
    x, out = naru.arange(300.0, device=device), naru.zeros(300, device=device)
    k(x, x, out, grid=299)
    assert naru.equal(out[:299], x[:299] * 2) and out[299] == 0
    k(x, x, out, blocks=3, threads=100)
    assert naru.equal(out, x * 2)
    if any(d["device"] == device and d["backend"] == "cuda" for d in naru._C.devices()):
        with pytest.raises(RuntimeError, match="1 x 70000 x 1 groups; at most 65535"):
            k(x, x, out, blocks=(1, 70000), threads=1)
            out.cpu()
        with pytest.raises(RuntimeError, match="1 x 1 x 65 items; at most 64"):
            k(x, x, out, blocks=1, threads=(1, 1, 65))
            out.cpu()


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
