"""Lines of code give PyTorch 2.15's results: out-of-range numbers, dtypes, out=, strides, memory formats, and errors."""
import naru
import naru as torch
import numpy as np
import pytest
from conftest import DEVICES
from pytorch_lines import outcome
from semantics_table_1 import LINES as NUMBERS
from semantics_table_1_counting import LINES as COUNTING
from semantics_table_1_forms import LINES as FORMS
from semantics_table_1_types import LINES as TYPES

LINES = NUMBERS | FORMS | TYPES | COUNTING


def agrees(got, wanted):
    """Values are the same; an error begins with PyTorch's text."""
    error = wanted.split(":")[0].endswith("Error")
    return got.startswith(wanted) if error else got == wanted


@pytest.mark.parametrize("rule", LINES)
def test_lines_give_what_pytorch_gives(rule):
    wrong = []
    for line, wanted in LINES[rule]:
        if not agrees(got := outcome(naru, line), wanted):
            wrong.append(f"{line}\n    PyTorch: {wanted}\n    naru:    {got}")
    assert not wrong, "\n" + "\n".join(wrong)


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "permuted": lambda x: x.reshape(3, -1, 4).permute(2, 0, 1),
    "cut": lambda x: x[:, 1:].t(),
    "expanded": lambda x: x[:1].expand(5, x.shape[1]),
    "channels last": lambda x: x.reshape(1, 3, -1, 4).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("columns", [4, 4096])
def test_layouts_and_values_are_the_same_on_every_device(device, layout, columns):
    x = torch.arange(3.0 * 4 * columns).reshape(12, columns) / 7
    here = LAYOUTS[layout](x)
    there = LAYOUTS[layout](x.to(device))
    for f in (lambda t: t + 1, lambda t: (t * t - t).exp2().add(0.5), lambda t: t == 3, lambda t: t.clone(), lambda t: t.to(torch.int64)):
        a, b = f(here), f(there)
        assert a.stride() == b.stride()
        assert np.array_equal(a.numpy(), b.cpu().numpy(), equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
def test_copies_between_devices_keep_dense_strides(device):
    for x in (torch.arange(12.0).reshape(3, 4).t(), torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)):
        y = x.to(device)
        assert y.stride() == x.stride() and y.cpu().stride() == x.stride()
        assert torch.equal(y.cpu(), x)
        row_major = torch.empty(x.shape, device=device).copy_(x)
        assert row_major.is_contiguous() and torch.equal(row_major.cpu(), x)
    cut = torch.arange(12.0).reshape(3, 4)[:, ::2]
    assert cut.to(device, copy=True).is_contiguous() and torch.equal(cut.to(device).cpu(), cut)


@pytest.mark.parametrize("device", DEVICES)
def test_out_takes_results_on_every_device(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    out = torch.zeros(3, 2, device=device)
    assert torch.add(x.t(), 1, out=out) is out and out.tolist() == (x.t() + 1).tolist()
    whole = torch.zeros(2, 4, device=device)
    torch.mul(x, 2, out=whole[:, 1:])
    assert whole[:, 1:].tolist() == (x * 2).tolist() and whole[:, 0].tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.add(x, 1, out=torch.zeros(2, 3, dtype=torch.int64, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_wrap_around_and_are_refused_on_every_device(device):
    x = torch.tensor([255, 200, 1], dtype=torch.uint8, device=device)
    assert (x == -1).tolist() == [True, False, False] and (x + 300).tolist() == [43, 244, 45]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        x.fill_(300)


def test_results_in_other_layouts_have_the_same_gradients():
    w = torch.arange(12.0).reshape(3, 4).requires_grad_()
    ((w.t() * 2).exp2().reshape(-1).view(3, 4) * torch.arange(12.0).view(3, 4)).sum().backward()
    factors = torch.arange(12.0).view(3, 4).reshape(4, 3).t()
    assert torch.allclose(w.grad, factors * (w.detach() * 2).exp2() * 0.6931471805599453 * 2)


def test_out_is_written_through_views_and_counts_as_a_write():
    x = torch.zeros(2, 3)
    before = x._version
    torch.exp(torch.zeros(3), out=x[1])
    assert x.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]] and x._version > before


def test_triangles_have_the_elements_of_a_mask_however_far_the_diagonal():
    for rows, columns in ((0, 3), (3, 0), (1, 5), (5, 1), (4, 4), (3, 6), (6, 3)):
        for k in range(-8, 9):
            whole = torch.ones(rows, columns)
            assert torch.tril_indices(rows, columns, k).tolist() == torch.nonzero(whole.tril(k)).t().tolist() or rows * columns == 0
            assert torch.triu_indices(rows, columns, k).tolist() == torch.nonzero(whole.triu(k)).t().tolist() or rows * columns == 0


def test_what_would_never_end_ends_at_once():
    assert torch.diff(torch.ones(5), n=2**62).shape == (0,)
    assert torch.triu_indices(2**40, 1).tolist() == [[0], [0]]
    assert torch.tril_indices(2**40, 1, -(2**40) + 1).tolist() == [[2**40 - 1], [0]]
    with pytest.raises(RuntimeError):
        torch.tril_indices(2**62, 1, 1)
