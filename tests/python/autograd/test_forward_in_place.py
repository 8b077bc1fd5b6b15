"""Forward-mode derivatives of functions with in-place writes, which overwrite saved tensors directly or through views, bases and aliases."""

import itertools

import pytest
import naru as torch
import naru.autograd.forward_ad as fwad

C = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)
MASK = C > 0
PROGRAMS = {}


def _program(functional):
    """Registers f(x), for x of shape (2, 3), under its name, together with `functional`, the same function without in-place operators."""

    def register(f):
        PROGRAMS[f.__name__.strip("_")] = f, functional
        return f

    return register


def _overwriting(name, write, functional):
    """Registers a program that applies the in-place operator `write` to a tensor that is used before and after the write."""

    def f(x):
        z = x * 1
        before = z * z
        write(z, x)
        return before * z * z

    PROGRAMS[name] = f, lambda x: x * x * functional(x) ** 2


for _name in "exp sigmoid tanh sqrt reciprocal log sin cos abs neg square erf relu rsqrt frac".split():
    _overwriting(_name + "_", lambda z, x, name=_name + "_": getattr(z, name)(), getattr(torch, _name))
_overwriting("zero_", lambda z, x: z.zero_(), torch.zeros_like)
_overwriting("copy_", lambda z, x: z.copy_(x.sin()), torch.sin)
_overwriting("clamp_", lambda z, x: z.clamp_(0.5, 1.5), lambda x: x.clamp(0.5, 1.5))
_overwriting("masked_fill_", lambda z, x: z.masked_fill_(MASK, 4.0), lambda x: torch.where(MASK, torch.full_like(x, 4.0), x))
_overwriting("of_a_mask", lambda z, x: z.__setitem__(MASK, x.flip(0)[MASK]), lambda x: torch.where(MASK, x.flip(0), x))


@_program(lambda x: 2 * x + x * x)
def _a_factor_is_scaled(x):
    z = x * 1
    y = z * z
    z.mul_(2)
    return y + z


@_program(lambda x: x**4 + x**8)
def _products_with_itself(x):
    z = x.clone()
    z.mul_(z)
    y = z * z
    z.mul_(z).mul_(z)
    return y + z


@_program(lambda x: 2 * C * x + (C * x) ** 2)
def _a_view_is_multiplied_and_the_base_scaled(x):
    base = C.clone()
    base.t().mul_(x.t())
    y = base * base
    base *= 2
    return y + base


@_program(lambda x: torch.stack([x[0] + x[0] * x[0], x[1]]) * 3)
def _a_row_is_added_to_by_its_square(x):
    z = x.clone()
    row = z[0]
    row.add_(row * row)
    z.view(-1).mul_(3)
    return z


@_program(lambda x: x[0] ** 2 * (2 * x[0] ** 2))
def _a_view_sees_what_its_base_became(x):
    z = x.clone()
    row = z[0]
    before = row * row
    z.mul_(z)
    flat = z.view(6)
    flat.mul_(2)
    return before * row


@_program(lambda x: torch.stack([x[1] ** 3, x[1]]) * x.exp())
def _rows_are_assigned(x):
    z = x.clone()
    y = z.exp()
    z[0] = z[1] * z[1]
    z[0] = z[0] * z[1]
    return y * z


@_program(lambda x: x**2.5 + (x**2.5) ** x)
def _powers(x):
    z = x.clone()
    z.pow_(2.5)
    y = z + 0
    z.pow_(x)
    return y + z


@_program(lambda x: (x + x * x * x + C) * x)
def _a_chain_of_additions(x):
    z = x.clone()
    z.addcmul_(z * z, x).add_(C)
    y = z * x
    z.add_(1)
    return y


@_program(lambda x: x @ (x @ x.t()).t().matmul(x).t() + 0 * x.sum())
def _products_of_matrices(x):
    a = x * 1
    square = a @ a.t()
    b = a * 1
    a.zero_()
    c = square.t() @ b
    square.fill_(7)
    y = b @ c.t()
    b.sub_(1)
    c.sub_(1)
    return y


@_program(lambda x: x.softmax(1) * x.log_softmax(0))
def _results_that_are_saved(x):
    a, b = x.softmax(1), x.log_softmax(0)
    y = a * b
    a.mul_(2)
    b.exp_()
    return y


@_program(lambda x: x[torch.tensor([1, 0, 1])] * (3 * x[0]))
def _positions_are_overwritten(x):
    at = torch.tensor([1, 0, 1])
    y = x[at]
    at.fill_(0)
    return y * (x[at].sum(0))


@_program(lambda x: C * x + 5 * C * x)
def _a_constant_is_overwritten(x):
    c = C.clone()
    y = c * x
    c.mul_(5)
    return y + c * x


@_program(lambda x: C * x + (C * C + 1) * x)
def _a_constant_is_overwritten_by_out_data_and_without_gradients(x):
    c = C.clone()
    y = c * x
    torch.mul(c, c, out=c)
    w = c * x
    c.data.zero_()
    with torch.no_grad():
        c.add_(1)
    return y + w + c * x


@_program(lambda x: x * x)
def _numbers_are_drawn_over_it(x):
    z = x * 1
    y = z * z
    z.normal_()
    return y


@_program(lambda x: torch.stack([x[0] + 2 * x[1] * C[0], x[1] + 3 * C[1]]) * x)
def _sums_at_places(x):
    z = x.clone()
    y = z.clone()
    z.index_add_(0, torch.tensor([0]), (z[1] * C[0]).unsqueeze(0), alpha=2)
    z.scatter_add_(0, torch.ones(1, 3, dtype=torch.int64), C[1:] * 3)
    return y.mul_(z)


@_program(lambda x: (x + 0.25 * (C - x)) * x)
def _steps_towards(x):
    z = x * 1
    y = x * 1
    z.lerp_(C, 0.25)
    y.mul_(z)
    z.zero_()
    return y


@_program(lambda x: x.t() * x.t() * 2)
def _the_shape_changes(x):
    z = x * 1
    y = z * z
    z.t_()
    z.mul_(0)
    return y.t_().mul_(2)


@_program(lambda x: torch.stack([x * x, (x * x).sin()]).prod(0))
def _lists_of_tensors(x):
    a = [x * 1, x * x]
    y = a[0] * a[0]
    torch._foreach_mul_(a, 3.0)
    return y * (a[1] / 3).sin_()


@_program(lambda x: torch.stack([x[0], x[0] * x[1], x[0] * x[1] * x[0]]).cumprod(0))
def _a_table_is_filled_row_by_row(x):
    out = torch.zeros(3, 3, dtype=x.dtype)
    out[0] = x[0]
    for i in (1, 2):
        out[i] = out[i - 1] * x[i % 2]
    for i in (1, 2):
        out[i].mul_(out[i - 1])
    return out


@_program(lambda x: (x * x) * (2 * x) ** 3)
def _parts_of_complex_numbers(x):
    z = torch.complex(x, x * x)
    real = torch.view_as_real(z)
    y = z.real * z.real
    real[..., 0].mul_(2)
    w = real[..., 0] ** 3
    real.zero_()
    return y * w


@_program(lambda x: torch.nn.functional.layer_norm(x, (3,), C[0]) + torch.nn.functional.linear(x, C).sum())
def _layers(x):
    z, weight = x * 1, C.clone()
    y = torch.nn.functional.layer_norm(z, (3,), weight[0])
    s = torch.nn.functional.linear(z, weight).sum()
    z.mul_(9)
    weight.mul_(9)
    return y + s


def _point(seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(2, 3, dtype=torch.float64, generator=generator) + 0.6
    return x, torch.rand(2, 3, dtype=torch.float64, generator=generator) - 0.5


def _by_dual_level(f, x, t):
    with fwad.dual_level():
        return fwad.unpack_dual(f(fwad.make_dual(x, t)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_are_those_of_the_function_written_without_in_place_operators(name):
    f, functional = PROGRAMS[name]
    x, t = _point(3)
    value, expected = torch.func.jvp(functional, (x,), (t,))
    step = 1e-6
    differences = (functional(x + step * t) - functional(x - step * t)) / (2 * step)
    assert torch.allclose(expected, differences, rtol=1e-6, atol=1e-8)
    assert torch.allclose(f(x.clone()), value)
    for got in (torch.func.jvp(f, (x,), (t,)), _by_dual_level(f, x, t)):
        assert torch.allclose(got[0], value)
        assert torch.allclose(got[1], expected)
    product = torch.func.linearize(f, x)[1]
    assert torch.allclose(product(t), expected) and torch.allclose(product(-2 * t), -2 * expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_tangents_and_columns_of_jacobians_hold_too(name):
    f, functional = PROGRAMS[name]
    x, t = _point(5)

    def along(g):
        return lambda x: torch.func.jvp(g, (x,), (t,))[1]

    assert torch.allclose(torch.func.jvp(along(f), (x,), (t,))[1], torch.func.jvp(along(functional), (x,), (t,))[1])
    columns = torch.stack([torch.func.jvp(f, (x,), (e.view(2, 3),))[1] for e in torch.eye(6, dtype=x.dtype)], -1)
    assert torch.allclose(columns.flatten(-1), torch.func.jacfwd(functional)(x).flatten(-2))


def test_a_base_has_the_tangents_of_what_is_written_through_its_views():
    p, t = torch.tensor([[2.0, 3.0], [4.0, 5.0]]), torch.tensor([[0.5, -1.0], [0.25, 2.0]])
    base = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    given = base.t().clone()
    with fwad.dual_level():
        view = base.t()
        view.mul_(fwad.make_dual(p, t))
        value, tangent = fwad.unpack_dual(base)
        assert torch.equal(value.t(), given * p) and torch.equal(tangent.t(), given * t)
        view *= 2
        value, tangent = fwad.unpack_dual(base)
        assert torch.equal(value.t(), 2 * given * p) and torch.equal(tangent.t(), 2 * given * t)
        row = base[0]
        value, tangent = value.clone(), tangent.clone()
        row.add_(row * row)
        assert torch.equal(fwad.unpack_dual(base).tangent[0], tangent[0] + 2 * value[0] * tangent[0])
        assert torch.equal(fwad.unpack_dual(view).tangent[:, 1], tangent[1])


def test_an_older_view_has_the_tangents_that_its_base_got():
    base, x, t = torch.zeros(2, 3), torch.rand(3), torch.rand(3)
    view = base[1]
    with fwad.dual_level():
        assert fwad.unpack_dual(view).tangent is None
        base.copy_(fwad.make_dual(x, t))
        square = view * view
        base.zero_()
        assert torch.allclose(fwad.unpack_dual(square).tangent, 2 * x * t)
        assert fwad.unpack_dual(view).tangent.tolist() == [0.0] * 3
    assert fwad.unpack_dual(view).tangent is None


def test_views_made_without_gradients_have_tangents():
    base, x, t = torch.zeros(2, 3), torch.rand(3), torch.rand(3)
    with torch.no_grad():
        view, other = base[1], base[0]
        with fwad.dual_level():
            dual = fwad.make_dual(x, t)
            base.copy_(dual)
            assert torch.allclose(fwad.unpack_dual(view * 2).tangent, 2 * t)
    with fwad.dual_level():
        other.mul_(fwad.make_dual(x, t))
        assert torch.allclose(fwad.unpack_dual(base).tangent, torch.stack([x * t, torch.zeros(3)]))


def test_hessians_of_functions_that_write_their_values():
    def f(x):
        z = x * x
        y = z.sin()
        z.mul_(3).add_(y)
        return (y * z).sum()

    def functional(x):
        return ((x * x).sin() * (3 * x * x + (x * x).sin())).sum()

    x = torch.tensor([0.5, 1.5], dtype=torch.float64)
    assert torch.allclose(torch.func.jacfwd(torch.func.jacfwd(f))(x), torch.func.hessian(functional)(x))
    direct = torch.func.jacfwd(torch.func.grad(lambda x: functional(x.clone().mul_(1))))(x)
    assert torch.allclose(direct, torch.func.hessian(functional)(x))


def test_primals_may_be_overwritten_before_a_linear_function_is_called():
    x = torch.tensor([1.0, 2.0])
    product = torch.func.linearize(lambda x: x * x, x)[1]
    x.zero_()
    assert product(torch.ones(2)).tolist() == [2.0, 4.0]


def test_the_written_inputs_of_a_user_s_function_have_the_tangents_of_its_backward():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    def f(x):
        z = x * 1
        y = Square.apply(z)
        z.mul_(5)
        return y + z

    x = torch.tensor([1.0, 3.0])
    assert torch.func.jvp(f, (x,), (torch.ones(2),))[1].tolist() == [7.0, 11.0]


def test_backward_refuses_what_was_overwritten_where_no_tangents_are_carried():
    x = torch.ones(2, requires_grad=True)
    z = x * 1
    y = z * z
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with fwad.dual_level():
        fwad.make_dual(torch.ones(2), torch.ones(2)) * 2
    y = z * z
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_tangents_go_on_where_gradients_are_switched_off():
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    weight = torch.ones(2, requires_grad=True)

    def f(x):
        with torch.no_grad():
            assert not torch.is_grad_enabled()
            z = x * weight
            y = z * z
            z.mul_(3)
            z[:1].exp_()
            weight.add_(0)  # writing to a leaf is allowed here, and operators without tangents are not recorded
            assert not (weight * 2).requires_grad and weight.requires_grad and weight.is_leaf
            with torch.enable_grad():
                assert torch.is_grad_enabled() and (weight * 2).requires_grad
            assert not torch.is_grad_enabled()
        return y + z

    expected = torch.stack([2 + 3 * torch.tensor(3.0).exp(), torch.tensor(-4.0 - 3.0)])
    assert torch.allclose(torch.func.jvp(f, (x,), (t,))[1], expected)
    assert torch.is_grad_enabled()
    with torch.no_grad():
        assert torch.allclose(torch.func.jvp(f, (x,), (t,))[1], expected)
        with fwad.dual_level():
            assert torch.allclose(fwad.unpack_dual(f(fwad.make_dual(x, t))).tangent, expected)
            assert not (weight * 2).requires_grad
        assert not torch.is_grad_enabled() and not (weight * 2).requires_grad
    assert torch.is_grad_enabled() and (weight * 2).requires_grad


def test_a_level_within_a_user_s_function_leaves_gradients_switched_off():
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad(), torch.no_grad():
                pass
            torch.func.jvp(torch.sin, (x,), (x,))
            assert not (x * 2).requires_grad
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with fwad.dual_level():
        y = Inner.apply(fwad.make_dual(torch.ones(1), torch.ones(1)))
        assert fwad.unpack_dual(y).tangent.tolist() == [2.0] and torch.is_grad_enabled()
        assert (torch.ones(1, requires_grad=True) * 2).requires_grad
