"""A transformer of two layers learns to sort digits, as minGPT's demonstration does."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
LENGTH, DIGITS, WIDTH, HEADS = 6, 3, 48, 3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        size = 2 * LENGTH - 1
        self.register_buffer("mask", torch.tril(torch.ones(size, size)).view(1, 1, size, size))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(WIDTH, dim=2)
        q, k, v = (p.view(b, t, HEADS, c // HEADS).transpose(1, 2) for p in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        return self.proj((att @ v).transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.att, self.ln2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.att(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(DIGITS, WIDTH), nn.Embedding(2 * LENGTH - 1, WIDTH)
        self.blocks, self.norm, self.head = nn.Sequential(Block(), Block()), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, DIGITS, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.token(x) + self.place(torch.arange(x.size(1))))))


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.95), weight_decay=0.1)
last = []
for step in range(300):
    digits = torch.randint(DIGITS, (64, LENGTH))
    whole = torch.cat((digits, torch.sort(digits, dim=1)[0]), dim=1)
    x, y = whole[:, :-1], whole[:, 1:].clone()
    y[:, : LENGTH - 1] = -1
    loss = F.cross_entropy(model(x).view(-1, DIGITS), y.reshape(-1), ignore_index=-1)
    model.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step >= 250:
        last.append(loss.item())
print(sum(last) / len(last))
