"""Module: registration, traversal, moving, state, hooks, and PyTorch's error texts."""
import copy
import pickle

import naru as torch
import numpy as np
import pytest
from naru import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.b = nn.ModuleList([nn.Linear(3, 1)])
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.b[0](self.a(x).relu()) * self.scale


NAMES = ["scale", "a.weight", "a.bias", "b.0.weight", "b.0.bias"]


def test_parameters_buffers_and_modules_are_found_by_name():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["seen", "scratch"]
    assert [name for name, _ in net.named_modules()] == ["", "a", "b", "b.0"]
    assert [name for name, _ in net.named_children()] == ["a", "b"]
    assert net.get_parameter("b.0.weight") is net.b[0].weight
    assert net.get_submodule("b.0") is net.b[0]
    assert list(net.state_dict()) == ["scale", "seen", "a.weight", "a.bias", "b.0.weight", "b.0.bias"]


def test_a_shared_parameter_comes_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert len(net.state_dict()) == 4


def test_state_goes_from_one_module_to_another():
    a, b = Net(), Net()
    x = torch.ones(4, 2)
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    np.testing.assert_array_equal(a(x).detach().numpy(), b(x).detach().numpy())


def test_loading_keeps_the_parameters_themselves():
    net = Net()
    before = list(net.parameters())
    net.load_state_dict(Net().state_dict())
    assert all(p is q for p, q in zip(before, net.parameters()))
    assert all(p.requires_grad and p.is_leaf for p in net.parameters())


def test_missing_and_unknown_keys_are_an_error_with_pytorchs_text():
    with pytest.raises(RuntimeError) as error:
        nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 2), "zz": torch.ones(1)})
    assert str(error.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "zz". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([3, 2]) from checkpoint, "
        "the shape in current model is torch.Size([2, 2])."
    )


def test_loading_without_strict_tells_the_keys():
    keys = nn.Linear(2, 2).load_state_dict({"weight": torch.zeros(2, 2), "zz": torch.ones(1)}, strict=False)
    assert keys.missing_keys == ["bias"] and keys.unexpected_keys == ["zz"]


def test_what_is_no_tensor_or_no_dict_is_refused():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        nn.Linear(1, 1).load_state_dict(3)
    with pytest.raises(RuntimeError, match='While copying the parameter named "bias", expected torch.Tensor'):
        nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1), "bias": 3})


def test_a_state_dict_shares_memory_with_the_module():
    layer = nn.Linear(1, 1)
    layer.state_dict()["bias"].fill_(7)
    assert layer.bias.item() == 7


BAD_USE = [
    (lambda: nn.Linear(2, 2).register_buffer("a.b", None), KeyError, "buffer name can't contain \".\""),
    (lambda: nn.Linear(2, 2).register_parameter("", None), KeyError, "parameter name can't be empty string"),
    (lambda: nn.Linear(2, 2).add_module("x", 3), TypeError, "int is not a Module subclass"),
    (lambda: setattr(nn.Linear(2, 2), "weight", torch.ones(2)), TypeError, "cannot assign 'torch.FloatTensor' as parameter 'weight'"),
    (lambda: setattr(nn.Linear(2, 2), "weight", 3), TypeError, "cannot assign 'int' as parameter 'weight'"),
    (lambda: nn.Linear(2, 2).register_buffer("x", 3), TypeError, "cannot assign 'int' object to buffer 'x'"),
    (lambda: nn.Linear(2, 2).register_buffer("weight", None), KeyError, "attribute 'weight' already exists"),
    (lambda: nn.Linear(2, 2).nothing, AttributeError, "'Linear' object has no attribute 'nothing'"),
    (lambda: nn.Module()(1), NotImplementedError, 'is missing the required "forward" function'),
    (lambda: nn.Linear(2, 2).to(torch.int32), TypeError, "nn.Module.to only accepts floating point or complex dtypes"),
    (lambda: nn.Linear(2, 2).train(3), ValueError, "training mode is expected to be boolean"),
    (lambda: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
    (lambda: nn.Sequential(nn.ReLU())[1], IndexError, "index 1 is out of range"),
    (lambda: nn.Linear(2, 2).get_submodule("q.r"), AttributeError, "Linear has no attribute `q`"),
    (lambda: nn.Parameter(3), TypeError, "data must be a Tensor, got int"),
    (lambda: nn.ModuleList(3), TypeError, "ModuleList.extend should be called with an iterable, but got int"),
    (lambda: setattr(nn.Linear(2, 2), "p", nn.Parameter(torch.ones(1)) * 2) or nn.Linear(1, 1).register_parameter("p", torch.ones(1)),
     TypeError, "cannot assign 'torch.FloatTensor' object to parameter 'p'"),
]  # fmt: skip


@pytest.mark.parametrize("use, kind, text", BAD_USE)
def test_bad_use_raises_pytorchs_error(use, kind, text):
    with pytest.raises(kind) as error:
        use()
    assert text in str(error.value.args[0])


def test_assigning_before_init_is_an_error():
    class Forgetful(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="cannot assign module before Module.__init__"):
        Forgetful()


def test_an_attribute_moves_between_registries():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(torch.ones(1))
    assert "x" in net._parameters and "x" not in net.__dict__
    del net.x
    net.x = nn.Linear(1, 1)
    assert "x" in net._modules
    net.x = None
    assert net.x is None


def test_moving_keeps_parameters_and_optimizers_alive(device):
    net = Net()
    before = list(net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.to(device)
    assert all(p is q for p, q in zip(before, net.parameters()))
    assert all(str(p.device) == device for p in net.parameters()) and str(net.seen.device) == device
    net(torch.ones(4, 2, device=device)).sum().backward()
    assert all(str(p.grad.device) == device for p in net.parameters())
    old = net.b[0].bias.item()
    optimizer.step()
    assert net.b[0].bias.item() == pytest.approx(old - 0.1 * 4, rel=1e-5)


def test_gradients_move_with_their_parameters():
    net = nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    net.to("cuda")
    assert str(net.weight.grad.device) == "cuda:0"
    assert net.weight.grad.cpu().tolist() == [[1.0, 1.0]]


def test_casts_change_floating_point_only():
    net = Net()
    net.register_buffer("count", torch.zeros(1, dtype=torch.int64))
    net.double()
    assert net.a.weight.dtype == torch.float64 and net.seen.dtype == torch.float64 and net.count.dtype == torch.int64
    assert net.half().a.weight.dtype == torch.float16
    assert net.to("cuda", torch.float32).a.weight.dtype == torch.float32
    assert net.a.weight.is_leaf and net.a.weight.requires_grad


def test_train_eval_apply_and_requires_grad():
    net = Net()
    assert not net.eval().training and not net.a.training
    assert net.train().b[0].training
    seen = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Linear", "ModuleList", "Net"]
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())


def test_zero_grad_drops_or_zeroes():
    net = nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0.0, 0.0]]
    net.zero_grad()
    assert net.weight.grad is None


def test_forward_hooks_see_and_change():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    calls = []
    net[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    handle = net.register_forward_hook(lambda module, args, output: calls.append(output.shape))
    plain = net[1](torch.nn.functional.linear(torch.ones(3, 2) * 2, net[0].weight, net[0].bias))
    np.testing.assert_array_equal(net(torch.ones(3, 2)).detach().numpy(), plain.detach().numpy())
    assert calls == [(3, 2)]
    handle.remove()
    net(torch.ones(3, 2))
    assert len(calls) == 1
    net.register_forward_hook(lambda module, args, kwargs, output: output + 1, with_kwargs=True)
    np.testing.assert_allclose(net(torch.ones(3, 2)).detach().numpy(), plain.detach().numpy() + 1, rtol=1e-6)


def test_full_backward_hooks_get_gradients_of_inputs_and_outputs():
    layer = nn.Linear(2, 1, bias=False)
    nn.init.constant_(layer.weight, 3.0)
    calls = []
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: calls.append((grad_in[0].tolist(), grad_out[0].tolist())))
    x = torch.ones(1, 2, requires_grad=True)
    (layer(x) * 2).sum().backward()
    assert calls == [([[6.0, 6.0]], [[2.0]])]
    assert x.grad.tolist() == [[6.0, 6.0]] and layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_a_full_backward_hook_runs_without_input_gradients_and_may_replace_them():
    layer = nn.Linear(2, 1)
    calls = []
    handle = layer.register_full_backward_hook(lambda module, grad_in, grad_out: calls.append(grad_in))
    layer(torch.ones(1, 2)).sum().backward()
    assert calls == [(None,)]
    handle.remove()
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: (torch.zeros_like(grad_in[0]),))
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]


def test_copies_are_deep_and_pickles_come_back():
    net = Net()
    twin = copy.deepcopy(net)
    twin.a.weight.data.fill_(0)
    assert net.a.weight.abs().sum().item() > 0 and isinstance(twin.a.weight, nn.Parameter)
    again = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
    assert isinstance(again.weight, nn.Parameter) and again.weight.requires_grad


def test_a_tied_weight_stays_tied_in_a_copy():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    twin = copy.deepcopy(net)
    assert twin[1].weight is twin[0].weight and twin[0].weight is not net[0].weight


def test_containers_behave_as_lists_and_dicts():
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    layers.append(nn.Sigmoid()).insert(0, nn.Identity())
    assert [type(m).__name__ for m in layers] == ["Identity", "ReLU", "Tanh", "Sigmoid"]
    assert len(layers[1:3]) == 2 and isinstance(layers[-1], nn.Sigmoid)
    del layers[0]
    assert list(layers._modules) == ["0", "1", "2"]
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Tanh()
    assert list(table) == ["a", "b"] and "b" in table and isinstance(table.pop("a"), nn.ReLU)
    chain = nn.Sequential(nn.Linear(1, 2)) + nn.Sequential(nn.ReLU())
    assert len(chain) == 2 and len(chain[:1]) == 1 and isinstance(chain[-1], nn.ReLU)
    params = nn.ParameterList([torch.ones(2), torch.zeros(1)])
    params.append(torch.ones(3))
    assert len(list(params.parameters())) == 3 and isinstance(params[0], nn.Parameter)


def test_a_parameter_is_a_tensor_with_identity():
    p = nn.Parameter(torch.ones(2))
    assert isinstance(p, torch.Tensor) and p.requires_grad and p.is_leaf
    assert type(p + 1) is torch.Tensor and type(p.data) is torch.Tensor and type(p.detach()) is torch.Tensor
    assert {p: 1}[p] == 1
    assert repr(p) == str(p) == f"{p}" == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_extra_state_is_saved_and_loaded():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = Counter(), Counter()
    a.count = 5
    b.load_state_dict(a.state_dict())
    assert b.count == 5


def test_a_dict_of_parameters_does_what_dicts_do():
    a, b = (nn.Parameter(torch.full((1,), float(n))) for n in range(2))
    values = nn.ParameterDict({"a": a, "b": b})
    assert list(reversed(values)) == ["b", "a"] and values.setdefault("a", b) is a and values.setdefault("c", 1) == 1
    other = values.copy()
    assert other.popitem() == ("c", 1) and "c" in values and other["a"] is a
    assert list(other | {"z": a, "y": b}) == ["a", "b", "y", "z"] and list({"z": a} | other) == ["z", "a", "b"]
    same = other
    other |= nn.ParameterDict({"d": a})
    assert same is other and other["d"] is a and other.fromkeys(["p", "q"], 3).get("q") == 3
    with pytest.raises(KeyError, match="empty"):
        nn.ParameterDict().popitem()


def test_a_sequence_is_multiplied_in_place():
    model = before = nn.Sequential(nn.ReLU())
    model *= 3
    assert model is before and len(model) == 3 and model[0] is model[2]


def test_parameters_that_leave_the_meta_device_are_new_ones_and_the_others_stay():
    layer = nn.Linear(2, 2, device="meta")
    weight = layer.weight
    assert layer.to_empty(device="cpu").weight is not weight and layer.weight.device.type == "cpu" and isinstance(layer.weight, nn.Parameter)
    weight = layer.weight
    assert layer.double().weight is weight


@pytest.mark.parametrize(
    "layer, error, words",
    [
        (lambda: nn.Softmax(1.5), TypeError, "dim must be an int or None"),
        (lambda: nn.HuberLoss(delta="1"), TypeError, "delta must be a float or int"),
        (lambda: nn.CircularPad2d(1)(torch.rand(2, 2)), ValueError, "expected 3D or 4D input"),
    ],
)
def test_modules_refuse_what_pytorchs_refuse(layer, error, words):
    with pytest.raises(error, match=words):
        layer()


def test_a_copied_parameter_shares_memory_with_what_the_original_shares_it_with():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("base", torch.arange(6.0))
            self.first, self.second = nn.Parameter(self.base[:3]), nn.Parameter(self.base[3:].view(3, 1))

    module = copy.deepcopy(Tied())
    with torch.no_grad():
        module.first.fill_(7.0)
        module.base[3:] = 9.0
    assert module.base.tolist() == [7, 7, 7, 9, 9, 9] and module.second.tolist() == [[9], [9], [9]]
    assert module.first.is_leaf and module.first.requires_grad and isinstance(module.first, nn.Parameter)


def test_assigned_weights_stay_tied():
    def tied():
        pair = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
        pair[1].weight = pair[0].weight
        return pair

    source = tied()
    for saved in (source.state_dict(), {k: v.clone() for k, v in source.state_dict().items()}):
        loaded = tied()
        loaded.load_state_dict(saved, assign=True)
        assert loaded[0].weight is loaded[1].weight and torch.equal(loaded[0].weight, source[0].weight)
        assert len(list(loaded.parameters())) == 1
    # Tensors that are separate in the file can't become one.
    apart = {"0.weight": torch.ones(3, 3), "1.weight": torch.zeros(3, 3)}
    loaded = tied()
    loaded.load_state_dict(apart, assign=True)
    assert loaded[0].weight.sum() == 9 and loaded[1].weight.sum() == 0


def test_hooks_of_all_modules_are_those_that_stand_in_the_module():
    """A program may put another dict in their place (test suites do, to forget them all)."""
    module = nn.modules.module
    seen = []
    before = dict(module._global_forward_pre_hooks)
    try:
        module.register_module_forward_pre_hook(lambda m, args: seen.append("first"))
        module._global_forward_pre_hooks = type(nn.Linear(1, 1)._forward_pre_hooks)()
        nn.Linear(1, 1)(torch.ones(1))
        handle = module.register_module_forward_pre_hook(lambda m, args: seen.append("second"))
        nn.Linear(1, 1)(torch.ones(1))
        handle.remove()
        nn.Linear(1, 1)(torch.ones(1))
        assert seen == ["second"]
    finally:
        module._global_forward_pre_hooks = before


def test_a_complex_module_becomes_real_again():
    layer = nn.Linear(2, 1).to(torch.complex64)
    assert layer.weight.dtype is torch.complex64 and layer.to(torch.float32).weight.dtype is torch.float32
