"""torch.func: gradients, vector products and Jacobians of functions, alone, nested, and under vmap."""
import warnings
from concurrent.futures import ThreadPoolExecutor

import naru as torch
import pytest
from naru.autograd import functional
from naru.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap
from naru.nn import functional as F


def g(*sizes, seed=1):
    n = torch.Size(sizes).numel()
    return (torch.arange(n, dtype=torch.float64) * 0.37 + seed).sin().reshape(sizes)


V, X, W = g(4), g(3, 4), g(4, 5)


def number(a):
    return (a**3).sum() * a[0]


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.fixture(autouse=True)
def no_loops():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_gradients_of_one_and_of_several_arguments():
    close(grad(number)(V), functional.jacobian(number, V))
    gradient, value = grad_and_value(number)(V)
    close(gradient, grad(number)(V)), close(value, number(V))
    a, b = grad(lambda x, y: (x * y["k"]).sum(), argnums=(0, 1))(V, {"k": V + 1})
    close(a, V + 1), close(b["k"], V)
    gradient, aux = grad(lambda x: (number(x), x * 2), has_aux=True)(V)
    close(aux, V * 2)
    assert not gradient.requires_grad and not aux.requires_grad
    assert grad(grad(grad(lambda x: x**4)))(torch.tensor(2.0)).item() == 48.0


def test_results_belong_to_the_graph_around_where_there_is_one():
    c = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    inside = grad(lambda a: (a * a * c).sum())(V)
    assert inside.requires_grad
    close(torch.autograd.grad(inside.sum(), c)[0], (2 * V).sum())
    x = V.clone().requires_grad_()
    close(torch.autograd.grad(grad(number)(x).sum(), x)[0], functional.hessian(number, V).sum(0))
    with torch.no_grad():
        assert not grad(number)(x).requires_grad


def test_gradients_by_entry_of_parameters_that_are_one_for_all():
    weights = {"w": g(2, 4), "b": g(2)}

    def loss(p, x, y):
        return F.cross_entropy((p["w"] @ x + p["b"]).unsqueeze(0), y.unsqueeze(0))

    labels = torch.tensor([0, 1, 1])
    found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, X, labels)
    for i in range(3):
        one = grad(loss)(weights, X[i], labels[i])
        close(found["w"][i], one["w"]), close(found["b"][i], one["b"])


def test_products():
    y, pull = vjp(lambda a, b: (a @ W, b.sum()), V, V + 1)
    a, b = pull((torch.ones(5).double(), torch.tensor(2.0).double()))
    close(a, W.sum(1)), close(b, torch.full((4,), 2.0).double())
    y, t = jvp(lambda a, b: (a * b, a.sin()), (V, V + 1), (V, V * 2))
    close(t[0], V * (V + 1) + V * 2 * V), close(t[1], V.cos() * V)
    y, push = linearize(torch.sin, V)
    close(push(V), V.cos() * V), close(push(V * 2), V.cos() * V * 2)


@pytest.mark.parametrize("f", [torch.sin, lambda a: a @ W, lambda a: (a.outer(a), a.sum()), number, lambda a: torch.softmax(a, 0)], ids=["sin", "matmul", "two", "number", "softmax"])
def test_jacobians_either_way_are_those_of_autograd(f):
    wanted = functional.jacobian(f, V)
    for found in (jacrev(f)(V), jacfwd(f)(V), jacrev(f, chunk_size=2)(V)):
        for a, b in zip(*((x,) if isinstance(x, torch.Tensor) else x for x in (found, wanted))):
            close(a, b)


def test_hessians_and_jacobians_within_vmap():
    close(hessian(number)(V), functional.hessian(number, V))
    close(jacrev(jacrev(number))(V), functional.hessian(number, V))
    close(vmap(hessian(number))(X), torch.stack([functional.hessian(number, x) for x in X]))
    close(vmap(jacrev(torch.sin))(X), X.cos().diag_embed())
    (aa, ab), (ba, bb) = jacrev(lambda a, b: (a * b, b.sum()), argnums=(0, 1))(V, V + 1)
    close(aa, (V + 1).diag()), close(ab, V.diag()), close(ba, V * 0), close(bb, torch.ones(4).double())


def test_a_jacobian_draws_the_numbers_of_one_run():
    torch.manual_seed(3)
    found = jacrev(lambda a: F.dropout(a, 0.5) * 2)(V)
    assert set(found.diagonal().tolist()) <= {0.0, 4.0} and (found - found.diagonal().diag()).abs().sum() == 0


def test_products_of_a_batch_with_a_function_run_before_say_that_they_are_taken_one_by_one():
    _, pull = vjp(torch.sin, V)
    with pytest.warns(UserWarning, match="a vjp whose function was run outside of vmap is called 4 times"):
        (found,) = vmap(pull)(torch.eye(4).double())
    close(found, V.cos().diag())


def test_modules_side_by_side():
    models = [torch.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (4, 2, 3) and params["weight"].requires_grad and params["weight"].is_leaf and buffers == {}
    x = torch.ones(5, 3)
    found = vmap(lambda w, b: F.linear(x, w, b))(params["weight"], params["bias"])
    torch.testing.assert_close(found, torch.stack([m(x) for m in models]))
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        stack_module_state([])


@pytest.mark.parametrize("call, text", [
    (lambda: grad(torch.sin)(V), "Expected f.*args. to return a scalar Tensor, got tensor with 1 dims. Maybe you wanted to use the vjp or jacrev APIs instead"),
    (lambda: grad(lambda a: 3)(V), "Expected f.*args. to return a Tensor, got <class 'int'>"),
    (lambda: grad(number)(torch.ones(2, dtype=torch.int64)), "only Tensors of floating point dtype can require gradients"),
    (lambda: grad(number, argnums=2)(V), "Got argnum=2, but only 1 positional inputs"),
    (lambda: jvp(torch.sin, V, (V,)), "Expected primals to be a tuple"),
    (lambda: jvp(torch.sin, (V,), (V[:2],)), "Expected primal and tangent to have the same shape"),
])
def test_what_can_not_be_done_is_said(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_tangents_of_dual_tensors():
    from naru.autograd import forward_ad as fwAD

    with fwAD.dual_level():
        x = fwAD.make_dual(V, V * 2)
        y = fwAD.make_dual(X, torch.ones(3, 4).double())
        found = fwAD.unpack_dual((x * y).sin())
        close(found.primal, (V * X).sin()), close(found.tangent, (V * X).cos() * (2 * V * X + V))
        assert fwAD.unpack_dual(V).tangent is None and torch.equal(fwAD.unpack_dual(x).tangent, V * 2)
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"), fwAD.dual_level():
            pass
    with pytest.raises(RuntimeError, match=r"make sure to enter_dual_level\(\) first"):
        fwAD.make_dual(V, V)


def test_functions_with_a_derivative_of_their_own_within_vmap():
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vmap(info, in_dims, x):
            assert in_dims == (0,) and info.batch_size == 3
            return Own.apply(x), 0

    class Made(Own):
        generate_vmap_rule = True
        vmap = torch.autograd.Function.vmap

    class Neither(Own):
        vmap = torch.autograd.Function.vmap

    close(vmap(Own.apply)(X), X * 2)
    close(vmap(grad(lambda a: Own.apply(a).sum()))(X), torch.full_like(X, 2.0))
    with pytest.warns(UserWarning, match="batching rule for Made: it is called 3 times"):
        close(vmap(Made.apply)(X), X * 2)
    with pytest.raises(RuntimeError, match="You tried to vmap over Neither, but it does not have vmap support"):
        vmap(Neither.apply)(X)


def test_a_batch_of_gradients_and_vectorized_jacobians():
    x = V.clone().requires_grad_()
    (found,) = torch.autograd.grad(x.sin(), x, torch.eye(4).double(), is_grads_batched=True)
    close(found, V.cos().diag())
    close(functional.jacobian(torch.sin, V, vectorize=True), V.cos().diag())
    close(functional.jacobian(torch.sin, V, vectorize=True, strategy="forward-mode"), V.cos().diag())
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        functional.jacobian(torch.sin, V, strategy="forward-mode")


def test_products_are_differentiated_by_their_cotangents_and_tangents():
    _, pull = vjp(torch.sin, V)
    close(grad(lambda c: pull(c)[0].sum())(V * 2), V.cos())
    _, push = linearize(torch.sin, V)
    close(grad(lambda t: push(t).sum())(V * 2), V.cos())
    close(vmap(push)(torch.eye(4).double()), V.cos().diag())


def test_no_grad_within_a_function_makes_constants_of_derivatives():
    def f(x):
        with torch.no_grad():
            slope, value = grad_and_value(lambda a: a**3)(x)
            out, pull = vjp(torch.sin, x)
            (one,) = pull(torch.ones(()).double())
        return x**3 - slope - value + one + out

    x = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    y = grad(f)(x)
    close(y.detach(), torch.tensor(3 * 1.5**2).double())
    close(torch.autograd.grad(y, x)[0], torch.tensor(6 * 1.5).double())
    with torch.no_grad():
        assert not grad(number)(V.clone().requires_grad_()).requires_grad


def two_returns(x):
    class F1(torch.autograd.Function):
        forward = staticmethod(lambda x: x * 1)
        setup_context = staticmethod(lambda ctx, inputs, output: None)
        vmap = staticmethod(lambda info, dims, x: x * 1)
    return vmap(F1.apply)(x)


@pytest.mark.parametrize("call, text", [
    (lambda: grad(number, argnums=[0])(V), "argnums must be int or Tuple"),
    (lambda: grad(number, argnums=())(V), "argnums must be non-empty"),
    (lambda: grad(number, argnums=("0",))(V), "argnum must be int, got"),
    (lambda: jacrev(torch.mul, argnums=(0, -2))(V, V), "argnums elements must be unique"),
    (lambda: grad(lambda a: (a.sum(), [1]), has_aux=True)(V), "Expected tensors, got unsupported type <class 'int'>"),
    (lambda: jvp(lambda a: [a, a], (V,), (V,), has_aux=True), "output of function f should be a tuple"),
    (lambda: vjp(lambda a: (), V), "vjp.*Expected f to be a function that has non-empty output"),
    (lambda: jvp(lambda a: 1, (V,), (V,)), "jvp.*expected f.*to return only tensors"),
    (lambda: jvp(torch.sin, (), ()), "at least one Tensor"),
    (lambda: jvp(lambda a: (a, W), (V,), (V,), strict=True), "strict"),
    (lambda: vjp(lambda a: (a, (a, a)), V)[1](((V, (V, V)),)), "Expected pytree structure of cotangents"),
    (lambda: jacrev(torch.conj)(V + 0j), "jacrev: Expected all inputs"),
    (lambda: jacfwd(lambda a: a * 1j)(V), "jacfwd: Expected all outputs"),
    (lambda: two_returns(X), "to have two returns"),
])  # fmt: skip
def test_arguments_and_results_of_transformed_functions_are_checked(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_linearize_uses_the_jvp_of_a_function_of_the_users():
    class Thrice(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, a, b):
            x, y = ctx.saved_tensors
            return 3 * (a * y + x * b)

    def f(x, y):
        return Thrice.apply(x.sin(), y).exp() + y

    tangents = V + 2, V + 3
    value, product = linearize(f, V, V + 1)
    close(value, f(V, V + 1))
    close(product(*tangents), jvp(f, (V, V + 1), tangents)[1])
    close(vmap(product)(*(torch.stack([t, 2 * t]) for t in tangents))[1], 2 * product(*tangents))


@pytest.mark.parametrize("api", [jacrev, jacfwd])
def test_jacobians_of_functions_that_write_to_what_they_are_given_besides(api):
    def f(x, y):
        y.copy_(x)
        return y * x

    close(api(f)(V, V.clone()), torch.diag(2 * V))


def test_a_random_function_of_what_is_one_for_all_columns():
    assert jacfwd(torch.bernoulli, randomness="same")(torch.rand(2, 3)).tolist() == torch.zeros(2, 3, 2, 3).tolist()


def test_gradients_that_are_zeros_have_gradients_as_the_others_do():
    x = torch.tensor(2.0, requires_grad=True)
    (zero,) = torch.autograd.grad(torch.ones((), requires_grad=True) * 2, x, create_graph=True, materialize_grads=True)
    assert zero.requires_grad and zero.item() == 0.0


def test_vmap_says_that_out_dims_are_numbers():
    with pytest.raises(ValueError, match="must be an int, None or a python collection of ints"):
        vmap(lambda a: a, out_dims="last")(X)


def test_functions_that_one_thread_differentiates_do_not_nest_anothers():
    """A derivative within a function that is differentiated keeps its history; another thread's at the same time does not."""
    with ThreadPoolExecutor(1) as pool:
        def outer(x):
            inside = torch.func.grad(lambda y: (y**3).sum())(x)
            other = pool.submit(lambda: torch.func.grad(lambda y: (y**3).sum())(torch.ones(2))).result()
            assert inside.requires_grad and not other.requires_grad
            return (inside * other).sum()

        assert torch.func.grad(outer)(torch.ones(2)).tolist() == [18, 18]
