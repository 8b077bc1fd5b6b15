"""What a gradient depends on and what is saved for it: second derivatives that are 0, operands that no derivative reads, the layout of gradients."""
import naru as torch
import pytest

F = torch.nn.functional

FLAT = {"relu": torch.relu, "relu6": F.relu6, "leaky_relu": lambda y: F.leaky_relu(y, 0.2), "threshold": lambda y: F.threshold(y, 0.2, 1.0),
        "hardtanh": F.hardtanh, "softshrink": F.softshrink, "hardshrink": F.hardshrink}  # fmt: skip
MASKED = {
    "maximum": lambda y: torch.maximum(y, torch.zeros(4)), "minimum": lambda y: torch.minimum(y, torch.zeros(4)), "fmax": lambda y: torch.fmax(y, torch.zeros(4)),
    "fmin": lambda y: torch.fmin(torch.zeros(4), y), "clamp": lambda y: y.clamp(0, 2), "clamp_min": lambda y: y.clamp(min=torch.zeros(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAT)
def test_the_second_derivative_of_what_is_made_of_lines_is_zero_and_not_missing(name):
    y = torch.tensor([0.3, -0.5, 1.2, float("inf")], requires_grad=True)
    first = torch.autograd.grad(FLAT[name](y).sum(), y, create_graph=True)[0]
    assert first.requires_grad
    assert torch.equal(first.detach(), torch.autograd.grad(FLAT[name](y).sum(), y)[0])
    assert torch.autograd.grad(first.sum(), y)[0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", MASKED)
def test_gradients_that_pytorch_makes_with_masks_depend_on_nothing(name):
    y = torch.tensor([0.3, -0.5, 1.2, float("inf")], requires_grad=True)
    assert not torch.autograd.grad(MASKED[name](y).sum(), y, create_graph=True)[0].requires_grad


def test_a_penalty_on_gradients_reaches_the_biases_of_hidden_layers():
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.LeakyReLU(0.2), torch.nn.Linear(4, 1))
    x = torch.randn(3, 2, requires_grad=True)
    gradient = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    ((gradient.norm(2, dim=1) - 1) ** 2).mean().backward()
    assert net[0].bias.grad.tolist() == [0] * 4 and net[2].bias.grad is None and x.grad.abs().sum() == 0


W = torch.rand(2, 2) + 0.5
PRODUCTS = {
    "mm": lambda x: x @ W, "linear": lambda x: F.linear(x, W), "bmm": lambda x: torch.bmm(x[None], W[None]), "mv": lambda x: torch.mv(x, W[0]), "dot": lambda x: torch.dot(x[0], W[0]),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, W), "addmm": lambda x: torch.addmm(W, x, W), "second factor": lambda x: torch.bmm(W[None], x[None]), "matmul": lambda x: torch.matmul(W, x[None]),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_factor_that_no_derivative_reads_may_be_overwritten(name):
    p = (torch.rand(2, 2) + 0.5).requires_grad_()
    expected = torch.autograd.grad(PRODUCTS[name](p * 1).sum(), p)[0]
    x = p * 1
    out = PRODUCTS[name](x)
    x.mul_(2)
    out.sum().backward()
    assert torch.equal(p.grad, expected)


def test_a_matrix_that_nothing_needs_is_not_saved():
    p = torch.ones(2, 3, requires_grad=True)
    y = p.clone()
    y.addmm_(torch.ones(2, 2), y.detach())
    y.sum().backward()
    assert p.grad.tolist() == [[1] * 3] * 2


def test_what_a_derivative_reads_may_not():
    x, w = torch.rand(2, 2).requires_grad_(), torch.rand(2, 2).requires_grad_()
    for multiply in (torch.mm, lambda a, b: torch.bmm(a[None], b[None]), lambda a, b: torch.mv(a, b[0]), lambda a, b: torch.dot(a[0], b[0]), lambda a, b: torch.addmm(W, a, b)):
        a = x * 1
        out = multiply(a, w)
        a.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_the_gradient_of_a_transposed_factor_lies_as_the_factor():
    net = torch.nn.Linear(3, 4)
    each = torch.func.vmap(torch.func.grad(lambda p, x: torch.func.functional_call(net, p, (x[None],)).sum()), (None, 0))
    x = torch.randn(5, 3)
    found = each(dict(net.named_parameters()), x)["weight"]
    assert found.is_contiguous() and torch.equal(found.view(5, -1), x[:, None].expand(5, 4, 3).reshape(5, -1))
    for shape, multiply in (((4, 3), torch.mm), ((2, 4, 3), torch.bmm)):
        w, a = torch.randn(shape, requires_grad=True), torch.randn(*shape[:-2], 5, 3, requires_grad=True)
        g = torch.randn(*shape[:-2], 5, 4)
        turned, plain = (torch.autograd.grad(multiply(a, f), (w, a), g) for f in (w.transpose(-2, -1), w.transpose(-2, -1).contiguous()))
        assert turned[0].is_contiguous() and all(torch.allclose(t, p, atol=1e-5) for t, p in zip(turned, plain))
