"""torch.autograd.graph: hooks on tensors saved for backward, gradient edges, hooks on several gradients."""
import naru as torch
import pytest
from naru.autograd.graph import (
    GradientEdge,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize("f", [lambda x: x.exp() * x, lambda x: torch.softmax(x, 0) * x.sin(), lambda x: (x[None] @ torch.ones(3, 2, device=x.device)).tanh(), lambda x: torch.cross(x, x * 2 + 1, 0), torch.cumprod], ids=["exp", "softmax", "matmul", "cross", "cumprod"])
def test_gradients_and_their_gradients_are_the_same_through_hooks_that_copy(f, device):
    def run():
        x = torch.tensor([0.5, 1.5, -0.7], device=device, requires_grad=True)
        y = (f(x, 0) if f is torch.cumprod else f(x)).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g.tolist(), torch.autograd.grad((g * g).sum(), x)[0].tolist()

    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t.shape) or t.detach().cpu().clone(), lambda t: t.to(device)):
        through = run()
    assert through == run() and packed


def test_the_innermost_hooks_count_and_see_each_tensor_once():
    seen = []
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        x.exp()
        with saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            x.exp()
        x * x
    x.exp()
    assert seen == ["outer", "inner", "outer", "outer"]


def test_functions_of_the_users_pack_what_they_save():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 + 0 * x

    x, seen = leaf(1.0), []
    with saved_tensors_hooks(lambda t: t, lambda t: seen.append(1) or t):
        y = Twice.apply(x)
    y.backward()
    assert seen == [1] and x.grad.tolist() == [2.0]


def test_what_was_packed_is_let_go_after_backward():
    import weakref

    class Kept:
        def __init__(self, t):
            self.t = t

    kept = []

    def pack(t):
        one = Kept(t.detach())
        kept.append(weakref.ref(one))
        return one

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda one: one.t):
        y = (x.exp() * x).sum()
    assert all(ref() is not None for ref in kept)
    y.backward()
    torch.ones(1).item()
    assert not any(ref() is not None for ref in kept)


def test_faults_of_hooks_are_errors():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"), saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        x * torch.ones(1)
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"):
        y.backward()
    with saved_tensors_hooks(lambda t: 1 / 0, lambda t: t), pytest.raises(ZeroDivisionError):
        x.exp()
    with disable_saved_tensors_hooks("no hooks here"), pytest.raises(RuntimeError, match="^no hooks here$"), saved_tensors_hooks(lambda t: t, lambda t: t):
        pass
    with saved_tensors_hooks(lambda t: t, lambda t: t), pytest.raises(RuntimeError, match="^none$"), disable_saved_tensors_hooks("none"):
        pass
    x.exp().backward()


def test_saving_on_cpu_leaves_nothing_on_the_device():
    x = torch.ones(1 << 16, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    with save_on_cpu(pin_memory=True):
        y = x.exp().sin().cos().sum()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() - before < 1 << 18
    y.backward()
    z = torch.ones(1 << 16, device="cuda", requires_grad=True)
    z.exp().sin().cos().sum().backward()
    assert torch.equal(x.grad, z.grad)


def test_tensors_that_are_kept_may_be_written_where_that_is_allowed():
    x = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y * y).sum()
        y.zero_()
        z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_an_edge_stands_for_its_tensor():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge, at_leaf = get_gradient_edge(y), get_gradient_edge(x)
    assert isinstance(edge, GradientEdge) and edge.node.name() == "MulBackward0" and edge.output_nr == 0 and isinstance(edge.node, torch.autograd.graph.Node)
    (g,) = torch.autograd.grad((y * y).sum(), edge)
    assert g.tolist() == [6.0, 12.0]
    (g,) = torch.autograd.grad((edge,), (at_leaf,), grad_outputs=torch.ones(2))
    assert g.tolist() == [3.0, 3.0]
    torch.autograd.backward(edge, torch.ones(2), inputs=[at_leaf])
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="for a Tensor that does not require gradients"):
        get_gradient_edge(torch.ones(1))


def test_a_version_can_be_counted_on():
    x = leaf(1.0)
    y = x.exp()
    increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_hook_on_several_gradients_waits_for_those_that_come():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = register_multi_grad_hook((a, b, c), lambda grads: seen.append([None if g is None else g.item() for g in grads]))
    (a * b).backward()
    (a * b * c).backward()
    assert seen == [[2.0, 1.0, None], [6.0, 3.0, 2.0]]
    handle.remove()
    (a * b).backward()
    assert len(seen) == 2
    first = []
    with register_multi_grad_hook((a, b), lambda g: first.append(g.item()), mode="any"):
        (a * b).backward()
    assert len(first) == 1
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        register_multi_grad_hook((a,), print, mode="some")


def test_a_node_shows_what_it_has_saved():
    a, b = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([4.0, 5.0])
    y = a * b
    assert y.grad_fn._saved_other is b and y.grad_fn._saved_self is None
    assert torch.equal(a.exp().grad_fn._saved_result, a.exp()) and (a**2.5).grad_fn._saved_exponent == 2.5
    assert torch.softmax(a, 0).grad_fn._saved_result.tolist() == torch.softmax(a, 0).tolist()
    with pytest.raises(AttributeError, match="'SinBackward0' object has no attribute '_saved_other'"):
        a.sin().grad_fn._saved_other
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn._saved_other


def test_hooks_are_put_on_what_is_saved_already():
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    y = a.sin()
    kept = y.grad_fn._raw_saved_self
    assert isinstance(kept, torch.autograd.SavedTensor) and kept.data is a
    kept.register_hooks(lambda t: t.tolist(), lambda values: torch.tensor(values) * 2)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        kept.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        (a * 3).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert torch.allclose(a.grad, (a.detach() * 2).cos())
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()
