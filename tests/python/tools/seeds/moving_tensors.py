"""`cuda`, `cpu` and `to` return a copy, or the tensor itself if it is already there. Needs two cuda devices."""
import torch

x = torch.randn(3, 3)
x_gpu = x.cuda()
x_gpu1 = x.cuda(1)
assert str(x.device) == "cpu" and str(x_gpu.device) == "cuda:0" and str(x_gpu1.device) == "cuda:1"
x_cpu = x_gpu.cpu()
assert x_cpu is not x and (x_cpu == x).all()
assert (x_gpu1.cpu() == x).all()
x_same = x_cpu.cpu()
print(x_same is x_cpu)
assert x_same is x_cpu
assert x_gpu.to("cuda:0") is x_gpu and x_gpu.cuda() is x_gpu and x_gpu.to("cuda:1") is not x_gpu

x = torch.tensor([1., 2., 3.]).cuda()  # the smallest index
assert str(x.device) == "cuda:0"
x = torch.tensor([1., 2., 3.]).cuda("cuda:0")
assert str(x.device) == "cuda:0"
x = torch.tensor([1., 2., 3.])
x_gpu = x.to("cuda:0")
x_cpu = x_gpu.to("cpu")
assert x_cpu.device == x.device and x_cpu is not x

# A write to the copy does not change the original.
x = torch.tensor([1., 2., 3., 4., 5., 6., 7., 8., 9., 10.])
y = torch.tensor([10., 9., 8., 7., 6., 5., 4., 3., 2., 1.])
assert str(x.device) == str(y.device) == "cpu"
x_gpu = x.cuda()
print(x_gpu.device)
x_gpu[0] = 100.
print(x)
print(x_gpu)
print(x is x_gpu)
assert x is not x_gpu
assert str(x) == "tensor([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10.])"
assert x_gpu.cpu().numpy()[0] == 100 and (x_gpu[1:].cpu() == x[1:]).all()
assert str(x_gpu) == "tensor([100.,   2.,   3.,   4.,   5.,   6.,   7.,   8.,   9.,  10.],\n       device='cuda:0')"
