"""Programs over operands of every layout: a deferred chain of elementwise operators, and an instruction that reads it. A seed always gives the same
program, and consecutive seeds cover all triples of (layout of an operand, its dtype, kind of instruction that reads the chain)."""
import collections
import contextlib
import itertools
import random

import naru
import numpy as np
from bitwise import bits, switched, unfused
from naru import _C

F = naru.nn.functional
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
# Below and above the sizes at which the cpu works immediately (4096 elements; devices defer all), splits work among threads, and cuts it into
# chunks (16,384 contiguous elements, 256
# rows) or blocks of columns, and with tails.
SHAPES = [(1, 1), (1, 5), (5, 1), (3, 7), (9, 16), (17, 33), (64, 64), (31, 65), (2, 3, 5), (4, 9, 17), (3, 64, 20)]
LARGE = [(65, 64), (5, 830), (830, 5), (9, 16, 30), (300, 40), (2, 2900), (513, 9), (40, 2, 60)]
HUGE = [(257, 70), (2, 17000), (600, 130), (3, 2100), (3, 260, 40), (40, 2, 300)]


# --- operands: functions from an array of the whole shape to a tensor with a layout, which broadcasts to that shape

def _window(a):
    wide = naru.zeros([n + 3 for n in a.shape], dtype=a.dtype, device=a.device)
    part = wide[tuple(slice(i + 1, i + 1 + n) for i, n in enumerate(a.shape))]
    part.copy_(a)
    return part


def _every_other(a):
    wide = naru.zeros([*a.shape[:-1], 2 * a.shape[-1]], dtype=a.dtype, device=a.device)
    wide[..., ::2] = a
    return wide[..., ::2]


LAYOUTS = {
    "whole": lambda a: a.clone(),
    "one number a row": lambda a: a[..., :1].clone(),
    "one number a column": lambda a: a[(slice(0, 1),) * (a.dim() - 1)].clone(),
    "one number": lambda a: a[(slice(0, 1),) * a.dim()].clone(),
    "no dimensions": lambda a: a[(0,) * a.dim()].clone(),
    "transposed": lambda a: a.transpose(0, -1).contiguous().transpose(0, -1),
    "window": _window,
    "every other": _every_other,
    "expanded": lambda a: a[..., :1].clone().expand(a.shape),
}


# --- readers of the chain, by kind of instruction

def _positions(t, d):
    return naru.arange(0, t.shape[d], 2, device=t.device)


def _scattered(t, d):
    out = naru.zeros(t.shape, dtype=t.dtype, device=t.device)
    return out.index_add(d, naru.arange(t.shape[d], device=t.device) // 2, t)


def _into_a_view(t, d):
    wide = naru.zeros([*t.shape[:-1], t.shape[-1] + 3], dtype=t.dtype, device=t.device)
    wide[..., 1:-2] = t
    return wide


def _updated(t, d):
    """Some steps of an optimizer whose parameter has the chain's layout and whose gradient is the chain."""
    parameter = t.detach().clone().requires_grad_()
    made = [naru.optim.SGD([parameter], 0.1, momentum=0.9), naru.optim.Adam([parameter], 0.1), naru.optim.AdamW([parameter], 0.1, amsgrad=True)][d % 3]
    for _ in range(2):
        parameter.grad = t * 0.5
        made.step()
    return parameter.detach()


READERS = {
    "reduction": [lambda t, d: t.sum(), lambda t, d: t.sum(d), lambda t, d: t.mean(d), lambda t, d: t.prod(d), lambda t, d: t.amax(d), lambda t, d: t.amin(d),
                  lambda t, d: t.any(d), lambda t, d: t.all(d), lambda t, d: t.sum((0, -1)), lambda t, d: t.amax(), lambda t, d: t.count_nonzero(d),
                  lambda t, d: t.sum(d, keepdim=True) + t, lambda t, d: t.sum(d, dtype=naru.float64)],
    "several reductions": [lambda t, d: t.var(d), lambda t, d: t.norm(), lambda t, d: naru.logsumexp(t, d), lambda t, d: (t.sum(d), t.amax(d)), lambda t, d: t.std()],
    "argreduce": [lambda t, d: t.argmax(), lambda t, d: t.argmax(d), lambda t, d: t.argmin(d), lambda t, d: tuple(t.max(d)), lambda t, d: tuple(t.min(d))],
    "scan": [lambda t, d: t.cumsum(d), lambda t, d: t.cumprod(d), lambda t, d: naru.logcumsumexp(t, d) if hasattr(naru, "logcumsumexp") else t.cumsum(d)],
    "sort": [lambda t, d: tuple(t.sort(d, stable=True)), lambda t, d: t.sort(d, descending=True)[0], lambda t, d: t.topk(1, d)[0]],
    "row-fused": [lambda t, d: naru.softmax(t, d), lambda t, d: naru.log_softmax(t, d), lambda t, d: F.layer_norm(t, t.shape[-1:])],
    "map": [lambda t, d: t.to(naru.float32), lambda t, d: t.to(naru.int32), lambda t, d: t * 2 + 1, lambda t, d: _into_a_view(t, d), lambda t, d: t.transpose(0, -1).contiguous()],
    "several outputs": [lambda t, d: (t + 1, t * 2), lambda t, d: (t, t.sum(d)), lambda t, d: (t > 0, t * 3, t - 1)],
    "gather": [lambda t, d: t.index_select(d, _positions(t, d)), lambda t, d: t[t > 0], lambda t, d: t.flip(d), lambda t, d: t.gather(d, naru.zeros(t.shape, dtype=naru.int64, device=t.device))],
    "scatter": [_scattered, lambda t, d: naru.zeros(t.shape, dtype=t.dtype, device=t.device).index_put((_positions(t, 0),), t[::2], accumulate=True)],
    "cat": [lambda t, d: naru.cat([t, t], d), lambda t, d: naru.stack([t, t], d)],
    "matmul": [lambda t, d: t[..., :70, :] @ t[..., :70, :].mT, lambda t, d: t[..., :70].mT @ t[..., :70]],
    "nonzero": [lambda t, d: t.nonzero(), lambda t, d: t[t != 0], lambda t, d: naru.where(t > 0)[0]],
    "loss": [lambda t, d: F.mse_loss(t, t * 0.5), lambda t, d: F.smooth_l1_loss(t, t * 0.5, beta=0.5), lambda t, d: F.l1_loss(t, t + 1, reduction="none"),
             lambda t, d: F.binary_cross_entropy_with_logits(t, (t > 0).to(t.dtype)), lambda t, d: F.cross_entropy(t, t.argmax(1)),
             lambda t, d: F.kl_div(t, t.abs(), reduction="sum")],
    "update": [_updated],
    "write": [lambda t, d: t.add_(1), lambda t, d: t.mul_(t.sum()), lambda t, d: t[..., 1:].copy_(t[..., :-1].clone())],
}
OPERATORS = [(name, arity, lo, hi) for name, arity, _, lo, hi, *_ in _C._elementwise_table()]
COMMON = [o for o in OPERATORS if o[0] in ("add", "sub", "mul", "maximum", "where", "lt", "add_scaled", "clamp", "neg", "abs", "square")]
TRIPLES = list(itertools.product(LAYOUTS, DTYPES, READERS))
# Reductions fuse deferred operands into their kernels, so every other program uses one.
ORDER = TRIPLES + [t for t in TRIPLES if t[2] == "reduction"] * len(READERS)
random.Random(1).shuffle(ORDER)


class Program:
    def __init__(self, seed, triple=None):
        """`triple`: the one to draw for, else the seed's."""
        r = random.Random(seed)
        self.seed, self.triple = seed, triple or ORDER[seed % len(ORDER)]
        layout, dtype, self.kind = self.triple
        self.shape = r.choice(r.choices([SHAPES, LARGE, HUGE], [10, 9, 1])[0])
        self.operands = [(r.choice(list(LAYOUTS)), dtype if r.random() < 0.85 else r.choice(DTYPES)) for _ in range(r.randrange(1, 4))]
        self.position = r.randrange(len(self.operands) + 1)
        self.operands.insert(self.position, (layout, dtype))
        if all(name in ("one number", "no dimensions", "one number a row", "one number a column") for name, _ in self.operands):
            self.operands.append(("whole", dtype))
        # Operands are used in order, so that each is used; the last operators take the chain and one operand again.
        unused, self.steps = list(range(len(self.operands))), []
        for _ in range(r.randrange(1, 4)):
            name, arity, *_ = r.choice(COMMON if r.random() < 0.5 else OPERATORS)
            arguments = []
            for _ in range(arity):
                if unused:
                    arguments.append(unused.pop(0))
                else:
                    arguments.append(r.choice([*range(len(self.operands)), r.randrange(-3, 4) / 2 if dtype[0] in "fb" else r.randrange(1, 4)]))
            if self.steps:
                arguments[r.randrange(arity)] = "chain"
            self.steps.append((name, arguments))
        # Until every operand is used.
        for i in unused:
            self.steps.append((r.choice(["add", "mul", "maximum", "where", "lt", "sub"]), ["chain", i] if r.random() < 0.5 else [i, "chain"]))
        self.reader = r.randrange(len(READERS[self.kind]))
        self.dim = r.choice([0, r.randrange(len(self.shape))])
        self.keep = r.random() < 0.2  # whether the chain is kept alive after its reader

    def __str__(self):
        return f"seed {self.seed}: {self.operands} of {self.shape}; {self.steps}; {self.kind} {self.reader} over {self.dim}"

    def arrays(self):
        rng = np.random.default_rng(self.seed)
        return [rng.integers(-6, 13, self.shape) / 4 for _ in self.operands]

    def tensors(self, device):
        made = []
        for (layout, dtype), a in zip(self.operands, self.arrays()):
            t = naru.tensor(np.abs(a) if dtype == "uint8" else a, device=device if dtype != "float64" or not device.startswith("mps") else "cpu")
            made.append(LAYOUTS[layout](t.to(getattr(naru, dtype)).to(device)))
        return made

    def chain(self, operands):
        value = None
        for name, arguments in self.steps:
            given = [value if a == "chain" else operands[a] if isinstance(a, int) else a for a in arguments]
            if name == "where":
                given = [given[0] != 0, given[-1], given[0]]
            if not any(isinstance(g, naru.Tensor) for g in given):
                given[0] = operands[0]
            value = _C._elementwise(name, *given)
        return value

    def run(self, operands):
        """What it gives, as a list of tensors; RuntimeError and the like where the dtypes do not allow it."""
        value = self.chain(operands)
        if tuple(value.shape) != self.shape:
            value = value + naru.zeros(self.shape, dtype=value.dtype, device=value.device)
        results = READERS[self.kind][self.reader](value, self.dim)
        results = list(results) if isinstance(results, tuple) else [results]
        return results + [value] if self.keep or self.kind == "write" else results


REFUSED = (RuntimeError, TypeError, ValueError, IndexError)


def outcome(program, device="cpu"):
    """The bits of all results, or the class of the error."""
    try:
        return [bits(t) for t in program.run(program.tensors(device))]
    except REFUSED as error:
        return type(error).__name__


def isa(name):
    before = _C.isa_name()
    _C.set_isa(name)
    return before


# Modes of execution that must give the same bits as operators run one by one on the cpu.
WAYS = {
    "cpu": ("cpu", lambda: contextlib.nullcontext()),
    "cpu interpreted": ("cpu", lambda: switched(_C.set_jit, False)),
    "cpu avx2": ("cpu", lambda: switched(isa, "avx2")),
    "virtual": ("cuda:0", lambda: contextlib.nullcontext()),
    "virtual interpreted": ("cuda:0", lambda: switched(_C.set_jit, False)),
    "virtual avx2": ("cuda:0", lambda: switched(isa, "avx2")),
}


def one_by_one(program):
    with unfused():
        return outcome(program)


def differences(program, ways, wanted):
    """The ways whose outcome is another. What the cpu refuses (an integer divided by zero) devices need not refuse."""
    found = []
    for name in ways:
        device, way = WAYS[name]
        if isinstance(wanted, str) and device != "cpu":
            continue
        with way():
            if outcome(program, device) != wanted:
                found.append(name)
    return found


def ways_of(program):
    """All of them above the size up to which the cpu defers nothing, else the device's."""
    return [w for w in WAYS if w.startswith("virtual") or np.prod(program.shape) > 4096]


class Seen:
    """Which triples of (layout, dtype, kind of instruction) ran, and which never did."""

    def __init__(self):
        self.count = collections.Counter()

    def add(self, program, result):
        if not isinstance(result, str):
            for layout, dtype in program.operands:
                self.count[layout, dtype, program.kind] += 1

    def never(self):
        return [t for t in sorted(TRIPLES) if not self.count[t]]

    def counts(self):
        """How many of the triples ran, by kind."""
        ran = collections.Counter(kind for _, _, kind in self.count)
        return ", ".join(f"{kind} {ran[kind]} of {len(LAYOUTS) * len(DTYPES)}" for kind in READERS)

    def __str__(self):
        never = collections.defaultdict(list)
        for layout, dtype, kind in self.never():
            never[dtype, kind].append(layout)
        missing = "; ".join(f"{kind} of {dtype}: {'any layout' if len(v) == len(LAYOUTS) else ', '.join(v)}" for (dtype, kind), v in never.items())
        return f"{len(TRIPLES) - len(self.never())} of {len(TRIPLES)} triples of (layout, dtype, kind) ran; never: {missing or 'none'}"
