"""The records of operators (src/core/operators.cpp): every row is of an operator that there is."""
import naru as torch

# Where PyTorch's functions stand.
SPACES = [torch, torch.Tensor, torch.nn.functional, torch.linalg, torch.fft, torch.special, torch._C]


def test_every_record_is_of_an_operator():
    internal = {name for name, *_ in torch._C._coverage("cpu")}  # also operators that only kernels know
    names = torch._C._operator_records()
    assert len(names) > 250
    unknown = [n for n in names if n not in internal and not any(hasattr(space, form) for space in SPACES for form in (n, n + "_"))]
    assert unknown == []
