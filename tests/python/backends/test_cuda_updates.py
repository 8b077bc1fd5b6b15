"""Steps of optimizers on cuda, which update many parameters in one kernel: the same bits as on the cpu, in few launches. No GPU is used (see
test_cuda.py)."""
import re

import pytest

from test_cuda import environment, pytestmark, run  # noqa: F401

COMMON = """
import random, sys, warnings
import naru as torch

def bits(x):
    x = x.detach().cpu().contiguous()
    return x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])

def same(a, b):
    return torch.equal(bits(a), bits(b))

SHAPES = [(), (1,), (0, 3), (2,), (3,), (4,), (7,), (768,), (1023,), (1024,), (1025,), (4096,), (5, 7), (64, 33), (16, 3, 3, 3), (301, 101)]

def laid(x, layout):
    # The same elements, in memory of another layout.
    if layout == "shifted":
        return torch.cat([torch.zeros(1, dtype=x.dtype), x.reshape(-1)])[1:].view(x.shape)
    if layout == "strided":
        return torch.stack([x, x], -1)[..., 0]
    if layout == "turned":
        turn = tuple(reversed(range(x.dim())))
        return x.permute(turn).contiguous().permute(turn)
    if layout == "expanded":
        return x.reshape(-1)[:1].expand(x.numel()).view(x.shape) if x.numel() else x
    return x

def moved(x, device):
    # With strides and offset as they are.
    base = x if x._base is None else x._base
    return base.to(device, copy=True).as_strided(x.shape, x.stride(), x.storage_offset()).detach()

def parameters(rng, count, types, layouts):
    made = []
    for _ in range(count):
        shape, dtype = rng.choice(SHAPES), rng.choice(types)
        of_p, of_g = rng.choice(layouts)
        made.append((laid(torch.randn(shape).to(dtype), of_p), [laid(torch.randn(shape).to(dtype), of_g) for _ in range(3)]))
    return made

def stepped(make, made, device, graphs=False):
    params = [moved(p, device).requires_grad_() for p, _ in made]
    grads = [[moved(g, device) for g in list_of] for _, list_of in made]
    optimizer = make(params)
    versions = [p._version for p in params]
    graph = None
    for step in range(3):
        for p, list_of in zip(params, grads):
            if graph is None:
                p.grad = list_of[step].clone() if graphs else list_of[step]
            else:
                p.grad.copy_(list_of[step])
        if step == 1 and graphs:
            graph = torch.Graph(device=device)
            with torch.graph(graph):
                optimizer.step()
        graph.replay() if graph else optimizer.step()
    assert graphs or all(p._version > v for p, v in zip(params, versions) if p.numel())
    return params, [[s for s in optimizer.state[p].values() if isinstance(s, torch.Tensor) and s.dim() == p.dim()] for p in params]

def options(rng, name, capturable=False):
    kind = getattr(torch.optim, name)
    if name == "SGD":
        momentum = rng.choice([0, 0.9])
        nesterov = momentum > 0 and rng.random() < 0.4
        kept = {"lr": 0.1, "momentum": momentum, "nesterov": nesterov, "dampening": 0 if nesterov else rng.choice([0, 0.1])}
    else:
        kept = {"lr": rng.choice([0.1, 1e-3]), "amsgrad": rng.random() < 0.4, "capturable": capturable or rng.random() < 0.3}
    kept |= {"weight_decay": rng.choice([0, 0.01]), "maximize": rng.random() < 0.3}
    return kept, lambda p: kind(p, **kept)
"""

RANDOM = COMMON + """
PLAIN = [("plain", "plain")]
MIXED = [*PLAIN * 4, ("shifted", "plain"), ("plain", "shifted"), ("shifted", "shifted"), ("turned", "turned"), ("turned", "plain"), ("strided", "plain"), ("plain", "expanded")]
checked = 0
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    types = rng.choice([[torch.float32], [torch.float32], [torch.bfloat16], [torch.float16], [torch.float64], [torch.float32, torch.bfloat16]])
    made = parameters(rng, rng.choice([1, 2, 6, 9, 40, 160]), types, rng.choice([PLAIN, MIXED]))
    graphs = seed % 3 == 2
    kept, make = options(rng, rng.choice(["SGD", "Adam", "AdamW"]), graphs)
    here, there = stepped(make, made, "cpu"), stepped(make, made, "cuda", graphs)
    for k, (a, b) in enumerate(zip(here[0], there[0])):
        assert same(a, b), (seed, kept, k, a.shape, a.dtype, a.stride(), graphs)
        assert len(here[1][k]) == len(there[1][k])
        for s, t in zip(here[1][k], there[1][k]):
            assert same(s, t), ("state", seed, kept, k, a.shape, a.dtype, a.stride(), graphs)
        checked += 1
print("same" if checked else "none")
"""


@pytest.mark.parametrize("part", range(4))
def test_steps_have_the_bits_of_the_cpu(environment, part):  # noqa: F811
    assert run(environment, "-c", RANDOM, str(15 * part), str(15 * part + 15)) == (0, "same\n")


COUNTED = COMMON + """
import os
WIDE = [(64, 8), (32, 8)] + [(8,), (8,), (8, 24), (24,), (8, 8), (8,), (8,), (8,), (8, 32), (32,), (32, 8), (8,)] * 12 + [(8,), (8,)]  # as in GPT-2

def count(work):
    torch.cuda.synchronize()
    os.environ["NARU_FAKE_LOG"] = os.environ["CALLS"]
    work()
    torch.cuda.synchronize()
    del os.environ["NARU_FAKE_LOG"]
    with open(os.environ["CALLS"]) as f:
        launches = sum(line.endswith(" cuLaunchKernel\\n") for line in f)
    os.remove(os.environ["CALLS"])
    return launches

counts = []
for shapes in (WIDE, [(16, 2), (16,), (16, 16), (16,), (3, 16), (3,)]):
    for make in (lambda p: torch.optim.AdamW(p, lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True), lambda p: torch.optim.SGD(p, lr=0.1)):
        params = [torch.randn(s, device="cuda", requires_grad=True) for s in shapes]
        for p in params:
            p.grad = torch.randn_like(p)
        optimizer = make(params)
        optimizer.step()
        counts.append(count(optimizer.step))
print(counts)
"""


def test_a_step_is_few_launches(environment, tmp_path):  # noqa: F811
    assert run({**environment, "CALLS": str(tmp_path / "calls")}, "-c", COUNTED) == (0, "[2, 2, 1, 1, 1, 1]\n")


SHARED = COMMON + """
results = []
for device in ("cpu", "cuda"):
    torch.manual_seed(0)
    whole = torch.randn(5000).to(device)
    slices = {"apart": [(0, 1000), (1000, 2001), (2001, 4999)], "overlapping": [(0, 1000), (900, 2001), (2001, 4999)], "equal": [(0, 1000), (0, 1000)]}
    for name, places in slices.items():
        params = [whole[a:b].detach().requires_grad_() for a, b in places]
        optimizer = torch.optim.AdamW(params, lr=0.1)
        for _ in range(2):
            for k, p in enumerate(params):
                p.grad = torch.ones(p.shape).to(device) if k else p.detach() * 2  # of what the parameter was before the step
            optimizer.step()
        results.append(whole.cpu().clone())
    p = torch.ones(700).to(device).requires_grad_()
    q = torch.ones(300).to(device).requires_grad_()
    p.grad, q.grad = p.detach(), torch.ones(300).to(device)  # a parameter is its own gradient
    torch.optim.SGD([p, q], lr=0.1).step()
    results += [p.detach().cpu(), q.detach().cpu()]
half = len(results) // 2
print([same(a, b) for a, b in zip(results[:half], results[half:])])
"""


def test_parameters_that_share_memory_are_updated_in_order(environment):  # noqa: F811
    assert run(environment, "-c", SHARED) == (0, "[True, True, True, True, True]\n")


CLIPPED = COMMON + """
results = []
for device in ("cpu", "cuda"):
    rng = random.Random(5)
    torch.manual_seed(5)
    for types in ([torch.float32], [torch.bfloat16], [torch.float16, torch.float32, torch.float64]):
        params = []
        for _ in range(40):
            shape, dtype = rng.choice(SHAPES), rng.choice(types)
            p = torch.zeros(shape, dtype=dtype, device=device, requires_grad=True)
            p.grad = moved(laid(torch.randn(shape).to(dtype), rng.choice(["plain", "plain", "shifted", "turned", "strided"])), device)
            params.append(p)
        params.append(torch.ones(2, device=device, requires_grad=True))  # without a gradient
        params += params[:1]  # twice
        versions = [p.grad._version for p in params if p.grad is not None]
        for total in (torch.tensor(7.5, dtype=types[0]), torch.tensor(7.5, device=device, dtype=types[0])):
            torch.nn.utils.clip_grads_with_norm_(params, 3.0, total)
        results.append([p.grad for p in params if p.grad is not None])
        assert all(g._version > v for g, v in zip(results[-1], versions))
half = len(results) // 2
print(all(same(x, y) for a, b in zip(results[:half], results[half:]) for x, y in zip(a, b)))
"""


def test_gradients_are_clipped_to_the_bits_of_the_cpu(environment):  # noqa: F811
    assert run(environment, "-c", CLIPPED) == (0, "True\n")
