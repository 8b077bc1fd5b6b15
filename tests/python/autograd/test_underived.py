"""Functions that PyTorch has no derivative of are refused in backward, in its words; none counts silently as a constant. The node and the gradient or
the error of each call are PyTorch 2.15's."""

import re

import pytest

import naru as torch

REFUSED = {  # an operator without a row in PyTorch's table of derivatives
    "x // 2": "floor_divide", "2 // x": "floor_divide", "x // x": "floor_divide", "torch.floor_divide(x, 2)": "floor_divide",
    "x.clone().floor_divide_(2)": "floor_divide_", "torch.remainder(2, x)": "remainder", "2 % x": "remainder",
    "torch.bincount(torch.tensor([0, 1, 1]), x)": "bincount", "torch.heaviside(x, x)": "heaviside",
    "torch.histogram(x, 3)[0]": "histogram", "torch.histogram(x, 3)[1]": "histogram",
    "torch.histogram(x, torch.tensor([0.0, 2.0, 6.0]))[0]": "histogram", "torch.histogram(torch.ones(3), 3, weight=x)[0]": "histogram",
    "torch.histogramdd(x.reshape(3, 1), [2])[0]": "_histogramdd_from_bin_cts",
    "torch.histogramdd(x.reshape(3, 1), [2])[1][0]": "_histogramdd_bin_edges",
    "torch.histogramdd(x.reshape(3, 1), [torch.tensor([0.0, 2.0, 6.0])])[0]": "_histogramdd_from_bin_tensors",
    "torch.linalg.ldl_factor(torch.diag(x))[0]": "linalg_ldl_factor_ex",
    "torch.linalg.ldl_factor_ex(torch.diag(x)).LD": "linalg_ldl_factor_ex",
    "torch.linalg.ldl_solve(torch.diag(x), torch.tensor([1, 2, 3]), torch.ones(3, 1))": "linalg_ldl_solve",
    "torch.linalg.ldl_solve(torch.eye(3), torch.tensor([1, 2, 3]), x.reshape(3, 1))": "linalg_ldl_solve",
}  # fmt: skip
UNDERIVED = {  # one whose row says that there is none
    "torch.unique(x)": ("Unique2Backward0", "_unique2"), "torch.unique(x, return_inverse=True)[0]": ("Unique2Backward0", "_unique2"),
    "torch.unique(x, dim=0)": ("UniqueDimBackward0", "unique_dim"),
    "torch.unique_consecutive(x)": ("UniqueConsecutiveBackward0", "unique_consecutive"),
    "torch.unique_consecutive(x, dim=0)": ("UniqueConsecutiveBackward0", "unique_consecutive"),
    "torch.geqrf(torch.diag(x))[0]": ("GeqrfBackward0", "geqrf"), "torch.geqrf(torch.diag(x))[1]": ("GeqrfBackward0", "geqrf"),
    "torch.special.zeta(x + 1, 2)": ("SpecialZetaBackward2", "zeta"), "torch.special.zeta(x + 1, x)": ("SpecialZetaBackward0", "zeta"),
    "torch.igamma(x, x)": ("IgammaBackward0", "igamma: input"),
}  # fmt: skip
DERIVED = {  # their relatives that have one
    "torch.remainder(torch.tensor(2.0), x)": ("RemainderBackward1", [-2.0, 0.0, -2.0]),
    "torch.div(x, 2, rounding_mode='floor')": ("DivBackward2", [0.0, 0.0, 0.0]),
    "torch.div(2, x, rounding_mode='floor')": ("DivBackward2", [0.0, 0.0, 0.0]),
    "torch.div(x, 2, rounding_mode='trunc')": ("DivBackward2", [0.0, 0.0, 0.0]),
    "x.clone().div_(2, rounding_mode='floor')": (None, [0.0, 0.0, 0.0]),
    "x.clone()[:2].div_(2, rounding_mode='floor')": (None, [0.0, 0.0, 0.0]),
    "x.detach().clone().div_(x, rounding_mode='floor')": (None, [0.0, 0.0, 0.0]),
    "torch.special.zeta(torch.tensor([2.0, 3.0, 4.0]), x)":
        ("SpecialZetaBackward0", [-2.40411376953125, -0.010713914409279823, -4.147710800170898]),
}  # fmt: skip


def called(text):
    x = torch.tensor([1.0, 5.0, 1.0], requires_grad=True)
    return x, eval(text, {"torch": torch, "x": x})


@pytest.mark.parametrize("text", REFUSED)
def test_an_operator_without_a_derivative_is_refused_in_backward(text):
    _, y = called(text)
    assert y.requires_grad and y.grad_fn.name() == "NotImplemented"
    with pytest.raises(RuntimeError, match=re.escape(f"derivative for aten::{REFUSED[text]} is not implemented")):
        y.sum().backward()


def test_a_view_is_refused_too():
    _, y = called("x.clone()[:2].floor_divide_(2)")
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide_ is not implemented"):
        y.sum().backward()


@pytest.mark.parametrize("text", UNDERIVED)
def test_an_operator_that_says_so_is_refused_in_backward(text):
    node, name = UNDERIVED[text]
    _, y = called(text)
    assert y.requires_grad and y.grad_fn.name() == node
    with pytest.raises(NotImplementedError, match=re.escape(f"the derivative for '{name}' is not implemented.")):
        y.sum().backward()


@pytest.mark.parametrize("text", DERIVED)
def test_their_relatives_have_pytorchs_gradients(text):
    node, gradient = DERIVED[text]
    x, y = called(text)
    assert node is None or y.grad_fn.name() == node
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor(gradient))


@pytest.mark.parametrize("text", [*REFUSED, *UNDERIVED])
def test_nothing_is_recorded_without_gradients(text):
    with torch.no_grad():
        assert not called(text)[1].requires_grad
    x = torch.tensor([1.0, 5.0, 1.0])
    assert not eval(text, {"torch": torch, "x": x}).requires_grad


def test_forward_derivatives_are_refused_and_those_of_div_are_zero():
    x = (torch.ones(3),)
    for f in (lambda v: v // 2, lambda v: torch.remainder(2, v)):
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with aten::.* that does not support it"):
            torch.func.jvp(f, x, x)
    for mode in ("floor", "trunc"):
        assert torch.func.jvp(lambda v, m=mode: torch.div(v, 2, rounding_mode=m), x, x)[1].tolist() == [0, 0, 0]


def test_transforms_refuse_them_as_well():
    x = torch.ones(3, 2)
    for f in (torch.func.vmap(torch.func.grad(lambda v: (v // 2).sum())), torch.func.grad(lambda v: torch.func.vmap(lambda r: r // 2)(v).sum())):
        with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
            f(x)
    down = {"rounding_mode": "floor"}
    for f in (torch.func.vmap(torch.func.grad(lambda v: torch.div(v, 2, **down).sum())),
              torch.func.grad(lambda v: torch.func.vmap(lambda r: torch.div(r, 2, **down))(v).sum())):  # fmt: skip
        assert torch.equal(f(x), torch.zeros(3, 2))
    assert torch.equal(torch.func.vmap(lambda v: v // 2)(x), torch.zeros(3, 2))


def test_the_second_derivative_of_a_remainder_is_zero():
    a, b = (torch.tensor(v, requires_grad=True) for v in ([5.0, 3.0], [2.0, 2.0]))
    for f in (torch.remainder, torch.fmod):
        (g,) = torch.autograd.grad(f(a, b).sum(), b, create_graph=True)
        assert [h.tolist() for h in torch.autograd.grad(g.sum(), (a, b))] == [[0, 0], [0, 0]]
