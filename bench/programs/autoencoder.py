"""A variational autoencoder on made-up pictures, as the vae example."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22, self.fc3, self.fc4 = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20), nn.Linear(20, 400), nn.Linear(400, 784)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


pictures = torch.rand(1280, 784).round()
model = Vae()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    total = 0.0
    for x in pictures.split(128):
        optimizer.zero_grad()
        out, mu, logvar = model(x)
        loss = F.binary_cross_entropy(out, x, reduction="sum") - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        total += loss.item()
        optimizer.step()
print(total / 1280)
