"""Uses the device "mps" without checking that it is available: tensors, a model, and an input that was left on the cpu. Needs mps."""
import torch
import torch.nn as nn

device = "mps"
x = torch.randn(32, 100)
x = x.to(device)
print(x.device)
assert str(x.device) == "mps:0"
y = torch.randn(32, 100, device=device)
assert str(y.device) == "mps:0"
model = nn.Linear(100, 10).to(device)
assert {str(p.device) for p in model.parameters()} == {"mps:0"}
out = model(y)
assert out.shape == (32, 10) and str(out.device) == "mps:0"
try:
    out = model(torch.randn(32, 100))
except RuntimeError as error:
    assert str(error).startswith("Expected all tensors to be on the same device"), error
    assert "mps:0" in str(error) and "cpu" in str(error)
else:
    raise AssertionError("a model on mps took a tensor on the cpu")
