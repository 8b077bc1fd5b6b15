"""The networks of the benchmark lines 14 to 15b, in PyTorch's API; `torch` is the module to make them of."""
import math

from operands import parameter


def filled(torch, model):
    """The model, with the same parameters on every side."""
    with torch.no_grad():
        for seed, p in enumerate(model.parameters()):
            p.copy_(torch.from_numpy(parameter(tuple(p.shape), seed)))
    return model


def gpt(torch, fused, vocabulary=65, block=128, layers=4, heads=4, width=128):
    """minGPT's network. fused: by scaled_dot_product_attention; else attention is written out."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

        def forward(self, x, past=None):
            b, t, c = x.shape
            q, k, v = (part.view(b, t, heads, c // heads).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
            if past is not None:  # (keys, values) of the tokens before; t is 1
                k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
                self.past = k, v
                y = F.scaled_dot_product_attention(q, k, v)
            elif fused:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
                weights = weights.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
                y = F.softmax(weights, dim=-1) @ v
            return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, past=None):
            x = x + self.attn(self.ln_1(x), past)
            return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
            for one in self.blocks:
                x = one(x)
            return self.head(self.ln_f(x))

        def step(self, token, position, past):
            """Logits of the next token; `past`: keys and values of each layer."""
            x = self.wte(token) + self.wpe(position)
            for one, before in zip(self.blocks, past):
                x = one(x, before)
            return self.head(self.ln_f(x)), [one.attn.past for one in self.blocks]

    return filled(torch, Gpt())


def mnist_cnn(torch):
    """The network of the MNIST example, without dropout, whose draws would differ."""
    nn = torch.nn
    return filled(torch, nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
                                       nn.Linear(128, 10)))


def resnet18(torch, classes=10):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.down = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)) if stride != 1 or before != width else None

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + (x if self.down is None else self.down(x)))

    widths, blocks, before = (64, 128, 256, 512), [], 64
    for i, width in enumerate(widths):
        blocks += [Block(before, width, 1 if i == 0 else 2), Block(width, width, 1)]
        before = width
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return filled(torch, nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)))


def unet(torch, width=16):
    nn = torch.nn

    def double(before, after):
        return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = double(3, width), double(width, 2 * width), double(2 * width, 4 * width)
            self.pool = nn.MaxPool2d(2)
            self.up2, self.back2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), double(4 * width, 2 * width)
            self.up1, self.back1 = nn.ConvTranspose2d(2 * width, width, 2, 2), double(2 * width, width)
            self.last = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            a = self.first(x)
            b = self.second(self.pool(a))
            c = self.back2(torch.cat((self.up2(self.third(self.pool(b))), b), 1))
            return self.last(self.back1(torch.cat((self.up1(c), a), 1)))

    return filled(torch, UNet())
