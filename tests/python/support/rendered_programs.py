"""Random calls of operators that have rendered kernels: python rendered_programs.py DEVICE KIND... prints the calls whose bits differ from the
cpu's."""
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
    return [(t.dtype, tuple(t.shape), t.clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes() if t.numel() and t.dim() else str(t.tolist())) for t in result]


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
        for layout in ("plain", LAYOUTS[1 + rng.integers(3)]):
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
            for dtype in (TYPES[rng.integers(len(TYPES) - 1)],):
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


def column_sums(calls, rng):
    """Sums over rows: by items, by groups that read tiles, and of so many rows that their chunks are a tree."""
    shapes = [(300, 16), (129, 33), (1000, 40), (257, 700), (5, 300, 64), (2, 70, 9, 50), (200, 2), (70000, 20), (20000, 64), (300, 9000)]
    for shape in shapes:
        for layout in ("plain", LAYOUTS[1 + rng.integers(3)]):
            dtype, kind = TYPES[rng.integers(len(TYPES))], ("wide", "few", "same")[rng.integers(3)]
            x, y = values(rng, shape, dtype, kind), values(rng, shape, "bfloat16", "wide")
            dims = tuple(range(len(shape) - 1))
            calls.same(f"sum {shape} {dtype} {kind} {layout}", lambda t: (t.sum(dims), t.sum(0), t.sum(0, dtype=torch.float64)), x, layout=layout)
            calls.same(f"extremes {shape} {dtype} {kind} {layout}", lambda t: (t.amax(0), t.amin(dims), (t != 0).any(0), (t != 0).all(dims[0])), x, layout=layout)
            calls.same(f"sums of products {shape} {layout}", lambda t: ((t.float() * t.float() - 1).sum(dims), (t * 2).float().prod(0)), y, layout=layout)


def pools(calls, rng):
    """Windows over pictures whose channels are last, and their gradients."""

    def pooled(t, f):
        x = t.float().to(memory_format=torch.channels_last).requires_grad_()
        y = f(x)
        results = y if isinstance(y, tuple) else (y,)
        (g,) = torch.autograd.grad(results[0], x, torch.arange(results[0].numel(), device=t.device, dtype=torch.float32).view(results[0].shape).to(memory_format=torch.channels_last))
        return (*(r.detach() for r in results), g)

    F = torch.nn.functional
    for shape in ((2, 5, 9, 8), (3, 16, 7, 7), (1, 3, 12, 5), (2, 1, 6, 6), (2, 33, 1, 4)):
        x = values(rng, shape, "float32", ("wide", "few")[rng.integers(2)])
        calls.same(f"max_pool2d {shape}", lambda t: pooled(t, lambda x: F.max_pool2d(x, (1, 3), 2, (0, 1), return_indices=True)), x)
        calls.same(f"avg_pool2d {shape}", lambda t: pooled(t, lambda x: F.avg_pool2d(x, (1, 2))), x)
        calls.same(f"interpolate {shape}", lambda t: pooled(t, lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")), x)


def random_pool(rng, n, dtype):
    """A pool's name and function, the sizes of an image that it fits, and whether each window has elements."""
    F, kind = torch.nn.functional, ("max", "max", "places", "avg", "lp", "adaptive_max", "adaptive_avg")[rng.integers(3 if not dtype.startswith(("float", "bfloat")) else 7)]
    if kind.startswith("adaptive"):
        wanted = tuple(int(v) for v in rng.integers(1, 6, n))
        more = {"return_indices": True} if kind == "adaptive_max" else {}
        return f"{kind}_pool{n}d {wanted}", lambda x: getattr(F, f"{kind}_pool{n}d")(x, wanted, **more), tuple(int(v) for v in rng.integers(1, 9, n)), True
    kernel, stride = ([int(v) for v in rng.integers(1, 5, n)] for _ in range(2))
    ceil, dilation = bool(rng.integers(2)), [int(v) for v in rng.choice((1, 1, 1, 2, 4), n)] if kind in ("max", "places") else [1] * n
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    padding = [int(rng.integers(0, (r if kind in ("max", "places") else k) // 2 + 1)) for r, k in zip(reach, kernel)] if kind != "lp" else [0] * n
    sizes = tuple(max(1, r - 2 * p) + int(rng.integers(0, 8)) for r, p in zip(reach, padding))
    name = f"{kind} pool{n}d {kernel} {stride} {padding} {dilation} {ceil}"
    if kind == "avg":
        return name, lambda x: getattr(F, f"avg_pool{n}d")(x, kernel, stride, padding, ceil, bool(stride[0] % 2)), sizes, True
    if kind == "lp":
        return name, lambda x: getattr(F, f"lp_pool{n}d")(x, 2, kernel, stride, ceil), sizes, True
    return name, lambda x: getattr(F, f"max_pool{n}d")(x, kernel, stride, padding, dilation, ceil, kind == "places"), sizes, max(dilation) == 1


def random_pools(calls, rng, count=60):
    """Pools of one to three dimensions, their gradients and those of these: channels first or last, all or some of more channels."""
    for _ in range(count):
        n, dtype = int(rng.integers(1, 4)), ("float32", "bfloat16", "float16", "float64", "bfloat16", "int8", "uint8", "int32", "int64")[rng.integers(9)]
        if n == 1 and "int" in dtype:
            dtype = "bfloat16"
        name, pool, sizes, filled = random_pool(rng, n, dtype)
        channels, lead, last, twice, same = int(rng.choice((1, 3, 4, 8, 12, 64))), int(rng.choice((0, 0, 1, 4))), int(rng.integers(4)), filled and not rng.integers(3), rng.integers(4)
        x = values(rng, (int(rng.integers(1, 4)), lead + channels, *sizes), dtype, ("wide", "few")[rng.integers(2)])
        g = values(rng, (4096,), dtype, "wide")

        def pooled(t, g):
            if last > 0:
                t = t.movedim(1, -1).contiguous().movedim(-1, 1)
            t = t[:, lead:]
            if not t.is_floating_point():
                y = pool(t)
                return y if isinstance(y, tuple) else (y,)
            alone = [pool(t)] if name.startswith("max") and same == 1 else []  # without positions for a gradient
            t.requires_grad_()
            y = pool(t)
            y, places = y if isinstance(y, tuple) else (y, None)
            g = g[torch.arange(y.numel(), device=g.device) % 4096].view(y.shape)
            g = (g.movedim(1, -1).contiguous().movedim(-1, 1) if last > 1 else g[:1, :1].expand(y.shape) if same == 0 else g).detach().requires_grad_()
            (d,) = torch.autograd.grad(y, t, g, create_graph=twice)
            more = torch.autograd.grad(d, g, torch.ones_like(d)) if twice else ()
            return (*(r.detach() for r in (y, d, *more)), *alone, *([] if places is None else [places]))

        calls.same(f"{name} of {tuple(x.shape)} {dtype} {(lead, last, twice, same)}", pooled, x, g)


def masks(calls, rng):
    shapes = [(1,), (7,), (4096,), (4097,), (70000,), (3, 1000), (2, 3, 4), (5, 4, 300), (2, 3, 2, 2, 700), (0,), (3, 0), ()]
    for shape in shapes:
        for layout in LAYOUTS:
            dtype, share = TYPES[rng.integers(len(TYPES))], (0.0, 0.001, 0.3, 1.0)[rng.integers(4)]
            x, mask = values(rng, shape, dtype, "few"), torch.tensor(rng.uniform(0, 1, shape) < share)
            calls.same(f"x[mask] {shape} {dtype} {layout} {share}", lambda t, m: (t[m], t.masked_select(m), m.nonzero(), *m.nonzero(as_tuple=True)), x, mask, layout=layout)
            calls.same(f"nonzero {shape} {dtype} {layout}", lambda t: (t.nonzero(), t[t != 0]), x, layout=layout)
            if len(shape) > 1:
                calls.same(f"x[rows] {shape} {dtype} {layout} {share}", lambda t, m: (t[m[(slice(None),) + (0,) * (m.dim() - 1)]] if m.numel() else m, t[..., m[(0,) * (m.dim() - 1)]] if m.numel() else m), x, mask, layout=layout)
    big = torch.tensor(rng.uniform(0, 1, 4096 * 2100 + 77) < 0.01)
    calls.same("nonzero of more blocks than are added up at a time", lambda m: (m.nonzero(), m[5:].nonzero()), big)


def sorts(calls, rng):
    for n in (1, 512, 1000, 2048, 2049, 5000, 70000):
        for dtype in (TYPES if n == 5000 else rng.choice(TYPES, 3)):
            kind = ("wide", "few", "same")[rng.integers(3)]
            x = values(rng, (3, n) if n < 10000 else (n,), str(dtype), kind)
            for layout in ("plain", LAYOUTS[1 + rng.integers(3)]):
                for down in (False, True):
                    calls.same(f"sort {n} {dtype} {kind} {layout} {down}", lambda t: (*t.sort(-1, descending=down), t.argsort(0)), x, layout=layout)
                if dtype != "bool":
                    calls.same(f"topk {n} {dtype} {kind} {layout}", lambda t: (*t.topk(max(1, n // 3)), *t.topk(1, largest=False)), x, layout=layout)
    for rows, places, width in ((3000, 50, 3), (5000, 40000, 2), (2500, 1, 1), (4000, 7, 1)):
        at, x = torch.tensor(rng.integers(0, places, rows)), values(rng, (rows, width), "float32", "wide")
        calls.same(f"index_add {rows} {places}", lambda t, i: (torch.zeros(places, width, device=t.device).index_add(0, i, t), torch.zeros(places, width, device=t.device).index_copy(0, i, t),
                   torch.zeros(places, width, device=t.device).flip(0).t().index_add(1, i, t.t())), x, at)  # fmt: skip


def hard_rows(x):
    """Rows of which some need float64: of great means, and (but for float16) of great numbers."""
    x = x.clone()
    x[::2] = x[::2] * 0.01 + 300
    if x.dtype != torch.float16:
        x[-1] *= 1e30
    return x


def rows(calls, rng):
    f = torch.nn.functional
    for n in (30, 64, 1024, 1030, 3000, 4096, 8192, 16384, 20000):
        for dtype in (("float32", "bfloat16", "float16", "float64")[rng.integers(4)], ("float32", "bfloat16")[rng.integers(2)]):
            for layout in ("plain", "plain" if rng.integers(2) else LAYOUTS[1 + rng.integers(3)]):
                x = values(rng, (5, n), dtype, "wide" if rng.integers(3) else "few")
                w = values(rng, (n,), dtype, "wide")
                calls.same(f"softmax {n} {dtype} {layout}", lambda t: (t.softmax(1), t.log_softmax(1)), x, layout=layout)
                calls.same(f"norms {n} {dtype} {layout}", lambda t, v: (f.layer_norm(t, (n,), v, v), f.layer_norm(t, (n,)), f.rms_norm(t, (n,), v)), x, w, layout=layout)
                calls.same(f"norms of hard rows {n} {dtype} {layout}", lambda t, v: (f.layer_norm(t, (n,), v, v), f.rms_norm(t, (n,), v)), hard_rows(x), w, layout=layout)
        x = values(rng, (3, n), "float32", "wide").requires_grad_()
        calls.same(f"gradients {n}", lambda t: torch.autograd.grad((t.softmax(1) * t).sum() + (f.layer_norm(t, (n,)) * t).sum(), t), x)
        if n % 2 == 0:
            turned = values(rng, (n // 2, 2), "float32", "wide")
            calls.same(f"weights turned {n}", lambda t, v: f.layer_norm(t.view(3, 2, n // 2), (2, n // 2), v.t(), v.t()), hard_rows(x.detach()), turned)
        x = hard_rows(x.detach()).requires_grad_()
        calls.same(f"gradients of hard rows {n}", lambda t: torch.autograd.grad((f.layer_norm(t, (n,)) * t).sum() + f.rms_norm(t, (n,)).sum(), t), x)


def long_rows(calls, rng):
    """Rows of several chunks, of which a group reduces some side by side: few and many, aligned and not."""
    f = torch.nn.functional
    for n in (16385, 16388, 32768, 50257, 50304, 70001, 200004):
        for turn in range(3):
            dtype, layout = ("float32", "bfloat16", "float16", "float64")[rng.integers(4)], ("plain", "offset", "plain")[turn]
            x = values(rng, (int(rng.integers(1, 6)), n), dtype, "wide" if rng.integers(4) else "few")
            calls.same(f"softmax {tuple(x.shape)} {dtype} {layout}", lambda t: (t.softmax(1), t.log_softmax(1), f.cross_entropy(t, torch.arange(len(t), device=t.device))), x, layout=layout)
            calls.same(f"norms {tuple(x.shape)} {dtype} {layout}", lambda t: (f.layer_norm(t, (n,)), t.softmax(1, dtype=torch.float32)), x, layout=layout)
            calls.same(f"norms of hard rows {tuple(x.shape)} {dtype} {layout}", lambda t: (f.layer_norm(t, (n,)), f.rms_norm(t, (n,))), hard_rows(x), layout=layout)
        x = values(rng, (2, n), "float32", "wide").requires_grad_()
        calls.same(f"gradients {n}", lambda t: torch.autograd.grad((t.softmax(1) * t).sum() + (f.layer_norm(t, (n,)) * t).sum(), t), x)


def batch_norms(calls, rng):
    """Reductions with several results: batch_norm, its gradients, variances, of channels first and last."""
    f = torch.nn.functional
    for turn in range(60):
        shape = tuple(int(rng.choice(c)) for c in ((1, 2, 5), (1, 3, 4, 8, 20, 36, 64, 68), (2, 7, 16, 30), (1, 5, 33)))
        dtype, layout = ("float32", "bfloat16", "float16", "float64")[rng.integers(4)], LAYOUTS[rng.integers(4)]
        x, g = (values(rng, shape, dtype, "wide") for _ in range(2))
        w = values(rng, shape[1:2], dtype, "wide")

        def normed(t, g, w):
            if turn % 3:
                t, g = (v.to(memory_format=torch.channels_last) for v in (t, g))
            t, w = t.detach().requires_grad_(), w.detach().requires_grad_()
            y = f.batch_norm(t, None, None, w, w, True)
            return (y.detach(), *torch.autograd.grad(y, (t, w), g), t.detach().var((0, 2, 3)), *torch.var_mean(t.detach(), 1), t.detach().std())

        calls.same(f"batch_norm {shape} {dtype} {layout}", normed, x, g, w, layout=layout)


def overwritten(calls, rng):
    """Gradients of what was written over a part: one kernel copies the part of a gradient, and clears it there."""
    parts = {"select": lambda a, b: torch.select_scatter(a, b, 1, 2), "slice": lambda a, b: torch.slice_scatter(a, b[:, None], 1, 2, 3), "diagonal": lambda a, b: torch.diagonal_scatter(a[: a.shape[1]], b[: a.shape[1]])}
    for n in (5, 8, 64, 1030):
        for name, write in parts.items():
            for dtype in ("float32", "bfloat16", "float16"):
                x, y = values(rng, (n, 5), dtype, "wide"), values(rng, (n,), dtype, "wide")

                def f(a, b):
                    a, b = a.detach().clone().requires_grad_(), b.detach().clone().requires_grad_()
                    out = write(a, b)
                    out.backward(torch.ones_like(out))
                    return out.detach(), a.grad, b.grad

                calls.same(f"{name} {n} {dtype}", f, x, y)


def counts(calls, rng):
    for shape in ((1,), (40,), (3000,), (40, 90), (70000,)):
        for dtype in ("float32", "bfloat16", "int64", "uint8", "bool", "int32"):
            for kind in ("wide", "few") if shape != (3000,) else ("same",):
                x = values(rng, shape, dtype, kind)
                calls.same(f"unique {shape} {dtype} {kind}", lambda t: t.unique(return_inverse=True, return_counts=True), x)
                if dtype in ("int64", "uint8", "int32"):
                    calls.same(f"bincount {shape} {dtype} {kind}", lambda t: (t.flatten().bincount(), t.flatten().bincount(minlength=200)), x)
        calls.same(f"histc {shape}", lambda t: (t.histc(20), t.histc(7, -1, 2)), values(rng, shape, "float32", "wide"))


def error_of(f):
    """What a call raises, as far as every device says the same."""
    try:
        for t in f():
            t.cpu()
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {str(e).split(' (')[0]}"
    return ""


def bad_indices(calls, rng):
    """The first index out of bounds is named, however the elements are moved."""
    for n in (1, 4, 7, 64, 260):
        x, at = values(rng, (12, n), ("float32", "bfloat16", "int64")[rng.integers(3)], "wide"), torch.tensor(rng.integers(0, 12, (8, n)))
        for place in sorted({int(p) for p in rng.integers(0, at.numel(), 3)}, reverse=True):
            at.view(-1)[place] = int(rng.choice((12, -13, 10**12)))
            for name, f in (("gather", lambda t, i: (t.gather(0, i),)), ("take", lambda t, i: (t.flatten()[:12].take(i),)), ("rows", lambda t, i: (t[i.flatten()],))):
                wanted, found = (error_of(lambda d=d: f(x.to(d), at.to(d))) for d in ("cpu", calls.device))
                if wanted != found or not wanted:
                    calls.wrong.append(f"{name} {n} {place}: {wanted!r}, {found!r}")


def gathers(calls, rng):
    bad_indices(calls, rng)
    for shape in ((50, 64), (33, 7), (20, 3, 8), (9, 5, 4, 12), (40,)):
        for layout in LAYOUTS:
            dtype = TYPES[rng.integers(len(TYPES))]
            x, at = values(rng, shape, dtype, "wide"), torch.tensor(rng.integers(-shape[0], shape[0], (13, 2)))
            near = torch.tensor(rng.integers(0, shape[-1], shape))
            calls.same(f"x[at] {shape} {dtype} {layout}", lambda t, i: (t[i], t[..., i % t.shape[-1]], t.index_select(0, i[:, 0] % t.shape[0])), x, at, layout=layout)
            calls.same(f"gather {shape} {dtype} {layout}", lambda t, i: (t.gather(-1, i), t.take(i), t.flip(0), t.flip(-1)), x, near, layout=layout)
            if dtype in ("float32", "bfloat16") and len(shape) == 2:
                calls.same(f"embedding {shape} {dtype} {layout}", lambda t, i: (torch.nn.functional.embedding(i % t.shape[0], t),), x, at, layout=layout)


def selections(calls, rng):
    """A few elements of long rows: every dtype, layout and kind of ties, with rows of any alignment; the elements themselves, whatever NaN they are."""
    of_bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    for turn in range(12 if calls.device.startswith("xpu") else 250):  # PoCL takes seconds for a kernel
        dtype, kind, layout = TYPES[rng.integers(len(TYPES) - 1)], ("wide", "wide", "few", "same")[rng.integers(4)], LAYOUTS[rng.integers(4)]
        n = int((rng.integers(2049, 2300), rng.integers(2049, 60001), 8192, 50257)[rng.integers(4)])
        k = int((1, 50, 64, rng.integers(2, 1024), 1024, 1025)[rng.integers(6)])
        x, down = values(rng, (int(rng.integers(1, 4)), n), dtype, kind), bool(rng.integers(2))
        if turn % 5 == 0:  # equal in all but the last bits of their keys
            x = x.sign() + torch.tensor(rng.integers(0, 3, x.shape) * 2.0**-7).to(x.dtype)

        def first(t):
            values, places = t.sort(-1, descending=down) if t.device.type == "cpu" else t.topk(k, -1, down)
            values, places = (r[:, :k].clone(memory_format=torch.contiguous_format) for r in (values, places))
            return values.view(of_bits[values.element_size()]), places

        calls.same(f"topk {k} of {tuple(x.shape)} {dtype} {kind} {layout} {down}", first, x, layout=layout)


def reductions(calls, rng):
    for shape in ((2048,), (20000,), (3, 5000), (2, 4, 8192), (5, 2049)):
        for layout in ("plain", LAYOUTS[1 + rng.integers(3)]):
            dtype = TYPES[rng.integers(len(TYPES))]
            x = values(rng, shape, dtype, "wide" if rng.integers(4) else "few")
            calls.same(f"reductions {shape} {dtype} {layout}", lambda t: (t.sum(), t.sum(-1), t.amax(-1), t.amin(), t.to(torch.bool).any(-1)), x, layout=layout)
        x, y = values(rng, shape, TYPES[rng.integers(4)], "wide"), values(rng, shape[-1:], "float32", "wide")
        calls.same(f"fused {shape} {x.dtype}", lambda t, u: (((t - u) ** 2).mean(-1), t.prod(-1)), x, y)


KINDS = {"arg_extremes": arg_extremes, "broadcasts": broadcasts, "scans": scans, "masks": masks, "sorts": sorts, "rows": rows, "counts": counts, "gathers": gathers, "selections": selections, "reductions": reductions, "column_sums": column_sums, "pools": pools, "random_pools": random_pools}
# Of so many kernels, or of so many items that meet at barriers, that PoCL would take minutes to compile them.
SLOW_KINDS = {"long_rows": long_rows, "batch_norms": batch_norms, "overwritten": overwritten}

if __name__ == "__main__":
    device, *kinds = sys.argv[1:]
    for kind in kinds:
        calls = Calls(device)
        (KINDS | SLOW_KINDS)[kind](calls, np.random.default_rng(11))
        assert calls.count > 10
        print(kind, calls.wrong)
