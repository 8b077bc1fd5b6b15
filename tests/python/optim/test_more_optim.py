"""Optimizers of matrices and over all parameters, optimizer hooks, and averaged models, compared with values recorded from PyTorch."""
import copy
import pickle

import naru as torch
import numpy as np
import pytest
from naru import nn, optim

F64 = torch.float64


def matrix_steps(name, p=None, optimizer=None, steps=range(3), **options):
    if p is None:
        p = nn.Parameter(torch.arange(6.0, dtype=F64).reshape(2, 3) / 4 - 0.5)
        optimizer = getattr(optim, name)([p], lr=0.1, **options)
    for t in steps:
        p.grad = torch.sin(torch.arange(6.0, dtype=F64).reshape(2, 3) * (t + 1)).to(p.device)
        optimizer.step()
    return p, optimizer


@pytest.mark.parametrize("name, options, want, tolerance", [
    ("Adafactor", {}, [-0.5, -0.3515403622942111, 0.020225477238949817, 0.18180991380572764, 0.5255430944212165, 0.7841713107748546], 1e-9),
    # Orthogonalization in bfloat16: products may round differently.
    ("Muon", {}, [-0.59445323046875, -0.4610738515625, -0.006936699218750005, 0.1016293203125, 0.5073514140625, 0.9085665156249998], 4e-3),
    ("Muon", {"adjust_lr_fn": "match_rms_adamw", "nesterov": False}, [-0.5082041506600428, -0.32603760999855186, -0.0017717289792914862, 0.20939948184452759, 0.48343489148532914, 0.8180176959278446], 4e-3),
    ("Muon", {"adjust_lr_fn": "spectral_unclamped"}, [-0.5743956222103801, -0.4209785193615612, -0.005663791195033406, 0.12749328856276704, 0.5032772869220824, 0.8753813415700362], 4e-3),
])  # fmt: skip
def test_matrices_end_where_pytorchs_end(name, options, want, tolerance):
    p, optimizer = matrix_steps(name, **options)
    np.testing.assert_allclose(p.detach().numpy().ravel(), want, atol=tolerance)
    half, first = matrix_steps(name, steps=range(1), **options)
    twin = nn.Parameter(half.detach().clone())
    other = getattr(optim, name)([twin], lr=5.0)
    other.load_state_dict(copy.deepcopy(first.state_dict()))
    matrix_steps(name, twin, other, range(1, 3))
    np.testing.assert_array_equal(twin.detach().numpy(), p.detach().numpy())


def test_adafactor_keeps_a_row_and_a_column_of_each_matrix_and_muon_a_buffer():
    p, optimizer = matrix_steps("Adafactor", steps=range(1))
    state = optimizer.state[p]
    assert {name: tuple(t.shape) for name, t in state.items()} == {"step": (), "row_var": (2, 1), "col_var": (1, 3)}
    p, optimizer = matrix_steps("Muon", steps=range(1))
    assert list(optimizer.state[p]) == ["momentum_buffer"]
    with pytest.raises(ValueError, match="Muon only supports 2D parameters whereas we found a parameter with size"):
        optim.Muon([nn.Parameter(torch.ones(3))])
    with pytest.raises(ValueError, match="Adjust learning rate function half is not supported"):
        optim.Muon([p], adjust_lr_fn="half")


@pytest.mark.parametrize("name, options, text", [
    ("RAdam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"), ("Rprop", {"etas": (1.5, 2.0)}, "Invalid eta values: 1.5, 2.0"), ("ASGD", {"lambd": -1}, "Invalid lambd value: -1"),
    ("Adafactor", {"d": 0.5}, "Clipping threshold d should be >= 1 but is: 0.5"), ("Muon", {"momentum": -0.5}, "momentum should be >= 0 but is: -0.5"), ("LBFGS", {"lr": -1}, "Invalid learning rate: -1"),
])  # fmt: skip
def test_options_out_of_range_are_refused_in_pytorchs_words(name, options, text):
    with pytest.raises(ValueError) as raised:
        getattr(optim, name)([nn.Parameter(torch.ones(2, 2))], **options)
    assert str(raised.value) == text


def rosenbrock(search, **options):
    p = nn.Parameter(torch.tensor([-1.5, 2.0], dtype=F64))
    optimizer = optim.LBFGS([p], line_search_fn=search, **options)
    calls = []

    def closure():
        optimizer.zero_grad()
        calls.append(1)
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    return p, optimizer, closure, calls


@pytest.mark.parametrize("search, options, want, calls, losses", [
    ("strong_wolfe", {}, [0.9999979943196398, 0.9999973438921637], 53, [12.5, 1.3070983150500495, 1.884048137837783e-07]),
    ("strong_wolfe", {"max_iter": 5, "history_size": 2}, [-0.6036219241637258, 0.3238455815645158], 18, [12.5, 5.851899347985803, 3.8891949916316007]),
    (None, {"lr": 1e-3, "max_iter": 6}, [-1.498020386445102, 2.0006944103472692], 18, [12.5, 12.309352545641017, 12.23578912598343]),
])  # fmt: skip
def test_lbfgs_goes_pytorchs_way_through_a_valley(search, options, want, calls, losses):
    p, optimizer, closure, made = rosenbrock(search, **options)
    got = [optimizer.step(closure).item() for _ in range(3)]
    np.testing.assert_allclose(p.detach().numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(got, losses, rtol=1e-5)
    state = optimizer.state_dict()["state"][0]
    assert len(made) == calls == state["func_evals"] and {"d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss"} < set(state)


def test_lbfgs_goes_on_from_a_state_dict_and_takes_one_group_only():
    p, optimizer, closure, _ = rosenbrock("strong_wolfe", max_iter=4)
    optimizer.step(closure)
    q, other, closure_q, _ = rosenbrock("strong_wolfe", max_iter=4)
    with torch.no_grad():
        q.copy_(p)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.step(closure), other.step(closure_q)
    assert p.tolist() == q.tolist()
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [p]}, {"params": [nn.Parameter(torch.ones(1))]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([p], line_search_fn="armijo").step(closure)


def test_hooks_of_all_optimizers_run_around_those_of_one():
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    sgd, order = optim.SGD([p], lr=0.1), []
    handles = [
        optim.optimizer.register_optimizer_step_pre_hook(lambda o, a, k: order.append("all before")), sgd.register_step_pre_hook(lambda o, a, k: order.append("before")),
        sgd.register_step_post_hook(lambda o, a, k: order.append("after")), optim.optimizer.register_optimizer_step_post_hook(lambda o, a, k: order.append("all after")),
    ]  # fmt: skip
    sgd.step()
    assert order == ["all before", "before", "after", "all after"]
    for handle in handles:
        handle.remove()
    sgd.step()
    assert len(order) == 4


def test_hooks_see_and_replace_what_is_saved_and_loaded():
    p = nn.Parameter(torch.ones(1))
    adam, order = optim.Adam([p]), []
    adam.register_state_dict_pre_hook(lambda o: order.append("pre"))
    adam.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    adam.register_state_dict_post_hook(lambda o, state: order.append("more" in state), prepend=True)
    state = adam.state_dict()
    assert state["more"] == 1 and order == ["pre", False]
    adam.register_load_state_dict_pre_hook(lambda o, given: {**given, "param_groups": [{**given["param_groups"][0], "lr": 0.5}]})
    adam.register_load_state_dict_post_hook(lambda o: order.append(o.param_groups[0]["lr"]))
    adam.load_state_dict(state)
    assert order[-1] == 0.5


def test_averages_of_a_model_are_means_or_decay_and_buffers_follow():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    swa = optim.swa_utils
    mean, ema = swa.AveragedModel(model), swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5))
    seen = []
    for _ in range(3):
        with torch.no_grad():
            model[0].weight.add_(1)
        model(torch.randn(4, 2))
        seen.append(model[0].weight.detach().clone())
        mean.update_parameters(model), ema.update_parameters(model)
    assert torch.allclose(mean.module[0].weight, sum(seen) / 3) and torch.allclose(ema.module[0].weight, (seen[0] / 2 + seen[1] / 2) / 2 + seen[2] / 2)
    assert mean.n_averaged.item() == 3 and torch.equal(mean.module[1].running_mean, model[1].running_mean)
    assert "n_averaged" in mean.state_dict() and "module.0.weight" in mean.state_dict()
    with pytest.raises(ValueError, match="Invalid decay value 2.0 provided"):
        swa.get_ema_avg_fn(2.0)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa.AveragedModel(model, avg_fn=swa.get_swa_avg_fn(), multi_avg_fn=swa.get_swa_multi_avg_fn())


def test_update_bn_computes_the_statistics_of_all_batches_and_leaves_the_mode():
    bn = nn.BatchNorm1d(2).eval()
    batches = [torch.arange(8.0).reshape(4, 2) * k for k in (1, 3)]
    optim.swa_utils.update_bn([(b, None) for b in batches], bn)
    want = sum(b.mean(0) for b in batches) / 2
    assert torch.allclose(bn.running_mean, want) and bn.momentum == 0.1 and not bn.training


@pytest.mark.parametrize("strategy", ["linear", "cos"])
def test_swalr_anneals_to_its_rate_and_stays_there(strategy):
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    schedule = optim.swa_utils.SWALR(optimizer, swa_lr=1.0, anneal_epochs=4, anneal_strategy=strategy)
    rates = []
    for _ in range(6):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates[3:] == pytest.approx([1.0] * 3) and all(a < b for a, b in zip([0.1, *rates[:3]], rates[:4]))
    share = [(rate - 0.1) / 0.9 for rate in rates[:4]]
    assert share == pytest.approx([0.25, 0.5, 0.75, 1.0] if strategy == "linear" else [(1 - np.cos(np.pi * t / 4)) / 2 for t in range(1, 5)])


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}), ("Adamax", {}),
        ("NAdam", {}), ("RAdam", {}), ("RMSprop", {"centered": True, "momentum": 0.5}), ("Rprop", {}), ("ASGD", {}), ("Adadelta", {}),
        ("Adagrad", {"initial_accumulator_value": 0.1}), ("LBFGS", {}), ("LBFGS", {"line_search_fn": "strong_wolfe"}),
    ],
)  # fmt: skip
def test_complex_parameters_are_pairs_of_real_ones(name, options):
    a = torch.complex(torch.arange(6.0).reshape(2, 3) - 2, torch.arange(6.0).flip(0).reshape(2, 3) / 3)
    start = torch.complex(torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(1, 0, 6).reshape(2, 3))
    z, pairs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(torch.view_as_real(start).clone())

    def trained(p, number):
        other = torch.nn.Parameter(torch.ones(3))
        optimizer = getattr(torch.optim, name)([p, other], lr=0.1, **options)

        def closure():
            optimizer.zero_grad()
            loss = ((number(p) * a).sum(0) - other).abs().square().sum()
            loss.backward()
            return loss

        for _ in range(2):
            closure()
            optimizer.step(closure)
        again = getattr(torch.optim, name)([p, other], lr=0.1, **options)
        again.load_state_dict(optimizer.state_dict())
        optimizer = again
        closure()
        optimizer.step(closure)
        return optimizer, other

    (of_z, one), (of_pairs, two) = trained(z, lambda p: p), trained(pairs, torch.view_as_complex)
    np.testing.assert_allclose(torch.view_as_real(z.detach()).numpy(), pairs.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-5, atol=1e-6)
    if name != "LBFGS":
        kept = {key: value for key, value in of_z.state[z].items() if isinstance(value, torch.Tensor) and value.dim()}
        assert all(value.dtype == torch.complex64 and value.shape == z.shape for value in kept.values())
        assert all(np.allclose(torch.view_as_real(value).numpy(), of_pairs.state[pairs][key].numpy()) for key, value in kept.items())


def test_optimizers_that_take_no_complex_parameters_say_so():
    z = torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))
    z.grad = torch.ones_like(z)
    for name in ("Adafactor", "Muon"):
        with pytest.raises(RuntimeError, match="does not support complex parameters"):
            getattr(torch.optim, name)([z]).step()
    with pytest.raises(ValueError, match="does not support complex parameters"):
        torch.optim.SparseAdam([z])
    with pytest.raises(NotImplementedError, match="not updated differentiably"):
        torch.optim.Adam([z], differentiable=True).step()


def test_a_set_of_parameters_has_no_order():
    with pytest.warns(FutureWarning, match="ordered collections"):
        torch.optim.SGD({torch.nn.Parameter(torch.ones(1))}, lr=0.1)


def test_lbfgs_stays_where_the_gradient_is_zero():
    p = torch.nn.Parameter(torch.ones(2))
    loss = torch.optim.LBFGS([p], tolerance_grad=-1.0).step(lambda: torch.tensor([10.0]))
    assert loss.item() == 10 and torch.equal(p.detach(), torch.ones(2))


def test_names_and_rates_of_optimizers_are_whole():
    p = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([p, ("q", nn.Parameter(torch.ones(1)))], lr=0.1)
    with pytest.raises(ValueError, match="cannot add param group with names"):
        optim.SGD([p], lr=0.1).add_param_group({"params": [("q", nn.Parameter(torch.ones(1)))]})
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        optim.SGD([p], lr=torch.ones(2))


def test_schedules_of_functions_are_saved_without_them_and_chains_stand_in_sequences():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    schedules = torch.optim.lr_scheduler
    cyclic = schedules.CyclicLR(optimizer, 0.1, 1.0, cycle_momentum=False, scale_fn=lambda x: 0.5)
    state = pickle.loads(pickle.dumps(cyclic.state_dict()))
    cyclic.load_state_dict(state)
    assert state["_scale_fn_custom"] is None and cyclic.scale_fn(3) == 0.5
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    chain = schedules.ChainedScheduler([schedules.LinearLR(optimizer, 0.1, total_iters=5), schedules.ConstantLR(optimizer, 0.1, 5)])
    whole = schedules.SequentialLR(optimizer, [chain, schedules.ConstantLR(optimizer, 0.5, 5)], [5])
    rates = []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        whole.step()
    assert rates == pytest.approx([0.005, 0.014, 0.023, 0.032, 0.041, 0.25])


def test_spectral_norms_of_complex_weights_are_their_greatest_singular_values():
    layer = torch.nn.Linear(2, 2, dtype=torch.complex64)
    with torch.no_grad():
        layer.weight.copy_(torch.diag(torch.tensor([3j, 1.0])))
    torch.nn.utils.parametrizations.spectral_norm(layer)
    assert torch.allclose(layer.weight.detach(), torch.diag(torch.tensor([1j, 1 / 3])), atol=1e-6)


@pytest.mark.parametrize("epochs", range(8))
def test_a_sequence_of_schedules_goes_on_from_where_it_was(epochs):
    def made(optimizer, last_epoch=-1):
        s = torch.optim.lr_scheduler
        parts = [s.LinearLR(optimizer, 0.1, total_iters=2), s.ExponentialLR(optimizer, 0.5), s.StepLR(optimizer, 2, 0.1)]
        return s.SequentialLR(optimizer, parts, milestones=[2, 5], last_epoch=last_epoch)

    def optimizer():
        return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)

    first = optimizer()
    schedule = made(first)
    for _ in range(epochs):
        first.step(), schedule.step()
    again = optimizer()
    resumed = made(again, epochs - 1)
    for _ in range(3):
        assert resumed.last_epoch == schedule.last_epoch and resumed.get_last_lr() == pytest.approx(schedule.get_last_lr())
        assert again.param_groups[0]["lr"] == pytest.approx(first.param_groups[0]["lr"])
        first.step(), schedule.step(), again.step(), resumed.step()


@pytest.mark.parametrize("cls", [optim.Adam, optim.AdamW])
def test_counts_of_steps_on_the_device_are_each_parameters_own(cls):
    def run(capturable):
        torch.manual_seed(1)
        params = [nn.Parameter(torch.randn(3)) for _ in range(3)]
        steps = cls(params, lr=0.1, capturable=capturable)
        for number in range(6):
            for i, p in enumerate(params):
                p.grad = None if number in (2, 4) and i == 1 else torch.full((3,), 0.5 + i + number)
            steps.step()
            if number == 3:
                steps.load_state_dict(copy.deepcopy(steps.state_dict()))
        return params, steps

    (wanted, plain), (found, steps) = run(False), run(True)
    for a, b in zip(wanted, found):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-5)  # the scales are computed in float32 on the device; an extra step would change them by 0.01
        assert float(plain.state[a]["step"]) == steps.state[b]["step"].item()
    assert len({id(steps.state[p]["step"]) for p in found}) == 3
    fresh = cls([nn.Parameter(torch.ones(2)) for _ in range(2)], lr=0.1, capturable=True)
    for p in fresh.param_groups[0]["params"]:
        p.grad = torch.ones(2)
    fresh.step()
    first, second = (fresh.state[p]["step"] for p in fresh.param_groups[0]["params"])
    first.fill_(100.0)
    fresh.step()
    assert (first.item(), second.item()) == (101, 2)


def test_step_hooks_get_the_optimizer_as_the_first_argument():
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    sgd, seen = optim.SGD([p], lr=0.1), []
    sgd.register_step_pre_hook(lambda o, args, kwargs: seen.append((args, kwargs)))
    sgd.register_step_post_hook(lambda o, args, kwargs: seen.append((args, kwargs)))
    sgd.step()
    sgd.step(None)
    sgd.step(closure=None)
    assert seen == [((sgd,), {})] * 2 + [((sgd, None), {})] * 2 + [((sgd,), {"closure": None})] * 2
    other = optim.SGD([p], lr=0.1)
    other.register_step_pre_hook(lambda o, args, kwargs: ((*args, lambda: 7), kwargs))
    assert other.step() == 7


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_a_fused_step_is_neither_foreach_nor_differentiable(name):
    p = nn.Parameter(torch.ones(1))
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together."):
        getattr(optim, name)([p], fused=True, foreach=True)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        getattr(optim, name)([p], fused=True, differentiable=True)
    getattr(optim, name)([p], fused=True), getattr(optim, name)([p], foreach=True, differentiable=True)


# What PyTorch 2.15 gives after two steps: the parameter, the gradient of what it was made of, and that of the option.
OPTION_GRADIENTS = {
    ("Adam", "lr"): (1.8002, 0.9999, -1.9963), ("Adam", "weight_decay"): (1.8002, 0.9999, 0.0),
    ("AdamW", "lr"): (1.7963, 0.9979, -2.0341), ("AdamW", "weight_decay"): (1.7614, 0.98, -0.3856),
    ("SGD", "lr"): (0.98, 0.49, -8.4), ("SGD", "weight_decay"): (0.9522, 0.4761, -0.276), ("SGD", "momentum"): (0.44, 0.7, -0.6),
}  # fmt: skip


@pytest.mark.parametrize("name, option", OPTION_GRADIENTS)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_gradients_reach_the_options_of_a_differentiable_step(name, option, shape):
    x = torch.tensor([2.0], requires_grad=True)
    value = torch.full(shape, 0.9 if option == "momentum" else 0.1).requires_grad_()
    p = x.clone()
    optimizer = getattr(optim, name)([p], differentiable=True, **{"lr": 0.1, option: value})
    for _ in range(2):
        p.grad = p * 3
        optimizer.step()
    p.sum().backward()
    got = (p.item(), x.grad.item(), value.grad.item())
    np.testing.assert_allclose(got, OPTION_GRADIENTS[name, option], atol=6e-5)


@pytest.mark.parametrize("name", ["Adagrad", "RMSprop", "Rprop", "RAdam", "NAdam", "ASGD", "Adamax", "Adadelta"])
def test_other_differentiable_steps_refuse_options_that_require_gradients(name):
    p = torch.ones(1, requires_grad=True).clone()
    optimizer = getattr(optim, name)([p], lr=torch.tensor(0.1, requires_grad=True), differentiable=True)
    p.grad = torch.ones(1)
    with pytest.raises(NotImplementedError, match=f"{name}: lr gets no gradient"):
        optimizer.step()


# Each schedule, and the rates of PyTorch 2.15 after five steps from 0.1.
SCHEDULES = {
    "LambdaLR": (lambda o, s: s.LambdaLR(o, lambda epoch: 0.9**epoch), [0.09, 0.081, 0.0729, 0.06561, 0.059049]),
    "MultiplicativeLR": (lambda o, s: s.MultiplicativeLR(o, lambda epoch: 0.9), [0.09, 0.081, 0.0729, 0.06561, 0.059049]),
    "StepLR": (lambda o, s: s.StepLR(o, 2, 0.5), [0.1, 0.05, 0.05, 0.025, 0.025]),
    "MultiStepLR": (lambda o, s: s.MultiStepLR(o, [1, 3], 0.5), [0.05, 0.05, 0.025, 0.025, 0.025]),
    "ConstantLR": (lambda o, s: s.ConstantLR(o, 0.5, 2), [0.05, 0.1, 0.1, 0.1, 0.1]),
    "LinearLR": (lambda o, s: s.LinearLR(o, 0.5, 1.0, 3), [0.066667, 0.083333, 0.1, 0.1, 0.1]),
    "ExponentialLR": (lambda o, s: s.ExponentialLR(o, 0.5), [0.05, 0.025, 0.0125, 0.00625, 0.003125]),
    "PolynomialLR": (lambda o, s: s.PolynomialLR(o, 4), [0.075, 0.05, 0.025, 0.0, 0.0]),
    "CosineAnnealingLR": (lambda o, s: s.CosineAnnealingLR(o, 4), [0.085355, 0.05, 0.014645, 0.0, 0.014645]),
    "CosineAnnealingWarmRestarts": (lambda o, s: s.CosineAnnealingWarmRestarts(o, 2), [0.05, 0.1, 0.05, 0.1, 0.05]),
    "SequentialLR": (lambda o, s: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.5)], [2]), [0.05, 0.1, 0.05, 0.025, 0.0125]),
    "ChainedScheduler": (lambda o, s: s.ChainedScheduler([s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.5)]), [0.025, 0.025, 0.0125, 0.00625, 0.003125]),
    "ReduceLROnPlateau": (lambda o, s: s.ReduceLROnPlateau(o, patience=0, factor=0.5), [0.1, 0.05, 0.025, 0.0125, 0.00625]),
    "CyclicLR": (lambda o, s: s.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False), [0.055, 0.1, 0.055, 0.01, 0.055]),
    "OneCycleLR": (lambda o, s: s.OneCycleLR(o, 0.1, total_steps=8, cycle_momentum=False), [0.081928, 0.097194, 0.081175, 0.055598, 0.028306]),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", [None, (), (1,)])
def test_rates_keep_their_type_in_schedules(name, shape):
    make, want = SCHEDULES[name]
    lr = 0.1 if shape is None else torch.full(shape, 0.1)
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=lr)
    schedule, got = make(optimizer, optim.lr_scheduler), []
    (group,) = optimizer.param_groups
    for _ in range(5):
        optimizer.step()
        schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))
        (last,) = schedule.get_last_lr()
        assert type(last) is type(lr) and (shape is None or (group["lr"] is lr and last is not lr and last.shape == lr.shape))
        got.append(float(last))
    np.testing.assert_allclose(got, want, atol=1e-6)
    if name not in ("CyclicLR", "OneCycleLR", "SequentialLR", "ChainedScheduler", "ReduceLROnPlateau"):  # these have rates of their own, or no base_lrs
        base = schedule.base_lrs[0]
        assert type(base) is type(group["initial_lr"]) is type(lr) and float(base) == pytest.approx(0.1)
