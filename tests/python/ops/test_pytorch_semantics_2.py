"""Lines of code with PyTorch 2.15's recorded results (CPU): a value, or an error's type and the start of its text."""

import copy
import sys
import warnings

import numpy as np
import pytest

import naru as torch
from naru import nn
import naru.nn.functional as F

VALUES = {
    # PyTorch's legacy signatures
    "torch.add(torch.ones(2), 2, torch.ones(2)).tolist()": [3.0, 3.0],
    "torch.ones(2).add(2, torch.ones(2)).tolist()": [3.0, 3.0],
    "torch.ones(2).add_(2, torch.ones(2)).tolist()": [3.0, 3.0],
    "torch.sub(torch.ones(2), 2, torch.ones(2)).tolist()": [-1.0, -1.0],
    "torch.ones(2).sub_(2, torch.ones(2)).tolist()": [-1.0, -1.0],
    "torch.tensor([5]).sub(2, torch.tensor([1])).tolist()": [3],
    "torch.addcmul(torch.ones(2), 2, torch.ones(2), torch.ones(2)).tolist()": [3.0, 3.0],
    "torch.ones(2).addcmul_(2, torch.ones(2), torch.full((2,), 3.)).tolist()": [7.0, 7.0],
    "torch.ones(2).addcdiv_(2, torch.ones(2), torch.full((2,), 4.)).tolist()": [1.5, 1.5],
    "torch.addcdiv(torch.ones(2), 2, torch.ones(2), torch.ones(2)).tolist()": [3.0, 3.0],
    "torch.addmm(2, torch.ones(2, 2), 3, torch.ones(2, 2), torch.ones(2, 2)).tolist()": [[8.0, 8.0], [8.0, 8.0]],
    "torch.addmm(2, torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2)).tolist()": [[4.0, 4.0], [4.0, 4.0]],
    "torch.addmv(2, torch.ones(2), 3, torch.ones(2, 2), torch.ones(2)).tolist()": [8.0, 8.0],
    "torch.baddbmm(2, torch.ones(1, 2, 2), 3, torch.ones(1, 2, 2), torch.ones(1, 2, 2)).tolist()": [[[8.0, 8.0], [8.0, 8.0]]],
    # storages
    "torch.ones(2).storage().dtype": torch.float32,
    "torch.ones(2).storage().tolist()": [1.0, 1.0],
    "torch.ones(2).untyped_storage().tolist()": [0, 0, 128, 63, 0, 0, 128, 63],
    "len(torch.ones(2, dtype=torch.double).storage())": 2,
    "len(torch.arange(6)[2:].storage())": 6,
    "torch.arange(6).storage()[4]": 4,
    "sys.getsizeof(torch.ones(1000).untyped_storage()) > 4000": True,
    "sys.getsizeof(torch.empty(10).storage()) > sys.getsizeof(torch.empty(0).storage())": True,
    "torch.zeros(2, 3).set_(torch.ones(2, 3).storage(), 0, (3,), (1,)).tolist()": [1.0, 1.0, 1.0],
    "tuple(torch.empty(0).set_(torch.ones(6).untyped_storage()).shape)": (6,),
    "torch.empty(0, dtype=torch.int64).set_(torch.arange(6).untyped_storage(), 1, (2, 2)).tolist()": [[1, 2], [3, 4]],
    "tuple(torch.ones(3).set_().shape)": (0,),
    "copy.deepcopy(torch.arange(3).untyped_storage()).tolist() == torch.arange(3).untyped_storage().tolist()": True,
    "torch.ones(3).share_memory_().is_shared()": True,
    "torch.ones(3).is_shared()": False,
    "torch.rand(2).untyped_storage().is_shared()": False,
    # shapes
    "torch.ones(5).expand(1, 1, 5).stride()": (5, 5, 1),
    "torch.ones(5).expand(2, 1, 5).stride()": (0, 5, 1),
    "torch.ones(2, 1, 5).expand(3, 1, 2, 4, 5).stride()": (0, 10, 5, 0, 1),
    "torch.ones(()).expand(1, 2, 1).stride()": (0, 0, 0),
    "torch.ones(1, 5).expand(1, 1, 5).stride()": (5, 5, 1),
    "tuple(torch.ones(3).resize_as_(torch.ones(2, 2)).shape)": (2, 2),
    "torch.arange(3).as_strided_((2,), (1,), 1).tolist()": [1, 2],
    "tuple(torch.ones(2, 3).new(size=(2, 2)).shape)": (2, 2),
    "torch.ones(2, 3).new([1, 2]).tolist()": [1.0, 2.0],
    "torch.tensor(2.).H.item()": 2.0,
    "torch.tensor(2.).mT.item()": 2.0,
    # indexing
    "torch.arange(12.).reshape(3, 4)[[slice(None), [0, 2]]].tolist()": [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]],
    "torch.arange(12.).reshape(3, 4)[[[0, 1], [1, 2]]].tolist()": [1.0, 6.0],
    "torch.arange(12.).reshape(3, 4)[[torch.tensor(0), torch.tensor(1)]].item()": 1.0,
    "torch.arange(12.).reshape(3, 4)[[..., 1]].tolist()": [1.0, 5.0, 9.0],
    "tuple(torch.arange(12.).reshape(3, 4)[[None, 0]].shape)": (1, 4),
    "tuple(torch.arange(12.).reshape(3, 4)[[0, 1]].shape)": (2, 4),
    "torch.ones(()).index_copy_(0, torch.tensor(0), torch.tensor(3.)).item()": 3.0,
    "torch.ones(()).index_copy_(0, torch.tensor([0]), torch.tensor([3.])).item()": 3.0,
    "torch.zeros(3, 2).index_copy(0, torch.tensor([2, 0]), torch.tensor([[1., 2.], [3., 4.]])).tolist()": [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]],
    "tuple(torch.empty(0, 4).index_copy(0, torch.tensor([], dtype=torch.long), torch.empty(0, 4)).shape)": (0, 4),
    "torch.ones(()).index_fill_(0, torch.tensor(0), 3.).item()": 3.0,
    "torch.ones(()).index_fill(0, torch.tensor([0]), torch.tensor(3.)).item()": 3.0,
    "torch.ones(3).index_fill_(0, torch.tensor([0, -1]), 3.).tolist()": [3.0, 1.0, 3.0],
    "torch.ones(3).expand(2, 3).index_fill_(0, torch.tensor([1]), 5.).tolist()": [[5.0] * 3] * 2,
    "torch.ones(3).expand(2, 3).index_fill_(1, torch.tensor([1]), 5.).tolist()": [[1.0, 5.0, 1.0]] * 2,
    "torch.ones(3).expand(3, 3).masked_fill_(torch.eye(3) > 0, 5.).tolist()": [[5.0] * 3] * 3,
    "torch.ones(2, 1).expand(2, 2).masked_fill_(torch.tensor([[False, True], [False, False]]), 5.).tolist()": [[5.0, 5.0], [1.0, 1.0]],
    "torch.ones(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist()": [1.0, 1.0],
}

ERRORS = {
    "torch.ones(3, 4).index_copy_(0, torch.tensor([[0, 1]]), torch.ones(2, 4))": (IndexError, "index_copy_(): Index should have dimension 1 or 0 (got 2)"),
    "torch.ones(3, 4).index_copy_(0, torch.tensor([0, 5]), torch.ones(2, 4))": (IndexError, "index_copy_(): index 5 is out of bounds for dimension 0 with size 3"),
    "torch.ones(3, 4).index_copy_(0, torch.tensor([0, -1]), torch.ones(2, 4))": (IndexError, "index_copy_(): index -1 is out of bounds for dimension 0 with size 3"),
    "torch.ones(3).index_copy_(0, torch.tensor([0, 1]), torch.ones(3))": (IndexError, "index_copy_(): Number of indices (2) should be equal to source.size(dim) (3)"),
    "torch.ones(3, 4).index_copy_(0, torch.tensor(0), torch.ones(4))": (IndexError, "index_copy_(): When source and destination are not scalars, their dimensionality must match."),
    "torch.ones(3, 4).index_copy_(0, torch.tensor([0, 1]), torch.ones(2, 3))": (RuntimeError, "index_copy_(): Source/destination tensor must have same slice shapes."),
    "torch.ones(3, 4).index_copy_(0, torch.tensor([0, 1]), torch.ones(2, 4, dtype=torch.float64))": (RuntimeError, "index_copy_(): self and source expected to have the same dtype"),
    "torch.ones(3, 4).index_copy_(0, torch.tensor([0, 1], dtype=torch.int32), torch.ones(2, 4))": (RuntimeError, "index_copy_(): Expected a long tensor for index"),
    "torch.ones(3).index_fill_(0, torch.tensor([[0]]), 3.)": (RuntimeError, "Index has to be a vector/scalar"),
    "torch.ones(3).index_fill_(0, torch.tensor([0]), torch.ones(1))": (RuntimeError, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)."),
    "torch.ones(3).index_fill_(0, torch.tensor([0.]), 1)": (IndexError, "index_fill_(): Expected dtype"),
    "torch.Generator('opengl')": (RuntimeError, ""),
    "torch.ones(3).__dlpack__(stream='bad')": (TypeError, "stream must be ``int`` or ``none``"),
    "nn.Unflatten(1, (('C', 2), ('H', 5)))": (TypeError, "unflattened_size must be tuple of ints, but found element of type tuple at pos 0"),
    "nn.Sequential(nn.Linear(1, 1)).insert(5, nn.ReLU())": (IndexError, "Index out of range: 5"),
    "nn.Linear(1, 1).to(copy=True)": (RuntimeError, ".to() does not accept copy argument"),
    "delattr(torch.ones(2), 'data')": (RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!"),
    "torch.ones(3).set_(torch.ones(3, dtype=torch.double))": (RuntimeError, "Could not set tensor of type"),
    "torch.ones(3).set_(torch.ones(3).untyped_storage(), 1, (5,))": (RuntimeError, "setStorage: sizes [5]"),
    "torch.ones(2, 2, 2).H": (RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor."),
    "torch.meshgrid()": (RuntimeError, "meshgrid expects a non-empty TensorList"),
    "torch.frombuffer([1, 2], dtype=torch.float32)": (ValueError, "object does not implement Python buffer protocol."),
    "F.glu(torch.ones(3, 4), 65)": (IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 65)"),
    "F.glu(torch.ones(3, 3), 1)": (RuntimeError, "Halving dimension must be even, but dimension 1 is size 3"),
    "F.cosine_embedding_loss(torch.ones(2, 3), torch.ones(2, 3), torch.ones(3))": (RuntimeError, "The size of tensor a (3) must match the size of tensor b (2)"),
    "F.cosine_embedding_loss(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 1))": (RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    "F.cosine_embedding_loss(torch.ones(3), torch.ones(3), torch.ones(1))": (RuntimeError, "1D target tensor expects 2D input tensors, but found inputs with sizes [3] and [3]."),
    "F.triplet_margin_loss(torch.ones(2, 3), torch.ones(3), torch.ones(2, 3))": (RuntimeError, "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor 2D, positive 1D, and negative 2D inputs"),
    "F.triplet_margin_loss(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3), margin=-1)": (ValueError, "margin must be greater than 0, got -1"),
    "torch.add(torch.ones(2), 'a', torch.ones(2))": (TypeError, "add()"),
    "torch.add(torch.ones(2), 2, 3)": (TypeError, "add()"),
    "torch.export": (AttributeError, "torch.export is in PyTorch 2.15 but not in naru yet; nearest: naru.Graph"),
}

WARNINGS = {
    "torch.add(torch.ones(2), 2, torch.ones(2))": "This overload of add is deprecated",
    "torch.ones(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)]": "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
    "torch.ones(3).expand(3, 3).masked_fill_(torch.ones(3, 3) > 0, 0.)": "Use of masked_fill_ on expanded tensors is deprecated.",
    "torch.ones(3).expand(3, 3).index_fill_(0, torch.tensor([0]), 5.)": "Use of index_fill_ on expanded tensors is deprecated.",
    "torch.meshgrid(torch.arange(2), torch.arange(3))": "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
    "torch.ones(3, 4)[[slice(None), 0]]": "Using a non-tuple sequence for multidimensional indexing is deprecated",
    "torch.tensor(2.).H": "Tensor.H is deprecated on 0-D tensors.",
    "torch.frombuffer(b'1234', dtype=torch.float32)": "The given buffer is not writable",
}

NAMES = {"torch": torch, "nn": nn, "F": F, "np": np, "sys": sys, "copy": copy}


@pytest.mark.parametrize("line", VALUES)
def test_a_line_gives_pytorchs_value(line):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eval(line, dict(NAMES)) == VALUES[line]


@pytest.mark.parametrize("line", ERRORS)
def test_a_line_raises_pytorchs_error(line):
    kind, text = ERRORS[line]
    with pytest.raises(kind) as error:
        eval(line, dict(NAMES))
    assert type(error.value) is kind or kind is not RuntimeError or isinstance(error.value, RuntimeError)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize("line", WARNINGS)
def test_a_line_warns_as_pytorch_does(line):
    with pytest.warns(UserWarning) as caught:
        eval(line, dict(NAMES))
    assert any(str(w.message).startswith(WARNINGS[line]) for w in caught)


def functional():
    """Each function of nn.functional that takes a tensor, with its parameters up to the last one that is due."""
    import inspect

    for name in sorted(dir(F)):
        function = getattr(F, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        parameters = inspect.signature(function).parameters.values()
        if any(p.annotation == "Tensor" for p in parameters) and function.__module__.startswith("naru.nn"):
            yield name, [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("name, due", list(functional()), ids=lambda v: v if isinstance(v, str) else "")
def test_none_where_a_tensor_is_due_names_the_parameter(name, due):
    good = {"Tensor": torch.ones(4, 4), "bool": False, "float": 0.5, "int": 1, "Sequence[int]": [4], "Any": 1.0, "Tensor | None": None}
    for missing in [p for p in due if p.annotation == "Tensor"]:
        arguments = [None if p is missing else good[p.annotation] for p in due]
        with pytest.raises(TypeError, match=r"argument '\w+'.* must be Tensor, not NoneType"):
            getattr(F, name)(*arguments)


def test_a_copy_is_over_the_same_elements():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    a.note = "kept"
    b = copy.copy(a)
    with torch.no_grad():
        a[0] = 9
    assert b.tolist() == [9, 2] and b.requires_grad and b.is_leaf and b.note == "kept" and b is not a
    p = copy.copy(nn.Parameter(torch.ones(2)))
    assert type(p) is nn.Parameter and p.requires_grad


def test_shared_memory_is_seen_by_forked_processes():
    import os

    x = torch.zeros(3)
    view = x[1:]
    x.share_memory_()
    assert view.is_shared()
    pid = os.fork()
    if pid == 0:
        view[0] = 7
        os._exit(0)
    os.waitpid(pid, 0)
    assert x.tolist() == [0, 7, 0]
    assert (x + 1).tolist() == [1, 8, 1]


def test_elements_of_a_storage_are_the_tensors():
    x = torch.arange(4.0)
    s = x[1:].storage()
    s[0] = 9
    assert x.tolist() == [9, 1, 2, 3] and s.data_ptr() == x.data_ptr() and s.nbytes() == 16
    with pytest.raises(IndexError):
        s[4]
    clone = s.clone()
    clone[1] = 5
    assert x[1] == 1


def test_sgd_may_be_differentiated_through():
    p = torch.tensor([0.5, 2.0], dtype=torch.double, requires_grad=True)

    def final(start):
        q = start.clone()
        optimizer = torch.optim.SGD([q], 0.1, weight_decay=0.1, differentiable=True)
        for k in range(3):
            q.grad = start**2 * (k + 1)
            optimizer.step()
        return q.sum()

    (gradient,) = torch.autograd.grad(final(p), p)
    for i in range(2):
        step = torch.zeros(2, dtype=torch.double)
        step[i] = 1e-6
        slope = (final(p.detach() + step) - final(p.detach() - step)) / 2e-6
        assert gradient[i].item() == pytest.approx(slope.item(), rel=1e-5)


def test_differentiable_steps_follow_pytorch():
    p = torch.tensor([0.3, 0.7], dtype=torch.double, requires_grad=True)
    q = p.clone()
    q.grad = p * 2
    torch.optim.SGD([q], 0.9, differentiable=True).step()
    q.sum().backward()
    assert p.grad.tolist() == pytest.approx([1 - 1.8, 1 - 1.8])
    p.grad = None
    q = p.clone()
    q.grad = p * 2
    torch.optim.Adam([q], 0.9, differentiable=True).step()
    q.sum().backward()
    assert p.grad.tolist() == pytest.approx([1, 1], abs=1e-6)
    plain = torch.tensor([0.3, 0.7], dtype=torch.double)
    same = plain.clone()
    for optimizer in (torch.optim.Adam([plain], 0.1, amsgrad=True, weight_decay=0.1), torch.optim.Adam([same], 0.1, amsgrad=True, weight_decay=0.1, differentiable=True)):
        for k in range(4):
            (param,) = optimizer.param_groups[0]["params"]
            param.grad = torch.tensor([1.0, -0.5], dtype=torch.double) * (k + 1)
            optimizer.step()
    assert plain.tolist() == pytest.approx(same.tolist(), rel=1e-7)


def test_a_number_of_steps_in_adams_state_may_be_a_float():
    m = nn.Linear(2, 2)
    o = torch.optim.Adam(m.parameters())
    m(torch.ones(1, 2)).sum().backward()
    o.step()
    state = o.state_dict()
    for entry in state["state"].values():
        entry["step"] = 1.0
    again = torch.optim.Adam(m.parameters())
    again.load_state_dict(state)
    again.step()
    assert all(float(s["step"]) == 2 for s in again.state.values())


def test_a_schedule_sees_that_step_was_replaced():
    import types

    o = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.05)
    s = torch.optim.lr_scheduler.StepLR(o, 3)
    o.step = types.MethodType(lambda self, *a, **k: None, o)
    with pytest.warns(UserWarning, match="`optimizer.step\\(\\)` has been overridden after learning rate scheduler initialization"):
        s.step()


def test_errors_and_origins_name_the_function_that_was_called():
    for make, name in ((lambda: torch.tensor([1.0, 2.0], device="cpu"), "tensor"), (lambda: torch.randn(2), "randn")):
        with pytest.raises(RuntimeError) as error:
            torch.mm(make().reshape(1, 2), torch.ones(2, 1, device="cuda"))
        assert f"made by {name}" in str(error.value)


def test_a_lost_device_has_an_exception_of_its_own():
    assert issubclass(torch.DeviceLostError, RuntimeError)
    with torch.virtual("xpu", count=1, lose_after=2):
        with pytest.raises(torch.DeviceLostError):
            for _ in range(20):
                (torch.ones(3, device="xpu") + 1).cpu()
