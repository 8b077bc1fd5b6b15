"""The Python API of autograd: Function, grad, gradient modes."""
import gc
import weakref

import naru as torch
import pytest
from naru.autograd import Function, Variable, grad


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor, other):
        ctx.factor = factor
        return x * factor, other + 1

    @staticmethod
    def backward(ctx, g_x, g_other):
        return g_x * ctx.factor, None, g_other


def test_a_function_has_its_own_derivative():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x)
    assert y.tolist() == [1.0, 8.0] and y.requires_grad and "CubeBackward" in repr(y)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_a_function_can_be_differentiated_twice():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = grad(Cube.apply(x), x, create_graph=True)
    (second,) = grad(first, x)
    assert first.item() == 12.0 and second.item() == 12.0


def test_a_function_takes_and_gives_several_values():
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    a, b = Scale.apply(x, 3.0, y)
    (a.sum() * 2 + b.sum()).backward()
    assert x.grad.tolist() == [6.0, 6.0] and y.grad.tolist() == [1.0, 1.0]
    x.grad = None
    a, b = Scale.apply(x, 3.0, y)
    a.sum().backward()  # no gradient flows into b: backward receives zeros for it
    assert x.grad.tolist() == [3.0, 3.0]


def test_setup_context_works_too():
    class Double(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True,)
            return g * 2

    x = torch.ones(1, requires_grad=True)
    Double.apply(x).backward()
    assert x.grad.item() == 2.0


def test_without_gradients_nothing_is_recorded():
    assert not Cube.apply(torch.ones(1)).requires_grad
    with torch.no_grad():
        assert not Cube.apply(torch.ones(1, requires_grad=True)).requires_grad


def test_a_wrong_number_of_gradients_is_an_error():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        Bad.apply(x, x).backward()


def test_an_error_in_backward_reaches_the_caller():
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("deep inside")

    with pytest.raises(KeyError, match="deep inside"):
        Broken.apply(torch.ones(1, requires_grad=True)).backward()


def test_a_saved_tensor_changed_in_place_is_an_error():
    x = torch.ones(1, requires_grad=True)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_saved_output_does_not_keep_itself_alive():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = torch.zeros(1, requires_grad=True)
    y = Exp.apply(x)
    y.backward()
    assert x.grad.item() == 1.0
    ghost = weakref.ref(y)
    del y
    gc.collect()
    assert ghost() is None


def test_grad_leaves_dot_grad_alone():
    x = torch.tensor(3.0, requires_grad=True)
    y = torch.tensor(1.0, requires_grad=True)
    assert grad(x * x, x)[0].item() == 6.0 and x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x * x, [x, y])
    assert grad(x * x, [x, y], allow_unused=True)[1] is None
    assert grad(x * x, [x, y], materialize_grads=True)[1].item() == 0.0


def test_backward_checks_its_gradient():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        (x * 2).backward(torch.ones(3))
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()


def test_gradient_modes_nest_and_decorate():
    assert torch.is_grad_enabled()
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert torch.is_grad_enabled()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def plain():
        return torch.is_grad_enabled()

    @torch.no_grad
    def bare():
        return torch.is_grad_enabled()

    @torch.no_grad()
    def numbers():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert not plain() and not bare()
    steps = numbers()
    assert next(steps) is False and torch.is_grad_enabled() and next(steps) is False
    with torch.inference_mode():
        assert not (torch.ones(1, requires_grad=True) * 2).requires_grad


def test_an_error_inside_no_grad_switches_back():
    with pytest.raises(ValueError):
        with torch.no_grad():
            raise ValueError
    assert torch.is_grad_enabled()


def test_variable_gives_the_tensor_back():
    v = Variable(torch.ones(2), requires_grad=True)
    assert isinstance(v, torch.Tensor) and isinstance(v, Variable) and v.requires_grad


def test_gradcheck_finds_a_wrong_derivative():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: (t * t).sum(), [x])
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(Wrong.apply, [x])
