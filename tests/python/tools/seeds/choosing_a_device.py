"""Checks for CUDA and Apple GPUs, their number and names; common ways to choose the best device."""
import torch

has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
print(has_cuda)
print(has_mps)
print(torch.cuda.device_count())
assert isinstance(has_cuda, bool) and isinstance(has_mps, bool)
assert (torch.cuda.device_count() > 0) == has_cuda
assert (torch.mps.device_count() == 1) == has_mps
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(0))
    assert torch.cuda.get_device_name(0) and torch.cuda.get_device_name() == torch.cuda.get_device_name(0)

device = (
    "cuda" if torch.cuda.is_available()
    else "mps" if torch.backends.mps.is_available()
    else "cpu"
)
print(f"Using {device}")
assert device == ("cuda" if has_cuda else "mps" if has_mps else "cpu")
assert torch.randn(2).to(device).device.type == device

if torch.cuda.is_available():
    device = torch.device('cuda')
elif torch.backends.mps.is_available():
    device = torch.device('mps')
else:
    device = torch.device('cpu')
print(f"사용 디바이스: {device}")
assert str(device) in ("cuda", "mps", "cpu") and device.type == str(device)

device = torch.device(
    'cuda' if torch.cuda.is_available()
    else 'mps' if torch.backends.mps.is_available()
    else 'cpu'
)
x = torch.randn(3, 4)
assert str(x.device) == "cpu"
x_gpu = x.to(device)
assert x_gpu.device.type == device.type
assert str(x_gpu.device) == {"cuda": "cuda:0", "mps": "mps:0", "cpu": "cpu"}[device.type]
y = torch.zeros(3, 4, device=device)
assert y.device == x_gpu.device
