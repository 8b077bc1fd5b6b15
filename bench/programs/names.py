"""Letters of made-up names by the three letters before: an embedding and two layers."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
syllables = ["an", "el", "mi", "ro", "ka", "ti", "su", "bo"]
draws = torch.randint(0, len(syllables), (2000, 3))
names = ["".join(syllables[i] for i in row) for row in draws.tolist()]
letters = {c: i + 1 for i, c in enumerate(sorted(set("".join(names))))}
xs, ys = [], []
for name in names:
    context = [0, 0, 0]
    for c in [*name, None]:
        place = letters[c] if c else 0
        xs.append(context)
        ys.append(place)
        context = [*context[1:], place]
X, Y = torch.tensor(xs), torch.tensor(ys)
C = torch.randn(len(letters) + 1, 10)
W1, b1 = torch.randn(30, 200) * 0.2, torch.zeros(200)
W2, b2 = torch.randn(200, len(letters) + 1) * 0.05, torch.zeros(len(letters) + 1)
parameters = [C, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad = True
total = 0.0
for step in range(2000):
    ix = torch.randint(0, X.shape[0], (32,))
    h = torch.tanh(C[X[ix]].view(-1, 30) @ W1 + b1)
    loss = F.cross_entropy(h @ W2 + b2, Y[ix])
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.1 * p.grad
    if step >= 1900:
        total += loss.item()
print(total / 100)
