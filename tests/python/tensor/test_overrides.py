"""__torch_function__: overriding calls by other classes, subclasses of Tensor, and modes."""
import pickle
import subprocess
import sys
import naru as torch
import pytest
from naru.overrides import TorchFunctionMode, has_torch_function, is_tensor_like


class Foreign:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, len(args), sorted(kwargs or {})


def test_a_class_that_is_no_tensor_takes_over_functions_methods_operators_and_indices():
    f, x = Foreign(), torch.ones(2)
    assert torch.sin(f) == ("sin", (Foreign,), 1, [])
    assert torch.cat([x, f], dim=0) == ("cat", (Foreign,), 1, ["dim"])
    assert x.add(f)[0] == "add" and (x + f)[0] == "add" and (f + x)[0] == "add" if hasattr(f, "__radd__") else True
    assert (x @ f)[0] == "matmul" and (x == f)[0] == "eq" and x[f][0] == "__getitem__" and torch.nn.functional.linear(x, f)[0] == "linear"
    x[0] = f
    assert x.tolist() == [1, 1]
    assert is_tensor_like(f) and not is_tensor_like(3) and has_torch_function((f, x)) and not has_torch_function((x, 3))


def test_functions_that_look_into_their_arguments_themselves_ask_their_classes_too():
    f, x = Foreign(), torch.ones(2)
    assert torch.broadcast_tensors(f, x) == ("broadcast_tensors", (Foreign,), 2, []) and torch.meshgrid(x, f, indexing="ij")[0] == "meshgrid"
    assert torch.nn.functional.nll_loss(f, x)[0] == "nll_loss" and torch.nn.functional.group_norm(f, 2)[0] == "group_norm"
    assert torch._assert(f, "text")[0] == "_assert" and torch._assert(True, "text") is None
    with pytest.raises(TypeError, match=r"broadcast_tensors\(\): wanted Tensors or a list of them"):
        torch.broadcast_tensors(x, 3)


def test_a_class_that_declines_is_an_error_that_names_it():
    class Declines:
        @classmethod
        def __torch_function__(cls, *args):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found for .*sin' on types that implement __torch_function__: \\['Declines'\\]"):
        torch.sin(Declines())
    with pytest.raises(TypeError, match=r"sin\(\): argument 'input' \(position 1\) must be Tensor, not str"):
        torch.sin("x")


def test_a_subclass_of_tensor_sees_each_call_and_keeps_its_class():
    seen = []

    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Named)
    results = [x + 1, torch.exp(x), x.sum(), x[0], -x, torch.stack([torch.ones(2), x])]
    assert all(type(r) is Named for r in results)
    assert seen == ["add", "exp", "sum", "__getitem__", "neg", "stack"]
    assert type(torch.ones(2) + 1) is torch.Tensor


def test_within_a_mode_each_call_goes_to_it_and_afterwards_none():
    class Note(TorchFunctionMode):
        def __init__(self):
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Note() as outer, Note() as inner:
        torch.ones(2).sin() + 1
    torch.ones(1)
    assert inner.names == outer.names == ["ones", "sin", "add"]


class Kind(torch.Tensor):
    pass


def test_results_of_a_subclass_without_a_rule_of_its_own_are_of_it_and_so_is_its_pickle():
    x = torch.ones(2).as_subclass(Kind)
    x.note = "kept"
    assert [type(r) for r in (x + 1, x.new_ones(3), torch.cat([x, torch.ones(1)]), x.max(0).values)] == [Kind] * 4
    assert type(torch.nn.Parameter(torch.ones(2)) * 2) is torch.Tensor and type(torch.nn.Buffer(torch.ones(2)) * 2) is torch.Tensor
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is Kind and again.note == "kept" and again.tolist() == [1, 1]


def test_where_there_is_a_subclass_calls_of_plain_tensors_run_no_python():
    x, p, made = torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.ones(2).as_subclass(Kind)

    def calls(function):
        seen = []
        sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
        try:
            function()
        finally:
            sys.setprofile(None)
        return seen[1:]  # without the function itself

    assert calls(lambda: (x + p, torch.exp(x), torch.cat([x, p]), x[0], x.sum(), x.add_(1))) == []
    assert "_call" in calls(lambda: made + x) and "_call" in calls(lambda: torch.cat([x, made]))


def test_no_class_of_ours_has_every_call_watched():
    code = (
        "import naru as torch, naru.nn, naru.optim, naru.vision, naru.nested, naru.distributions, naru.nn.attention.bias\n"
        "from naru import overrides\n"
        "torch.nn.Linear(2, 2); torch.nn.LazyLinear(2); assert not overrides._watched['subclasses'], torch.Tensor.__subclasses__()\n"
        "class Mine(torch.Tensor): pass\n"
        "assert overrides._watched['subclasses']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_would_need_a_dispatcher_says_that_there_is_none():
    with pytest.warns(UserWarning, match=r"Dispatched.__torch_dispatch__ is never called.*nearest: __torch_function__") as caught:

        class Dispatched(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise AssertionError("called")

    assert caught[0].filename == __file__ and (torch.ones(2).as_subclass(Dispatched) + 1).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="_make_wrapper_subclass: .*nearest: a class with __torch_function__"):
        torch.Tensor._make_wrapper_subclass(Dispatched, (2, 3))


class Labelled(torch.Tensor):
    asked = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.asked.append(func.__name__)
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls):
            result.label = next((a.label for a in args if isinstance(a, cls) and "label" in a.__dict__), None)
        return result


def test_attributes_that_are_tensors_ask_and_keep_the_class():
    x = torch.arange(6.0).reshape(2, 3).as_subclass(Labelled)
    x.label = "mine"
    for name in ("T", "mT", "H", "mH", "real"):
        Labelled.asked.clear()
        seen = getattr(x, name)
        assert type(seen) is Labelled and seen.label == "mine" and Labelled.asked[0] == "__get__", name
    assert torch.equal(x.T.as_subclass(torch.Tensor), torch.arange(6.0).reshape(2, 3).t())
    assert [type(row) for row in x] == [Labelled] * 2


def test_attributes_of_parameters_and_tensors_are_plain():
    assert type(torch.nn.Parameter(torch.ones(2, 3)).T) is type(torch.ones(2, 3).mT) is torch.Tensor


class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "duck"


@pytest.mark.parametrize("call", [
    lambda d: torch.nn.functional.cross_entropy(d, d), lambda d: torch.nn.functional.nll_loss(d, d), lambda d: torch.lu(d),
    torch.atleast_1d, torch.atleast_2d, torch.atleast_3d, lambda d: torch.atleast_1d(d, torch.ones(1)), lambda d: torch.histogramdd(d, 3),
    torch.nn.init.uniform_, torch.nn.init.normal_, torch.nn.init.ones_, torch.nn.init.kaiming_uniform_, torch.nn.init.kaiming_normal_,
    torch.nn.init.xavier_uniform_, torch.nn.init.orthogonal_, torch.nn.init.trunc_normal_, lambda d: torch.nn.init.constant_(d, 1), torch.t_copy,
    torch.detach_, torch.view_as_real_copy, lambda d: torch.select_copy(d, 0, 0), torch.get_device, torch.celu, torch.hash_tensor, torch.is_distributed,
    lambda d: torch.grid_sampler(d, d, 0, 0, True), lambda d: torch.native_layer_norm(d, [1], None, None, 1e-5), lambda d: torch.smm(d, d),
    lambda d: torch.native_dropout(d, 0.5, True), lambda d: torch.embedding_bag(d, d, d), lambda d: torch.slice_copy(d), lambda d: torch.einsum("i,i", d, d),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:torch.lu is deprecated")
def test_functions_written_in_python_ask_other_classes(call):
    assert call(Duck()) == "duck"
