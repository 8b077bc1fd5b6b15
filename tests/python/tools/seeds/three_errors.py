"""Errors: operands on two devices, `numpy` of a tensor on a device, `numpy` of a tensor that requires grad. Needs cuda."""
import numpy as np
import torch

if torch.cuda.is_available():
    x_cpu = torch.tensor([1.0, 2.0])
    x_gpu = torch.tensor([3.0, 4.0]).cuda()
    try:
        result = x_cpu + x_gpu
    except RuntimeError as error:
        assert str(error).startswith("Expected all tensors to be on the same device"), error
        assert "cuda:0" in str(error) and "cpu" in str(error)
    else:
        raise AssertionError("operands on two devices were added")
    result = x_cpu.to(x_gpu.device) + x_gpu
    assert result.device == x_gpu.device and (result.cpu().numpy() == [4, 6]).all()

x_gpu = torch.randn(3, 3).cuda()
try:
    x_np = x_gpu.numpy()
except TypeError as error:
    assert "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()" in str(error), error
else:
    raise AssertionError("a tensor on a device became an array")
x_np = x_gpu.cpu().numpy()
print(type(x_np))
assert type(x_np) is np.ndarray and x_np.shape == (3, 3)

x = torch.randn(3, 3, requires_grad=True).cuda()
try:
    x.cpu().numpy()
except RuntimeError as error:
    assert "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead." in str(error), error
else:
    raise AssertionError("a tensor that requires grad became an array")
x_np = x.detach().cpu().numpy()
assert x_np.shape == (3, 3)
