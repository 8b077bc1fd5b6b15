"""Names that packages use from PyTorch's private modules: foreach functions, checks, custom operators, settings without effect."""
import naru as torch
import pytest
from naru import library
from naru.optim import SGD


def lists():
    return [torch.tensor([1.0, 4.0]), torch.tensor([[9.0]])], [torch.tensor([2.0, 3.0]), torch.tensor([[5.0]])]


@pytest.mark.parametrize("name", ["abs", "sqrt", "neg", "exp", "reciprocal", "sign", "rsqrt", "sigmoid", "clone"])
def test_an_operator_over_a_list_is_the_operator_for_each(name):
    x, _ = lists()
    assert all(torch.equal(a, getattr(b, name)()) for a, b in zip(getattr(torch, f"_foreach_{name}")(x), x))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_two_lists_a_list_and_a_number_and_a_list_of_numbers_are_taken(name):
    x, y = lists()
    over = getattr(torch, f"_foreach_{name}")
    for other, each in ((y, y), (2.0, [2.0, 2.0]), ([2.0, 3.0], [2.0, 3.0])):
        assert all(torch.equal(a, getattr(b, name)(c)) for a, b, c in zip(over(x, other), x, each))
    wanted = over(x, y)
    assert getattr(torch, f"_foreach_{name}_")(x, y) is x and all(torch.equal(a, b) for a, b in zip(x, wanted))


def test_lists_of_several_kinds_of_arguments():
    x, y = lists()
    assert [t.tolist() for t in torch._foreach_addcmul(x, y, y, value=2)] == [[9.0, 22.0], [[59.0]]]
    assert [t.tolist() for t in torch._foreach_addcdiv(x, y, y, [1.0, 2.0])] == [[2.0, 5.0], [[11.0]]]
    assert [t.tolist() for t in torch._foreach_lerp(x, y, 0.5)] == [[1.5, 3.5], [[7.0]]]
    assert [t.tolist() for t in torch._foreach_maximum(x, 2)] == [[2.0, 4.0], [[9.0]]]
    assert [t.tolist() for t in torch._foreach_minimum(x, y)] == [[1.0, 3.0], [[5.0]]]
    assert [t.item() for t in torch._foreach_norm([torch.tensor([3.0, 4.0])])] == [5.0]
    assert [t.tolist() for t in torch._foreach_add(x, y, alpha=2)] == [[5.0, 10.0], [[19.0]]]
    assert [t.tolist() for t in torch._foreach_pow(2.0, [torch.tensor([3.0])])] == [[8.0]]
    torch._foreach_zero_(x)
    torch._foreach_copy_(y, x)
    assert y[1].item() == 0
    with pytest.raises(RuntimeError, match="must have the same number of tensors, got 2 and 1"):
        torch._foreach_add(x, y[:1])
    with pytest.raises(AttributeError, match="has no attribute '_foreach_nothing'"):
        torch._foreach_nothing  # noqa: B018


def test_checks_raise_their_errors_with_the_message():
    torch._check(True)
    for check, kind in ((torch._check, RuntimeError), (torch._check_value, ValueError), (torch._check_index, IndexError), (torch._check_type, TypeError)):
        with pytest.raises(kind, match="^no$"):
            check(False, lambda: "no")
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(1)
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(AssertionError, match="why"):
        torch._assert(False, "why")


def test_an_operator_of_the_programs_own_has_its_derivative():
    @library.custom_op("tests::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x.detach() ** 3

    cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.tests.cube(x=x).backward()
    assert x.grad.item() == 12 and torch.ops.aten.relu(torch.tensor([-1.0])).item() == 0 and "Scalar" in torch.ops.aten.add.overloads()
    with pytest.raises(ValueError, match="form of namespace::name"):
        library.custom_op("cube", lambda x: x, mutates_args=())
    with pytest.raises(AttributeError, match="has no attribute 'square_root'"):
        torch.ops.tests.square_root  # noqa: B018


def test_types_that_no_tensor_has_are_named_and_refused():
    assert repr(torch.float8_e4m3fn) == "torch.float8_e4m3fn" and torch.finfo(torch.float8_e4m3fn).max == 448.0
    with pytest.raises(TypeError):
        torch.zeros(2, dtype=torch.float8_e4m3fn)


def test_an_object_around_an_optimizer_that_never_began_as_one_has_no_hooks():
    inner = SGD([torch.ones(1, requires_grad=True)], lr=1.0)

    class Wrapper(SGD):
        def __init__(self):
            self.calls = 0

        def step(self, closure=None):
            self.calls += 1
            inner.step()

    wrapper = Wrapper()
    wrapper.step()
    assert wrapper.calls == 1


def test_a_device_is_compared_with_anything():
    assert torch.device("cpu") != None and not torch.device("cpu") == None and torch.device("cpu") != "x"  # noqa: E711


def test_settings_of_compilers_that_are_not_there_are_taken_and_others_are_not():
    assert torch._C._jit_set_profiling_mode(False) is None and torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert not hasattr(torch._C, "_no_such_setting")


def test_names_in_a_file_that_are_not_data_are_listed(tmp_path):
    torch.save({"layer": torch.nn.Linear(1, 1), "x": torch.ones(1)}, tmp_path / "a.pt")
    assert "torch.nn.modules.linear.Linear" in torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "a.pt")


def test_an_export_without_the_package_onnx_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match="needs the package onnx; install it: pip install onnx"):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1, 1),))
    assert not torch.onnx.is_in_onnx_export()
