"""functorch: modules as functions of their parameters, and its functions, which are now in torch.func."""
import copy

import naru as torch
import pytest
from naru import functorch
from naru.functorch import experimental

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated and will be deleted")


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.weight = self.first.weight
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        return torch.nn.functional.linear(self.first(x), self.weight) + self.shift


def test_a_module_is_a_function_of_the_parameters_of_another():
    one, other, x = Tied(), Tied(), torch.randn(2, 3)
    f, _, _ = functorch.make_functional_with_buffers(one)
    g, params, buffers = functorch.make_functional_with_buffers(other)
    assert len(params) == 2 and len(buffers) == 1 and params[0].requires_grad and params[0] is not other.weight
    assert torch.equal(f(params, buffers, x), other(x)) and torch.equal(g(params, buffers, x), other(x))
    assert torch.equal(copy.deepcopy(f)(params, buffers, x), other(x))
    with pytest.raises(RuntimeError, match=r"wanted 2 parameters \(weight, first.bias\), got 1"):
        f(params[:1], buffers, x)
    with pytest.raises(RuntimeError, match="`model` has buffers. Please use make_functional_with_buffers"):
        functorch.make_functional(one)
    f, params = functorch.make_functional(torch.nn.Linear(3, 1), disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in params)
    grads = torch.func.grad(lambda p: f(p, x).sum())(params)
    assert grads[1].tolist() == [2.0]


def test_an_ensemble_is_one_function_of_stacked_parameters():
    models, x = [Tied() for _ in range(3)], torch.randn(2, 3)
    f, params, buffers = functorch.combine_state_for_ensemble(models)
    torch.testing.assert_close(torch.vmap(f, (0, 0, None))(params, buffers, x), torch.stack([m(x) for m in models]))
    for wrong, said in (([], "at least one model"), ([models[0], copy.deepcopy(models[0]).eval()], "same training/eval mode"),
                        ([models[0], torch.nn.Linear(3, 3)], "models to be of the same class")):
        with pytest.raises(RuntimeError, match=said):
            functorch.combine_state_for_ensemble(wrong)


def test_older_names_say_what_they_are_now():
    for name in ("grad", "jacrev", "jacfwd", "hessian", "vjp", "functionalize"):
        with pytest.warns(FutureWarning, match=f"Please use `torch.func.{name}`"):
            getattr(functorch, name)(torch.sin, *([torch.ones(2)] if name == "vjp" else []))
    with pytest.warns(FutureWarning, match="Please use `torch.vmap`"):
        functorch.vmap(torch.sin)


def test_chunks_and_batch_norms_of_vmap():
    x = torch.randn(5, 3)
    for chunks in (1, 2, 7):
        assert torch.equal(experimental.chunk_vmap(lambda a, b: a + b, (0, None), chunks=chunks)(x, x[0]), x + x[0])
    net = experimental.replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))
    assert torch.vmap(net)(torch.randn(4, 5, 3)).shape == (4, 5, 3) and not list(net.buffers())
    with pytest.raises(RuntimeError, match="Valid options are"):
        torch.func.functionalize(torch.sin, remove="all")
