"""Forward derivatives by the rules of nodes (src/autograd/engine/forward.h) are those of the whole backward, differentiated by its start."""

import numpy as np
import pytest

import naru as torch
from naru.testing.operator_cases import CASES, as_tuple, differentiable, on_device
from second_derivatives import REFUSED

GRADIENTS = [c for c in CASES if c.gradient]


def _of(case, arrays, dtype, positions):
    """The operands, and the case as a function of those at `positions`, which gives the results that can have tangents."""
    operands = on_device(arrays, "cpu", dtype)

    def function(*given):
        torch.manual_seed(3)  # dropout draws the same mask again
        full = list(operands)
        for i, x in zip(positions, given):
            full[i] = x
        return tuple(o for o in as_tuple(case.run(*full)) if o.is_floating_point() or o.is_complex())

    return [operands[i] for i in positions], function


def _by_backward(function, inputs, tangents):
    """The inputs' copies, and the tangents of the results that depend on them; backward is linear in its start, so its derivative by that is theirs."""
    copies = [x.clone().requires_grad_() for x in inputs]
    outputs = function(*[x.clone() for x in copies])
    starts = [torch.zeros_like(o.detach()).requires_grad_() for o in outputs]
    depending = [i for i, o in enumerate(outputs) if o.requires_grad]
    first = torch.autograd.grad([outputs[i] for i in depending], copies, [starts[i] for i in depending], create_graph=True, allow_unused=True)
    pairs = [(g, t) for g, t in zip(first, tangents) if g is not None and g.requires_grad]
    found = torch.autograd.grad([g for g, _ in pairs], starts, [t for _, t in pairs], create_graph=True, allow_unused=True)
    return copies, [torch.zeros_like(outputs[i].detach()) if found[i] is None else found[i] for i in depending], depending


def _dense(t):
    t = t.detach()
    return (t.to_dense() if t.layout != torch.strided else t).numpy()


def _second(tangents, inputs):
    """Gradients of a sum over tangents of float64; None where they don't depend on an input."""
    used = [(t if t.layout == torch.strided else t.to_dense()) for t in tangents if t.requires_grad]
    if not used:
        return [None] * len(inputs)
    total = sum((torch.view_as_real(t) if t.is_complex() else t).cos().sum() for t in used)
    return torch.autograd.grad(total, inputs, allow_unused=True)


@pytest.mark.parametrize("case", GRADIENTS, ids=[c.name for c in GRADIENTS])
def test_tangents_and_their_gradients_are_those_of_the_whole_backward(case):
    if case.name in REFUSED and "ctc_loss" not in case.name:
        pytest.skip("without second derivatives, as in PyTorch (test_second_derivatives.py)")
    if "ctc_loss" in case.name:
        with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
            inputs, function = _of(case, case.operands(5), torch.float64, [0])
            torch.func.jvp(function, tuple(inputs), tuple(torch.ones_like(x) for x in inputs))
        return
    arrays = case.operands(5)
    wanted = differentiable(case, arrays)
    # All operands with a tangent, and each by itself: a rule is given nothing for the others.
    for positions in [wanted, *([i] for i in wanted if len(wanted) > 1)]:
        inputs, function = _of(case, arrays, torch.float64, positions)
        torch.manual_seed(1)
        tangents = [torch.randn(*x.shape[::-1], dtype=x.dtype).permute(*range(x.dim() - 1, -1, -1)) for x in inputs]  # they lie in another order
        copies, expected, depending = _by_backward(function, inputs, tangents)
        fresh = [x.clone().requires_grad_() for x in inputs]
        values, got = torch.func.jvp(function, tuple(fresh), tuple(tangents))
        got = [got[i] for i in depending]
        for value, a, b in zip([values[i] for i in depending], got, expected):
            assert a.shape == value.shape and a.dtype == value.dtype and a.device == value.device
            np.testing.assert_allclose(_dense(a), _dense(b), rtol=1e-8, atol=1e-9)
        try:
            second = _second(expected, copies)
        except (RuntimeError, NotImplementedError):
            continue  # backward has no second derivative here
        for a, b in zip(_second(got, fresh), second):
            none = np.zeros(())
            np.testing.assert_allclose(none if a is None else _dense(a), none if b is None else _dense(b), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", GRADIENTS, ids=[c.name for c in GRADIENTS])
def test_tangents_have_their_results_types(case, dtype):
    arrays = case.operands(5)
    wanted = differentiable(case, arrays)
    inputs, function = _of(case, arrays, getattr(torch, dtype), wanted)
    torch.manual_seed(1)
    tangents = [torch.randn_like(x) for x in inputs]
    try:
        _, expected, depending = _by_backward(function, inputs, tangents)
    except (RuntimeError, NotImplementedError):
        return  # the type, or its second derivative, is refused
    values, got = torch.func.jvp(function, tuple(inputs), tuple(tangents))
    step = 2e-4 if dtype == "float32" else 0.1
    for i, b in zip(depending, expected):
        assert got[i].shape == values[i].shape and got[i].dtype == values[i].dtype == b.dtype
        a, b = (torch.view_as_real(t) if t.is_complex() else t for t in (got[i], b))
        a, b = (_dense(t.float()) for t in (a, b))
        np.testing.assert_allclose(a, b, rtol=step, atol=step * max(1.0, float(np.abs(b).max(initial=0))))


def test_a_long_chain_needs_no_recursion_and_lets_go_of_tangents():
    def chain(x):
        for _ in range(30000):
            x = x + 1.0
        return x

    value, tangent = torch.func.jvp(chain, (torch.zeros(4),), (torch.ones(4),))
    assert value.tolist() == [30000.0] * 4 and tangent.tolist() == [1.0] * 4


def test_a_walk_costs_the_nodes_that_lead_to_the_result_alone():
    calls = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 2

    def f(x):
        Counted.apply(x)  # its result is not used
        return Counted.apply(x).sin()

    torch.func.jvp(f, (torch.ones(3),), (torch.ones(3),))
    assert len(calls) == 1


def test_tangents_of_other_tensors_that_require_grad_can_be_differentiated():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    import naru.autograd.forward_ad as fwad

    with fwad.dual_level():
        y = fwad.make_dual(torch.ones(2), torch.tensor([1.0, 10.0])) * w * w
        tangent = fwad.unpack_dual(y).tangent
        plain = fwad.unpack_dual(fwad.make_dual(torch.ones(2), torch.ones(2)).exp()).tangent
    assert not plain.requires_grad and tangent.requires_grad
    tangent.sum().backward()
    assert w.grad.tolist() == [4.0, 60.0]
