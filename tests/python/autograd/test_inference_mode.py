"""Inference mode: no autograd history, and tensors that cannot be part of a graph afterwards."""
import naru as torch
import pytest
from conftest import DEVICES


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_made_in_inference_mode_is_an_inference_tensor_and_so_are_its_views(device):
    w = torch.ones(2, requires_grad=True, device=device)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        made, of_normal = w * 2, w.view(2)
        made.add_(1)  # within the mode, in-place writes are allowed
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
            assert not torch.ones(1).is_inference() and (w * 2).requires_grad
        assert torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    assert made.is_inference() and made[0].is_inference() and made.view(2, 1).detach().is_inference()
    assert not of_normal.is_inference() and not made.clone().is_inference() and not (made + 1).is_inference()
    assert torch.is_inference(made) and made.tolist() == [3, 3]


def test_an_inference_tensor_is_neither_written_nor_saved_nor_made_to_require_gradients_outside_the_mode():
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x = torch.ones(2)
        y = torch.ones(2).requires_grad_()
    for write in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.__setitem__(0, 1), lambda: torch.add(x, 1, out=x), lambda: x[0].fill_(2), lambda: x.normal_(),
                  lambda: x.index_add_(0, torch.tensor([0]), torch.ones(1)), lambda: x.data.mul_(2)):  # fmt: skip
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
            write()
    for use in (lambda: w * x, lambda: (w.reshape(1, 2) @ x.reshape(2, 1)), lambda: torch.where(x > 0, w, x).mul(x)):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            use()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        x._version
    assert y.requires_grad
    assert (w + x).requires_grad and (x.clone() * w).requires_grad  # nothing of x is saved


def test_functions_and_generators_are_decorated_and_an_error_leaves_the_mode():
    @torch.inference_mode()
    def f():
        return torch.ones(1)

    @torch.inference_mode
    def steps():
        yield torch.ones(1)
        yield torch.is_inference_mode_enabled()

    assert f().is_inference()
    made = []
    for value in steps():
        assert not torch.is_inference_mode_enabled()
        made.append(value)
    assert made[0].is_inference() and made[1] is True
    with pytest.raises(ZeroDivisionError):
        with torch.inference_mode():
            1 / 0
    assert not torch.is_inference_mode_enabled()
