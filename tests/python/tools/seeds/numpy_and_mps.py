"""A tensor is moved to the Apple device if there is one; NumPy needs it back on the cpu."""
import torch

device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
print(device)
print(torch.mps.device_count())
assert torch.mps.device_count() == (1 if torch.backends.mps.is_available() else 0)

device = "mps" if torch.backends.mps.is_available() else "cpu"
tensor = torch.tensor([1, 2, 3], device="cpu")
print(tensor, tensor.device)
tensor_on_mps = tensor.to(device)
assert (tensor_on_mps is tensor) == (device == "cpu")
if torch.backends.mps.is_available():
    try:
        tensor_on_mps.numpy()
    except TypeError as error:
        assert "can't convert mps:0 device type tensor to numpy. Use Tensor.cpu()" in str(error), error
    else:
        raise AssertionError("a tensor on mps became an array")
else:
    assert tensor_on_mps.numpy().tolist() == [1, 2, 3]
tensor_back_on_cpu = tensor_on_mps.cpu().numpy()
print(tensor_back_on_cpu)
assert tensor_back_on_cpu.tolist() == [1, 2, 3] and str(tensor_back_on_cpu.dtype) == "int64"
assert tensor_on_mps.device.type == device  # it is still on the cpu
