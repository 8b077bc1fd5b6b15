"""Device objects from strings, tensors created on a device, and changing dtype and device in one call."""
import torch

x = torch.tensor([1.0, 2.0, 3.0])
print(x.device)
assert repr(x.device) == "device(type='cpu')" and str(x.device) == "cpu"

cpu_device = torch.device('cpu')
cuda_device = torch.device('cuda')
cuda1 = torch.device('cuda:1')
mps_device = torch.device('mps')
# A device can be named even if it does not exist.
assert [d.type for d in (cpu_device, cuda_device, cuda1, mps_device)] == ["cpu", "cuda", "cuda", "mps"]
assert cuda_device.index is None and cuda1.index == 1
assert repr(cuda1) == "device(type='cuda', index=1)" and str(cuda_device) == "cuda"

if torch.cuda.is_available():
    x = torch.zeros(3, 4, device=cuda_device)
    print(x.device)
    assert repr(x.device) == "device(type='cuda', index=0)"
    y = torch.ones(3, 4, device='cuda:0')
    assert y.device == x.device
    assert (x + y).sum().cpu().numpy() == 12
if torch.backends.mps.is_available():
    x = torch.zeros(3, 4, device=mps_device)
    assert str(x.device) == "mps:0" and repr(x.device) == "device(type='mps', index=0)"

x = torch.tensor([1.0, 2.0, 3.0])
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
x_gpu = x.to(device)
print(x_gpu.device)
x_fp16 = x.to(device=device, dtype=torch.float16)
print(x_fp16.dtype)
print(x_fp16.device)
assert x_fp16.dtype == torch.float16 and x.dtype == torch.float32
assert x_fp16.device == x_gpu.device
assert str(x_fp16.device) == ("cuda:0" if torch.cuda.is_available() else "cpu")
assert x.device == cpu_device

# A tensor on another device shows its device when printed, one on the cpu does not.
tensor = torch.tensor([1, 2, 3], device="cpu")
print(tensor, tensor.device)
assert str(tensor) == "tensor([1, 2, 3])"
device = "mps" if torch.backends.mps.is_available() else "cpu"
tensor_on_mps = tensor.to(device)
print(tensor_on_mps)
assert str(tensor_on_mps) == ("tensor([1, 2, 3], device='mps:0')" if device == "mps" else "tensor([1, 2, 3])")
if torch.cuda.is_available():
    assert str(tensor.cuda()) == "tensor([1, 2, 3], device='cuda:0')"
