"""Random calls of what devices have kernels of their own for: python rendered_programs.py DEVICE KIND... prints the calls whose bits are not the cpu's."""
import sys

import numpy as np

import naru as torch

TYPES = ("float32", "bfloat16", "float16", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
ODD = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0, -1.0)


def values(rng, shape, dtype, kind):
    """Of a type; wide: seldom equal, few: many equal ones, NaN, both zeros, infinities; same: all of them equal."""
    if dtype.startswith(("float", "bfloat")):
        a = rng.standard_normal(shape) if kind == "wide" else rng.choice(ODD, shape) if kind == "few" else np.full(shape, 2.0)
    else:
        a = rng.integers(0, {"wide": 100, "few": 3, "same": 1}[kind], shape)
    return torch.tensor(np.asarray(a, "f8" if dtype.startswith(("float", "bfloat")) else "i8")).to(getattr(torch, dtype))


def laid_out(t, device, layout):
    """The same elements on a device: as they come, transposed in memory, every second one of more, behind one that is left out."""
    t = t.to(device)
    if layout == "transposed" and t.dim() > 1:
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "steps" and t.dim() > 0:
        return t.repeat_interleave(2, t.dim() - 1)[..., ::2]
    if layout == "offset" and t.dim() > 0:
        return torch.cat([t.flatten()[:1], t.flatten()])[1:].view(t.shape)
    return t


LAYOUTS = ("plain", "transposed", "steps", "offset")


def bits(result):
    """Bytes, with one NaN for all: which one comes of several operands is the compiler's choice."""
    result = [torch.where(t.isnan(), float("nan"), t) if t.is_floating_point() else t for t in (r.cpu() for r in result)]
    return [(t.dtype, tuple(t.shape), t.contiguous().view(torch.uint8).numpy().tobytes() if t.numel() and t.dim() else str(t.tolist())) for t in result]


class Calls:
    def __init__(self, device):
        self.device, self.wrong, self.count = device, [], 0

    def same(self, name, f, *operands, layout="plain"):
        wanted, found = (bits(f(*(laid_out(t, d, layout) if torch.is_tensor(t) else t for t in operands))) for d in ("cpu", self.device))
        self.count += 1
        if wanted != found:
            self.wrong.append(name)


def arg_extremes(calls, rng):
    shapes = [(1,), (7,), (4096,), (70001,), (65536,), (2, 40000), (3000, 3), (1030, 64), (9, 20, 30), (2, 4, 1024), (5000, 2), (300, 257)]
    for n, shape in enumerate(shapes):
        for layout in LAYOUTS:
            dtype, kind = TYPES[rng.integers(len(TYPES))], ("wide", "few", "same")[rng.integers(3)]
            x = values(rng, shape, dtype, kind)
            for dim in range(len(shape)):
                calls.same(f"max({dim}) {shape} {dtype} {kind} {layout}", lambda t: t.max(dim), x, layout=layout)
                calls.same(f"min({dim}) {shape} {dtype} {kind} {layout}", lambda t: t.min(dim), x, layout=layout)
            if dtype != "bool":
                calls.same(f"argmax {shape} {dtype} {kind} {layout}", lambda t: (t.argmax(), t.argmin(len(shape) - 1)), x, layout=layout)


def broadcasts(calls, rng):
    shapes = [((50, 64), (64,)), ((33, 8), (8,)), ((33, 7), (7,)), ((5, 6, 28), (6, 1)), ((3, 5, 7, 4), (5, 1, 1)), ((3, 4, 5, 12), (4, 1, 12)), ((700, 3), (700, 1)), ((2, 3, 2, 3, 8), (3, 1, 3, 1)),
              ((1, 5000), (1,)), ((4, 1030), (4, 1)), ((31, 300), (300,))]  # fmt: skip
    for shape, other in shapes:
        for layout in LAYOUTS:
            for dtype in (TYPES[rng.integers(4)], TYPES[rng.integers(len(TYPES) - 1)]):
                x, y = values(rng, shape, dtype, "wide"), values(rng, other, dtype, "wide")
                calls.same(f"x + y {shape} {other} {dtype} {layout}", lambda a, b: (a + b, (a * b).to(torch.float32)), x, y, layout=layout)
        x, y = values(rng, shape, "bool", "few"), values(rng, other, "bfloat16", "few")
        calls.same(f"where {shape} {other}", lambda a, b: (torch.where(a, b, b.float() * 2), torch.zeros_like(b.expand(a.shape).contiguous()).copy_(b)), x, y)


def scans(calls, rng):
    shapes = [(5,), (256,), (257,), (1030,), (70000,), (3, 1000), (16, 512), (70, 700), (130, 40), (5, 6, 300), (300, 3)]
    for shape in shapes:
        for layout in LAYOUTS:
            dtype = TYPES[rng.integers(len(TYPES))]
            x = values(rng, shape, dtype, ("wide", "few")[rng.integers(2)])
            for dim in range(len(shape)):
                calls.same(f"cumsum({dim}) {shape} {dtype} {layout}", lambda t: (t.cumsum(dim),), x, layout=layout)
                if dtype in ("float32", "bfloat16", "int64"):
                    calls.same(f"others({dim}) {shape} {dtype} {layout}", lambda t: (*t.cummax(dim), t.cumprod(dim), t.cumsum(dim, dtype=torch.float64)), x, layout=layout)
        x = values(rng, shape, "float32", "wide")
        calls.same(f"cumsum_ {shape}", lambda t: (t.clone().cumsum_(0), t.clone().cumsum_(-1)), x)


KINDS = {"arg_extremes": arg_extremes, "broadcasts": broadcasts, "scans": scans}

if __name__ == "__main__":
    device, *kinds = sys.argv[1:]
    for kind in kinds:
        calls = Calls(device)
        KINDS[kind](calls, np.random.default_rng(11))
        assert calls.count > 10
        print(kind, calls.wrong)
