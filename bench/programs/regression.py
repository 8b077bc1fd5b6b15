"""A small network learns a sine: many steps of little work."""
import math

import torch

torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 256).unsqueeze(1)
y = torch.sin(x)
model = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(1000):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item() + 1)
