"""grad(outputs, inputs) and backward(inputs=...) compute the gradients that lead to the given inputs, with the bits of a full pass, and no others."""
import pytest

import naru
import naru.nn.functional as F
from bitwise import bits
from naru.testing.operator_cases import CASES, as_tuple, differentiable, on_device
from naru.utils.flop_counter import FlopCounterMode

def nodes_of(*outputs):
    found, ahead = [], [t.grad_fn for t in outputs if t.grad_fn is not None]
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.append(node)
            ahead += [after for after, _ in node.next_functions if after is not None]
    return found


def leading_to(leaf_node, nodes):
    """The nodes from which a gradient reaches the leaf's."""
    reaching = [leaf_node]
    while True:
        more = [n for n in nodes if n not in reaching and any(after in reaching for after, _ in n.next_functions)]
        if not more:
            return reaching
        reaching += more


def watched(nodes, reaching, computed):
    """Notes the nodes that computed a gradient which leads elsewhere."""
    def hook(node):
        def look(grad_inputs, _):
            edges = node.next_functions
            if len(edges) == len(grad_inputs):
                computed.extend(node.name() for (after, _), g in zip(edges, grad_inputs) if after is not None and after not in reaching and g is not None)
        return look

    return [n.register_hook(hook(n)) for n in nodes]


SEVERAL = [c for c in CASES if c.gradient and len(differentiable(c, c.operands(4))) > 1]


@pytest.mark.parametrize("case", SEVERAL, ids=[c.name for c in SEVERAL])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pass_for_one_operand_computes_its_gradient_alone(case, dtype):
    operands = on_device(case.operands(4), "cpu", getattr(naru, dtype))
    wanted = differentiable(case, case.operands(4))
    for i in wanted:
        operands[i].requires_grad_()
    outputs = [t for t in as_tuple(case.run(*operands)) if t.requires_grad]
    weights = [naru.rand_like(t) for t in outputs]
    full = naru.autograd.grad(outputs, [operands[i] for i in wanted], weights, retain_graph=True, allow_unused=True)
    nodes = nodes_of(*outputs)
    for i, expected in zip(wanted, full):
        if expected is None:
            continue
        leaf = next((n for n in nodes if getattr(n, "variable", None) is operands[i]), None)
        assert leaf is not None
        computed = []
        handles = watched(nodes, leading_to(leaf, nodes), computed)
        alone, = naru.autograd.grad(outputs, [operands[i]], weights, retain_graph=True)
        for handle in handles:
            handle.remove()
        assert computed == []
        assert bits(alone) == bits(expected)
        assert alone.stride() == expected.stride()


def operands(shapes, **options):
    return [naru.randn(*shape, **options).requires_grad_() for shape in shapes]


COSTLY = {  # name: call, shapes, and for each operand the products that its gradient takes, in products of the forward pass
    "mm": (naru.mm, [(6, 7), (7, 8)], [1, 1]),
    "bmm": (naru.bmm, [(3, 6, 7), (3, 7, 8)], [1, 1]),
    "linear": (F.linear, [(6, 7), (8, 7), (8,)], [1, 1, 0]),
    "addmm": (naru.addmm, [(8,), (6, 7), (7, 8)], [0, 1, 1]),
    "conv2d": (F.conv2d, [(2, 4, 9, 9), (6, 4, 3, 3), (6,)], [1, 1, 0]),
    "conv_transpose2d": (F.conv_transpose2d, [(2, 4, 9, 9), (4, 6, 3, 3), (6,)], [1, 1, 0]),
    "attention": (F.scaled_dot_product_attention, [(1, 1, 8, 4)] * 3, [1.5, 1.5, 1]),  # its forward pass has two products; each computes the weights again
}


@pytest.mark.parametrize("name", COSTLY)
@pytest.mark.parametrize("of_inputs", [False, True], ids=["grad", "backward"])
def test_a_product_for_what_is_not_needed_is_not_made(name, of_inputs):
    call, shapes, costs = COSTLY[name]
    given = operands(shapes)
    with FlopCounterMode(display=False) as forward:
        y = call(*given)
    for operand, cost in zip(given, costs):
        with FlopCounterMode(display=False) as counted:
            if of_inputs:
                y.backward(naru.ones_like(y), inputs=[operand], retain_graph=True)
            else:
                naru.autograd.grad(y, operand, naru.ones_like(y), retain_graph=True)
        assert counted.get_total_flops() == cost * forward.get_total_flops()
    with FlopCounterMode(display=False) as counted:
        y.backward(naru.ones_like(y))
    assert counted.get_total_flops() >= 2 * forward.get_total_flops()


def test_attention_in_blocks_computes_what_is_needed():
    q, k, v = operands([(1, 1, 2300, 4)] * 3)  # more scores than are kept for backward
    mask = naru.randn(2300, 2300).requires_grad_()
    y = F.scaled_dot_product_attention(q, k, v, mask)
    assert y.grad_fn.name() == "ScaledDotProductAttentionBackward0"
    given = [q, k, v, mask]
    weights = naru.randn(*y.shape)
    full = naru.autograd.grad(y, given, weights, retain_graph=True)
    seen = []
    y.grad_fn.register_hook(lambda grads, _: seen.append([g is not None for g in grads]))
    for i in range(4):
        alone, = naru.autograd.grad(y, given[i], weights, retain_graph=True)
        assert seen[-1] == [k == i for k in range(4)]
        assert bits(alone) == bits(full[i])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_other_types_give_the_bits_of_a_full_pass(dtype):
    for call, shapes in [(naru.mm, [(6, 7), (7, 8)]), (F.conv2d, [(2, 4, 9, 9), (6, 4, 3, 3)]), (naru.mul, [(6, 7), (7,)])]:
        given = operands(shapes, dtype=getattr(naru, dtype))
        y = call(*given)
        full = naru.autograd.grad(y, given, y.detach(), retain_graph=True)
        for operand, expected in zip(given, full):
            assert bits(naru.autograd.grad(y, operand, y.detach(), retain_graph=True)[0]) == bits(expected)


def test_an_operand_that_is_a_result_gets_its_gradient():
    x, w = operands([(5, 6), (6, 7)])
    middle = x * 2
    y = middle @ w
    seen = []
    y.grad_fn.register_hook(lambda grads, _: seen.append([g is not None for g in grads]))
    middle.register_hook(lambda g: seen.append("hook"))
    g, = naru.autograd.grad(y.sum(), middle, retain_graph=True)
    assert g.tolist() == (naru.ones(5, 7) @ w.detach().T).tolist()
    y.sum().backward(inputs=[w], retain_graph=True)
    assert seen == [[True, False], "hook", [False, True]] and x.grad is None and w.grad is not None
    y.sum().backward(inputs=[x])
    assert seen[3:] == [[True, False], "hook"] and x.grad is not None


def test_gradients_of_gradients_need_what_leads_to_the_inputs():
    x, w = operands([(5, 6), (6, 7)], dtype=naru.float64)
    y = (x @ w).pow(3)
    gx, gw = naru.autograd.grad(y.sum(), [x, w], create_graph=True)
    expected = naru.autograd.grad(gx.sum(), [x, w], retain_graph=True)
    g, = naru.autograd.grad(y.sum(), x, create_graph=True)
    for i, operand in enumerate([x, w]):
        assert bits(naru.autograd.grad(g.sum(), operand, retain_graph=True)[0]) == bits(expected[i])


def test_a_pass_within_a_pass_has_needs_of_its_own():
    x, w = operands([(5, 6), (6, 7)])
    a, b = operands([(5, 6), (6, 7)])
    inner = (a @ b).sum()
    y = x @ w
    y.register_hook(lambda g: inner.backward())
    naru.autograd.grad(y.sum(), w)
    assert a.grad is not None and b.grad is not None


@pytest.mark.parametrize("write", [lambda part, w: part.copy_(w), lambda part, w: part.mul_(w), lambda part, w: part.addmm_(w, w),
                                   lambda part, w: part.index_add_(0, naru.tensor([0, 1]), w[:2]), lambda part, w: part.masked_fill_(part > 0, w.sum())],
                         ids=["copy_", "mul_", "addmm_", "index_add_", "masked_fill_"])
def test_a_write_to_a_view_gives_each_gradient_alone(write):
    x, w = operands([(8, 4), (4, 4)], dtype=naru.float64)
    y = x * 1
    write(y[2:6], w)
    weights = naru.randn(8, 4, dtype=naru.float64)
    full = naru.autograd.grad(y, [x, w], weights, retain_graph=True)
    for operand, expected in zip([x, w], full):
        assert bits(naru.autograd.grad(y, operand, weights, retain_graph=True)[0]) == bits(expected)


def test_a_derivative_that_does_not_exist_is_no_error_where_it_is_not_needed():
    a, x = naru.tensor([2.0]).requires_grad_(), naru.tensor([1.0]).requires_grad_()
    y = naru.igamma(a, x)
    assert naru.autograd.grad(y, x, retain_graph=True)[0].item() == pytest.approx(0.36787944)
    with pytest.raises(NotImplementedError, match="igamma: input"):
        naru.autograd.grad(y, [a, x])
