"""Hooks that come and go, gradients that don't fit, data that is replaced: backward says so, and never reads what is not there."""
import gc
import threading
import warnings

import pytest

import naru as torch


def hooked(leaf):
    x = torch.ones(3, requires_grad=True)
    return x, (x if leaf else x * 1)


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "result"])
@pytest.mark.parametrize("removed", [[0], [1], [2], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("by", [0, 1, 2])
def test_a_hook_may_take_out_any_hook_and_all_run_once_more(leaf, removed, by):
    x, y = hooked(leaf)
    calls, handles = [], []

    def make(i):
        ballast = list(range(1000))  # dies with the hook, and is used afterwards

        def hook(g):
            calls.append(i)
            if i == by:
                for k in removed:
                    handles[k].remove()
                gc.collect()
            return g * (len(ballast) - 998)

        return hook

    handles += [y.register_hook(make(i)) for i in range(3)]
    (y * 1).sum().backward(retain_graph=True)
    assert calls == [0, 1, 2] and x.grad.tolist() == [8.0] * 3
    x.grad = None
    (y * 1).sum().backward()
    assert calls[3:] == [i for i in range(3) if i not in removed] and x.grad.tolist() == [2.0 ** len(calls[3:])] * 3


def test_a_hook_may_add_hooks_which_run_from_the_next_pass_on():
    x, y = hooked(False)
    seen = []
    y.register_hook(lambda g: [y.register_hook(lambda g: seen.append(1)) for _ in range(100)] and None)
    y.sum().backward(retain_graph=True)
    assert seen == []
    y.sum().backward()
    assert len(seen) == 100


def test_threads_add_and_remove_hooks_while_others_run_backward():
    x = torch.ones(100, requires_grad=True)
    y, stop = x * 2, []

    def change():
        while not stop:
            for t in (x, y):
                t.register_hook(lambda g: g * 1).remove()

    def work():
        for _ in range(150):
            y.sum().backward(retain_graph=True)

    threads = [threading.Thread(target=f) for f in (change, change, work, work)]
    for t in threads:
        t.start()
    for t in threads[2:]:
        t.join()
    stop.append(1)
    for t in threads[:2]:
        t.join()
    assert x.grad.tolist() == [600.0] * 100


def test_a_handle_does_not_keep_its_tensor_alive():
    freed = []

    class Watched:
        def __del__(self):
            freed.append(1)

    x = torch.ones(3, requires_grad=True)
    x.watched = Watched()
    handle = x.register_hook(print)
    del x
    gc.collect()
    assert freed
    handle.remove()


def test_deep_graphs_that_share_inputs_are_walked_and_freed():
    x = torch.ones(1, requires_grad=True)
    for walk in (True, False):
        y = x.clone()
        for _ in range(60000):
            y = y + y * 1e-6
        if walk:
            y.backward()
        del y
    assert x.grad is not None


def test_backward_within_backward_3000_deep():
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.n:
                with torch.enable_grad():
                    Nested.apply(torch.ones(1, requires_grad=True), ctx.n - 1).sum().backward()
            return g, None

    x = torch.ones(1, requires_grad=True)
    Nested.apply(x, 3000).sum().backward()
    assert x.grad.item() == 1


BAD_FROM_HOOK = {
    "shape": (lambda: torch.ones(7), RuntimeError, "hook '<lambda>' has changed the size of value"),
    "scalar": (lambda: torch.ones(()), RuntimeError, "hook '<lambda>' has changed the size of value"),
    "dtype": (lambda: torch.ones(3).double(), RuntimeError, "has changed the type of value \\(was torch.FloatTensor got torch.DoubleTensor\\)"),
    "integers": (lambda: torch.tensor([1, 2, 3]), RuntimeError, "has changed the type of value \\(was torch.FloatTensor got torch.LongTensor\\)"),
    "number": (lambda: 5, TypeError, "expected Variable, but hook returned 'int'"),
    "list": (lambda: [torch.ones(3)], TypeError, "expected Variable, but hook returned 'list'"),
}  # fmt: skip


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "result"])
@pytest.mark.parametrize("name", BAD_FROM_HOOK)
def test_what_a_hook_returns_must_be_like_the_gradient(name, leaf):
    value, error, text = BAD_FROM_HOOK[name]
    x, y = hooked(leaf)
    y.register_hook(lambda g: value())
    with pytest.raises(error, match=text):
        y.sum().backward()
    assert x.grad is None


def test_a_hook_on_another_device_is_refused():
    with torch.virtual("cuda"):
        x, y = hooked(True)
        y.register_hook(lambda g: torch.ones(3, device="cuda:0"))
        with pytest.raises(RuntimeError, match="was torch.FloatTensor got torch.cuda.FloatTensor"):
            y.sum().backward()


def function(result):
    class Made(torch.autograd.Function):
        forward = staticmethod(lambda ctx, *args: args[0] * 2)
        backward = staticmethod(lambda ctx, g: result())

    return Made


FITTING = {
    "wider": (lambda: torch.ones(2, 3), [2.0] * 3),
    "float64": (lambda: torch.ones(3).double(), [1.0] * 3),
    "integers": (lambda: torch.tensor([1, 2, 3]), [1.0, 2.0, 3.0]),
    "None": (lambda: None, None),
    "more Nones": (lambda: (torch.ones(3), None, None), [1.0] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_a_gradient_that_fits_its_input_is_brought_to_its_shape_and_type(name):
    value, wanted = FITTING[name]
    x = torch.ones(3, requires_grad=True)
    function(value).apply(x).sum().backward()
    assert (None if x.grad is None else x.grad.tolist()) == wanted and (x.grad is None or x.grad.dtype == torch.float32)


BAD_FROM_FUNCTION = {
    "shape": (lambda: torch.ones(5), "Function MadeBackward returned an invalid gradient at index 0 - got \\[5\\] but expected shape compatible with \\[3\\]"),
    "narrower": (lambda: torch.ones(1), "got \\[1\\] but expected shape compatible with \\[3\\]"),
    "empty": (lambda: torch.zeros(0), "got \\[0\\] but expected shape compatible with \\[3\\]"),
    "none": (lambda: (), "function MadeBackward returned an incorrect number of gradients \\(expected 1, got 0\\)"),
    "text": (lambda: "x", "expected Variable or None \\(got str\\)"),
    "number": (lambda: 5, "expected Variable or None \\(got int\\)"),
    "two": (lambda: (1, 2), "returned an incorrect number of gradients \\(expected 1, got 2\\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FROM_FUNCTION)
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "result"])
def test_a_gradient_that_does_not_fit_its_input_is_an_error(name, leaf):
    value, text = BAD_FROM_FUNCTION[name]
    x, y = hooked(leaf)
    with pytest.raises(RuntimeError, match=text):
        function(value).apply(y).sum().backward()


def test_a_functions_gradient_on_another_device_is_an_error():
    with torch.virtual("cuda"):
        x = torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="at index 0 - expected device cpu but got cuda:0"):
            function(lambda: torch.ones(3, device="cuda:0")).apply(x).sum().backward()


def test_backward_starts_with_a_gradient_of_the_tensors_type():
    x = torch.ones(3, requires_grad=True)
    (x * 2).backward(torch.ones(3, dtype=torch.float64))
    assert x.grad.dtype == torch.float32


# --- data that is replaced


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "result"])
@pytest.mark.parametrize("shape", [(0,), (3,), (1000, 10)], ids=str)
@pytest.mark.parametrize("how", ["data", "set_"])
def test_backward_uses_the_elements_that_forward_saw_or_refuses(leaf, shape, how):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x if leaf else x * 1
    b = torch.tensor([4.0, 5.0, 6.0])
    results = [(y * b).sum(), (b * y).exp().sum(), (y.exp() * b).sum()]
    wanted = torch.autograd.grad(sum(results), x, retain_graph=True)[0].tolist()
    for t in (b,) if leaf else (b, y):
        if how == "data":
            t.data = torch.full(shape, 100.0)
        else:
            with torch.no_grad():
                t.set_(torch.full(shape, 100.0))
        assert t.shape == shape
    if how == "set_":  # a write in place, as PyTorch has it
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            sum(results).backward()
    else:
        sum(results).backward()
        assert x.grad.tolist() == wanted


def test_a_leaf_with_other_data_gets_its_gradients_all_the_same():
    x = torch.ones(3, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    z = (x * x).sum()
    before = id(x)
    x.data = torch.ones(3) * 7
    z.backward()
    assert x.grad.tolist() == [2.0] * 3 and id(x) == before and x.is_leaf and x.requires_grad and seen == [[2.0] * 3]
    (x * x).sum().backward()
    assert x.grad.tolist() == [16.0] * 3 and len(seen) == 2
    x.data = torch.ones(3, dtype=torch.float64)
    assert x.dtype == torch.float64
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point"):
        x.data = torch.ones(3, dtype=torch.int64)


def test_a_leaf_of_another_shape_takes_no_gradient_of_the_old_one():
    x = torch.ones(3, requires_grad=True)
    z = (x * x).sum()
    x.data = torch.ones(5)
    with pytest.raises(RuntimeError, match=r"a leaf of shape \[5\] on cpu can't take a gradient of shape \[3\].*its data was replaced"):
        z.backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 5


@pytest.mark.parametrize("change", [lambda t: t.resize_(2), lambda t: t.resize_(100, 100), lambda t: t.unsqueeze_(0), lambda t: t.t_(),
                                    lambda t: torch.add(torch.ones(7), 1, out=t)], ids=["smaller", "larger", "unsqueeze_", "t_", "out="])  # fmt: skip
def test_backward_refuses_what_got_another_shape(change):
    x, b = torch.ones(3, requires_grad=True), torch.ones(3)
    z = (x * b).sum()
    change(b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_tensor_that_requires_grad_is_not_resized():
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(3, requires_grad=True).resize_(5)


def test_threads_may_assign_data_while_others_compute_and_run_backward():
    b, stop, errors = torch.ones(70000), [], []
    x = torch.ones(70000, requires_grad=True)

    def assign():
        while not stop:
            for size in (1, 70000):
                b.data = torch.ones(size)

    def work():
        for _ in range(60):
            try:
                (b + 1).sum().item(), b.clone(), repr(b.shape), b[0]
                (x * b).sum().backward()
            except RuntimeError as e:
                errors.append(e)  # a shape that changed between two looks at it

    threads = [threading.Thread(target=f) for f in (assign, work, work)]
    for t in threads:
        t.start()
    for t in threads[1:]:
        t.join()
    stop.append(1)
    threads[0].join()
    assert x.grad is not None or len(errors) == 120


def test_threads_read_and_replace_a_grad_that_others_add_to():
    x, stop = torch.ones(1000, requires_grad=True), []

    def replace():
        while not stop:
            x.grad = None
            x.grad = torch.ones(1000)

    def read():
        while not stop:
            g = x.grad
            assert g is None or g.sum().item() > 0

    def work():
        for _ in range(300):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=f) for f in (replace, read, work, work)]
    for t in threads:
        t.start()
    for t in threads[2:]:
        t.join()
    stop.append(1)
    for t in threads[:2]:
        t.join()


def test_threads_that_share_a_leaf_add_up_exactly():
    x = torch.ones(1000, requires_grad=True)
    losses = [(x * i).sum() for i in range(200)]
    threads = [threading.Thread(target=lambda k=k: [y.backward() for y in losses[k::8]]) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [float(sum(range(200)))] * 1000


# --- a function's context


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


# --- writes that history can't follow


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
    assert not before.requires_grad  # what was written earlier is none of its business
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
    with pytest.raises(RuntimeError, match=f"Output 0 of {cls.__name__} is a view and is being modified inplace"):
        view.mul_(2)
    view.sum().backward()
    assert x.grad.tolist() == [10.0] * 3
    base.mul_(2)
    with pytest.raises(RuntimeError, match="is a view and its base or another view of its base has been modified inplace"):
        view.grad_fn  # noqa: B018


# --- kept gradients and inputs


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
    y.sum().backward()  # what y came from is still there
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


# --- backward hooks of modules


def test_backward_hooks_are_not_called_again_in_double_backward():
    x = torch.rand(1, requires_grad=True)
    loss, calls = torch.nn.MSELoss(), []
    loss.register_full_backward_hook(lambda m, gi, go: calls.append(1))
    g, = torch.autograd.grad(loss(x, torch.rand(1)), x, create_graph=True)
    torch.autograd.grad(g, x)
    assert calls == [1]


def test_backward_hooks_of_modules_that_give_a_dict_are_not_called_and_that_is_said():
    class Gives(torch.nn.Module):
        def forward(self, x):
            return {"y": x * 2}

    m, calls = Gives(), []
    m.register_full_backward_hook(lambda m, gi, go: calls.append(1))
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors but received <class 'dict'>"):
        y = m(x)["y"]
    y.sum().backward()
    assert calls == [] and x.grad.tolist() == [2.0, 2.0]


# --- anomalies


def test_anomaly_detection_finds_nan_and_where_the_operator_was_called():
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), torch.autograd.detect_anomaly():
        y = (x.sqrt() * 0).sum()  # this line
        with pytest.warns(UserWarning, match=r"(?s)Error detected in SqrtBackward0. Traceback of forward call.*y = \(x.sqrt\(\) \* 0\).sum\(\)  # this line"):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."):
                y.backward()
    (x.sqrt() * 0).sum().backward()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).sum().backward()
    torch.autograd.set_detect_anomaly(True)
    assert torch.autograd.set_detect_anomaly(False).prev is True


def test_anomaly_detection_says_where_a_function_that_fails_was_called():
    class Fails(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 1)

        @staticmethod
        def backward(ctx, g):
            raise ValueError("in backward")

    x = torch.zeros(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = torch.autograd.detect_anomaly()
    with mode, pytest.warns(UserWarning, match="Error detected in FailsBackward"), pytest.raises(ValueError, match="in backward"):
        Fails.apply(x).sum().backward()


@pytest.mark.parametrize("option", ["check_forward_ad", "check_batched_grad", "check_batched_forward_grad"])
def test_gradcheck_refuses_what_it_can_not_check(option):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match=option):
        torch.autograd.gradcheck(lambda t: t * 2, [x], **{option: True})
    with pytest.raises(TypeError):
        torch.autograd.gradcheck(lambda t: t * 2, [x], no_such_option=True)


def test_gradcheck_finds_a_backward_that_gives_another_result_each_time():
    class Random(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 2)
        backward = staticmethod(lambda ctx, g: g * (2 + 1e-5 * torch.rand(1, dtype=torch.float64)))

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        torch.autograd.gradcheck(Random.apply, [x])
    assert torch.autograd.gradcheck(Random.apply, [x], nondet_tol=1e-3)


def test_gradgradcheck_checks_second_derivatives():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0].detach() ** 2

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: t**3, [x]) and torch.autograd.gradcheck(Wrong.apply, [x])
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradgradcheck(Wrong.apply, [x])
