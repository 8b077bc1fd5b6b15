"""Forward-mode derivatives of user-defined functions: jvp's results become the outputs' tangents; in-place writes to dual tensors."""

import pytest
import naru as torch
import naru.autograd.forward_ad as fwad


def _function(forward, jvp):
    members = {"forward": staticmethod(forward), "jvp": staticmethod(jvp), "backward": staticmethod(lambda ctx, *g: g[0] * 2)}
    return type("F", (torch.autograd.Function,), members)


def _tangent(function, x, t):
    with fwad.dual_level():
        return fwad.unpack_dual(function.apply(fwad.make_dual(x, t))).tangent


def test_the_tangent_of_an_output_is_what_jvp_gives_and_flows_on():
    given = torch.tensor([1.0, 0.0])
    function = _function(lambda ctx, x: x * 2, lambda ctx, t: t * 5)
    with fwad.dual_level():
        y = function.apply(fwad.make_dual(torch.ones(2), given) * 3)
        assert fwad.unpack_dual(y).tangent.tolist() == [15.0, 0.0]
        assert fwad.unpack_dual(y * y).tangent.tolist() == [180.0, 0.0]  # 2 · 6 · 15
        with torch.no_grad():
            assert fwad.unpack_dual(function.apply(fwad.make_dual(torch.ones(2), given))).tangent.tolist() == [5.0, 0.0]
    x = torch.ones(2, requires_grad=True)
    with fwad.dual_level():
        function.apply(fwad.make_dual(x, given)).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]  # backward is unaffected


def test_a_jvp_that_gives_something_else_than_a_tangent_for_each_output_is_refused():
    x = torch.ones(2)
    wrong = [
        (lambda ctx, t: (t, t), "expected 1 but got 2"),
        (lambda ctx, t: 1, "expected Variable or None"),
        (lambda ctx, t: t[:1], "different size"),
        (lambda ctx, t: None, "whose tangent is wanted"),
    ]
    for jvp, message in wrong:
        with pytest.raises(RuntimeError, match=message):
            _tangent(_function(lambda ctx, x: x * 2, jvp), x, torch.ones(2))

    def marked(ctx, x):
        y = x.clone()
        ctx.mark_non_differentiable(y)
        return y

    assert _tangent(_function(marked, lambda ctx, t: None), x, torch.ones(2)) is None
    with pytest.raises(RuntimeError, match="return None at that position"):
        _tangent(_function(marked, lambda ctx, t: t), x, torch.ones(2))


def test_a_jvp_makes_views_and_writes_where_forward_does():
    def dirty(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    t = torch.ones(4)
    view = _function(lambda ctx, x: x.narrow(0, 0, 2), lambda ctx, t: t.narrow(0, 0, 2))
    assert _tangent(view, torch.ones(4), t)._base is t
    with pytest.raises(RuntimeError, match="not returning a view"):
        _tangent(_function(lambda ctx, x: x, lambda ctx, t: t * 2), torch.ones(4), t)
    with fwad.dual_level():
        x = fwad.make_dual(torch.ones(2), torch.ones(2)) * 1
        y = _function(dirty, lambda ctx, t: t.mul_(2)).apply(x)
        assert fwad.unpack_dual(y).tangent.tolist() == [2.0, 2.0]
        given = torch.ones(2)
        _function(dirty, lambda ctx, t: t.mul_(2)).apply(fwad.make_dual(torch.ones(2), given).clone())
        assert given.tolist() == [1.0, 1.0]  # the clone has its own tangent
        with pytest.raises(RuntimeError, match="forward mode gradients inplace"):
            _function(dirty, lambda ctx, t: 2 * t).apply(fwad.make_dual(torch.ones(2), torch.ones(2)) * 1)


def test_saved_tensors_of_a_jvp_are_those_saved_for_forward():
    def saving(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, x + 1)
        return x * 2

    seen = []
    _tangent(_function(saving, lambda ctx, t: (seen.append(len(ctx.saved_tensors)), t)[1]), torch.ones(1), torch.ones(1))
    assert seen == [2]


def test_dual_tensors_may_be_written_in_place_and_share_their_primal():
    with fwad.dual_level():
        x = torch.ones(2)
        dual = fwad.make_dual(x, torch.ones(2))
        dual.mul_(3)
        assert fwad.unpack_dual(dual).tangent.tolist() == [3.0, 3.0] and x.tolist() == [3.0, 3.0]
        dual.normal_()
        assert fwad.unpack_dual(dual).tangent.tolist() == [0.0, 0.0]
        base = torch.zeros(2, 2)
        base[1].copy_(fwad.make_dual(x, torch.ones(2)))
        assert fwad.unpack_dual(base).tangent.tolist() == [[0.0, 0.0], [1.0, 1.0]]
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fwad.make_dual(dual, torch.ones(2))
        with pytest.raises(RuntimeError, match="different size"):
            fwad.make_dual(x, torch.ones(3))


def test_tangents_within_vmap_are_a_batch():
    def product(t):
        with fwad.dual_level():
            return fwad.unpack_dual(fwad.make_dual(torch.tensor([1.0, 2.0]), t) ** 2).tangent

    assert torch.func.vmap(product)(torch.eye(2)).tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("draw", ["normal_", "uniform_", "exponential_", "bernoulli_", "cauchy_", "log_normal_", "geometric_", "random_"])
def test_what_a_draw_in_place_overwrites_gets_no_gradient(draw):
    x = torch.ones(3, requires_grad=True)
    arguments = (0.5,) if draw == "geometric_" else ()
    whole, part = x * 2, x * 2
    getattr(whole, draw)(*arguments)
    assert torch.autograd.grad(whole.sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    getattr(part[1:], draw)(*arguments)
    assert torch.autograd.grad(part.sum(), x)[0].tolist() == [2.0, 0.0, 0.0]


def test_a_complex_draw_in_place_gives_no_gradient():
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    w = (z * 2).normal_()
    assert torch.autograd.grad(w.real.sum(), z)[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        z.uniform_()


class _Exp(torch.autograd.Function):
    """Its backward has no derivative, its jvp has."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x):
        return _Exp.apply(x), in_dims[0]


def test_forward_transforms_take_the_jvp_of_a_function_whose_backward_has_no_derivative():
    def f(x):
        return _Exp.apply(x * 2) * x  # its derivatives are e^2x (1 + 2x), e^2x (4 + 4x)

    def first(x):
        return torch.func.jvp(f, (x,), (torch.ones(1),))[1]

    x = torch.zeros(1)
    value, product = torch.func.jvp(f, (x,), (torch.ones(1),))
    assert product.tolist() == [1.0] and not product.requires_grad
    assert torch.func.jacfwd(f)(x).tolist() == [[1.0]]
    assert torch.func.jvp(first, (x,), (torch.ones(1),))[1].tolist() == [4.0]


def test_a_function_may_write_the_inputs_of_its_jvp():
    def f(x):
        x.mul_(3)
        return x * x

    assert torch.func.jvp(f, (torch.ones(2),), (torch.ones(2),))[1].tolist() == [18.0, 18.0]


def test_a_view_that_is_older_than_its_base_s_gradients_may_not_be_written():
    x = torch.zeros(3)
    view = x[:2]
    x.requires_grad = True
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        view.add_(1)
    with torch.no_grad():
        view.add_(1)
    assert x.tolist() == [1.0, 1.0, 0.0]


def test_rows_of_a_jacobian_one_at_a_time_are_no_batch():
    class Positions(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert len(g.nonzero()) == 1  # an output shape that depends on values
            return g * 2

    assert torch.func.jacrev(Positions.apply, chunk_size=1)(torch.ones(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_new_tensors_of_one_with_a_batch_have_it():
    def f(x, y):
        r = x.new_zeros(2)
        return r.copy_(y) + x.new_full((2,), 1.0)

    assert torch.func.vmap(f)(torch.ones(3), torch.eye(3)[:, :2]).tolist() == [[2.0, 1.0], [1.0, 2.0], [1.0, 1.0]]


def test_gradients_within_a_checkpointed_function_may_ask_for_a_part_of_it():
    from naru.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    def f(x):
        (inner,) = torch.autograd.grad(x.sin().exp(), x)
        return x.sin() * inner

    x = torch.zeros((), requires_grad=True)
    with set_checkpoint_early_stop(False):
        checkpoint(f, x, use_reentrant=False).backward()
    assert x.grad.item() == 1.0


def test_packages_can_ask_whether_a_level_is_active():
    assert fwad._current_level == -1
    with fwad.dual_level():
        assert fwad._current_level == 0
    assert fwad._current_level == -1
    with pytest.raises(AttributeError, match="has no attribute '_another'"):
        fwad._another
