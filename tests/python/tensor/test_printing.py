"""Tensors print exactly as in PyTorch."""
import naru
import naru as torch
import pytest
from printing_table import OPTIONS, TEXTS


@pytest.fixture(autouse=True)
def default_options():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize("expression, text", TEXTS, ids=[expression for expression, _ in TEXTS])
def test_a_tensor_prints_as_pytorch_prints_it(expression, text):
    assert repr(eval(expression)) == text


@pytest.mark.parametrize("options, expression, text", OPTIONS)
def test_print_options_have_pytorchs_effect(options, expression, text):
    torch.set_printoptions(**options)
    assert repr(eval(expression)) == text


@pytest.mark.parametrize("name", ["cuda:0", "cuda:1", "mps:0"])
def test_a_tensor_on_a_device_says_so(name):
    assert repr(torch.tensor([1.0, 2.5], device=name)) == f"tensor([1.0000, 2.5000], device='{name}')"


def test_notes_come_in_pytorchs_order():
    x = torch.ones(2, dtype=torch.float64, device="cuda:0", requires_grad=True)
    assert repr(x) == "tensor([1., 1.], device='cuda:0', dtype=torch.float64, requires_grad=True)"
    y = x + 1
    assert repr(y) == "tensor([2., 2.], device='cuda:0', dtype=torch.float64, grad_fn=<AddBackward0>)"
    z = torch.ones(3, dtype=torch.float64, device="cuda:0", requires_grad=True) + 1
    assert repr(z) == "tensor([2., 2., 2.], device='cuda:0', dtype=torch.float64,\n       grad_fn=<AddBackward0>)"


def test_a_large_tensor_on_a_device_prints_its_edges():
    x = torch.arange(10000.0).reshape(100, 100)
    assert repr(x.to("cuda")).replace(", device='cuda:0'", "") == repr(x).replace("]])", "]])")


def test_the_default_dtype_is_not_named():
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.ones(1)) == "tensor([1.])"
        assert repr(torch.ones(1, dtype=torch.float32)) == "tensor([1.], dtype=torch.float32)"
    finally:
        torch.set_default_dtype(torch.float32)


def test_str_and_format_of_tensors():
    assert str(torch.tensor([1, 2])) == "tensor([1, 2])"
    assert f"{torch.tensor(1.23456):.2f}" == "1.23"
    assert f"{torch.tensor([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{torch.tensor([1.0, 2.0]):.2f}"


def test_an_unknown_profile_is_an_error():
    with pytest.raises(ValueError, match="profile"):
        torch.set_printoptions(profile="huge")


def test_names_of_types():
    assert torch.ones(1).type() == "torch.FloatTensor"
    assert torch.ones(1, device="cuda").type() == "torch.cuda.FloatTensor"
    assert torch.arange(2).type(torch.float64).dtype == torch.float64
    assert torch.ones(1).type("torch.LongTensor").dtype == torch.int64
    assert torch.typename(torch.ones(1, dtype=torch.bool)) == "torch.BoolTensor"
    assert naru.typename(naru.nn.ReLU()) == "torch.nn.modules.activation.ReLU"
