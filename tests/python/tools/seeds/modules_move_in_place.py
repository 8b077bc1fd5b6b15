"""A module's `cuda` modifies the module itself, and its parameters remain the same objects. Needs cuda."""
import torch

print(torch.cuda.is_available())
print(torch.cuda.get_device_name())
print(torch.cuda.device_count())

model = torch.nn.Linear(10, 10)
x = torch.tensor([1., 2., 3., 4., 5., 6., 7., 8., 9., 10.])
print(model.weight.device)
print(model.bias.device)
assert str(model.weight.device) == str(model.bias.device) == "cpu"
weight, bias = model.weight, model.bias
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)  # created before the move

x_gpu = x.cuda()
model_gpu = model.cuda()
print(model_gpu.weight.device)
print(model_gpu.bias.device)
print(model.weight is model_gpu.weight)
assert model_gpu is model and model.weight is model_gpu.weight
assert model.weight is weight and model.bias is bias
assert str(weight.device) == str(bias.device) == "cuda:0"
before = weight.detach().cpu()
model(x_gpu).sum().backward()
optimizer.step()
assert (weight.detach().cpu() != before).all()  # the optimizer updates the parameters that the module uses

model = torch.nn.Linear(10, 10)
try:
    model(x_gpu)
except RuntimeError as error:
    assert str(error).startswith("Expected all tensors to be on the same device"), error
    assert "cuda:0" in str(error) and "cpu" in str(error)
else:
    raise AssertionError("a model on the cpu took a tensor on cuda:0")

model = torch.nn.Linear(10, 10).cuda()
result_gpu = model(x_gpu)
print(result_gpu)
print(result_gpu.device)
assert str(result_gpu.device) == "cuda:0"
result = result_gpu.cpu()
print(result)
print(result.device)
assert str(result.device) == "cpu" and (result == result_gpu.cpu()).all()
