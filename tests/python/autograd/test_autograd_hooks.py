"""Removing hooks while they run, deep graphs, gradients of the wrong shape or type: backward raises, and never reads freed memory."""
import gc

import pytest

import naru as torch
from autograd_support import function, hooked, run_beside


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "result"])
@pytest.mark.parametrize("removed", [[0], [1], [2], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("by", [0, 1, 2])
def test_a_hook_may_take_out_any_hook_and_all_run_once_more(leaf, removed, by):
    x, y = hooked(leaf)
    calls, handles = [], []

    def make(i):
        ballast = list(range(1000))  # freed together with the hook, and used afterwards

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

    run_beside([change, change], [work, work], stop)
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
