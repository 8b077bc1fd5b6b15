"""Objects that a program has dropped are freed: cycles through hooks, contexts, grads and graphs are found and collected."""
import gc

import numpy as np
import pytest

import naru as torch
from tools.sanitized import SANITIZED

SIZE = 4096


def big(requires_grad=True):
    return torch.ones(SIZE, requires_grad=requires_grad)


class KeepsOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.r = x * 2
        return ctx.r

    @staticmethod
    def backward(ctx, g):
        return g


class SavesOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y, x)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class KeepsInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g


def linear():
    m = torch.nn.Linear(4, 4)
    m.big = big(False)
    return m


def run(m):
    m(torch.ones(2, 4, requires_grad=True)).sum().backward()


PATTERNS = {}


def pattern(f):
    PATTERNS[f.__name__] = f
    return f


# Each leaves a cycle, or references something in a way that could become a cycle.


@pattern
def hook_on_a_leaf():
    t = big()
    t.register_hook(lambda g, t=t: None)


@pattern
def hook_on_a_leaf_after_use():
    t = big()
    (t * 2).sum().backward()
    t.register_hook(lambda g, t=t: None)


@pattern
def hook_on_a_leaf_that_ran():
    t = big()
    t.register_hook(lambda g, t=t: None)
    (t * 2).sum().backward()


@pattern
def two_hooks_on_two_leaves():
    s, t = big(), big()
    s.register_hook(lambda g, t=t: None)
    t.register_hook(lambda g, s=s: None)


@pattern
def hook_on_a_result():
    q = big() * 2
    q.register_hook(lambda g, q=q: None)


@pattern
def hook_on_a_result_with_its_leaf():
    t = big()
    q = t * 2
    q.register_hook(lambda g, t=t, q=q: None)


@pattern
def hook_that_ran():
    q = big() * 2
    q.register_hook(lambda g, q=q: None)
    q.sum().backward()


@pattern
def hook_taken_out():
    q = big() * 2
    q.register_hook(lambda g, q=q: None).remove()


@pattern
def handle_kept_by_the_tensor():
    t = big()
    t.handle = t.register_hook(lambda g: None)


@pattern
def node_hook():
    q = big() * 2
    q.grad_fn.register_hook(lambda gi, go, q=q: None)


@pattern
def node_prehook():
    q = big() * 2
    q.grad_fn.register_prehook(lambda go, q=q: None)


@pattern
def node_object_kept_by_its_tensor():
    q = big() * 2
    q.node = q.grad_fn


@pattern
def tensor_kept_by_its_node_object():
    q = big() * 2
    f = q.grad_fn
    f.tensor = q


@pattern
def post_accumulate_hook():
    t = big()
    t.register_post_accumulate_grad_hook(lambda p, t=t: None)


@pattern
def post_accumulate_hook_that_ran():
    t = big()
    t.register_post_accumulate_grad_hook(lambda p, t=t: None)
    (t * 2).sum().backward()


@pattern
def hook_on_a_weight():
    m = linear()
    m.weight.register_hook(lambda g, m=m: None)


@pattern
def hook_on_a_weight_that_ran():
    m = linear()
    m.weight.register_hook(lambda g, m=m: None)
    run(m)


@pattern
def forward_hook():
    m = linear()
    m.register_forward_hook(lambda mod, i, o, m=m: None)
    run(m)


@pattern
def full_backward_hook():
    m = linear()
    m.register_full_backward_hook(lambda mod, i, o, m=m: None)
    run(m)


@pattern
def full_backward_hook_without_backward():
    m = linear()
    m.register_full_backward_hook(lambda mod, i, o, m=m: None)
    m(torch.ones(2, 4, requires_grad=True))


@pattern
def context_with_the_result():
    KeepsOutput.apply(big())


@pattern
def context_with_the_result_after_backward():
    KeepsOutput.apply(big()).sum().backward()


@pattern
def context_with_the_result_that_was_used():
    y = KeepsOutput.apply(big())
    y.exp().sum()


@pattern
def context_with_the_input():
    KeepsInput.apply(big())


@pattern
def context_with_a_leaf_that_has_hooks():
    t = big()
    t.register_hook(lambda g, t=t: None)
    KeepsInput.apply(t).sum().backward()


@pattern
def saved_result():
    SavesOutput.apply(big())


@pattern
def saved_result_after_backward():
    SavesOutput.apply(big()).sum().backward()


@pattern
def function_node_kept_by_the_result():
    y = SavesOutput.apply(big())
    y.node = y.grad_fn


@pattern
def attribute_that_is_the_tensor():
    t = big(False)
    t.me = t


@pattern
def attribute_of_a_grad():
    t = big()
    t.grad = big(False)
    t.grad.owner = t


@pattern
def attribute_of_a_grad_after_backward():
    t = big()
    (t * 2).sum().backward()
    t.grad.owner = t


@pattern
def grad_with_a_history():
    t = big()
    (t * t).sum().backward(create_graph=True)


@pattern
def grads_with_histories_of_each_other():
    s, t = big(), big()
    (s * t * s * t).sum().backward(create_graph=True)


@pattern
def grads_of_a_module_with_histories():
    m = linear()
    m(torch.ones(2, 4)).pow(2).sum().backward(create_graph=True)


@pattern
def kept_grad_with_a_history():
    q = big() * 2
    q.retain_grad()
    (q * q).sum().backward(create_graph=True)


@pattern
def gradient_of_a_gradient():
    t = big()
    (g,) = torch.autograd.grad((t * t * t).sum(), t, create_graph=True)
    g.sum().backward()


@pattern
def kept_grad():
    q = big() * 2
    q.retain_grad()
    q.sum().backward()


@pattern
def write_to_a_view():
    q = big() * 2
    q[:2].mul_(3)
    q.register_hook(lambda g, q=q: None)


@pattern
def assigned_data():
    t = big()
    y = t * t
    t.data = big(False)
    y.sum().backward()


@pattern
def graph_that_failed():
    q = big() * 2
    q.register_hook(lambda g: 1 / 0)
    try:
        q.sum().backward()
    except ZeroDivisionError:
        pass


@pattern
def handles():
    t = big()
    for _ in range(3):
        t.register_hook(print)


@pattern
def kernel_with_a_backward():
    k, out = KERNEL, torch.zeros(SIZE)
    k(big(), out, grid=SIZE)
    out.register_hook(lambda g, out=out: None)


@pattern
def virtual_devices():
    with torch.virtual("rocm", count=2):
        x = torch.ones(SIZE, device="rocm:1")
        (x + 1).sum().item()


@pattern
def tensor_that_outlives_its_virtual_device():
    with torch.virtual("rocm"):
        x = torch.ones(SIZE, device="rocm")
    del x


@pattern
def stream_of_a_virtual_device():
    with torch.virtual("xpu", memory="64MiB"), torch.xpu.stream(torch.xpu.Stream()):
        torch.ones(SIZE, device="xpu").sum().item()


KERNEL = torch.kernel(
    "kernel void k(const float* a, float* o) { o[global_id(0)] = a[global_id(0)]; }", "k", backward=lambda ctx, g: g
)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


@pytest.mark.parametrize("name", PATTERNS)
def test_what_is_let_go_of_is_freed(name):
    f = PATTERNS[name]
    rounds, each = 3, 50  # 250 uses per pattern including the warm-up, 10,000 in all
    growth, held = [], []
    for _ in range(rounds + 2):
        for _ in range(each):
            f()
        gc.collect()
        gc.collect()  # collects cycles that were kept alive by what the first collection freed
        growth.append(resident())
        held.append(torch._C.memory_allocated("cpu"))
    assert held[-1] - held[1] < 4 * SIZE, f"{(held[-1] - held[1]) // (rounds * each)} bytes of tensors a use"
    if SANITIZED:
        return
    # The minimum of several rounds: other parts of the process may grow meanwhile.
    least = min(after - before for before, after in zip(growth[1:], growth[2:]))
    assert least < each * SIZE, f"{least // each} bytes a use"


def sums(device, use, uses=6):
    """A tensor, results of using it several times, and their sum."""
    torch.manual_seed(0)
    w = torch.randn(700, 700, device=device, requires_grad=True)
    xs = [torch.randn(5, 700, device=device) for _ in range(uses)]
    parts = [use(x, w) for x in xs]
    total = sum(p.sum() for p in parts)
    return w, parts, total


def test_gradients_of_a_tensor_with_several_uses_are_added_in_place():
    w, _, total = sums("cuda:0", lambda x, w: x @ w)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    total.backward()
    torch.cuda.synchronize()
    each = w.numel() * w.element_size()
    assert torch.cuda.max_memory_allocated() - before < 3.5 * each  # a new sum for each use would make four


def test_a_sum_in_place_changes_no_gradient_that_is_referenced_elsewhere():
    w, parts, total = sums("cpu", lambda x, w: x @ w)
    seen = []
    for p in parts:
        p.grad_fn.register_hook(lambda inputs, _: seen.append([(g, g.clone()) for g in inputs if g is not None]))
    total.backward()
    assert all(torch.equal(a, b) for pairs in seen for a, b in pairs) and len(seen) == 6
    x = torch.randn(50, requires_grad=True)
    given = torch.randn(50)
    kept = given.clone()
    (x + x + x * 2).backward(given)  # the additions pass the same tensor on to both
    assert torch.equal(given, kept) and torch.equal(x.grad, given + given + given * 2)
    y = torch.randn(4, 5, requires_grad=True)
    outputs = [y.t().contiguous(), y * 1, y.expand(3, 4, 5)]
    gradients = [torch.randn(*o.shape) for o in outputs]
    copies = [g.clone() for g in gradients]
    torch.autograd.backward(outputs, gradients)
    assert all(torch.equal(a, b) for a, b in zip(gradients, copies))
    assert torch.allclose(y.grad, gradients[0].t() + gradients[1] + gradients[2].sum(0), rtol=1e-5, atol=1e-5)


def test_a_sum_in_place_does_not_write_to_memory_of_others():
    memory = np.ones(5000, dtype=np.float32)

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return torch.from_numpy(memory)

    x = torch.zeros(5000, requires_grad=True)
    (Given.apply(x) + Given.apply(x) + Given.apply(x)).sum().backward()
    assert (memory == 1).all() and (x.grad == 3).all()


def test_sums_of_gradients_have_gradients():
    x = torch.randn(7, dtype=torch.float64, requires_grad=True)
    g, = torch.autograd.grad((x * x + x.sin() + x.exp()).sum(), x, create_graph=True)
    got, = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(got, 2 - x.sin() + x.exp(), rtol=1e-12)
