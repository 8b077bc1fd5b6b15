"""Operations are counted where they are called: in layers, in backward, on the meta device; by module and by operator."""

import pytest

import naru as torch
from naru.autograd.graph import queue_callback
from naru.profiler import profile
from naru.utils.flop_counter import FlopCounterMode, register_flop_formula
from naru.utils.module_tracker import ModuleTracker

F = torch.nn.functional


def _counted(f):
    with FlopCounterMode(display=False) as counter:
        f()
    return {str(operator).removeprefix("aten."): count for operator, count in counter.get_flop_counts().get("Global", {}).items()}


def test_operations_are_counted_by_the_shapes_of_operands():
    assert _counted(lambda: torch.nn.Linear(3, 4)(torch.ones(5, 3))) == {"addmm": 120}
    assert _counted(lambda: torch.nn.Conv2d(2, 3, 3)(torch.ones(1, 2, 5, 5))) == {"convolution": 972}
    assert _counted(lambda: torch.nn.Conv2d(2, 4, 3, groups=2)(torch.ones(1, 2, 5, 5))) == {"convolution": 648}
    assert _counted(lambda: torch.ones(2, 3, 4) @ torch.ones(2, 4, 5)) == {"bmm": 240}
    assert _counted(lambda: torch.mm(*[torch.ones(3, 3, dtype=torch.complex64)] * 2)) == {"mm": 54}
    assert _counted(lambda: torch.ones(2, 3).mv(torch.ones(3)).dot(torch.ones(2))) == {"mv": 12, "dot": 4}
    shapes = [torch.ones(1, 2, 4, 8)] * 3
    assert _counted(lambda: F.scaled_dot_product_attention(*shapes, is_causal=True)) == {"scaled_dot_product_attention": 1024}
    assert sum(_counted(lambda: torch.einsum("ij,jk,...kl->...il", torch.ones(2, 3), torch.ones(3, 4), torch.ones(6, 4, 5))).values()) == 528
    assert not _counted(lambda: torch.einsum("i,j->ij", torch.ones(2), torch.ones(3)) + torch.ones(2, 3).cos())
    assert _counted(lambda: torch.nn.Linear(3, 4, device="meta")(torch.ones(5, 3, device="meta"))) == {"addmm": 120}


def test_backward_counts_the_gradients_that_it_makes():
    x, w = torch.ones(4, 5), torch.ones(5, 6, requires_grad=True)
    assert _counted(lambda: (x @ w).sum().backward()) == {"mm": 480}
    assert _counted(lambda: (x.requires_grad_() @ w).sum().backward()) == {"mm": 720}
    image, kernel = torch.ones(1, 2, 4, 4, requires_grad=True), torch.ones(3, 2, 2, 2, requires_grad=True)
    for f, k in ((F.conv2d, kernel), (F.conv_transpose2d, torch.ones(2, 3, 2, 2, requires_grad=True))):
        counts = _counted(lambda f=f, k=k: f(image, k).sum().backward())
        assert counts["convolution_backward"] == 2 * counts["convolution"] > 0


def _tower():
    inner = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU())
    return torch.nn.Sequential(torch.nn.Linear(3, 4), inner)


def test_modules_count_what_is_called_within_them_forward_and_backward():
    model, x = _tower(), torch.ones(2, 3, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
        torch.ones(1, 2) @ torch.ones(2, 1)
    counts = {module: sum(some.values()) for module, some in counter.get_flop_counts().items()}
    assert counts == {"Global": 388, "Sequential": 384, "Sequential.0": 144, "Sequential.1": 240, "Sequential.1.0": 240}
    table = counter.get_table(2).splitlines()
    assert table[0].split() == ["Module", "FLOP", "%", "Total"] and table[2].split() == ["Global", "388.000", "100.00%"]
    assert any(line.split() == ["Sequential.1", "240.000", "61.86%"] for line in table) and "Sequential.1.0" not in counter.get_table(2)
    with FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_total_flops() == 0 and counter.get_table().splitlines()[-1].split() == ["Global", "0", "0%"]


def test_the_tracker_knows_which_modules_backward_goes_through():
    seen, model = [], _tower()
    with ModuleTracker() as tracker:
        for module in (model[0], model[1][0]):

            def watch(module, args, y):
                y.register_hook(lambda grad: seen.append((tracker.is_bw, *sorted(tracker.parents))))

            module.register_forward_hook(watch)
        model(torch.ones(2, 3, requires_grad=True)).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    (in_backward, *last), (_, *first) = seen
    assert in_backward and "Sequential.1.0" in last and "Sequential.0" not in last and "Sequential.0" in first


def test_formulas_of_the_program_stand_in_for_the_count():
    @torch.library.custom_op("tests::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    register_flop_formula(torch.ops.tests.counted)(lambda shape, out_shape: 7 * shape[0] + out_shape[0])
    assert sum(_counted(lambda: counted(torch.ones(3, 3))).values()) == 24
    def raw(*args, out_val):
        return out_val.numel()

    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(len)(raw)
    raw._get_raw = True
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.add: raw}) as counter:
        torch.ones(4, 5) + torch.ones(4, 5)
        torch.ones(1, 2) @ torch.ones(2, 1)
    assert counter.get_flop_counts()["Global"] == {torch.ops.aten.add: 20, torch.ops.aten.mm: 4}
    with pytest.warns(UserWarning, match="not needed"):
        FlopCounterMode(torch.nn.Linear(1, 1))


def test_a_profile_counts_what_a_backward_takes():
    w = torch.ones(5, 6, requires_grad=True)
    with profile(with_flops=True) as p:
        (torch.ones(4, 5) @ w).sum().backward()
    assert [e.flops for e in p.events() if e.flops] == [240, 240]


def test_queued_callbacks_are_called_in_order_when_their_backward_is_over():
    seen, x = [], torch.ones(2, requires_grad=True)

    def at_end(name):
        return lambda: seen.append((name, x.grad is not None))

    def hook(grad):
        queue_callback(at_end("first"))
        queue_callback(lambda: (seen.append("second"), queue_callback(at_end("third"))))

    handle = x.register_hook(hook)
    (x * 2).sum().backward()
    assert seen == [("first", True), "second", ("third", True)]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue_callback(print)
    handle.remove()
    seen.clear()
    y = x * 2

    def failing(grad):
        queue_callback(at_end("never"))
        raise ValueError("on purpose")

    y.register_hook(failing)
    with pytest.raises(ValueError, match="on purpose"):
        y.sum().backward()
    assert not seen
