"""The meta device: tensors with shapes, dtypes and strides but without data."""
import copy
import os
import pickle
import subprocess
import sys

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


NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"
NO_COUNT = "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct data-independent implementation does not exist."


@pytest.mark.parametrize("call, kind, text", [
    (lambda t: t[0, 0].item(), RuntimeError, NO_ITEM), (lambda t: bool(t[0, 0]), RuntimeError, NO_ITEM), (lambda t: int(t[0, 0]), RuntimeError, NO_ITEM),
    (lambda t: 1 in t, RuntimeError, NO_ITEM), (lambda t: torch.allclose(t, t), RuntimeError, NO_ITEM), (lambda t: t[t.argmax()], RuntimeError, NO_ITEM),
    (lambda t: F.one_hot(t.long()), RuntimeError, NO_ITEM), (lambda t: t.cpu(), NotImplementedError, NO_DATA), (lambda t: t[:0].cpu(), NotImplementedError, NO_DATA),
    (lambda t: t.tolist(), NotImplementedError, NO_DATA), (lambda t: torch.ones(2, 3).copy_(t), NotImplementedError, NO_DATA),
    (lambda t: t.to("cuda"), NotImplementedError, NO_DATA), (lambda t: t.nonzero(), NotImplementedError, NO_COUNT), (lambda t: t[t > 0], NotImplementedError, NO_COUNT),
    (lambda t: torch.unique(t), NotImplementedError, "aten::_unique2: attempted to run this operator with Meta tensors, but there was no fake impl"),
    (lambda t: torch.bincount(t[0].long()), NotImplementedError, "aten::bincount: attempted to run this operator with Meta tensors, but there was no fake impl"),
    (lambda t: torch.equal(t, t), NotImplementedError, "aten::equal: attempted to run this operator with Meta tensors, but there was no fake impl"),
    (lambda t: torch.repeat_interleave(t, torch.ones(2, dtype=torch.long, device="meta"), 0), RuntimeError, "cannot repeat_interleave a meta tensor without output_size"),
    (lambda t: t.numpy(), TypeError, "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."),
    (lambda t: nn.Linear(2, 2, device="meta").to("cpu"), NotImplementedError, NO_DATA + " Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device."),
    (lambda t: t + torch.ones(2, 3), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    (lambda t: torch.ones(2, 3) + t, RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
    (lambda t: torch.cat([t, torch.ones(2, 3)]), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    (lambda t: t[0, 0] + torch.ones(2, 3), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
])  # fmt: skip
def test_what_needs_elements_is_refused_in_pytorchs_words(call, kind, text):
    with pytest.raises(kind) as raised:
        call(torch.empty(2, 3, device="meta"))
    assert str(raised.value).startswith(text)


def test_what_needs_no_elements_needs_no_elements():
    t = torch.empty(2, 3, device="meta", requires_grad=True)
    assert (t + torch.tensor(1.0)).is_meta and t[torch.tensor([0, 1, 1])].shape == (3, 3) and t.get_device() == -1 and t.data_ptr() == 0
    assert f"{t[0, 0]}".startswith("tensor(..., device='meta', size=()") and t.type() == "torch.meta.FloatTensor" and len(list(t)) == 2
    assert torch.repeat_interleave(t, torch.ones(2, dtype=torch.long, device="meta"), 0, output_size=5).shape == (5, 3)
    assert F.one_hot(t.long(), 4).shape == (2, 3, 4) and torch.quantile(t, 0.5, 1).shape == (2,) and torch.histc(t).shape == (100,)
    for write in (lambda x, m: x.masked_scatter_(m, t), lambda x, m: x.__setitem__(m, t[0]), lambda x, m: x.__setitem__(m, 3.0)):
        x = torch.empty(2, 3, device="meta")
        write(x, x > 0)
        assert x.shape == (2, 3)
    x = torch.empty(2, 3, device="meta")
    x[x > 0] = t[0]
    x.sum().backward()
    assert t.grad.shape == (2, 3) and t.grad.is_meta


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


def test_files_and_pickles_hold_no_elements_of_it(tmp_path):
    view = torch.empty(4, 6, device="meta", dtype=torch.float64).t()[1:3].requires_grad_()
    named = torch.empty(2, device="meta")
    named.note = "a"
    torch.save({"view": view, "parameter": nn.Parameter(view.detach()), "named": named, "here": torch.ones(2)}, tmp_path / "f.pt")
    for read in (torch.load(tmp_path / "f.pt"), torch.load(tmp_path / "f.pt", weights_only=False), torch.load(tmp_path / "f.pt", map_location="cpu")):
        got = read["view"]
        assert got.is_meta and got.is_leaf and got.requires_grad and (got.shape, got.dtype, got.stride()) == (view.shape, view.dtype, view.stride())
        assert isinstance(read["parameter"], nn.Parameter) and read["parameter"].is_meta and read["named"].note == "a" and not read["here"].is_meta
    assert torch.load(tmp_path / "f.pt", map_location="meta")["here"].is_meta
    again = pickle.loads(pickle.dumps(view))
    assert again.is_meta and again.requires_grad and (again.shape, again.dtype, again.stride()) == (view.shape, view.dtype, view.stride())


def tensors_of(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in tensors_of(v)] if isinstance(value, (tuple, list)) else []


def seen(tensors):
    return [(t.shape, t.dtype, t.stride()) for t in tensors]


def results_of(case, operands, wanted):
    """What an operator gives, and the gradients of the operands `wanted`; those that repeat elements as they are when they do not."""
    operands = [t.detach().requires_grad_(i in wanted) for i, t in enumerate(operands)]
    results = tensors_of(case.run(*operands))
    ways = [t for t in results if t.requires_grad]
    try:
        grads = torch.autograd.grad([t.abs().sum() for t in ways], [t for t in operands if t.requires_grad], allow_unused=True) if ways else ()
    except RuntimeError as error:
        if not str(error).startswith("derivative for "):
            raise
        grads = ()  # PyTorch has none, either (autograd/test_underived.py)
    return results + [g.clone() if 0 in g.stride() else g for g in grads if g is not None]


# Operators whose result shapes, or whose algorithm, depend on values.
NEED_ELEMENTS = {
    "index mask", "complex index mask", "unique_consecutive", "combinations",  # nonzero
    "sparse coalesce", "sparse product by rows", "sparse by sparse", "sparse sum", "sparse softmax", "sparse arithmetic", "sparse mask",  # unique
}  # fmt: skip


@pytest.mark.parametrize("case", operator_cases.CASES, ids=lambda case: case.name)
def test_every_operator_gives_the_shapes_types_and_strides_that_it_gives_with_elements(case):
    arrays = case.operands(1)
    operands, wanted = operator_cases.on_device(arrays, "cpu", torch.float32), operator_cases.differentiable(case, arrays)
    without = [t.to("meta") for t in operands]
    if case.name in NEED_ELEMENTS:
        with pytest.raises((RuntimeError, NotImplementedError), match="meta tensor"):
            results_of(case, without, wanted)
        return
    here, there = results_of(case, operands, wanted), results_of(case, without, wanted)
    assert seen(there) == seen(here) and all(t.is_meta for t in there)


def test_a_number_of_places_that_is_given_needs_no_elements():
    assert torch.nonzero_static(torch.ones(3, 4, device="meta"), size=5).shape == (5, 2)


def test_pooling_and_resampling_on_meta_need_no_accelerator():
    program = """if True:
        import naru as torch
        import naru.nn.functional as F
        assert not torch.accelerator.is_available() or torch.cuda.is_available()
        x = torch.zeros(1, 2, 8, 8, device="meta", requires_grad=True)
        made = [F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1, True, False), F.max_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3), F.adaptive_max_pool2d(x, 3),
                F.lp_pool2d(x, 2, 2), F.interpolate(x, size=4, mode="bilinear"), F.interpolate(x, size=4), F.local_response_norm(x, 2), F.pad(x, (1, 1, 1, 1), "reflect"), F.unfold(x, 2)]
        print({t.device.type for t in made}, {torch.autograd.grad(t.sum(), x)[0].device.type for t in made})
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "NARU_VIRTUAL": ""})
    assert done.stdout == "{'meta'} {'meta'}\n", done.stderr
