"""Automatic differentiation from Python: leaves, nodes, hooks, modes, user-defined functions."""
import gc
import weakref

import pytest

import naru as torch


def test_gradients_add_up_in_leaves(device):
    x = torch.tensor([1.0, 2.0], requires_grad=True, device=device)
    for count in (1, 2):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * count, 4.0 * count]
    x.grad = None
    assert x.grad is None
    x.grad = torch.ones(2, device=device)
    del x.grad
    assert x.grad is None


def test_leaves_and_results():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and x.requires_grad
    assert not y.is_leaf and y.requires_grad and y.grad_fn.name() == "MulBackward0" and repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
    (node, slot), _ = y.grad_fn.next_functions
    assert node.name() == "torch::autograd::AccumulateGrad" and type(node).__name__ == "AccumulateGrad" and node.variable is x and slot == 0 and y.grad_fn == y.grad_fn
    d = y.detach()
    assert not d.requires_grad and d.is_leaf and d.data_ptr() == y.data_ptr() and y.data.grad_fn is None
    assert torch.ones(2).is_leaf and torch.ones(2).grad is None


def test_requires_grad_is_set_on_leaves_only():
    x = torch.ones(2)
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()


def test_backward_takes_a_gradient():
    x = torch.ones(2, requires_grad=True)
    (x * 3).backward(torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [3.0, 30.0]
    (x * 3).backward(gradient=torch.ones(2))
    assert x.grad.tolist() == [6.0, 33.0]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 3).backward()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()


def test_a_graph_is_used_once_unless_retained():
    x = torch.ones(2, requires_grad=True)
    y = (x.exp() * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_grad_leaves_leaves_alone():
    x = torch.tensor(3.0, requires_grad=True)
    z = torch.tensor(1.0, requires_grad=True)
    (dx,) = torch.autograd.grad(x**3, x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx, x)
    assert dx.item() == 27.0 and ddx.item() == 18.0 and x.grad is None
    assert torch.autograd.grad(x * 2, [x, z], allow_unused=True)[1] is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x * 2, [x, z])


def test_backward_into_named_inputs_only():
    x, z = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    (x * z).backward(inputs=[x])
    assert x.grad.item() == 1.0 and z.grad is None


def test_modes_switch_recording_and_nest():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert torch.is_grad_enabled() and (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert not (x * 2).requires_grad

    @torch.no_grad()
    def decorated(v):
        return v * 2

    @torch.no_grad()
    def generator():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert not decorated(x).requires_grad and list(generator()) == [False, False] and torch.is_grad_enabled()
    with pytest.raises(ValueError):
        with torch.no_grad():
            raise ValueError
    assert torch.is_grad_enabled()


def test_hooks_see_and_replace_gradients():
    x = torch.ones(2, requires_grad=True)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0]]
    handle.remove()
    handle.remove()
    x.grad = None
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[2.0, 2.0]] and x.grad.tolist() == [20.0, 20.0]
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_inner_gradients_are_kept_on_request():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0] and y.retains_grad and not x.retains_grad


def test_an_in_place_write_to_a_needed_value_is_an_error_that_names_the_operation():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*ExpBackward0"):
        y.sum().backward()


def test_in_place_writes_are_part_of_the_history(device):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True, device=device)
    y = x * 2
    y[1] = 0
    y.mul_(3)
    y[0:1] += x[2]
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 0.0, 7.0]


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return grad * ctx.factor + 0 * x, None


IN_PLACE = {
    "mul_": (lambda x, w: x.mul_(w), lambda x, w: x * w), "div_": (lambda x, w: x.div_(w), lambda x, w: x / w), "pow_": (lambda x, w: x.pow_(2), lambda x, w: x ** 2),
    "abs_": (lambda x, w: x.abs_(), lambda x, w: x.abs()), "clamp_": (lambda x, w: x.clamp_(-1, 1.5), lambda x, w: x.clamp(-1, 1.5)),
    "clamp_ by tensors": (lambda x, w: x.clamp_(-w, w), lambda x, w: x.clamp(-w, w)), "addcdiv_": (lambda x, w: x.addcdiv_(w, w + 1), lambda x, w: x + w / (w + 1)),
    "of a view": (lambda x, w: x[1:].mul_(w[1:]), lambda x, w: torch.cat([x[:1], x[1:] * w[1:]])),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_works_in_place_keeps_what_its_own_gradient_needs(name, device):
    in_place, apart = IN_PLACE[name]
    found = []
    for write in (True, False):
        x, w = (torch.tensor(v, device=device, requires_grad=True) for v in ([-2.0, 0.5, 3.0], [2.0, -1.0, 0.25]))
        y = x.clone()
        y = apart(y, w) if not write else (in_place(y, w), y)[1]
        (y * y).sum().backward()
        found.append([y.tolist(), x.grad.tolist(), None if w.grad is None else w.grad.tolist()])
    assert found[0] == found[1]


@pytest.mark.parametrize("make", [lambda x: x / (x + 1), lambda x: torch.logaddexp(x, x * 2), lambda x: torch.fmax(x, -x), lambda x: torch.erfinv(x / 4),
                                  torch.nn.functional.elu], ids=["div", "logaddexp", "fmax", "erfinv", "elu"])  # fmt: skip
def test_a_result_that_its_gradient_does_not_need_may_be_overwritten(make, device):
    x = torch.tensor([-0.5, 2.0], device=device, requires_grad=True)
    wanted, = torch.autograd.grad(make(x).sum() * 3, x)
    make(x).mul_(3).sum().backward()
    assert torch.allclose(x.grad, wanted)


def test_what_is_overwritten_has_a_gradient_of_zeros(device):
    for write in (lambda t: t.zero_(), lambda t: t.fill_(2), lambda t: t.copy_(torch.ones(3, device=device)), lambda t: t[:].zero_()):
        x = torch.ones(3, device=device, requires_grad=True)
        y = x * 2
        write(y)
        (y.sum() + 1).backward()
        assert x.grad.tolist() == [0, 0, 0]


def test_integers_have_no_history(device):
    x = torch.tensor([1.5, 2.5], device=device, requires_grad=True)
    whole = x.to(torch.int64)
    whole += torch.zeros(2, dtype=torch.int64, device=device)
    seen = torch.zeros(2, dtype=torch.int32, device=device)
    seen[:] = x
    assert not whole.requires_grad and whole.grad_fn is None and not seen.requires_grad and seen.tolist() == [1, 2]


def test_a_view_over_the_same_elements_twice_sums_their_gradients(device):
    x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = x * 1
    wide = y.expand(2, 3)
    y.mul_(2)
    (wide * torch.tensor([[1.0], [10.0]], device=device)).sum().backward()
    assert x.grad.tolist() == [22, 22, 22]
    x.grad = None
    x.expand(4, 3).as_strided((3,), (1,), 0).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_gradients_at_limits_and_ties_are_pytorchs(device):
    def gradient(f, *values):
        x = torch.tensor(values, device=device, requires_grad=True)
        f(x).sum().backward()
        return x.grad.tolist()

    F, nan = torch.nn.functional, float("nan")
    one = torch.ones(3, device=device)
    assert gradient(lambda x: x.clamp(0, 1), 0.0, 0.5, 1.0) == [0, 1, 0]
    assert gradient(lambda x: x.clamp(min=1), 0.0, 1.0, 2.0) == gradient(lambda x: x.clamp(max=1), 2.0, 1.0, 0.0) == [0, 0, 1]
    assert gradient(lambda x: x.clamp(min=one), 0.0, 1.0, 2.0) == gradient(lambda x: x.clamp(max=one), 2.0, 1.0, 0.0) == [0, 0.5, 1]
    assert gradient(lambda x: torch.fmax(x, one), 0.0, 1.0, nan) == [0, 0.5, 0]
    assert gradient(lambda x: torch.fmin(one * nan, x), 1.0, 2.0, nan) == [1, 1, 0]
    assert gradient(F.hardswish, -3.0, 3.0, 4.0) == [0, 1, 1] and gradient(F.softshrink, 0.5, -0.5, 0.75) == [0, 0, 1]
    # 1 % 0.1 is 1 - 9 * 0.1, since 0.1 is stored as slightly more than a tenth.
    b = torch.tensor(0.1, device=device, requires_grad=True)
    (torch.tensor(1.0, device=device) % b).backward()
    assert b.grad.item() == -9


def test_functions_with_a_derivative_of_their_own(device):
    x = torch.ones(2, requires_grad=True, device=device)
    y = Double.apply(x, 5)
    assert y.requires_grad and y.grad_fn.name() == "DoubleBackward" and not y.is_leaf
    (y * 2).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0] and str(x.grad.device) == device
    assert not Double.apply(torch.ones(2), 5).requires_grad
    with torch.no_grad():
        assert not Double.apply(x, 5).requires_grad


def test_functions_may_have_several_outputs_and_none():
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3, 7

        @staticmethod
        def backward(ctx, a, b, c):
            return a * 2 + b * 3

    x = torch.ones(1, requires_grad=True)
    a, b, seven = Split.apply(x)
    assert seven == 7
    (a + 10 * b).backward()
    assert x.grad.item() == 32.0


def test_errors_in_backward_come_through():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise LookupError("in backward")

    with pytest.raises(LookupError, match="in backward"):
        Bad.apply(torch.ones(1, requires_grad=True)).backward()


def test_a_graph_goes_with_its_result():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    ref = weakref.ref(y)
    z = y.exp()
    del y
    gc.collect()
    assert ref() is None  # the graph keeps the data alive, not the Python object
    z.sum().backward()
    assert x.grad is not None


def test_a_function_node_lets_its_context_go():
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x * 2
            ctx.save_for_backward(out)
            refs.append(weakref.ref(ctx))
            return out

        @staticmethod
        def backward(ctx, g):
            return g * 2

    refs = []
    x = torch.ones(1, requires_grad=True)
    y = Keep.apply(x)
    y.backward()
    del y
    gc.collect()
    assert refs[0]() is None
