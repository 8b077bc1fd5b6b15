"""A tensor and a model are moved to `torch.device('cuda')` without checking that it is available. Needs cuda."""
import torch

device = torch.device('cuda')
x = torch.randn(3, 3)
x = x.to(device)
model = torch.nn.Linear(3, 1)
model = model.to(device)
output = model(x)
print(output.to('cpu'))
assert str(output.device) == "cuda:0" and output.shape == (3, 1)
expected = x.cpu() @ model.weight.cpu().T + model.bias.cpu()
assert (output.to('cpu') - expected).abs().max() < 1e-6
