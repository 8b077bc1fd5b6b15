"""python training.py naru|torch mlp|gpt|resnet [--steps N] [--mode eager|graph|compile] [--device cuda] [--tiny]: times training steps; prints a
line of JSON.

mlp: 784-512-512-10, batch 256, Adam, float32. gpt: GPT-2 small, 8 x 1024 tokens, bfloat16 autocast. resnet: ResNet-18, 128 x 224 x 224, channels
last, bfloat16 autocast. ms: the minimum of three means; host_us: time per step until all work is submitted; loss: of the first and the last step.
"""

import argparse
import importlib
import json
import time
from types import SimpleNamespace


def gpt(t, vocabulary, length, width, heads, layers):
    nn, F = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, n, _ = x.shape
            q, k, v = (y.view(batch, n, heads, width // heads).transpose(1, 2) for y in self.qkv(self.before_attention(x)).split(width, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, n, width)
            x = x + self.out(y)
            return x + self.down(F.gelu(self.up(self.before_mlp(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks, self.last = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width)
            for m in self.modules():
                if isinstance(m, (nn.Linear, nn.Embedding)):
                    nn.init.normal_(m.weight, std=0.02)

        def forward(self, i):
            x = self.tokens(i) + self.positions(t.arange(i.shape[1], device=i.device))
            return F.linear(self.last(self.blocks(x)), self.tokens.weight)

    return Gpt()


def resnet(t, width):
    nn, F = t.nn, t.nn.functional

    class Residual(nn.Module):
        def __init__(self, c, k, stride):
            super().__init__()
            self.a = nn.Sequential(nn.Conv2d(c, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k), nn.ReLU(), nn.Conv2d(k, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k))
            self.b = nn.Sequential() if c == k and stride == 1 else nn.Sequential(nn.Conv2d(c, k, 1, stride, bias=False), nn.BatchNorm2d(k))

        def forward(self, x):
            return F.relu(self.a(x) + self.b(x))

    stages = [Residual(width << max(0, i - 1 + j), width << i, 1 if j or not i else 2) for i in range(4) for j in (0, 1)]
    return nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 1000))  # fmt: skip


def training(library, what, mode="eager", device="cuda", tiny=False):
    """Returns the training step of a model, the number of items per step, and the library."""
    t = importlib.import_module(library)
    nn, F = t.nn, t.nn.functional
    t.manual_seed(0)
    if what == "mlp":
        items = 256
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
        x, y = t.randn(items, 784, device=device), t.randint(0, 10, (items,), device=device)
        loss_of = lambda: F.cross_entropy(model(x), y)  # noqa: E731
    elif what == "gpt":
        vocabulary, length, width, heads, layers, batch = (512, 64, 64, 4, 2, 2) if tiny else (50304, 1024, 768, 12, 12, 8)
        model, items = gpt(t, vocabulary, length, width, heads, layers).to(device), batch * length
        text = t.randint(0, vocabulary, (batch, length + 1), device=device)
        x, y = text[:, :-1].contiguous(), text[:, 1:].contiguous()
        loss_of = lambda: F.cross_entropy(model(x).view(-1, vocabulary), y.view(-1))  # noqa: E731
    else:
        width, items, side = (8, 2, 32) if tiny else (64, 128, 224)
        model = resnet(t, width).to(device).to(memory_format=t.channels_last)
        x, y = t.randn(items, 3, side, side, device=device).to(memory_format=t.channels_last), t.randint(0, 1000, (items,), device=device)
        loss_of = lambda: F.cross_entropy(model(x).float(), y)  # noqa: E731
    fused = {"fused": True} if library == "torch" and device == "cuda" else {}
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-4, capturable=mode == "graph", **fused)
    if mode == "compile":
        model.compile()

    def step():
        optimizer.zero_grad(set_to_none=mode != "graph")
        with t.autocast(device, dtype=t.bfloat16, enabled=what != "mlp"):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(t=t, step=step, items=items)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=("naru", "torch"))
    parser.add_argument("what", choices=("mlp", "gpt", "resnet"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--mode", choices=("eager", "graph", "compile"), default="eager")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    a = parser.parse_args()
    made = training(a.library, a.what, a.mode, a.device, a.tiny)
    t = made.t
    wait = t.cuda.synchronize if a.device == "cuda" else lambda: None
    start = time.perf_counter()
    first = made.step()
    wait()
    first_s = time.perf_counter() - start
    run = made.step
    if a.mode == "graph":
        with t.cuda.stream(t.cuda.Stream()):
            for _ in range(3):
                made.step()
        wait()
        graph = t.cuda.CUDAGraph()
        with t.cuda.graph(graph):
            kept = made.step()
        run = lambda: (graph.replay(), kept)[1]  # noqa: E731
    for _ in range(3):
        last = run()
    wait()
    best = host = 1e9
    count = max(1, a.steps // 3)
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(count):
            last = run()
        submitted = time.perf_counter()
        wait()
        end = time.perf_counter()
        best, host = min(best, (end - start) / count), min(host, (submitted - start) / count)
    memory = t.cuda.max_memory_allocated() / 2**30 if a.device == "cuda" else 0
    print(json.dumps({"library": a.library, "row": f"{a.what} {a.mode}", "ms": round(best * 1e3, 3), "host_us": round(host * 1e6, 1),
                      "per_s": round(made.items / best), "first_s": round(first_s, 2), "loss": [round(float(first), 4), round(float(last), 4)],
                      "gib": round(memory, 2)}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
