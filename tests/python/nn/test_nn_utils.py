"""torch.nn.utils: parametrizations, pruning, fusion, calls with substituted parameters; global module hooks."""
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import naru as torch
import pytest
from naru import nn
from naru.nn.modules import module as hooks
from naru.nn.utils import parametrizations, parametrize, prune


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Rank1(nn.Module):
    def forward(self, a, b):
        return a.unsqueeze(-1) * b

    def right_inverse(self, x):
        return x[:, 0].clone(), torch.ones(x.shape[1])


def test_a_parametrized_tensor_is_computed_from_its_original_and_can_be_assigned():
    layer = nn.Linear(3, 3)
    original = layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert torch.equal(layer.weight, layer.weight.mT) and layer.parametrizations.weight.original is original
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"] and type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    layer(torch.ones(2, 3)).sum().backward()
    assert original.grad[2, 0] == 0 and original.grad[0, 2] != 0
    layer.weight = torch.eye(3) * 2
    assert torch.equal(layer.weight, torch.eye(3) * 2) and layer.parametrizations.weight.original is original
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        twin.parametrizations.weight.original.zero_()
    assert layer.weight[0, 0] == 2 and twin.weight[0, 0] == 0
    with pytest.raises(RuntimeError, match="Serialization of parametrized modules is only supported through state_dict"):
        pickle.dumps(layer)


def test_removing_a_parametrization_gives_back_the_class_and_the_parameter():
    for leave in (True, False):
        layer = nn.Linear(3, 3)
        before, original = layer.weight.detach().clone(), layer.weight
        parametrize.register_parametrization(layer, "weight", Symmetric())
        now = layer.weight.detach().clone()
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
        assert type(layer) is nn.Linear and layer.weight is original and torch.equal(layer.weight, now if leave else before.triu())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


def test_several_originals_several_parametrizations_and_the_cache():
    class Doubled(nn.Module):
        calls = 0

        def forward(self, x):
            Doubled.calls += 1
            return 2 * x

    layer = parametrize.register_parametrization(nn.Linear(2, 3), "weight", Rank1())
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    single = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert torch.equal(layer.weight, 2 * single)
    with pytest.raises(ValueError, match=r"Cannot leave unparametrized \(`leave_parametrized=False`\) a tensor that is parametrized in terms of a sequence"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    before = Doubled.calls
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert Doubled.calls == before + 1 and layer.weight is not layer.weight
    with parametrize.cached(), ThreadPoolExecutor(1) as pool:  # another thread's blocks do not affect it
        kept = layer.weight
        assert pool.submit(lambda: layer.weight is layer.weight).result() is False

        def another_block():
            with parametrize.cached():
                return layer.weight

        assert pool.submit(another_block).result() is not kept and layer.weight is kept
    other = nn.Linear(2, 3)
    parametrize.transfer_parametrizations_and_params(layer, other)
    assert torch.equal(other.weight, layer.weight) and parametrize.type_before_parametrizations(other) is nn.Linear
    assert parametrize.is_parametrized(other, "weight") and not parametrize.is_parametrized(other, "bias")


@pytest.mark.parametrize("forward, text", [
    (lambda x: x.double(), "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled."),
    (lambda x: x[:1], "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled."),
    (lambda x: [x], "A parametrization must return a tensor. Got list."),
])  # fmt: skip
def test_a_parametrization_keeps_type_and_shape(forward, text):
    module = nn.Module()
    module.forward = forward
    with pytest.raises(ValueError) as raised:
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", module)
    assert str(raised.value).startswith(text)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'gain'"):
        parametrize.register_parametrization(nn.Linear(2, 2), "gain", module)


@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_orthogonal_weights_stay_orthogonal_through_training(kind, shape):
    torch.manual_seed(0)
    layer = parametrizations.orthogonal(nn.Linear(*reversed(shape), dtype=torch.float64), orthogonal_map=kind)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.3)
    before = layer.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        (layer(torch.ones(2, shape[1], dtype=torch.float64)) ** 2 + layer.weight[0, 0]).sum().backward()
        optimizer.step()
    w = layer.weight.detach()
    small = w if shape[0] <= shape[1] else w.mT
    assert torch.allclose(small @ small.mT, torch.eye(min(shape), dtype=torch.float64)) and not torch.allclose(w, before)
    target = nn.init.orthogonal_(torch.empty(shape, dtype=torch.float64))
    layer.weight = target
    assert torch.allclose(layer.weight, target)


def test_orthogonal_refuses_vectors_and_other_maps():
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices. Got a tensor of 1 dimensions."):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match='orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: qr'):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr")
    layer = parametrizations.orthogonal(nn.Linear(2, 2), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="It is not possible to assign to the matrix exponential"):
        layer.weight = torch.eye(2)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm`")
def test_weight_norm_splits_length_and_direction_and_older_states_load(dim):
    conv = nn.Conv1d(2, 3, 2)
    weight = conv.weight.detach().clone()
    old = nn.utils.weight_norm(copy.deepcopy(conv), dim=dim)
    new = parametrizations.weight_norm(conv, dim=dim)
    assert torch.allclose(new.weight, weight) and torch.allclose(old.weight, weight)
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    with torch.no_grad():
        old.weight_g.mul_(3)
    x = torch.ones(1, 2, 4)
    assert torch.allclose(old(x) - old.bias[:, None], 3 * (new(x) - new.bias[:, None]), atol=1e-5)
    new.load_state_dict(old.state_dict())
    assert torch.allclose(new.weight, 3 * weight)
    nn.utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["bias", "weight"] and torch.allclose(old.weight, 3 * weight)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in"):
        nn.utils.remove_weight_norm(old)


@pytest.mark.parametrize("make", [nn.utils.spectral_norm, parametrizations.spectral_norm])
@pytest.mark.parametrize("layer", [lambda: nn.Linear(4, 3), lambda: nn.ConvTranspose2d(2, 3, 2)])
def test_spectral_norm_divides_by_the_greatest_singular_value(make, layer):
    torch.manual_seed(1)
    module = make(layer(), n_power_iterations=30)
    x = torch.ones(1, 2, 3, 3) if isinstance(module, nn.ConvTranspose2d) else torch.ones(1, 4)
    module(x)
    w = module.weight.detach()
    matrix = w.transpose(0, 1).flatten(1) if w.dim() == 4 else w
    assert torch.linalg.matrix_norm(matrix, 2).item() == pytest.approx(1, abs=1e-4)
    twin = make(layer())
    twin.load_state_dict(module.state_dict())
    assert torch.allclose(twin.eval()(x), module.eval()(x))
    (module(x) + module(x)).sum().backward()
    if make is nn.utils.spectral_norm:
        nn.utils.remove_spectral_norm(module)
        assert list(module.state_dict()) == ["bias", "weight"] and not module._state_dict_hooks and torch.allclose(module.weight, w, atol=1e-5)
    with pytest.raises(ValueError, match="Expected n_power_iterations to be positive, but got n_power_iterations=0"):
        make(layer(), n_power_iterations=0)


def test_pruning_masks_what_matters_least_and_goes_on_from_there():
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -4.0, 3.0, -2.0], [5.0, 6.0, -7.0, 8.0]]))
    prune.l1_unstructured(layer, "weight", 2)
    assert layer.weight.tolist() == [[0, -4, 3, 0], [5, 6, -7, 8]] and list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    prune.l1_unstructured(layer, "weight", 0.5)  # half of the six that are left
    assert layer.weight.tolist() == [[0, 0, 0, 0], [0, 6, -7, 8]]
    prune.ln_structured(layer, "weight", 1, n=2, dim=1)
    assert layer.weight.tolist() == [[0, 0, 0, 0], [0, 0, -7, 8]] and isinstance(next(iter(layer._forward_pre_hooks.values())), prune.PruningContainer)
    layer(torch.ones(1, 4)).sum().backward()
    assert layer.weight_orig.grad.tolist() == [[0, 0, 0, 0], [0, 0, 1, 1]] and prune.is_pruned(layer)
    prune.remove(layer, "weight")
    assert list(layer.state_dict()) == ["bias", "weight"] and layer.weight.tolist()[1] == [0, 0, -7, 8] and not prune.is_pruned(layer)
    with pytest.raises(ValueError, match="Parameter 'weight' of module .* has to be pruned before pruning can be removed"):
        prune.remove(layer, "weight")


def test_pruning_at_random_by_scores_by_masks_and_over_several_modules():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5))
    assert (prune.random_unstructured(net[0], "weight", 0.25).weight == 0).sum() == 3
    assert (prune.random_structured(net[1], "weight", 2, dim=0).weight.abs().sum(1) == 0).sum() == 2
    prune.custom_from_mask(net[1], "bias", torch.tensor([1, 0, 1, 0, 1]))
    assert (net[1].bias == 0).tolist() == [False, True, False, True, False]
    scored = prune.l1_unstructured(nn.Linear(2, 1), "weight", 1, importance_scores=torch.tensor([[2.0, 1.0]]))
    assert scored.weight_mask.tolist() == [[1, 0]] and torch.equal(prune.identity(nn.Linear(2, 1), "weight").weight_mask, torch.ones(1, 2))
    fresh = nn.Sequential(nn.Linear(10, 4), nn.Linear(4, 1))
    prune.global_unstructured([(fresh[0], "weight"), (fresh[1], "weight")], prune.L1Unstructured, amount=10)
    assert sum(int((mask == 0).sum()) for mask in fresh.buffers()) == 10
    whole = torch.cat([fresh[0].weight_orig.flatten(), fresh[1].weight_orig.flatten()]).abs()
    kept = torch.cat([fresh[0].weight_mask.flatten(), fresh[1].weight_mask.flatten()]) == 1
    assert whole[kept].min() >= whole[~kept].max()


@pytest.mark.parametrize("call, kind, text", [
    (lambda m: prune.l1_unstructured(m, "weight", "2"), TypeError, "Invalid type for amount: 2. Must be int or float."),
    (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount=1.5 should either be a float in the range [0, 1] or a non-negative integer"),
    (lambda m: prune.l1_unstructured(m, "weight", 50), ValueError, "amount=50 should be smaller than the number of parameters to prune=6"),
    (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape torch.Size([2]) with 1 dims"),
    (lambda m: prune.ln_structured(m, "weight", 1, 2, 5), IndexError, "Invalid index 5 for tensor of size torch.Size([2, 3])"),
])  # fmt: skip
def test_a_pruning_that_fails_leaves_the_module_as_it_was(call, kind, text):
    module = nn.Linear(3, 2)
    with pytest.raises(kind) as raised:
        call(module)
    assert str(raised.value) == text and sorted(module.state_dict()) == ["bias", "weight"] and not module._forward_pre_hooks


def test_batch_norms_are_taken_into_the_layer_before_them():
    torch.manual_seed(0)
    for layer, norm, x in (
        (nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), torch.randn(4, 2, 5, 5)), (nn.ConvTranspose2d(2, 3, 3), nn.BatchNorm2d(3, affine=False), torch.randn(4, 2, 5, 5)),
        (nn.Linear(2, 3), nn.BatchNorm1d(3), torch.randn(4, 2)),
    ):  # fmt: skip
        both = nn.Sequential(layer, norm)
        both(x)
        with pytest.raises(AssertionError, match="Fusion only for eval!"):
            nn.utils.fuse_conv_bn_eval(layer, norm)
        both.eval()
        fused = nn.utils.fuse_linear_bn_eval(layer, norm) if isinstance(layer, nn.Linear) else nn.utils.fuse_conv_bn_eval(layer, norm, isinstance(layer, nn.ConvTranspose2d))
        assert torch.allclose(fused(x), both(x), atol=1e-5) and isinstance(fused.bias, nn.Parameter) and fused is not layer


def test_a_module_is_called_with_other_tensors_than_its_own():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = {**{name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}, **{name: b.clone() for name, b in net.named_buffers()}}
    own = copy.deepcopy(net.state_dict())
    out = torch.func.functional_call(net, state, torch.randn(4, 2))
    out.square().sum().backward()
    assert state["0.weight"].grad is not None and net[0].weight.grad is None
    assert state["1.num_batches_tracked"] == 1 and all(torch.equal(value, own[name]) for name, value in net.state_dict().items())
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Sequential:\n\tUnexpected key\(s\): 'x'.\n\tMissing key\(s\): '0.bias', '0.weight'"):
        torch.func.functional_call(net, {"x": torch.ones(1)}, torch.randn(4, 2), strict=True)
    with pytest.raises(ValueError, match=r"\['0.bias'\] appeared in multiple dictionaries"):
        torch.func.functional_call(net, ({"0.bias": torch.ones(2)}, {"0.bias": torch.ones(2)}), torch.randn(4, 2))


def test_tied_weights_are_replaced_together_unless_asked_not_to_be():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(1))
            self.b = self.a

        def forward(self, x):
            return x * self.a + 10 * self.b

    model, x = Tied(), torch.ones(1)
    assert torch.func.functional_call(model, {"a": torch.zeros(1)}, x).item() == 0
    assert torch.func.functional_call(model, {"a": torch.zeros(1)}, x, tie_weights=False).item() == 10
    with pytest.raises(ValueError, match=r"functional_call got multiple values for keys \['a', 'b'\], which are tied"):
        torch.func.functional_call(model, {"a": torch.zeros(1), "b": torch.ones(1)}, x)
    with pytest.warns(FutureWarning, match="is deprecated as of PyTorch 2.0"):
        assert nn.utils.stateless.functional_call(model, {"a": torch.zeros(1)}, x).item() == 0
    params, buffers = torch.func.stack_module_state([nn.BatchNorm1d(2) for _ in range(3)])
    assert params["weight"].shape == (3, 2) and params["weight"].is_leaf and params["weight"].requires_grad and buffers["running_var"].shape == (3, 2)


def test_weights_of_convolutions_are_laid_out_with_channels_last():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Linear(2, 2))
    weight = net[0].weight
    nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
    assert net[0].weight is weight and weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


def test_hooks_of_all_modules_run_before_those_of_one_and_are_removed():
    layer, order = nn.Linear(1, 1), []
    layer.register_forward_hook(lambda m, x, y: order.append("own"))
    handles = [
        hooks.register_module_forward_pre_hook(lambda m, x: order.append("pre")), hooks.register_module_forward_hook(lambda m, x, k, y: order.append("all"), with_kwargs=True),
        hooks.register_module_full_backward_pre_hook(lambda m, g: order.append("backward pre")), hooks.register_module_full_backward_hook(lambda m, i, o: order.append("backward")),
    ]  # fmt: skip
    layer(torch.ones(1, 1, requires_grad=True)).sum().backward()
    assert order == ["pre", "all", "own", "backward pre", "backward"]
    for handle in handles:
        handle.remove()
    order.clear()
    nn.Linear(1, 1)(torch.ones(1, 1, requires_grad=True)).sum().backward()
    assert order == [] and not hooks._global_call_hooks


def test_hooks_see_and_replace_what_is_registered():
    seen = []
    with (
        hooks.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)),
        hooks.register_module_buffer_registration_hook(lambda m, name, b: b + 1 if name == "extra" else None),
        hooks.register_module_module_registration_hook(lambda m, name, child: nn.Identity() if name == "inner" else None),
    ):
        layer = nn.Linear(2, 2)
        layer.register_buffer("extra", torch.zeros(1))
        layer.inner = nn.ReLU()
        layer.add_module("kept", nn.ReLU())
    assert seen == ["weight", "bias"] and layer.extra.item() == 1 and isinstance(layer.inner, nn.Identity) and isinstance(layer.kept, nn.ReLU)
    layer.inner = nn.ReLU()
    assert isinstance(layer.inner, nn.ReLU)


def test_a_submodule_is_put_at_a_path():
    net = nn.Sequential(nn.Sequential(nn.ReLU()))
    net.set_submodule("0.0", nn.Tanh())
    assert isinstance(net[0][0], nn.Tanh)
    for arguments, kind, text in ((("", nn.ReLU()), ValueError, "Cannot set the submodule without a target name!"), (("0.1", 3), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
                                  (("0.7", nn.ReLU(), True), AttributeError, "Sequential has no attribute `7`"), (("0.training", nn.ReLU()), AttributeError, "`training` is not an nn.Module")):  # fmt: skip
        with pytest.raises(kind) as raised:
            net.set_submodule(*arguments)
        assert str(raised.value) == text


def test_names_are_where_programs_import_them_from():
    from naru.nn.common_types import _size_2_t  # noqa: F401
    from naru.nn.modules.instancenorm import InstanceNorm2d
    from naru.nn.modules.padding import ZeroPad2d
    from naru.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present

    assert InstanceNorm2d is nn.InstanceNorm2d and ZeroPad2d is nn.ZeroPad2d and _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2)
    state = nn.Sequential(nn.Linear(1, 1)).state_dict()
    consume_prefix_in_state_dict_if_present(state, "0.")
    assert list(state) == ["weight", "bias"] and "" in state._metadata and "0" not in state._metadata


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_are_functions(n):
    torch.manual_seed(0)
    x, w = torch.randn(2, 4, *[5] * n, requires_grad=True), torch.randn(6, 2, *[3] * n, requires_grad=True)
    options = {"stride": 2, "padding": 1, "groups": 2}
    y = getattr(torch.nn.functional, f"conv{n}d")(x, w, **options)
    g = torch.randn(y.shape)
    by_x, by_w = torch.autograd.grad(y, (x, w), g)
    assert torch.equal(getattr(nn.grad, f"conv{n}d_input")(x.shape, w.detach(), g, **options), by_x)
    assert torch.equal(getattr(nn.grad, f"conv{n}d_weight")(x.detach(), w.shape, g, **options), by_w)


def test_hooks_of_states_see_and_change_them_and_return_nothing():
    layer, order = nn.Linear(1, 1), []
    layer.register_state_dict_pre_hook(lambda m, prefix, keep: order.append(("save", prefix, keep)))
    layer.register_state_dict_post_hook(lambda m, state, prefix, metadata: state.update({prefix + "more": 1}))
    layer.register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: state.pop(prefix + "more"))
    layer.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    net = nn.Sequential(layer)
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "0.more"] and order == [("save", "0.", False)]
    del state["0.bias"]
    assert net.load_state_dict(state).missing_keys == []
    for register, kind, text in ((layer.register_state_dict_post_hook, RuntimeError, "state_dict post-hook must return None"), (layer.register_load_state_dict_post_hook, AssertionError, "Hooks registered with")):
        handle = register(lambda *args: 3)
        with pytest.raises(kind, match=text):
            net.load_state_dict(net.state_dict())
        handle.remove()


def test_batch_norms_of_one_process_are_synchronized_as_they_are():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=0.3), nn.Sequential(nn.BatchNorm1d(4, affine=False)))
    x = torch.randn(5, 3)
    twin = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(net))
    assert isinstance(twin[1], nn.SyncBatchNorm) and isinstance(twin[2][0], nn.SyncBatchNorm) and twin[1].momentum == 0.3
    assert torch.equal(twin(x), net(x)) and list(twin.state_dict()) == list(net.state_dict())
    assert torch.equal(twin[1].running_mean, net[1].running_mean)
    with pytest.raises(ValueError, match=r"expected at least 2D input \(got 1D input\)"):
        twin[1](torch.ones(4))


class Shifts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2, bias=False)
        self.shift, self.count = torch.ones(2), 3

    def forward(self, x):
        return self.inner(x) * 0 + self.shift + getattr(self, "more", 0)


@pytest.mark.parametrize("given", [torch.tensor([5.0, 6.0]), torch.nn.Parameter(torch.tensor([5.0, 6.0]))], ids=["tensor", "parameter"])
def test_functional_call_replaces_tensors_that_are_plain_attributes_too(given):
    module, x = Shifts(), torch.ones(2)
    shift, names = module.shift, list(dict(module.named_parameters()))
    assert torch.func.functional_call(module, {"shift": given}, x).tolist() == [5.0, 6.0]
    assert torch.func.functional_call(module, {"more": given}, x).tolist() == [6.0, 7.0]
    assert module.shift is shift and not hasattr(module, "more") and list(dict(module.named_parameters())) == names


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [("count", TypeError, "attribute `count`: 3 is not"), ("inner", TypeError, "attribute `inner`"), ("none.weight", AttributeError, "Shifts has no attribute `none`"),
     ("shift.weight", TypeError, "submodule `shift`"), ("", KeyError, "can't be empty")],
)  # fmt: skip
def test_functional_call_names_what_it_can_not_replace(name, error, words):
    module = Shifts()
    before = dict(vars(module))
    with pytest.raises(error) as info:
        torch.func.functional_call(module, {"inner.weight": torch.zeros(2, 2), name: torch.ones(2)}, torch.ones(2))
    assert words in info.value.args[0] and vars(module) == before
