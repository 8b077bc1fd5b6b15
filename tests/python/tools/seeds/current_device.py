"""The current GPU, set permanently and for a block. Needs three cuda devices.

`torch.cuda.device(2)` decides which GPU "cuda" is. A tensor created without a device is still on the cpu, as in PyTorch (a tutorial that says "made
on GPU 2" omits `device='cuda'`); `with torch.device('cuda:2'):` changes that.
"""
import torch

print(torch.cuda.device_count())
torch.cuda.set_device(1)
assert str(torch.randn(3, 3).cuda().device) == "cuda:1"
assert str(torch.zeros(3, 4, device='cuda').device) == "cuda:1"
with torch.cuda.device(2):
    x = torch.randn(3, 3)
    assert str(x.device) == "cpu"
    x = torch.randn(3, 3, device='cuda')
    print(x.device)
    assert repr(x.device) == "device(type='cuda', index=2)"
    assert str(torch.randn(3, 3).cuda().device) == "cuda:2"
assert str(torch.randn(3, 3).cuda().device) == "cuda:1"
assert str(torch.randn(3, 3).cuda(0).device) == "cuda:0"
with torch.device('cuda:2'):
    assert str(torch.randn(3, 3).device) == "cuda:2"
assert str(torch.randn(3, 3).device) == "cpu"
