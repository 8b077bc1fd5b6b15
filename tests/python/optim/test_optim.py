"""Optimizers and schedulers compared with values recorded from PyTorch."""
import copy

import naru as torch
import numpy as np
import pytest
from naru import nn, optim
from reference_table import OPTIMIZERS, SCHEDULES


def train(name, options, steps=5, optimizer=None, p=None, start=0):
    """`p` after the steps that reference_table.py was made with."""
    if p is None:
        p = nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
        optimizer = getattr(optim, name)([p], **options)
    for t in range(start, steps):
        p.grad = torch.tensor([0.5 - t * 0.3, (-1.0) ** t, 0.1 * t * t], dtype=torch.float64).to(p.device)
        optimizer.step()
    return p, optimizer


@pytest.mark.parametrize("name, options, want", OPTIMIZERS)
def test_five_steps_end_where_pytorchs_end(name, options, want):
    p, _ = train(name, options)
    np.testing.assert_allclose(p.detach().numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("name, options, want", OPTIMIZERS)
def test_a_state_dict_goes_on_where_it_was_taken(name, options, want):
    p, optimizer = train(name, options, steps=3)
    twin = nn.Parameter(p.detach().clone())
    other = getattr(optim, name)([twin], lr=123.0)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(name, options, optimizer=other, p=twin, start=3)
    np.testing.assert_allclose(twin.detach().numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_moving_the_model_in_mid_training_changes_nothing(name):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    want, _ = train(name, options)
    p, optimizer = train(name, options, steps=2)
    p.data = p.data.to("cuda")
    train(name, options, optimizer=optimizer, p=p, start=2)
    np.testing.assert_array_equal(p.detach().cpu().numpy(), want.detach().numpy())


def test_a_step_on_a_virtual_device_has_the_bits_of_the_cpus(device):
    for name, options, _ in OPTIMIZERS:
        want, _ = train(name, options)
        p = nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, device=device))
        train(name, options, optimizer=getattr(optim, name)([p], **options), p=p)
        np.testing.assert_array_equal(p.detach().cpu().numpy(), want.detach().numpy())


def test_parameters_without_gradient_are_left_alone():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.Adam([p, q], lr=0.1)
    p.grad = torch.ones(1)
    optimizer.step()
    assert q.item() == 1.0 and p.item() != 1.0 and q not in optimizer.state
    q.grad = torch.ones(1)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 2 and optimizer.state[q]["step"].item() == 1


def test_groups_have_options_of_their_own():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([{"params": [p]}, {"params": [q], "lr": 1.0}], lr=0.1)
    p.grad = q.grad = torch.ones(1)
    optimizer.step()
    assert p.item() == pytest.approx(0.9) and q.item() == 0.0
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 1.0]


def test_a_closure_computes_the_loss_with_gradients_on():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * 3).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 3.0
    assert p.item() == pytest.approx(0.7)


def test_zero_grad():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = torch.ones(1)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.item() == 0
    optimizer.zero_grad()
    assert p.grad is None


def test_state_dict_has_pytorchs_form():
    p = nn.Parameter(torch.zeros(2))
    optimizer = optim.Adam([p])
    p.grad = torch.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert repr(state["state"][0]["step"]) == "tensor(1.)"
    assert state["param_groups"][0]["params"] == [0]
    assert list(state["param_groups"][0]) == [
        "lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused",
        "decoupled_weight_decay", "params",
    ]  # fmt: skip


def test_an_optimizer_prints_as_pytorchs_does():
    text = repr(optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1))
    assert text == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


def test_a_subclass_with_a_step_of_its_own_works():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    p = nn.Parameter(torch.zeros(2))
    optimizer = Sign([p])
    p.grad = torch.tensor([3.0, -2.0])
    calls = []
    optimizer.register_step_post_hook(lambda opt, args, kwargs: calls.append("after"))
    optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), [-0.1, 0.1], rtol=1e-6)
    assert calls == ["after"]


P = nn.Parameter(torch.zeros(1))
BAD_USE = [
    (lambda: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
    (lambda: optim.SGD(P, lr=0.1), TypeError, "params argument given to the optimizer should be an iterable of Tensors or dicts"),
    (lambda: optim.SGD([3], lr=0.1), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
    (lambda: optim.SGD([P * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
    (lambda: optim.SGD([P], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda: optim.SGD([P], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
    (lambda: optim.Adam([P], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
    (lambda: optim.SGD([{"params": [P]}, {"params": [P]}]), ValueError, "some parameters appear in more than one parameter group"),
    (lambda: optim.SGD([P]).load_state_dict({"state": {}, "param_groups": []}), ValueError, "different number of parameter groups"),
    (lambda: optim.lr_scheduler.StepLR(3, 2), TypeError, "int is not an Optimizer"),
    (lambda: optim.lr_scheduler.OneCycleLR(optim.SGD([P]), 0.1), ValueError, "You must define either total_steps"),
]  # fmt: skip


@pytest.mark.parametrize("use, kind, text", BAD_USE)
def test_bad_use_raises_pytorchs_error(use, kind, text):
    with pytest.raises(kind) as error:
        use()
    assert text in str(error.value.args[0])


@pytest.mark.parametrize("name, options, want", SCHEDULES)
def test_a_schedule_gives_pytorchs_rates(name, options, want):
    optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.3, momentum=0.9)
    schedule = getattr(optim.lr_scheduler, name)(optimizer, **options)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(len(want) - 1):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == want
    assert schedule.get_last_lr() == want[-1:]


def test_a_schedule_goes_on_from_its_state_dict():
    rates = []
    for stop in (2, None):
        optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
        schedule = optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
        for epoch in range(5):
            if epoch == stop:
                state, options = schedule.state_dict(), optimizer.state_dict()
                optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=7.0)
                schedule = optim.lr_scheduler.StepLR(optimizer, 99)
                optimizer.load_state_dict(options)
                schedule.load_state_dict(state)
            optimizer.step()
            schedule.step()
        rates.append(schedule.get_last_lr())
    assert rates[0] == rates[1] == [0.25]


def test_lambda_and_sequential_schedules():
    optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=2.0)
    warmup = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: (epoch + 1) / 4)
    decay = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    schedule = optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[3])
    rates = []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == [0.5, 1.0, 1.5, 2.0, 1.0, 0.5]


def test_reduce_on_plateau_waits_and_reduces():
    optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1)
    rates = []
    for loss in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9):
        schedule.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([1, 1, 1, 0.1, 0.1, 0.01])


def test_stepping_the_schedule_first_warns_as_pytorch_does():
    optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        schedule.step()


def test_the_state_of_a_parameter_without_dimensions_moves_too():
    p = nn.Parameter(torch.tensor(1.0))
    optimizer = optim.Adam([p], lr=0.1)
    for device in ("cpu", "cuda:0", "mps:0"):
        p.data = p.data.to(device)
        p.grad = torch.ones((), device=device)
        optimizer.step()
        assert str(optimizer.state[p]["exp_avg"].device) == device and optimizer.state[p]["step"].device.type == "cpu"
    assert p.item() == pytest.approx(0.7, rel=1e-5)


def test_old_states_with_plain_numbers_of_steps_load():
    p, optimizer = train("Adam", {"lr": 0.1}, steps=3)
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["step"] = 3
    twin = nn.Parameter(p.detach().clone())
    other = optim.Adam([twin], lr=0.1)
    other.load_state_dict(state)
    train("Adam", {}, optimizer=other, p=twin, start=3)
    want, _ = train("Adam", {"lr": 0.1})
    np.testing.assert_allclose(twin.detach().numpy(), want.detach().numpy(), rtol=1e-12)


ALL = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD"]


@pytest.mark.parametrize("name, options", [("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("RMSprop", {"momentum": 0.9, "centered": True}), ("Adagrad", {}), ("Adadelta", {}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("Rprop", {}), ("ASGD", {"t0": 1})])
def test_differentiable_steps_are_the_same_steps_and_pass_gradients_on(name, options):
    def steps(differentiable):
        start = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
        scale = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        p = start.clone() if differentiable else nn.Parameter(start.detach().clone())
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=differentiable, **options)
        for i in range(3):
            grad = torch.tensor([1.0, 2.0 - i], dtype=torch.float64) * scale
            p.grad = grad if differentiable else grad.detach()
            optimizer.step()
        return p, start, scale

    p, start, scale = steps(True)
    np.testing.assert_allclose(p.detach().numpy(), steps(False)[0].detach().numpy(), rtol=1e-12)
    d_start, d_scale = torch.autograd.grad(p.sum(), (start, scale))
    assert d_start.ne(0).all() and (name != "SGD" or d_scale != 0)



@pytest.mark.parametrize("name", ALL)
def test_parameters_without_a_gradient_get_no_state_and_stay_as_they_are(name):
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = getattr(optim, name)([used, unused], lr=0.1)
    before = dict(optimizer.state.get(unused, {}))
    used.grad = torch.ones(2)
    optimizer.step()
    assert used.tolist() != [1, 1] and unused.tolist() == [1, 1]
    assert optimizer.state.get(unused, {}).keys() == before.keys()


def test_sgd_with_momentum_is_captured_only_after_its_buffer_is_made():
    p = nn.Parameter(torch.ones(2))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    p.grad = torch.ones(2)
    g = torch.Graph(device="cpu")
    with pytest.raises(RuntimeError, match="SGD: the first step makes its state"):
        with torch.graph(g):
            optimizer.step()
    optimizer.step()
    with torch.graph(g):
        optimizer.step()
    g.replay()
    q = nn.Parameter(torch.ones(2))
    other = optim.SGD([q], lr=0.1, momentum=0.9)
    q.grad = torch.ones(2)
    other.step(), other.step()
    assert p.tolist() == q.tolist()
