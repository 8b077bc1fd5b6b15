"""The portable pattern: model and batches are moved to the best device, and the loss decreases."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device(
    'cuda' if torch.cuda.is_available()
    else 'mps' if torch.backends.mps.is_available()
    else 'cpu'
)
print(f"사용 디바이스: {device}")
model = nn.Linear(10, 5).to(device)
inputs = torch.randn(256, 10)
classes = (inputs @ torch.randn(10, 5)).argmax(1)
dataloader = DataLoader(TensorDataset(inputs, classes), batch_size=64, shuffle=True)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
losses = []
for epoch in range(20):
    total = 0.0
    for batch_x, batch_y in dataloader:
        batch_x = batch_x.to(device)
        batch_y = batch_y.to(device)
        output = model(batch_x)
        assert output.device.type == device.type
        loss = criterion(output, batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(total)
print(losses[0], losses[-1])
assert losses[-1] < losses[0] / 3
assert (model(inputs.to(device)).argmax(1).cpu() == classes).numpy().mean() > 0.9
