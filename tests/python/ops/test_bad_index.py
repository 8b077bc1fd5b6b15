"""An out-of-bounds index on a device is detected after the call has returned: the next read raises an error with the call's line, and the process
continues."""

import inspect
import re

import pytest

import naru as torch
import naru.nn.functional as F


pytestmark = pytest.mark.filterwarnings("ignore:index_reduce")


def line():
    return inspect.currentframe().f_back.f_lineno


# PyTorch's class of error differs, and with it naru's, on every device.
RAISE_RUNTIME_ERRORS = {
    "gather": lambda x, bad: x.gather(0, bad),
    "scatter": lambda x, bad: x.scatter(0, bad, 1.0),
    "scatter_add": lambda x, bad: x.scatter_add(0, bad, torch.ones(3, device=x.device)),
    "index_select along 1": lambda x, bad: x.expand(2, 5).index_select(1, bad),
    "index_add of matrices": lambda x, bad: x.repeat(2, 1).index_add(1, bad, torch.ones(2, 3, device=x.device)),
}
CALLS = {
    **RAISE_RUNTIME_ERRORS,
    "index_select": lambda x, bad: x.index_select(0, bad),
    "index_select along 2": lambda x, bad: x.expand(2, 2, 5).index_select(2, bad),
    "indexing": lambda x, bad: x[bad],
    "take": lambda x, bad: x.take(bad),
    "assignment": lambda x, bad: x.__setitem__(bad, 1.0),
    "index_add": lambda x, bad: x.index_add(0, bad, torch.ones(3, device=x.device)),
    "embedding": lambda x, bad: F.embedding(bad, x.reshape(-1, 1)),
    "scatter_reduce": lambda x, bad: x.scatter_reduce(0, bad, torch.ones(3, device=x.device), "mean"),
    "index_reduce": lambda x, bad: x.index_reduce(0, bad, torch.ones(3, device=x.device), "mean"),
    "nll_loss": lambda x, bad: F.nll_loss(x.expand(3, 5), bad),
    "cross_entropy": lambda x, bad: F.cross_entropy(x.expand(3, 5), bad),
}
ON_THE_CPU = {
    **CALLS,
    **{f"{name} {kind}": lambda x, bad, f=name, kind=kind: getattr(x, f)(0, bad, torch.ones(3), kind)
       for name in ("scatter_reduce", "index_reduce") for kind in ("prod", "amax", "amin")},
    "scatter_reduce with gradients": lambda x, bad: x.requires_grad_().scatter_reduce(0, bad, torch.ones(3), "amax"),
    "index_reduce with gradients": lambda x, bad: x.requires_grad_().index_reduce(0, bad, torch.ones(3), "amax"),
    "index_reduce without self": lambda x, bad: x.index_reduce(0, bad, torch.ones(3), "mean", include_self=False),
    "index_copy": lambda x, bad: x.index_copy(0, bad, torch.ones(3)),
    "index_fill": lambda x, bad: x.index_fill(0, bad, 1.0),
    "put": lambda x, bad: x.put(bad, torch.ones(3)),
    "embedding_bag": lambda x, bad: F.embedding_bag(bad.reshape(1, 3), x.reshape(-1, 1)),
}


def error_of(call):
    return RuntimeError if call in RAISE_RUNTIME_ERRORS or call.startswith("scatter_reduce") or call == "embedding_bag" else IndexError


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["cuda:0", "cuda:1", "mps"])
def test_the_next_read_raises_and_a_hundred_operations_follow(kind, call):
    x = torch.arange(5.0, device=kind)
    bad = torch.tensor([0, 77, 1], device=kind)
    CALLS[call](x, bad)
    with pytest.raises((IndexError, RuntimeError)) as error:
        x.sum().item()
    assert error.type is error_of(call)
    text = str(error.value)
    where = CALLS[call].__code__.co_firstlineno
    assert re.search(r"index 77 is out of bounds for dimension \d with size 5", text)
    assert re.search(r"got 77 at position \[(0, )*1", text)
    assert f"called at {__file__}:{where}" in text or f"test_bad_index.py:{where}" in text
    y = torch.ones(5, device=kind)
    for i in range(100):
        y = y + i if i % 3 else torch.cat([y[1:], y[:1]])
    assert y.sum().item() == 5 + 5 * sum(i for i in range(100) if i % 3)
    assert x[torch.tensor([4], device=kind)].item() in (1.0, 4.0)


@pytest.mark.parametrize("call", ON_THE_CPU)
def test_on_the_cpu_the_call_itself_raises(call):
    with pytest.raises((IndexError, RuntimeError), match="77") as error:
        ON_THE_CPU[call](torch.arange(5.0), torch.tensor([0, 77, 1]))
    assert error.type is error_of(call)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("call", ["gather", "index_select", "scatter", "index_add", "scatter_reduce", "index_reduce", "embedding", "nll_loss"])
def test_negative_positions_are_errors_where_they_do_not_count_from_the_end(kind, call):
    x = torch.arange(5.0, device=kind)
    with pytest.raises(error_of(call), match="-1"):
        CALLS[call](x, torch.tensor([0, -1, 1], device=kind))
        x.sum().item()


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_negative_positions_count_from_the_end_where_pytorch_says_so(kind):
    x = torch.arange(5.0, device=kind)
    last = torch.tensor([-1], device=kind)
    assert x[last].item() == x.take(last).item() == torch.take_along_dim(x, last, 0).item() == 4.0
    assert x.index_fill(0, last, 9.0)[4].item() == 9.0


def test_the_error_crosses_streams_and_devices_with_the_data():
    x = torch.arange(5.0, device="cuda:0")
    with torch.cuda.stream(torch.cuda.Stream()):
        y = x[torch.tensor([9], device="cuda:0")]; where = line()
    z = y.to("cuda:1") + 1
    with pytest.raises(IndexError, match=f"called at .*test_bad_index.py:{where}"):
        z.item()
    assert torch.ones(2, device="cuda:1").sum().item() == 2
