"""torch.utils.checkpoint: backward recomputes what it needs, with the same result."""
import warnings

import naru as torch
import pytest
from naru import nn
from naru.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop

BOTH = pytest.mark.parametrize("reentrant", [True, False])


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@BOTH
def test_gradients_are_those_of_the_program_as_it_is_random_numbers_included(reentrant, device):
    def run(call):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 2)).to(device)
        x = torch.ones(3, 4, device=device, requires_grad=True)
        loss = call(model, x).square().sum() + torch.rand(1).item()
        loss.backward()
        return loss.item(), x.grad.tolist(), [p.grad.tolist() for p in model.parameters()]

    assert run(lambda m, x: m(x)) == run(lambda m, x: checkpoint(m, x, use_reentrant=reentrant))


@BOTH
def test_the_part_runs_twice_and_keeps_nothing_between(reentrant):
    runs = []

    def part(x):
        runs.append(torch.is_grad_enabled())
        return x.exp().sin().exp()

    x = torch.ones(1 << 16, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    y = checkpoint(part, x, use_reentrant=reentrant)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() - before <= 1 << 18 and len(runs) == 1
    y.sum().backward()
    assert runs == [not reentrant, True]


def test_without_reentrance_grad_and_inputs_work_and_arguments_may_be_named():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = checkpoint(lambda t, scale: (t * w).exp() * scale, x, scale=2.0, use_reentrant=False)
    grads = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    plain = torch.autograd.grad(((x * w).exp() * 2).sum(), (x, w), create_graph=True)
    assert [g.tolist() for g in grads] == [g.tolist() for g in plain]
    (second,) = torch.autograd.grad(grads[0].sum(), w)
    assert torch.allclose(second, torch.autograd.grad(plain[0].sum(), w)[0])
    with pytest.raises(RuntimeError, match="torch.utils.checkpoint is incompatible with .grad"):
        torch.autograd.grad(checkpoint(torch.sin, x, use_reentrant=True).sum(), x)


def test_nested_parts_and_kept_graphs():
    x = leaf(0.3, 0.6)
    inner = lambda t: checkpoint(lambda s: s.sin().exp(), t, use_reentrant=False).cos()  # noqa: E731
    y = checkpoint(inner, x, use_reentrant=False).sum()
    (a,) = torch.autograd.grad(y, x, retain_graph=True)
    (b,) = torch.autograd.grad(y, x)
    (c,) = torch.autograd.grad(x.sin().exp().cos().sum(), x)
    assert a.tolist() == b.tolist() == c.tolist()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_a_second_run_ends_when_all_is_there_unless_told_otherwise():
    steps = []

    def part(x):
        y = x.exp()
        steps.append("exp")
        z = y * 2
        steps.append("mul")
        return z

    for early, expected in ((True, ["exp", "mul"]), (False, ["exp", "mul", "exp", "mul"])):
        steps.clear()
        with set_checkpoint_early_stop(early):
            checkpoint(part, leaf(1.0), use_reentrant=False).sum().backward()
        assert steps == expected


def test_a_second_run_that_is_not_like_the_first_is_an_error():
    calls = []

    def part(x):
        calls.append(1)
        return x.sin().exp().sum() if len(calls) == 1 else x.repeat(2).sin().exp().sum()

    with pytest.raises(CheckpointError, match="Recomputed values for the following tensors have different metadata than during the forward pass"):
        checkpoint(part, leaf(1.0, 2.0), use_reentrant=False).backward()

    def shorter(x):
        calls.append(1)
        return x.sin() if len(calls) % 2 else x.sin().exp()

    calls[:] = [1]
    with pytest.raises(CheckpointError, match="A different number of tensors was saved during the original forward and recomputation.\nNumber of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 1."):
        checkpoint(shorter, leaf(1.0), use_reentrant=False).sum().backward()


def test_contexts_of_both_runs_and_options_that_do_not_go_together():
    entered = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exc):
            pass

    checkpoint(lambda t: t.exp(), leaf(1.0), use_reentrant=False, context_fn=lambda: (Note("first"), Note("second"))).sum().backward()
    assert entered == ["first", "second"]
    with pytest.raises(ValueError, match="^Unexpected keyword arguments: foo$"):
        checkpoint(torch.sin, leaf(1.0), use_reentrant=True, foo=1)
    with pytest.raises(ValueError, match="is only supported when use_reentrant=False"):
        checkpoint(torch.sin, leaf(1.0), use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(torch.sin, leaf(1.0), use_reentrant=False, determinism_check="x")
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(torch.sin, leaf(1.0))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(torch.sin, torch.ones(1), use_reentrant=True)


@BOTH
def test_a_sequence_of_modules_in_parts(reentrant):
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(5)))
    x = torch.ones(2, 3, requires_grad=True)
    checkpoint_sequential(model, 2, x, use_reentrant=reentrant).sum().backward()
    found = x.grad.tolist(), [p.grad.tolist() for p in model.parameters()]
    x.grad = None
    model.zero_grad()
    model(x).sum().backward()
    assert found == (x.grad.tolist(), [p.grad.tolist() for p in model.parameters()])


def test_tuples_and_what_is_no_tensor_come_through():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, n, nothing = checkpoint(lambda t: (t.sin(), 3, None), leaf(1.0), use_reentrant=True)
    assert n == 3 and nothing is None and y.requires_grad
