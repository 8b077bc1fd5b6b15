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
    assert repr(torch.float4_e2m1fn_x2) == "torch.float4_e2m1fn_x2"
    with pytest.raises(TypeError):
        torch.zeros(2, dtype=torch.float4_e2m1fn_x2)


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


def test_weak_references_and_dictionaries_of_tensors():
    from naru.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary

    x, y = torch.ones(2), torch.ones(2)
    notes = WeakTensorKeyDictionary({x: 1})
    notes[y] = 2
    assert (notes[x], notes[y], len(notes)) == (1, 2, 2) and list(notes)[0] is x and WeakTensorKeyDictionary is WeakIdKeyDictionary
    assert WeakIdRef(x) == WeakIdRef(x) and WeakIdRef(x) != WeakIdRef(y)
    ref = TensorWeakRef(x)
    assert ref() is x
    del x
    assert ref() is None and len(notes) == 1 and y in notes
    del notes[y]
    assert not notes


def test_a_modules_tensor_is_exchanged_by_name():
    from naru.nn.utils._named_member_accessor import swap_tensor

    layer, other = torch.nn.Linear(2, 2), torch.zeros(2, 2)
    weight = layer.weight
    assert swap_tensor(layer, "weight", other) is weight and layer.weight is other and swap_tensor(layer, "weight", weight) is other
    assert layer.weight is weight and swap_tensor(layer, "extra", other, allow_missing=True) is None and layer.extra is other
    with pytest.raises(AttributeError, match="Linear has no attribute `nothing`"):
        swap_tensor(layer, "nothing", other)
    with pytest.raises(KeyError):
        swap_tensor(layer, "a.b", other)


def test_blocks_derived_from_pytorchs_base_class_are_decorators():
    from naru.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

    entered = []

    class Block(_DecoratorContextManager):
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *error):
            entered.append("out")

        def clone(self):
            return Block(self.name)

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self):
            entered.append("plain")

        def __exit__(self, *error):
            pass

    assert Block("a")(lambda: 3)() == 3 and Plain(lambda: 4)() == 4 and entered == ["a", "out", "plain"]
    with Plain():
        assert entered[-1] == "plain"


def test_names_that_packages_import():
    from naru.distributions.transforms import _clipped_sigmoid, _InverseTransform
    from naru.nn.modules.module import _global_parameter_registration_hooks
    from naru.utils._pytree import _list_flatten, _list_flatten_with_keys, _list_unflatten, is_structseq_instance, register_constant, tree_flatten, tree_unflatten
    from naru.utils.data._utils.collate import collate_tensor_fn, np_str_obj_array_pattern
    from naru.utils.data._utils.worker import _generate_state

    assert 0 < _clipped_sigmoid(torch.tensor(-1e4)).item() and isinstance(torch.distributions.ExpTransform().inv, _InverseTransform)
    assert collate_tensor_fn([torch.ones(1)] * 2).shape == (2, 1) and np_str_obj_array_pattern.search("<U3") and not np_str_obj_array_pattern.search("<f4")
    assert _generate_state(5, 1) != _generate_state(5, 2) and len(_generate_state(5, 1)) == 4
    handle = torch.nn.modules.module.register_module_parameter_registration_hook(lambda module, name, parameter: None)
    assert handle.id in _global_parameter_registration_hooks
    handle.remove()
    assert not _global_parameter_registration_hooks
    assert torch.Future is torch.futures.Future is torch._C.Future and isinstance(torch.ones(1).untyped_storage(), torch.StorageBase)
    assert isinstance(torch.device, torch.DeviceObjType) and torch.jit._overload(len) is len and torch._utils._get_available_device_type() in (None, *torch._C._ACCELERATORS)
    assert _list_unflatten(_list_flatten([1])[0], None) == [1] and _list_flatten_with_keys([7])[0][0][1] == 7

    class Constant:
        pass

    register_constant(Constant)
    leaves, spec = tree_flatten([Constant(), 1])
    assert leaves == [1] and isinstance(tree_unflatten([2], spec)[0], Constant)
    import time

    assert is_structseq_instance(time.gmtime()) and not is_structseq_instance((1, 2))


def test_a_subclass_may_have_pytorchs_disabled_torch_function_and_arguments_of_its_own():
    class Tagged(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Named(torch.nn.Parameter):
        def __new__(cls, data, name, requires_grad=True):
            made = torch.nn.Parameter.__new__(cls, data, requires_grad)
            made.tag = name
            return made

    assert type(torch.ones(2).as_subclass(Tagged) + 1) is torch.Tensor
    assert Named(torch.ones(1), name="w").tag == "w"
