"""Forward derivatives of the user's functions: what their jvp gives is their outputs' tangent; dual tensors written in place."""

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
    assert x.grad.tolist() == [2.0, 2.0]  # backward stays backward


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
