"""A small classifier on cuda if available, split over several devices by DataParallel, with batches of any size."""
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
parameters = list(model.parameters())
moved = model.to(device)
assert moved is model and all(p is q for p, q in zip(parameters, model.parameters()))
x = torch.randn(32, 784).to(device)
output = model(x)
print(output.shape)
print(output.device)
assert str(output.shape) == "torch.Size([32, 10])"
assert str(output.device) == ("cuda:0" if torch.cuda.is_available() else "cpu")

one_device = model
if torch.cuda.device_count() > 1:
    print(f"GPU {torch.cuda.device_count()}개 사용")
    model = nn.DataParallel(model)
model = model.to(device)
assert (model is one_device) == (torch.cuda.device_count() <= 1)
for batch in (64, 1, 2, 3, 4, 5, 7, 31):
    x = torch.randn(batch, 784).to(device)
    output = model(x)
    assert output.shape == (batch, 10) and output.device == x.device
    expected = one_device(x)
    assert (output - expected).abs().max().cpu() < 1e-5
    one_device.zero_grad()
    output.sum().backward()
    gradients = [p.grad.cpu() for p in one_device.parameters()]
    one_device.zero_grad()
    expected.sum().backward()
    for p, g in zip(one_device.parameters(), gradients):
        assert (p.grad.cpu() - g).abs().max() <= 1e-4 * (1 + g.abs().max())
print(output.shape)
