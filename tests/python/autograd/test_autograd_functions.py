"""autograd.Function: saved tensors and returned gradients, in-place writes that autograd must reject, retained gradients."""
import pytest

import naru as torch
from autograd_support import function, hooked


def test_saved_tensors_are_gone_once_backward_has_freed_them():
    kept = []

    class Saves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None, x * 3)
            kept.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            kept.append([None if t is None else t.tolist() for t in ctx.saved_tensors])
            return g

    x = torch.ones(2, requires_grad=True)
    y = Saves.apply(x)
    assert kept[0].saved_tensors[0] is x and y.grad_fn.saved_tensors[1] is None
    y.sum().backward()
    assert kept[1] == [[1.0, 1.0], None, [3.0, 3.0]]
    for again in (lambda: kept[0].saved_tensors, lambda: y.grad_fn.saved_tensors):
        with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
            again()
    del y
    with pytest.raises(RuntimeError, match="already been freed"):
        kept[0].saved_tensors  # noqa: B018


def test_a_function_that_saved_nothing_may_run_backward_again():
    x = torch.ones(2, requires_grad=True)
    y = function(lambda: torch.ones(2)).apply(x)
    (y.sum() * 1).backward(retain_graph=True)
    y.backward(torch.ones(2))
    y.backward(torch.ones(2))
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_result_that_a_function_saved_has_second_derivatives():
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = torch.tensor(0.5, requires_grad=True)
    first, = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
    second, = torch.autograd.grad(first, x, create_graph=True)
    assert first.item() == second.item() == torch.autograd.grad(second, x)[0].item() == x.exp().item()


def test_outputs_without_a_gradient_have_zeros_in_backward():
    given = []

    class Marks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x + 1, x + 2
            ctx.mark_non_differentiable(a)
            return a, b, x > 0, torch.arange(3), None, 7

        @staticmethod
        def backward(ctx, *grads):
            given.extend(None if g is None else (g.dtype, g.tolist()) for g in grads)
            return grads[1]

    x = torch.ones(2, requires_grad=True)
    results = Marks.apply(x)
    assert [r.requires_grad for r in results[:4]] == [False, True, False, False]
    results[1].sum().backward()
    f = torch.float32
    assert given == [(f, [0.0, 0.0]), (f, [1.0, 1.0]), (torch.bool, [False, False]), (torch.int64, [0, 0, 0]), None, None]


def test_the_context_of_a_kernel_ends_with_its_backward():
    kept = []
    source = "kernel void k(const float* a, float* o) { o[global_id(0)] = a[global_id(0)]; }"
    k = torch.kernel(source, "k", backward=lambda ctx, g: (kept.append(ctx), g)[1])
    out = torch.zeros(3)
    k(torch.ones(3, requires_grad=True), out, grid=3)
    out.sum().backward()
    with pytest.raises(RuntimeError, match="the context of a kernel's backward function is gone"):
        kept[0]["a"]


# --- writes that autograd can't track


def test_a_view_made_under_no_grad_is_not_written_while_history_is_recorded():
    text = "A view was created in no_grad mode and is being modified inplace with grad mode enabled"
    for leaf in (True, False):
        x, y = hooked(leaf)
        with torch.no_grad():
            view = y[:2]
            view.mul_(2)
        for write in (lambda v: v.mul_(2), lambda v: v.zero_(), lambda v: v.__setitem__(0, 1.0), lambda v: v[:1].add_(1), lambda v: v.copy_(torch.ones(2)),
                      lambda v: v.index_fill_(0, torch.tensor([0]), 1.0)):  # fmt: skip
            with pytest.raises(RuntimeError, match=text):
                write(view)
        assert y.tolist() == [2.0, 2.0, 1.0]
    plain = torch.ones(3)
    with torch.no_grad():
        view = plain[:2]
    view.mul_(2).normal_()
    with pytest.raises(RuntimeError, match=text):
        view.mul_(torch.ones(2, requires_grad=True))


def test_a_view_made_under_no_grad_has_no_part_in_later_writes_to_its_base():
    y = torch.ones(3, requires_grad=True) * 1
    y.mul_(2)
    with torch.no_grad():
        before = y[:2]
    assert not before.requires_grad  # the earlier write does not affect it
    y.mul_(2)
    with pytest.raises(RuntimeError, match="and its base or another view of its base has been modified inplace"):
        before.grad_fn  # noqa: B018


class Seen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g * 10


class Passed(Seen):
    @staticmethod
    def forward(ctx, x):
        return x


@pytest.mark.parametrize("cls", [Seen, Passed])
def test_a_view_that_a_function_gave_is_not_written(cls):
    x = torch.ones(3, requires_grad=True)
    base = x * 1
    view = cls.apply(base)
    with pytest.raises(RuntimeError, match=f"Output 0 of {cls.__name__}Backward is a view and is being modified inplace"):
        view.mul_(2)
    view.sum().backward()
    assert x.grad.tolist() == [10.0] * 3
    base.mul_(2)
    with pytest.raises(RuntimeError, match="is a view and its base or another view of its base has been modified inplace"):
        view.grad_fn  # noqa: B018


# --- retained gradients and saved inputs


def test_a_kept_gradient_is_that_of_the_tensor_after_its_last_write():
    x = torch.ones(2, requires_grad=True)
    y, seen = x * 3, []
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(2)
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0, 12.0] and y.retains_grad and seen == [[12.0, 12.0], [24.0, 24.0]]


def test_backward_into_a_result_keeps_its_gradient_and_goes_no_further():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == (y * 2).tolist() and y.retains_grad and x.grad is None
    y.sum().backward()  # the tensor that y was computed from is still alive
    assert x.grad.tolist() == y.tolist()


def test_no_inputs_are_an_error():
    x = torch.ones(1, requires_grad=True)
    for f, name in ((lambda: torch.autograd.grad(x * 2, []), "grad"), (lambda: (x * 2).backward(inputs=[]), "backward"),
                    (lambda: torch.autograd.backward(x * 2, inputs=[]), "backward")):  # fmt: skip
        with pytest.raises(RuntimeError, match=rf"`inputs` argument to `{name}\(\)` cannot be empty"):
            f()


def test_hooks_after_accumulation_see_the_leaf_with_its_grad():
    x, seen = torch.ones(2, requires_grad=True), []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.tolist())))
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [(True, [2.0, 2.0])]
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_arguments_marked_dirty_must_be_returned():
    class Forgets(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.add_(1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"):
        Forgets.apply(torch.ones(2, requires_grad=True) * 1)


def test_results_that_are_no_tensors_get_no_gradient_and_views_of_arguments_have_the_function_as_their_history():
    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x, "text", x * 2

        @staticmethod
        def backward(ctx, first, text, second):
            assert text is None and first.sum().item() == 0
            return first + second * 2

    x = torch.ones(2, requires_grad=True)
    same, text, double = Mixed.apply(x)
    assert text == "text" and same is not x and same.grad_fn is double.grad_fn
    double.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


class _OnlyForward(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, of_x, of_y):
        x, y = ctx.saved_tensors
        return of_x * y + x * of_y, of_x + of_y


def test_a_function_that_has_but_a_forward_derivative_is_differentiated_by_it():
    x, y = torch.randn(2, 3, dtype=torch.float64, requires_grad=True), torch.randn(3, dtype=torch.float64)
    y = y.expand(2, 3).clone().requires_grad_()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.full_like(x, 2.0))
        tangents = [torch.autograd.forward_ad.unpack_dual(out).tangent for out in _OnlyForward.apply(dual, y)]
    assert torch.equal(tangents[0], 2 * y) and torch.equal(tangents[1], torch.full_like(x, 2.0))
    forward = {"check_forward_ad": True, "check_backward_ad": False}
    assert torch.autograd.gradcheck(_OnlyForward.apply, (x, y), **forward)

    class Wrong(_OnlyForward):
        @staticmethod
        def jvp(ctx, of_x, of_y):
            return of_x * 3, of_x + of_y

    with pytest.raises(RuntimeError):
        torch.autograd.gradcheck(Wrong.apply, (x, y), **forward)


def test_what_is_differentiable_once_refuses_more():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = torch.tensor(3.0, requires_grad=True)
    (g,) = torch.autograd.grad(Square.apply(x) ** 2, x, create_graph=True)
    assert g.item() == 108 and g.requires_grad
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        g.backward()


def test_setup_context_gets_arguments_that_were_left_out():
    class Power(torch.autograd.Function):
        forward = staticmethod(lambda x, y=3: x**y)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.x, ctx.y = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.y * ctx.x ** (ctx.y - 1), None

    x = torch.tensor(2.0, requires_grad=True)
    Power.apply(x).backward()
    assert x.grad.item() == 12


def test_a_mode_stays_while_a_generator_is_closed():
    seen = []

    @torch.no_grad()
    def steps():
        try:
            yield 1
        finally:
            seen.append(torch.is_grad_enabled())

    s = steps()
    next(s)
    s.close()
    assert seen == [False] and torch.is_grad_enabled()
