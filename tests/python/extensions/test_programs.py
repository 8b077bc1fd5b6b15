"""Extensions in C++, of the shapes that tutorials for PyTorch have: compiled unchanged over naru, with the results that PyTorch gives."""
import copy
import math
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import naru as torch
from naru.utils import cpp_extension

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler is installed")
pytest.importorskip("pybind11", reason="pybind11 is not installed")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture(scope="module")
def loops(root):
    return cpp_extension.load("loops", [str(PROGRAMS / "loops.cpp")], extra_cflags=["-O0", "-std=c++17"], build_directory=str(root / "loops"))


@pytest.fixture(scope="module")
def shapes(root):
    path = cpp_extension.load("shapes", str(PROGRAMS / "operators.cpp"), extra_cflags=["-O0"], build_directory=str(root / "shapes"), is_python_module=False)
    assert Path(path).name == "shapes.so" and path in torch.ops.loaded_libraries
    return torch.ops.shapes


def compare(got, wanted, tolerance=1e-5):
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


# --- a cell with forward and backward in C++, installed by setup.py


@pytest.fixture(scope="module")
def cell(root):
    folder = root / "cell"
    shutil.copytree(PROGRAMS / "cell", folder)
    # In a program under `naru run`, and in what it launches, torch is naru.
    env = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    pip = ["-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "-q", "--target", str(root / "site"), str(folder)]
    command = [sys.executable, "-m", "naru", "run", *pip]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    sys.path.insert(0, str(root / "site"))
    try:
        import cell_extension
    finally:
        sys.path.remove(str(root / "site"))
    return cell_extension


def in_python(input, weights, bias, state, memory):
    joined = torch.cat([state, input], 1)
    let_in, let_out, candidate = torch.addmm(bias, joined, weights.t()).chunk(3, 1)
    new_memory = memory + torch.nn.functional.elu(candidate) * torch.sigmoid(let_in)
    return torch.tanh(new_memory) * torch.sigmoid(let_out), new_memory


def test_a_cell_installed_by_setup_py_has_the_gradients_of_the_same_in_python(cell):
    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, state, memory):
            new_state, new_memory, *rest = cell.forward(input, weights, bias, state, memory)
            ctx.save_for_backward(new_memory, *rest, weights)
            return new_state, new_memory

        @staticmethod
        def backward(ctx, grad_state, grad_memory):
            return tuple(cell.backward(grad_state.contiguous(), grad_memory.contiguous(), *ctx.saved_tensors))

    torch.manual_seed(1)
    given = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in [(4, 5), (9, 8), (1, 9), (4, 3), (4, 3)]]
    results = []
    for call in (Cell.apply, in_python):
        state, memory = call(*given)
        results.append([state, memory, *torch.autograd.grad((state * memory.cos()).sum(), given)])
    for got, wanted in zip(*results):
        compare(got, wanted, 1e-9)
    assert torch.autograd.gradcheck(Cell.apply, given)
    assert cell.forward.__doc__.endswith("the cell's step\n") and cell.__file__.endswith(".so")


def test_a_check_in_cpp_is_an_error_with_its_text(cell):
    with pytest.raises(RuntimeError, match="^input must have 2 dimensions, got 3$"):
        cell.forward(torch.zeros(1, 2, 3), *[torch.zeros(1)] * 4)
    with pytest.raises(RuntimeError, match="^input must be floating-point, got Long$"):
        cell.forward(torch.zeros(1, 2, dtype=torch.int64), *[torch.zeros(1)] * 4)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        cell.forward(1, 2, 3, 4, 5)


# --- operators that are registered by name


def test_operators_of_a_library(shapes):
    torch.manual_seed(2)
    a, b = torch.randn(3, 4), torch.randn(3, 4)
    compare(shapes.muladd(a, b, 1.5), a * b + 1.5)
    compare(shapes.muladd(a.t(), b.t(), c=1), a.t() * b.t() + 1)
    compare(shapes.mul.default(a, b), a * b)
    out = torch.empty(3, 4)
    assert shapes.add_out(a, b, out) is None
    compare(out, a + b)
    compare(shapes.scaled(a), 2 * a)
    got = shapes.scaled(a, 3, dtype=torch.float64, dims=[0, 1])
    assert got.dtype == torch.float64
    compare(got, (3 * a).double().flip(0).flip(1))
    one, two = shapes.halves(torch.arange(5))
    assert one.tolist() == [0, 1, 2] and two.tolist() == [3, 4]
    assert shapes.described(a, 3, True, "n", [1, 2]) == "n7!"
    assert shapes.joined([torch.zeros(2), torch.ones(1)], torch.ones(1)).tolist() == [0, 0, 1, 1]
    assert shapes.joined([torch.zeros(2)]).tolist() == [0, 0]


def test_errors_of_operators(shapes):
    a = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"^muladd: a and b must have the same sizes, got \[2\] and \[3\]"):
        shapes.muladd(a, torch.ones(3), 1.0)
    with pytest.raises(RuntimeError, match="^Expected a.dtype.. == at::kFloat to be true, but got false"):
        shapes.muladd(a.double(), a.double(), 1.0)
    if torch.__name__ == "naru" or "naru" in torch.__file__:
        with pytest.raises(TypeError, match="shapes::muladd: argument 2: wanted a float, got str"):
            shapes.muladd(a, a, "x")
        with pytest.raises(TypeError, match="missing a required argument: 'c'"):
            shapes.muladd(a, a)
    with pytest.raises(NotImplementedError, match="shapes::muladd"):
        shapes.muladd(a.to("meta"), a.to("meta"), 1.0)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        shapes.nothing


def test_python_adds_a_derivative_and_shapes_to_an_operator_of_cpp(shapes):
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return torch.ops.shapes.mul(grad, b) if ctx.needs_input_grad[0] else None, torch.ops.shapes.mul(grad, a) if ctx.needs_input_grad[1] else None, None

    def setup_context(ctx, inputs, output):
        a, b, _ = inputs
        ctx.save_for_backward(a, b)

    torch.library.register_autograd("shapes::muladd", backward, setup_context=setup_context)

    @torch.library.register_fake("shapes::muladd")
    def _(a, b, c):
        torch._check(a.shape == b.shape)
        return torch.empty_like(a)

    a, b = torch.randn(6, requires_grad=True), torch.randn(6, requires_grad=True)
    shapes.muladd(a, b, 2.0).sum().backward()
    compare(a.grad, b.detach())
    compare(b.grad, a.detach())
    # A function for a device alone records no history.
    assert not shapes.scaled(a.detach()).requires_grad
    checked = torch.library.opcheck(torch.ops.shapes.muladd.default, (torch.randn(3, requires_grad=True), torch.randn(3), 1.0),
                                    test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
    assert set(checked.values()) == {"SUCCESS"}
    torch.library.opcheck(torch.ops.shapes.add_out.default, (torch.randn(3), torch.randn(3), torch.randn(3)), test_utils="test_schema")


def test_an_operator_with_a_function_for_autograd(shapes):
    x, y = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)
    z = shapes.blend(x, y)
    assert z.requires_grad
    compare(z, 3 * x + x * y)
    z.sum().backward()
    compare(x.grad, 3 + y.detach())
    compare(y.grad, x.detach())
    assert not shapes.blend(x.detach(), y.detach()).requires_grad
    with torch.no_grad():
        assert not shapes.blend(x, y).requires_grad


def test_a_class_of_cpp(shapes):
    pile = torch.classes.shapes.Pile(["a", "b"])
    pile.push("c")
    assert pile.top() == "c" and pile.size() == 3
    other = pile.clone()
    assert pile.pop() == "c" and pile.size() == 2 and other.size() == 3
    pile.merge(other)
    assert [pile.pop() for _ in range(5)] == ["c", "b", "a", "b", "a"]
    with pytest.raises(RuntimeError, match="the pile is empty"):
        pile.pop()
    turned = shapes.turned(other)
    assert turned.pop() == "a"
    again = copy.deepcopy(other)
    again.push("d")
    assert (again.size(), other.size()) == (4, 3)
    if "naru" in torch.__file__:
        assert pickle.loads(pickle.dumps(other)).top() == "c"
        assert repr(other) == "<torch.ScriptObject of shapes.Pile>"
    with pytest.raises(RuntimeError, match="Tried to instantiate class 'shapes.Heap', but it does not exist! Ensure that it is registered via torch::class_"):
        torch.classes.shapes.Heap()


# --- loops over elements


def nms_in_python(boxes, scores, threshold):
    left, kept = torch.argsort(scores, descending=True).tolist(), []
    boxes = boxes.tolist()

    def overlap(a, b):
        w = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
        h = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
        area = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
        return w * h / (sum(area) - w * h)

    while left:
        kept.append(left[0])
        left = [i for i in left[1:] if overlap(boxes[kept[-1]], boxes[i]) <= threshold]
    return kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_boxes_without_overlaps(loops, dtype):
    torch.manual_seed(3)
    corner = torch.rand(50, 2, dtype=dtype)
    boxes, scores = torch.cat([corner, corner + 0.1 + 0.4 * torch.rand(50, 2, dtype=dtype)], 1), torch.rand(50, dtype=dtype)
    for threshold in (0.1, 0.5):
        got = loops.nms(boxes, scores, threshold)
        assert got.dtype == torch.int64 and got.tolist() == nms_in_python(boxes, scores, threshold)
    assert loops.nms(boxes[:0], scores[:0]).shape == (0,)
    with pytest.raises(NotImplementedError, match="\"nms\" not implemented for 'Long'"):
        loops.nms(boxes.long(), scores)
    with pytest.raises(ValueError, match="the same number of rows, got 50 and 49"):
        loops.nms(boxes, scores[1:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_windows_through_accessors_of_any_strides(loops, dtype):
    torch.manual_seed(4)
    x = torch.randn(9, 14).to(dtype)
    for view in (x, x.t(), x[::2, 1::3]):
        wanted = torch.nn.functional.avg_pool2d(view.float()[None].contiguous(), 2, stride=1)[0].to(dtype)
        got = loops.window_means(view, 2)
        assert got.dtype == dtype
        assert torch.equal(got, wanted) or dtype in (torch.float32, torch.float64)
        compare(got.float(), wanted.float(), 1e-6)


def test_a_switch_over_types(loops):
    assert loops.count_above(torch.arange(10), 3).item() == 6
    assert loops.count_above(torch.arange(10, dtype=torch.uint8), 3.7).item() == 6
    assert loops.count_above(torch.tensor([0.5, 2.5]), 1.5).item() == 1
    with pytest.raises(NotImplementedError, match="\"count_above\" not implemented for 'Double'"):
        loops.count_above(torch.zeros(2, dtype=torch.float64), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_sums_of_segments_on_several_threads(loops, dtype):
    torch.manual_seed(5)
    src = (torch.randn(40, 6) * 10).to(dtype)
    ends = torch.tensor([0, 3, 3, 17, 40])
    for given in (src, src.t().contiguous().t()):
        sums, largest = loops.segment_sums(given, ends)
        compare(sums, torch.stack([src[a:b].sum(0).to(dtype) for a, b in zip(ends.tolist(), ends.tolist()[1:])]), 1e-4)
        assert largest.tolist() == [int(src[a:b, 0].argmax()) + a if b > a else -1 for a, b in zip(ends.tolist(), ends.tolist()[1:])]
    assert loops.sum_in_parallel(12345) == 12345 * 12344 // 2


# --- derivatives, a module, NumPy


def test_a_function_with_its_derivative_in_cpp(loops):
    x = (torch.rand(3, 4, dtype=torch.float64) + 0.5).requires_grad_()
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    y, rounded = loops.smooth(x, weight)
    assert not rounded.requires_grad and y.requires_grad
    compare(y, x**3 * weight)
    assert torch.autograd.gradcheck(lambda x, w: loops.smooth(x, w, 2.5)[0], (x, weight))
    (grad,) = torch.autograd.grad(loops.smooth(x, weight.detach(), power=2)[0].sum(), x)
    compare(grad, 2 * x.detach() * weight.detach())
    z = x * 2
    (through,) = torch.autograd.grad(loops.smooth(z, weight)[0].sum(), x)
    compare(through, 24 * x.detach() ** 2 * weight.detach())


def test_a_module_of_cpp_is_trained_there_and_in_python(loops):
    torch.manual_seed(6)
    x = torch.rand(64, 3)
    y = x.sum(1, keepdim=True)
    net = loops.Net(3, 8)
    assert net.named() == ["scale", "first.weight", "first.bias", "last.weight", "last.bias"]
    assert loops.train(net, x, y, 200) < 0.01
    loops.set_all(net, 0.1)
    assert all(float(p.min()) == float(p.max()) == pytest.approx(0.1) for p in net.parameters())
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        loss = (net.forward(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.01


def test_arrays_numbers_and_options(loops):
    assert np.array_equal(loops.doubled_array(np.arange(4)), [0, 2, 4, 6])
    assert loops.made([2, 3]).dtype == torch.float32 and loops.made((2, 3)).shape == (2, 3)
    assert loops.made([1], torch.int64, 3).tolist() == [3] and loops.made([1], torch.int64).dtype == torch.int64
    assert loops.maybe().tolist() == [0.0]
    assert loops.maybe(torch.ones(1), [torch.ones(1)] * 2).tolist() == [3.0]
    assert loops.maybe(torch.ones(1), device=torch.device("cpu")).device.type == "cpu"
    x = torch.ones(1)
    assert loops.maybe(x) is x, "the same tensor is the same object"


def test_errors_of_cpp_are_pythons(loops):
    for how, error, text in [
        ("check", RuntimeError, "the check of 1 and 2.5 failed"), ("value", ValueError, "a value"), ("index", IndexError, "an index"),
        ("type", TypeError, "a type"), ("not implemented", NotImplementedError, "not there"), ("equal", RuntimeError, "1 vs. 2"),
        ("shape", RuntimeError, "shapes cannot be multiplied"), ("standard", IndexError, "beyond"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            loops.fails(how)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loops.fails("warn")
    assert any("be careful" in str(w.message) for w in caught)


# --- sources in strings


def test_sources_in_strings(root):
    source = """
    at::Tensor sin_add(at::Tensor x, at::Tensor y) {
      return x.sin() + y.sin();
    }
    double mean_of(const torch::Tensor& x) { return x.to(torch::kDouble).mean().item<double>(); }
    """
    (root / "inline").mkdir()
    module = cpp_extension.load_inline(
        "inline_extension", [source], functions={"sin_add": 'the sum of "sines"', "mean_of": ""}, extra_cflags=["-O0"], build_directory=str(root / "inline")
    )
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    z = module.sin_add(x, y)
    compare(z, x.sin() + y.sin())
    z.sum().backward()
    compare(x.grad, x.detach().cos())
    assert 'the sum of "sines"' in module.sin_add.__doc__
    assert math.isclose(module.mean_of(torch.arange(4)), 1.5)
