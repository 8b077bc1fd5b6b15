"""With PYTORCH_ENABLE_MPS_FALLBACK=1, operators that the Apple device lacks run on the cpu; the others run on it. Prints nothing without such a
device."""
import os

os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
import torch

device = "mps" if torch.backends.mps.is_available() else "cpu"
x = torch.randn(32, 100).to(device)
out = torch.nn.Linear(100, 10).to(device)(x).sort(dim=1).values
assert out.device.type == device and out.shape == (32, 10)
values = out.detach().cpu().numpy()
assert (values[:, 1:] >= values[:, :-1]).all()
