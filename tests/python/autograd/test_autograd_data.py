"""Replaced .data, and leaves and grads shared by threads: graphs keep the values they saved, sums are exact."""
import threading

import pytest

import naru as torch
from autograd_support import run_beside


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
    if how == "set_":  # counts as a write in place, as in PyTorch
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
                errors.append(e)  # the shape changed between two reads

    run_beside([assign], [work, work], stop)
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

    run_beside([replace, read], [work, work], stop)


def test_threads_that_share_a_leaf_add_up_exactly():
    x = torch.ones(1000, requires_grad=True)
    losses = [(x * i).sum() for i in range(200)]
    threads = [threading.Thread(target=lambda k=k: [y.backward() for y in losses[k::8]]) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [float(sum(range(200)))] * 1000
