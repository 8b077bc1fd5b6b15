"""The meta device: tensors with shapes, types and strides, and no elements."""
import copy

import naru as torch
import pytest
from naru import nn
from naru.testing import operator_cases

F = nn.functional


def test_a_meta_tensor_says_what_it_is_and_takes_no_memory():
    x = torch.empty(10**6, 10**6, device="meta", dtype=torch.float64)
    assert x.is_meta and x.device == torch.device("meta") and x.device.index is None and repr(x.device) == "device(type='meta')" and not x.is_cuda
    assert x.numel() == 10**12 and x.stride() == (10**6, 1) and not torch.ones(1).is_meta
    y = (x @ x.mT + 1).sum(0)
    assert y.is_meta and y.shape == (10**6,) and y.dtype == torch.float64
    assert "meta" not in torch.accelerator.KINDS


@pytest.mark.parametrize("make, text", [
    (lambda: torch.empty(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"), (lambda: torch.empty(2, device="meta", dtype=torch.int64), "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
    (lambda: torch.empty(2, 3, device="meta", requires_grad=True), "tensor(..., device='meta', size=(2, 3), requires_grad=True)"), (lambda: torch.empty(0, device="meta"), "tensor(..., device='meta', size=(0,))"),
    (lambda: torch.empty((), device="meta"), "tensor(..., device='meta', size=())"),
])  # fmt: skip
def test_it_prints_as_pytorchs_does(make, text):
    assert repr(make()) == text


@pytest.mark.parametrize("call, kind, text", [
    (lambda t: t[0, 0].item(), RuntimeError, "Tensor.item() cannot be called on meta tensors"), (lambda t: bool(t[0, 0]), RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    (lambda t: t.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"), (lambda t: t.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda t: torch.ones(2, 3).copy_(t), NotImplementedError, "Cannot copy out of meta tensor; no data!"), (lambda t: t.to("cuda"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda t: t.numpy(), TypeError, "can't convert meta device type tensor to numpy"), (lambda t: t.nonzero(), NotImplementedError, ""), (lambda t: t[t > 0], NotImplementedError, ""),
    (lambda t: nn.Linear(2, 2, device="meta").to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device."),
    (lambda t: t + torch.ones(2, 3), RuntimeError, ""),
])  # fmt: skip
def test_what_needs_elements_is_refused_in_pytorchs_words(call, kind, text):
    with pytest.raises(kind) as raised:
        call(torch.empty(2, 3, device="meta"))
    assert str(raised.value).startswith(text)


def test_elements_go_in_and_are_forgotten():
    t = torch.empty(2, 3, device="meta")
    t.copy_(torch.ones(2, 3))
    t.normal_(), t.fill_(3), t[0].zero_()
    assert t.is_meta and torch.ones(2, 3).to("meta").is_meta and torch.tensor([1, 2], device="meta").shape == (2,) and copy.deepcopy(t).is_meta


def test_a_block_makes_everything_without_memory_and_draws_nothing():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(10**6, 10**6), nn.LayerNorm(10**6), nn.TransformerEncoderLayer(10**4, 8))
        nn.init.trunc_normal_(model[0].weight)
        x = torch.ones(3, 10**6)
    assert torch.equal(torch.get_rng_state(), before) and all(p.is_meta for p in model.parameters())
    y = model[:2](x)
    y.sum().backward()
    assert y.shape == (3, 10**6) and y.is_meta and model[0].weight.grad.is_meta and model[0].weight.grad.shape == (10**6, 10**6)


def test_a_module_gets_memory_and_then_values():
    made = nn.Linear(2, 2, device="meta")
    state = nn.Linear(2, 2).state_dict()
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a no-op"):
        made.load_state_dict(state)
    assert made.weight.is_meta
    filled = copy.deepcopy(made).to_empty(device="cpu")
    filled.load_state_dict(state)
    assert torch.equal(filled.weight, state["weight"]) and isinstance(filled.weight, nn.Parameter)
    made.load_state_dict(state, assign=True)
    assert torch.equal(made.weight, state["weight"]) and made.weight.requires_grad and isinstance(made.weight, nn.Parameter)
    assert nn.utils.skip_init(nn.Linear, 3, 2, dtype=torch.float64).weight.shape == (2, 3)


def tensors_of(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in tensors_of(v)] if isinstance(value, (tuple, list)) else []


# Whose results' shapes follow from elements, or whose way does.
NEED_ELEMENTS = set()


@pytest.mark.parametrize("case", operator_cases.CASES, ids=lambda case: case.name)
def test_every_operator_gives_the_shapes_types_and_strides_that_it_gives_with_elements(case):
    operands = operator_cases.on_device(case.operands(1), "cpu", torch.float32)
    without = [t.to("meta") if isinstance(t, torch.Tensor) else t for t in operands]
    if case.name in NEED_ELEMENTS:
        with pytest.raises((RuntimeError, NotImplementedError), match="meta tensor"):
            case.run(*without)
        return
    here, there = tensors_of(case.run(*operands)), tensors_of(case.run(*without))
    assert [(t.shape, t.dtype, t.stride()) for t in there] == [(t.shape, t.dtype, t.stride()) for t in here] and all(t.is_meta for t in there)
