"""naru.kernel: kernels with a backward function."""
import naru
import numpy as np
import pytest
from kernel_cases import device, raises, TWICE  # noqa: F401

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
