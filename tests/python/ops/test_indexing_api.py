"""Indexing, assignment, gather and scatter from Python. (test_indexing.py compares random expressions with NumPy.)"""
import subprocess
import sys

import numpy as np
import pytest

import naru as torch


@pytest.fixture
def x(device):
    return torch.arange(24, device=device).reshape(2, 3, 4)


REFERENCE = np.arange(24).reshape(2, 3, 4)
MASK = np.array([[True, False, True], [False, True, False]])

KEYS = {
    "int": 1, "negative": -1, "slice": slice(0, 1), "step": (slice(None), slice(None, None, 2)), "ellipsis": (Ellipsis, 1), "none": None,
    "mixed": (0, slice(1, None), None, 2), "numpy int": np.int64(1), "list": [1, 0, 1], "lists": ([0, 1], [2, 0]), "tuple of lists": ([0, 1], slice(None), [3, 1]),
    "array": np.array([0, 1, 1]), "mask": MASK, "mask and int": (MASK, 1), "bool": True, "false": False, "bool list": [True, False],
    "empty list": [], "range": range(2), "2-D positions": np.array([[0, 1], [1, 0]]), "empty slice": slice(5, None),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_reading_and_writing_agree_with_numpy(name, x, device):
    key = KEYS[name]
    wanted = REFERENCE[np.array([], dtype=int) if name == "empty list" else key]
    assert x[key].tolist() == wanted.tolist() and str(x[key].device) == device
    changed = REFERENCE.copy()
    changed[np.array([], dtype=int) if name == "empty list" else key] = -1
    x[key] = -1
    assert x.tolist() == changed.tolist()


def test_positions_and_masks_may_be_tensors(x, device):
    assert x[torch.tensor([1, 0], device=device)].tolist() == REFERENCE[[1, 0]].tolist()
    assert x[x > 20].tolist() == [21, 22, 23]
    assert x[torch.tensor(1, device=device)].tolist() == REFERENCE[1].tolist()
    assert x[:, torch.tensor([0, 2], dtype=torch.int32, device=device), 1:3].tolist() == REFERENCE[:, [0, 2], 1:3].tolist()
    x[x % 2 == 0] = 0
    assert x.sum().item() == sum(range(1, 24, 2))


def test_slices_are_views_and_positions_are_copies(x):
    x[0][1][2] = 100
    assert x[0, 1, 2].item() == 100
    row = x[1]
    row += 1
    assert x[1, 0, 0].item() == 13
    copy = x[[0]]
    copy[0, 0, 0] = 55
    assert x[0, 0, 0].item() == 0


def test_values_broadcast_and_convert(x, device):
    x[:, 0] = torch.tensor([1.9, 2.9, 3.9, 4.9], device=device)
    assert x[:, 0].tolist() == [[1, 2, 3, 4]] * 2
    x[0, 1:] = torch.tensor([[7], [8]], device=device)
    assert x[0, 1:].tolist() == [[7] * 4, [8] * 4]
    x[1] += 1
    assert x[1, 2].tolist() == [21, 22, 23, 24]
    x[0, 0, 0] = torch.tensor(9)  # a 0-d tensor on the cpu
    assert x[0, 0, 0].item() == 9


@pytest.mark.parametrize(
    "key, kind, text",
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (1.5, IndexError, "only integers, slices"),
        ("a", IndexError, "got str"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        ([0.5], IndexError, "tensors used as indices must be long"),
        ([[True]], IndexError, "mask"),
    ],
)
def test_bad_indices_are_typed_errors(x, key, kind, text):
    with pytest.raises(kind, match=text):
        x[key]
    with pytest.raises(kind, match=text):
        x[key] = 0


def test_bad_positions_and_values_are_typed_errors():
    x = torch.zeros(3)
    with pytest.raises(IndexError, match="out of bounds"):
        x[[0, 5]]
    with pytest.raises((RuntimeError, IndexError), match="shape"):
        x[[0, 1]] = torch.ones(3)
    for value in ([1, 2, 3], np.ones(3), "a"):
        with pytest.raises(TypeError, match="can't assign a"):
            x[:] = value
    with pytest.raises(IndexError, match="0-dim"):
        torch.tensor(1)[0]
    with pytest.raises(TypeError):
        del x[0]


def test_gather_and_scatter(device):
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    i = torch.tensor([[0, 0], [1, 0]], device=device)
    assert torch.gather(t, 1, i).tolist() == [[1.0, 1.0], [4.0, 3.0]] == t.gather(dim=1, index=i).tolist()
    assert torch.zeros(2, 2, device=device).scatter_(1, i[:, :1], 5.0).tolist() == [[5.0, 0.0], [0.0, 5.0]]
    assert torch.zeros(2, 2, device=device).scatter_(1, i[:, :1], value=5.0).tolist() == [[5.0, 0.0], [0.0, 5.0]]
    assert torch.zeros(2, 2, device=device).scatter(1, i[:, 1:], src=t).tolist() == [[1.0, 0.0], [3.0, 0.0]]
    assert torch.zeros(2, 2, device=device).scatter_add_(0, torch.zeros_like(i), t).tolist() == [[4.0, 6.0], [0.0, 0.0]]
    assert t.index_select(0, torch.tensor([1, 1], device=device)).tolist() == [[3.0, 4.0]] * 2
    assert t.clone().index_add_(0, torch.tensor([0, 0], device=device), torch.ones_like(t), alpha=2).tolist() == [[5.0, 6.0], [3.0, 4.0]]
    assert t.clone().index_fill_(1, torch.tensor([0], device=device), 0.0).tolist() == [[0.0, 2.0], [0.0, 4.0]]
    assert t.take(torch.tensor([3, 0], device=device)).tolist() == [4.0, 1.0]


def test_masks(device):
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    assert t.masked_fill(t > 2, 0.0).tolist() == [[1.0, 2.0], [0.0, 0.0]] and t.masked_select(t > 2).tolist() == [3.0, 4.0]
    assert t.clone().masked_fill_(t < 2, torch.tensor(9.0)).tolist() == [[9.0, 2.0], [3.0, 4.0]]
    assert torch.where(t > 2, t, 0.0).tolist() == [[0.0, 0.0], [3.0, 4.0]] and torch.where(t > 2, 1, 0).dtype == torch.int64
    rows, columns = torch.where(t > 2)
    assert rows.tolist() == [1, 1] and columns.tolist() == [0, 1]
    assert t.nonzero().shape == (4, 2) and torch.nonzero(t > 3, as_tuple=True)[0].tolist() == [1]
    assert t.where(t > 2, torch.zeros_like(t)).tolist() == [[0.0, 0.0], [3.0, 4.0]]


def test_orders_and_counts(device):
    t = torch.tensor([3, 1, 2, 1], device=device)
    assert t.argsort(stable=True).tolist() == [1, 3, 2, 0] and t.sort().values.tolist() == [1, 1, 2, 3]
    assert t.unique().tolist() == [1, 2, 3]
    values, inverse, counts = torch.unique(t, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3] and inverse.tolist() == [2, 0, 1, 0] and counts.tolist() == [2, 1, 1]
    assert torch.bincount(t).tolist() == [0, 2, 1, 1] and torch.topk(t, 2).values.tolist() == [3, 2]
    assert t.kthvalue(3).values.item() == 2 and t.median().item() == 1


def test_joining_and_splitting(device):
    x = torch.arange(6, device=device).reshape(3, 2)
    assert torch.cat([x, x]).shape == (6, 2) and torch.cat((x, x), dim=1).shape == (3, 4) and torch.stack([x, x], -1).shape == (3, 2, 2)
    assert [p.shape[0] for p in x.split(2)] == [2, 1] and [p.shape[0] for p in torch.split(x, [1, 2])] == [1, 2] and len(x.chunk(3)) == 3
    assert isinstance(x.split(1), tuple) and isinstance(x.unbind(1), tuple) and [p.tolist() for p in x.unbind(1)] == [[0, 2, 4], [1, 3, 5]]
    assert torch.hstack([x, x]).shape == (3, 4) and torch.vstack([x[0], x[1]]).tolist() == [[0, 1], [2, 3]]
    assert [p.tolist() for p in torch.arange(5, device=device).tensor_split(2)] == [[0, 1, 2], [3, 4]]
    a, b = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    assert a.tolist() == [[0, 0, 0], [1, 1, 1]] and b.shape == (2, 3)
    for bad in (lambda: torch.cat(x), lambda: torch.cat([x, 1]), lambda: torch.stack("ab")):
        with pytest.raises(TypeError):
            bad()


def test_shapes_take_numbers_tuples_and_sizes(device):
    x = torch.arange(6, device=device)
    for y in (x.view(2, 3), x.view((2, 3)), x.view([2, -1]), x.view(torch.Size([2, 3])), x.reshape(2, 3), torch.reshape(x, (2, 3)), x.view(size=(2, 3))):
        assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
    y = x.view(2, 3)
    assert y.permute(1, 0).tolist() == y.permute((1, 0)).tolist() == torch.permute(y, (1, 0)).tolist() == y.t().tolist() == y.transpose(0, 1).tolist()
    assert y[None].expand(4, -1, -1).shape == (4, 2, 3) and y.repeat(2, 1).shape == (4, 3) and y.flip(0).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert y.unsqueeze(0).squeeze(0).shape == (2, 3) and y.flatten().shape == (6,) and y.unflatten(1, (3, 1)).shape == (2, 3, 1)
    assert y.roll(1, 0).tolist() == [[3, 4, 5], [0, 1, 2]] and torch.diag(torch.tensor([1, 2])).tolist() == [[1, 0], [0, 2]] and y.diagonal().tolist() == [0, 4]
    assert x.view(torch.float64).dtype == torch.float64 and torch.movedim(y[None], 0, -1).shape == (2, 3, 1)
    assert y.repeat_interleave(2, 0).shape == (4, 3) and torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([2, 1])).tolist() == [1, 1, 2]
    assert torch.rot90(y).tolist() == np.rot90(y.cpu().numpy()).tolist()


def test_the_first_named_pair_of_a_process_may_come_from_a_call_that_lets_the_gil_go():
    text = "import naru as torch; x = torch.arange(100000.0).reshape(100, 1000); print(x.sort(1, True).values[0, 0].item(), x.aminmax().max.item())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["999.0", "99999.0"], done.stderr
