"""einops: patterns over tensors, as functions and as layers."""
import einops
import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from facts import recorded


@recorded
def test_functions_give_pytorchs_elements_and_gradients(device):
    x = torch.arange(48.0, device=device).reshape(2, 3, 8).requires_grad_()
    results = [
        rearrange(x, "a b (c d) -> b (a c) d", d=2), reduce(x, "a b c -> a c", "mean"), reduce(x, "a b c -> b", "max"),
        reduce(x / 48, "a b c -> a", "prod"), repeat(x, "a b c -> a (b 2) c"), einsum(x, x, "a b c, a d c -> a b d"),
    ]  # fmt: skip
    sum(r.sum() for r in results).backward()
    return [*results, x.grad]


@recorded
def test_parts_are_packed_and_come_back(device):
    parts = [torch.ones(2, 3, device=device), torch.zeros(2, 2, 3, device=device)]
    packed, shapes = pack(parts, "a * c")
    return [packed, [list(s) for s in shapes], [list(part.shape) for part in unpack(packed, shapes, "a * c")], einops.parse_shape(packed, "x y _")]


@recorded
def test_layers_train(device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        Rearrange("b c (h h2) w -> b (c h2) h w", h2=2), EinMix("b c h w -> b c h k", weight_shape="w k", bias_shape="k", w=4, k=3),
        Reduce("b c h k -> b k", "mean"), torch.nn.Linear(3, 1),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.linspace(-1, 1, 96, device=device).reshape(3, 2, 4, 4)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
