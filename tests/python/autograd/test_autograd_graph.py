"""The graph as programs walk it: nodes, their classes, names and edges, attributes of tensors, and what owns what."""
import gc
import weakref

import pytest

import naru as torch


def leaf(*shape):
    return (torch.rand(*shape) + 0.5).requires_grad_()


def edges(t):
    return [None if node is None else type(node).__name__ for node, _ in t.grad_fn.next_functions]


a, b = leaf(3, 4), leaf(3, 4)
A = "AccumulateGrad"
NODES = {
    "a + b": ("AddBackward0", [A, A]), "2 + a": ("AddBackward0", [A, None]), "a + 2": ("AddBackward0", [A, None]),
    "2 * a": ("MulBackward0", [A, None]), "a * 2": ("MulBackward0", [A, None]), "a - 2": ("SubBackward0", [A, None]),
    "2 - a": ("RsubBackward1", [A]), "a / 2": ("DivBackward0", [A, None]), "a ** 2": ("PowBackward0", [A]),
    "a ** b": ("PowBackward1", [A, A]), "2 ** a": ("PowBackward2", [A]), "torch.add(a, b, alpha=2)": ("AddBackward0", [A, A]),
    "a % 2": ("RemainderBackward0", [A]), "a % b": ("RemainderBackward1", [A, A]), "a.square()": ("PowBackward0", [A]),
    "a.clamp(0, 1)": ("ClampBackward1", [A]), "torch.lerp(a, b, 0.5)": ("LerpBackward0", [A, A]), "torch.lerp(a, b, b)": ("LerpBackward1", [A, A, A]),
    "torch.where(a > 1, a, b)": ("WhereBackward0", [A, A]), "a.log1p()": ("Log1PBackward0", [A]), "a.T": ("PermuteBackward0", [A]),
    "torch.nn.functional.leaky_relu(a)": ("LeakyReluBackward0", [A]), "torch.nn.functional.elu(a)": ("EluBackward0", [A]),
    "torch.nn.functional.logsigmoid(a)": ("LogSigmoidBackward0", [A]), "torch.nn.functional.relu6(a)": ("HardtanhBackward0", [A]),
    "a @ b.detach().T": ("MmBackward0", [A, None]), "a.sum()": ("SumBackward0", [A]), "a.exp()": ("ExpBackward0", [A]),
}  # fmt: skip


@pytest.mark.parametrize("text", NODES)
def test_nodes_have_pytorchs_names_classes_and_edges(text):
    result = eval(text)
    name, inputs = NODES[text]
    assert type(result.grad_fn).__name__ == name == result.grad_fn.name() and edges(result) == inputs
    assert type(result.grad_fn) is type(eval(text).grad_fn) and isinstance(result.grad_fn, torch._C.Node)
    assert repr(result.grad_fn).startswith(f"<{name} object at 0x")


def test_a_node_is_one_object_as_long_as_anybody_looks():
    y = a * 2
    f = y.grad_fn
    f.note = "kept"
    assert y.grad_fn is f and y.grad_fn.note == "kept" and y.exp().grad_fn.next_functions[0][0] is f
    f.metadata["key"] = 1
    assert y.grad_fn.metadata == {"key": 1} and f.requires_grad and f._sequence_nr() < y.exp().grad_fn._sequence_nr()


def test_a_leafs_node_knows_the_leaf_and_does_not_keep_it():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    assert node.name() == "torch::autograd::AccumulateGrad" and repr(node).startswith("<AccumulateGrad object") and node.variable is x
    assert not hasattr(y.grad_fn, "variable")
    del x
    assert node.variable is None
    y.sum().backward()


def test_a_walk_over_the_graph_ends_at_the_leaves():
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    todo, found = [net(torch.ones(2, 4)).sum().grad_fn], set()
    while todo:
        node = todo.pop()
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        todo += [n for n, _ in node.next_functions if n is not None]
    assert found == {id(p) for p in net.parameters()}


def test_a_functions_node_has_its_name_and_what_its_context_has():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            ctx.save_for_backward(x)
            return x * factor, x + 1

        @staticmethod
        def backward(ctx, g, h):
            return g * ctx.factor, None

    y, z = Scale.apply(a, 3)
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "ScaleBackward" and y.grad_fn is z.grad_fn and y.grad_fn.factor == 3
    assert y.grad_fn.saved_tensors[0] is a and (y.output_nr, z.output_nr, a.output_nr) == (0, 1, 0)
    with pytest.raises(AttributeError):
        y.grad_fn.no_such_thing  # noqa: B018


def test_hooks_on_nodes_see_and_replace_gradients():
    x = torch.ones(2, requires_grad=True)
    y, seen = x * 2, []
    y.grad_fn.register_hook(lambda gi, go: seen.append([gi[0].tolist(), gi[1], go[0].tolist()]))
    handle = y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.sum().backward(retain_graph=True)
    assert seen == [[[6.0, 6.0], None, [3.0, 3.0]]] and x.grad.tolist() == [6.0, 6.0]
    handle.remove()
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [26.0, 26.0]
    for bad, error, text in ((5, TypeError, "expected tuple, but hook returned 'int'"), ((x.detach(),), RuntimeError, r"incorrect number of values \(got 1, but expected 2\)"),
                             ((torch.ones(9), None), RuntimeError, "has changed the size of value")):  # fmt: skip
        z = x * 2
        z.grad_fn.register_hook(lambda gi, go, bad=bad: bad)
        with pytest.raises(error, match=text):
            z.sum().backward()


# --- objects of tensors that only C++ still knows


def test_attributes_of_a_grad_stay():
    p = torch.nn.Parameter(torch.ones(2))
    (p * 2).sum().backward()
    p.grad.tag = "mine"
    first = id(p.grad)
    gc.collect()
    assert p.grad.tag == "mine" and id(p.grad) == first and p.grad is p.grad
    (p * 2).sum().backward()
    assert p.grad.tag == "mine" and p.grad.tolist() == [4.0, 4.0]


def test_an_assigned_grad_is_the_object_that_was_assigned():
    class Token:
        pass

    token = Token()
    ref = weakref.ref(token)
    x, z = torch.empty(2), torch.empty(2)
    x.token = token
    z.grad = x
    number = id(x)
    del x, token
    gc.collect()
    assert id(z.grad) == number and z.grad.token is ref()
    z.grad = None
    gc.collect()
    assert ref() is None


def test_a_parameter_that_only_a_graph_knows_is_still_one():
    def loss():
        p = torch.nn.Parameter(torch.ones(2))
        p.name_of_it = "p"
        saved = (p * p).sum()
        return saved, weakref.ref(p)

    y, ref = loss()
    gc.collect()
    assert isinstance(ref(), torch.nn.Parameter) and ref().name_of_it == "p"
    y.backward()
    del y
    gc.collect()
    assert ref() is None


def test_weak_references_to_plain_tensors_end_with_their_objects():
    x = torch.ones(3, requires_grad=True) * 1
    y = x * x
    ref = weakref.ref(x)
    del x
    assert ref() is None
    y.sum().backward()


def test_views_and_leaves_change_their_shape_in_place():
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    base = x * 1
    view = base.view(3, 2)
    view.t_()
    view.mul_(2)
    (base * torch.arange(6.0).view(2, 3)).sum().backward()
    assert view.shape == (2, 3) and x.grad.tolist() == [[0, 2, 4], [6, 8, 10]]
    with torch.no_grad():
        x.t_()
    x.grad = None
    x.sum().backward()
    assert x.grad.shape == (3, 2)


def test_gradients_of_gradients_reach_a_written_view_by_its_base_and_by_its_saved_result():
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    z = x * 1
    z[0].exp_()
    (g,) = torch.autograd.grad((z * z).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((g * g).sum(), x)  # frees the graph on its way
    expected = torch.stack([16 * (4 * x[0]).exp(), 8 * x[1]])  # of (2 e^2x)^2 and (2x)^2
    assert torch.allclose(second, expected)
