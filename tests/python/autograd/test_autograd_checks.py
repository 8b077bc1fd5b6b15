"""Backward hooks of modules, anomaly detection, gradcheck and gradgradcheck."""
import warnings

import pytest

import naru as torch


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


def test_gradcheck_refuses_what_it_can_not_check():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="check_batched_forward_grad"):
        torch.autograd.gradcheck(lambda t: t * 2, [x], check_batched_forward_grad=True)
    with pytest.raises(TypeError):
        torch.autograd.gradcheck(lambda t: t * 2, [x], no_such_option=True)


def test_gradcheck_takes_gradients_in_batches_for_those_one_after_another():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.sin, [x], check_batched_grad=True)
    assert torch.autograd.gradgradcheck(torch.sin, [x], check_batched_grad=True)
    with pytest.raises(AssertionError, match="check_backward_ad"):
        torch.autograd.gradcheck(torch.sin, [x], check_batched_grad=True, check_backward_ad=False, check_forward_ad=True)


def test_gradcheck_takes_inputs_of_any_strides():
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).t().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: t * torch.arange(3.0, dtype=torch.float64)[:, None], [x])
    with pytest.raises(RuntimeError, match="stride 0"):
        torch.autograd.gradcheck(torch.sin, [torch.ones(1, dtype=torch.float64).expand(2).detach().requires_grad_()])


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
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch"):
        torch.autograd.gradgradcheck(Wrong.apply, [x], check_fwd_over_rev=True, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="at least one"):
        torch.autograd.gradgradcheck(torch.sin, [x], check_rev_over_rev=False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_second_and_complex_derivatives_are_checked_forwards(dtype):
    x = torch.tensor([0.3, 0.7], dtype=dtype, requires_grad=True)
    y = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    f = lambda a, b: (a.sin() * b, (a * a.conj()).real, b * 2)  # noqa: E731
    assert torch.autograd.gradcheck(f, [x, y], check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, [x, y], check_fwd_over_rev=True)


def test_gradcheck_looks_at_forward_derivatives_where_it_is_asked_to():
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    for options in ({}, {"check_backward_ad": False}):
        assert torch.autograd.gradcheck(lambda t: (t.sin() * t, t.sum()), [x], check_forward_ad=True, **options)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 0"):
        torch.autograd.gradcheck(Wrong.apply, [x], check_forward_ad=True, check_backward_ad=False)


def test_fast_mode_of_gradcheck_calls_the_function_a_few_times_and_finds_wrong_gradients():
    calls = []

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    def twice(t):
        calls.append(1)
        return Scaled.apply(t, 2.0)

    x = torch.randn(10, 50, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(twice, [x], fast_mode=True) and len(calls) < 10
    assert torch.autograd.gradgradcheck(lambda t: t.sin() * t, [x], fast_mode=True, check_fwd_over_rev=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda t: Scaled.apply(t, 2.1), [x], fast_mode=True)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_gradcheck_changes_what_sparse_inputs_store_and_without_masked_all_elements(layout):
    blocks = (1, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    dense = torch.tensor([[0.0, 0.0, 3.0, 4.0], [5.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    sparse = dense.to_sparse(layout=layout, blocksize=blocks).requires_grad_()
    sizes = []

    def stored(t):
        sizes.append(t._nnz() * (2 if blocks else 1))
        return (t.to_dense() ** 2).sum()

    for masked, count in ((True, 4 if blocks else 3), (False, 8)):
        sizes.clear()
        assert torch.autograd.gradcheck(stored, [sparse], masked=masked)
        assert sizes.count(count) >= 2 * count  # each element is perturbed in both directions
    with pytest.raises(ValueError, match="Sparse output is not supported"):
        torch.autograd.gradcheck(lambda t: t, [sparse], masked=True)


def test_gradcheck_finds_gradients_that_do_not_go_with_those_of_the_outputs_and_functions_whose_outputs_change_form():
    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g + 1e-7

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="not multiplied by grad_output"):
        torch.autograd.gradcheck(Shifted.apply, [x])
    with pytest.raises(RuntimeError, match="expected to be zero"):
        torch.autograd.gradcheck(lambda t: t.detach() * 2, [x])
    with pytest.raises(AssertionError, match="same shape"):
        torch.autograd.gradcheck(lambda t: torch.cat([t, t]) if bool((t >= 1).all()) else t, [x])
    with pytest.warns(UserWarning, match="not a double precision"):
        assert torch.autograd.gradcheck(lambda t: t, [torch.ones(1, requires_grad=True)], atol=0.1)


def test_gradcheck_compares_a_batch_of_tangents_with_one_after_the_other():
    class Drawn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 2 + torch.randn_like(t) * 0

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(lambda t, n: (t.sin() * n, t.sum()), [x, 3], **options)
    with pytest.raises(RuntimeError, match="While computing batched gradients"):
        torch.autograd.gradcheck(Drawn.apply, [x], **options)


def test_register_backward_hook_sees_the_last_node_of_forward_and_warns_where_that_is_not_all_of_it():
    class Sum(torch.nn.Module):
        def forward(self, a, b):
            return {"y": a * b} if self.nested else a.sin() * b

    seen = []
    a, b = (torch.tensor([v], requires_grad=True) * 1 for v in (2.0, 3.0))
    m = Sum()
    m.register_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    for m.nested, message in ((False, "multiple autograd Nodes"), (True, "single Tensor or a tuple")):
        with pytest.warns(FutureWarning, match=message):
            y = m(a, b)
        (y["y"] if m.nested else y).backward()
    (first, second) = seen
    assert first[0][0].item() == 3.0 and first[1][0].item() == 1.0
    assert [g.item() for g in second[0]] == [3.0, 2.0]
    with pytest.raises(RuntimeError, match="Cannot use both"):
        m.register_full_backward_hook(lambda *_: None)


def test_gradcheck_asks_what_comes_back_where_an_output_has_no_gradient():
    class Ones(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return torch.ones(2, dtype=torch.float64) if g is None else 2 * g

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        with pytest.raises(RuntimeError, match="undefined or zero when all"):
            torch.autograd.gradcheck(Ones.apply, x)
    assert torch.autograd.gradcheck(Ones.apply, x, check_undefined_grad=False)


def test_gradcheck_asks_what_a_jvp_makes_of_an_input_without_a_tangent():
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(False)

        @staticmethod
        def jvp(ctx, a, b):
            return 2 * a if b is None else b if a is None else a + b

    x, y = (torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    given = {"check_forward_ad": True, "check_backward_ad": False}
    torch.autograd.gradcheck(lambda x, y: x * y, (x, y), **given)
    with pytest.raises(RuntimeError, match="mismatch for output 0 with respect to input 0"):
        torch.autograd.gradcheck(Sum.apply, (x, y), **given)
    Sum.jvp = staticmethod(lambda ctx, a, b: b if a is None else a if b is None else a + b)
    torch.autograd.gradcheck(Sum.apply, (x, y), **given)
    torch.autograd.gradcheck(lambda x: Sum.apply(x, x), (x,), **given)
    Sum.jvp = staticmethod(lambda ctx, a, b: b if a is None else a if b is None else a + b + 1)
    with pytest.raises(RuntimeError, match="Mismatch in tangent values for output with index: 0"):
        torch.autograd.gradcheck(Sum.apply, (x, y), **given)
    assert torch.autograd.gradcheck(Sum.apply, (x, y), check_undefined_grad=False, **given)
