"""Programs of random lines of Python over a few tensors: operators of every kind, views, in-place writes, random numbers. A seed always gives the
same program; only lines that run on the cpu, one operator at a time, are kept."""
import random

import naru
import numpy as np
from bitwise import bits, unfused

DTYPES = [["float32"], ["float32"], ["float64"], ["float32", "float16"], ["bfloat16", "float32"], ["int64", "float32", "bool"],
          ["float32", "float64", "int64", "int32", "int8", "uint8", "bool", "float16"]]
NEW = """{x} + {y};{x} - {y};{x} * {y};{x} / {y};{x} % 1.75;{x} // 2;2 - {x};{x} ** 2;{x} < {y};{x} == {y};torch.maximum({x}, {y});torch.atan2({x}, {y});torch.abs({x})
torch.exp({x});torch.tanh({x});torch.floor({x});torch.round({x});torch.sqrt({x});torch.sigmoid({x});F.gelu({x});F.softplus({x});torch.isnan({x});{x}.clamp(-1, 2)
torch.where({x} > 0, {y}, {z});{x}.masked_fill({y} > 0, 7);torch.addcmul({x}, {y}, {z}, value=0.5);torch.lerp({x}, {y}, 0.3);{x}.sum();{x}.sum({d});{x}.mean({d}, keepdim=True)
{x}.prod({d});{x}.amax({d});{x}.max({d})[1];{x}.argmin();{x}.var({d});{x}.norm();torch.logsumexp({x}, {d});{x}.cumsum({d});torch.softmax({x}, {d});F.layer_norm({x}, {x}.shape[-1:])
torch.cat([{x}, {y}], {d});torch.stack([{x}, {y}], {d});{x}.repeat(2, 1);{x}.flip({d});{x}.clone();{x}.index_select({d}, {p});{x}.gather({d}, torch.zeros_like({x}, dtype=torch.long))
{x}.tril();{x}.sort({d}, stable=True)[{k}];{x}.topk(1, {d})[0];{x}.scatter_add({d}, torch.zeros_like({x}, dtype=torch.long), {x});{x}.to(torch.int32);{x}.to(torch.float16);{x}.float()
{x} @ {y};{x} @ {y}.mT;F.mse_loss({x}, {y});torch.rand_like({x});torch.randn({x}.shape, device=D);F.dropout({x}, 0.4);torch.empty_like({x}).uniform_(-1, 1)"""
VIEWS = """{x}[1:];{x}[..., ::2];{x}[{k}];{x}.mT;{x}.transpose({d}, 0);{x}.expand(2, *{x}.shape);{x}.unsqueeze({d});{x}.reshape(-1);{x}.flatten();{x}.diagonal();{x}.narrow({d}, 0, 1);{x}[:, 1:]
{x}.select({d}, 0);{x}[None];{x}.detach();{x}.squeeze()"""
WRITES = """{v}.add_({y});{v}.mul_({y});{v}.sub_({y}, alpha=2);{v}.div_({y});{v}.copy_({y});{v}.fill_(0.5);{v}.zero_();{v}.clamp_(-1, 2);{v}.relu_();{v}.tanh_();{v}.addcmul_({y}, {z})
{x}[{x} > 0] = 1.5;{x}[{k}] = 2;{x}[..., ::2] = {y};{x}[0] += {x}[-1];{x}.index_fill_({d}, {p}, 3);{x}.index_add_({d}, {p}, {x}.index_select({d}, {p}));{x}.cumsum_({d});{x}.normal_()
{x}[1:] = {x}[:-1].clone();{v}.masked_fill_({y} > 1, -1);{x} += {y};{x} *= 0.5;{x} -= 1"""
NEW, VIEWS, WRITES = (text.replace("\n", ";").split(";") for text in (NEW, VIEWS, WRITES))


def line(r, tensors, count):
    x, y, z = (r.choice(sorted(tensors)) for _ in range(3))
    rank = tensors[x].dim()
    d = r.randrange(-rank, rank) if rank else 0
    size = tensors[x].shape[d] if rank else 1
    positions = f"torch.arange({r.randrange(size + 1)}, {size}, {r.randrange(1, 4)}, device=D)"
    blanks = dict(x=x, y=y, z=z, d=d, k=r.randrange(2), p=positions)
    blanks["v"] = r.choice(VIEWS).format(**blanks) if r.random() < 0.4 else x
    kind = r.random()
    if kind < 0.3:
        return r.choice(WRITES).format(**blanks)
    if kind < 0.36 and len(tensors) > 3:
        return f"del {x}"
    name = f"t{count}" if r.random() < 0.8 else x
    return f"{name} = " + r.choice(VIEWS if kind < 0.5 else NEW).format(**blanks)


def inputs(seed, device="cpu", again=0):
    """The tensors that a program begins with; `again`: others of the same shapes and types."""
    r = random.Random(seed)
    a, b = r.choice([(4, 3), (1, 5), (80, 90), (64, 33), (5, 5)])
    types = r.choice(DTYPES)
    made = {}
    for i in range(r.randrange(2, 5)):
        shape = r.choice([(a, b), (a, b), (b,), (1, b), (a, 1), (2, a, b), ()]) if i else (a, b)
        values = np.random.default_rng(seed * 8 + i + 1000003 * again).integers(-6, 9, shape) / 4
        dtype = getattr(naru, r.choice(types))
        made[f"t{i}"] = naru.tensor(abs(values) if dtype == naru.uint8 else values).to(dtype).to(device)
    return made


def run(lines, tensors, device):
    names = {"torch": naru, "F": naru.nn.functional, "D": device}
    for text in lines:
        exec(text, names, tensors)
    return tensors


def program(seed, length=12):
    r, tensors, lines = random.Random(-1 - seed), inputs(seed), []
    with unfused():
        for attempt in range(6 * length):
            text, before, state = line(r, tensors, 10 + attempt), dict(tensors), naru.get_rng_state()
            try:
                run([text], tensors, "cpu")
                kept = all(t.numel() < 50000 for t in tensors.values())
            except (RuntimeError, IndexError, TypeError, ValueError):
                kept = False
            if kept:
                lines.append(text)
            else:
                tensors, _ = before, naru.set_rng_state(state)
            if len(lines) == length:
                break
    return lines


def elements(tensors):
    """What the tensors hold, bit by bit; one NaN is as good as another."""
    return {name: bits(t) for name, t in tensors.items()}
