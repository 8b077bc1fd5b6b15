"""copy.copy and copy.deepcopy preserve shared memory and attributes."""

import copy
import pickle

import pytest

import naru as torch


def test_a_copy_is_another_tensor_over_the_same_memory():
    x = torch.arange(6.0).reshape(2, 3).t()[1:].requires_grad_()
    x.note = [1]
    y = copy.copy(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and y.stride() == x.stride() and y.storage_offset() == x.storage_offset()
    assert y.requires_grad and y.is_leaf and y.note is x.note and y.grad is None
    z = copy.copy(x * 2)
    assert z.is_leaf and z.requires_grad


def test_a_copy_of_a_parameter_is_a_parameter():
    p = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    p.tag = "a"
    q = copy.copy(p)
    assert type(q) is torch.nn.Parameter and q.data_ptr() == p.data_ptr() and not q.requires_grad and q.tag == "a"


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_tensors_that_share_memory_share_it_in_a_deep_copy(device):
    a = torch.arange(6.0, device=device)
    b, c = a[2:], a.reshape(2, 3).t()
    d = {"a": a, "b": b, "c": [c], "s": a.untyped_storage()}
    e = copy.deepcopy(d)
    e["a"][3] = 99
    assert a[3].item() == 3 and e["b"][1].item() == 99 and e["c"][0][0, 1].item() == 99
    assert e["c"][0].stride() == (1, 3) and e["s"].data_ptr() == e["a"].untyped_storage().data_ptr() != a.untyped_storage().data_ptr()


def test_a_deep_copy_keeps_strides_attributes_and_gradients():
    x = torch.ones(2, 3, requires_grad=True)
    x.note = {"k": torch.zeros(1)}
    x.sum().backward()
    y = copy.deepcopy(x)
    y.note["k"].add_(1)
    assert x.note["k"].item() == 0 and y.grad.tolist() == x.grad.tolist() and y.grad is not x.grad and y.requires_grad and y.is_leaf
    assert copy.deepcopy(torch.ones(1).expand(4)).stride() == (0,)
    assert copy.deepcopy(torch.ones(0, 3)).shape == (0, 3)
    y.data.mul_(5)
    assert x[0, 0].item() == 1


def test_storages_are_copied():
    x = torch.arange(4.0)
    for make in (copy.copy, copy.deepcopy, lambda s: s.clone()):
        s = make(x.untyped_storage())
        assert type(s) is type(x.untyped_storage()) and s.nbytes() == 16 and s.data_ptr() != x.data_ptr()


def test_attributes_are_pickled():
    x = torch.ones(2)
    x.note = "a"
    assert pickle.loads(pickle.dumps(x)).note == "a"


def test_an_optimizer_that_takes_back_its_state_shares_what_was_shared():
    model = torch.nn.Linear(2, 2)
    shared = [1, 2]
    groups = [{"params": [model.weight], "extra": shared}, {"params": [model.bias], "extra": shared}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    other = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias]}], lr=0.5, momentum=0.9)
    other.load_state_dict(state)
    first, second = other.param_groups
    assert first["extra"] is second["extra"] and first["extra"] is not shared and first["extra"] == shared and first["lr"] == 0.1
    # As in PyTorch: a tensor of the right dtype and device is not copied.
    assert other.state[model.weight]["momentum_buffer"] is state["state"][0]["momentum_buffer"]
