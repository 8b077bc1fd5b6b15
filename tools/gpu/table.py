"""Times one library on a GPU, row by row, and compares two libraries.

    python table.py naru|torch OUT.jsonl [--only WORD] [--seconds S] [--tiny]     a line of JSON a row, appended
    python table.py beside OUT.jsonl [--markdown]                                 compares both libraries' rows, greatest ratio first

Results are kept in a ring buffer, and naru's fused work is submitted after each call (by an event), because naru does not compute results that are
dropped before that. naru's fusion is off unless a row enables it. ms: time of one call on the device, averaged over many back to back (wall
clock, with one wait at the end); host_us: time to submit one call.
"""

import argparse
import importlib
import json
import sys
import time

MI = 1 << 20
ROWS = {}  # name: (function that creates the call, options)


def row(name, **options):
    """Registers a function that, given a Bench, returns the call to be timed."""

    def add(make):
        ROWS[name] = (make, options)
        return make

    return add


class Bench:
    """A library, with helpers that create operands."""

    def __init__(self, library, tiny):
        self.t = importlib.import_module(library)
        self.own, self.tiny = library == "naru", tiny
        self.F, self.bf16 = self.t.nn.functional, self.t.bfloat16

    def n(self, size):
        """The size, or a small one if `tiny`."""
        return max(64, size // 1024) if self.tiny else size

    def normal(self, *sizes, dtype=None):
        return self.t.randn(*sizes, device="cuda").to(dtype or self.t.float32)

    def large(self, dtype=None):
        return self.normal(self.n(64 * MI), dtype=dtype)

    def numbers(self, below, *sizes):
        return self.t.randint(0, below, sizes, device="cuda")


def unary(name, f, dtype="f32", **options):
    row(name, **options)(lambda b: (lambda x: lambda: f(b, x))(b.large(b.bf16 if dtype == "bf16" else None)))


def binary(name, f, dtype="f32", **options):
    row(name, **options)(lambda b: (lambda x, y: lambda: f(b, x, y))(*(b.large(b.bf16 if dtype == "bf16" else None) for _ in range(2))))


def of(name, f, *operands, **options):
    """Returns f(bench, tensors...), whose operands are created by functions of the bench."""
    row(name, **options)(lambda b: (lambda made: lambda: f(b, *made))([o(b) for o in operands]))


def normal(*sizes, dtype=None, scaled=0):
    return lambda b: b.normal(*(b.n(s) if i == scaled else s for i, s in enumerate(sizes)), dtype=b.bf16 if dtype == "bf16" else None)


# Elementwise
binary("add f32 64M", lambda b, x, y: x + y, bytes=12 * 64 * MI)
binary("add bf16 64M", lambda b, x, y: x + y, "bf16", bytes=6 * 64 * MI)
binary("add f32 64M-1 (odd)", lambda b, x, y: x[1:] + y[1:], bytes=12 * 64 * MI)
unary("gelu bf16 64M", lambda b, x: b.F.gelu(x), "bf16", bytes=4 * 64 * MI)
unary("exp f32 64M", lambda b, x: x.exp(), bytes=8 * 64 * MI)
unary("cast f32 bf16 64M", lambda b, x: x.to(b.bf16), bytes=6 * 64 * MI)
of("bias [8192,4096] f32", lambda b, x, y: x + y, normal(8192, 4096), normal(4096, scaled=-1), bytes=8 * 8192 * 4096)
of("bias [1M,64] f32", lambda b, x, y: x + y, normal(MI, 64), normal(64, scaled=-1), bytes=8 * 64 * MI)
of("bias [4M,8] f32", lambda b, x, y: x + y, normal(4 * MI, 8), normal(8, scaled=-1), bytes=8 * 32 * MI)
of("channel bias [64,256,56,56] f32", lambda b, x, y: x + y, normal(64, 256, 56, 56), normal(1, 256, 1, 1, scaled=-1), bytes=8 * 64 * 256 * 56 * 56)
of("transpose copy 8192^2 f32", lambda b, x: x.t().contiguous(), lambda b: b.normal(b.n(8192), b.n(8192)), bytes=8 * 8192**2)
of("gelu(x*w+b) fused bf16 64M", lambda b, x, w, y: b.F.gelu(x * w + y), lambda b: b.large(b.bf16), normal(1, dtype="bf16", scaled=-1),
   normal(1, dtype="bf16", scaled=-1), bytes=4 * 64 * MI, fuse=True)  # fmt: skip
binary("where/compare f32 64M", lambda b, x, y: b.t.where(x > y, x, y), bytes=12 * 64 * MI, fuse=True)
# Reductions, scans, sorts
unary("sum all f32 64M", lambda b, x: x.sum(), bytes=4 * 64 * MI)
of("sum all f32 1M", lambda b, x: x.sum(), normal(MI), bytes=4 * MI)
of("sum dim1 [8192,8192] bf16", lambda b, x: x.sum(1), normal(8192, 8192, dtype="bf16"), bytes=2 * 64 * MI)
of("sum dim0 [8192,8192] f32", lambda b, x: x.sum(0), normal(8192, 8192, scaled=1), bytes=4 * 64 * MI)
of("sum dim0 [8192,768] bf16", lambda b, x: x.sum(0), normal(8192, 768, dtype="bf16", scaled=1), bytes=2 * 8192 * 768)
of("max dim1 [8192,1024] f32", lambda b, x: x.max(1), normal(8192, 1024), bytes=32 * MI)
of("argmax all f32 4M", lambda b, x: x.argmax(), normal(4 * MI), bytes=16 * MI)
of("argmax dim1 [4096,32000] bf16", lambda b, x: x.argmax(1), normal(4096, 32000, dtype="bf16"), bytes=2 * 4096 * 32000)
of("cumsum dim1 [4096,16384] f32", lambda b, x: x.cumsum(1), normal(4096, 16384), bytes=8 * 64 * MI)
of("sort f32 1M", lambda b, x: x.sort(), normal(MI), bytes=16 * MI)
of("topk 50 of [64,50257] f32", lambda b, x: x.topk(50), normal(64, 50257), bytes=4 * 64 * 50257)
of("softmax [8192,1024] f32", lambda b, x: x.softmax(1), normal(8192, 1024), bytes=64 * MI)
of("softmax [8192,8192] bf16", lambda b, x: x.softmax(1), normal(8192, 8192, dtype="bf16"), bytes=4 * 64 * MI)
of("softmax [64,50257] f32", lambda b, x: x.softmax(1), normal(64, 50257), bytes=8 * 64 * 50257)
of("layer_norm [8192,1024] bf16", lambda b, x, w, y: b.F.layer_norm(x, (1024,), w, y), normal(8192, 1024, dtype="bf16"),
   normal(1024, dtype="bf16", scaled=-1), normal(1024, dtype="bf16", scaled=-1), bytes=32 * MI)  # fmt: skip


@row("layer_norm fwd+bwd [8192,1024] bf16", bytes=80 * MI, grad=True, fuse=True)
def layer_norm(b):
    x, w, y = b.normal(b.n(8192), 1024, dtype=b.bf16), b.normal(1024, dtype=b.bf16), b.normal(1024, dtype=b.bf16)
    g = b.normal(b.n(8192), 1024, dtype=b.bf16)
    leaves = [v.requires_grad_() for v in (x, w, y)]
    return lambda: b.t.autograd.grad(b.F.layer_norm(x, (1024,), w, y), leaves, g)


@row("cross_entropy fwd+bwd [4096,50257] bf16", bytes=6 * 4096 * 50257, grad=True, fuse=True)
def cross_entropy(b):
    x, y = b.normal(b.n(4096), 50257, dtype=b.bf16).requires_grad_(), b.numbers(50257, b.n(4096))
    return lambda: b.t.autograd.grad(b.F.cross_entropy(x, y), x)


# Indices, random numbers
@row("embedding 8192 of [50257,768] bf16", bytes=4 * 8192 * 768)
def embedding(b):
    w, i = b.normal(50257, 768, dtype=b.bf16), b.numbers(50257, b.n(8192))
    return lambda: b.F.embedding(i, w)


@row("embedding fwd+bwd f32", bytes=4 * 768 * (50257 + 3 * 8192), grad=True)
def embedding_with_gradient(b):
    w, i, g = b.normal(50257, 768).requires_grad_(), b.numbers(50257, b.n(8192)), b.normal(b.n(8192), 768)
    return lambda: b.t.autograd.grad(b.F.embedding(i, w), w, g)


@row("index_add 1M rows of 64 to 50k", bytes=4 * 64 * MI)
def index_add(b):
    x, i, s = b.normal(50000, 64), b.numbers(50000, b.n(MI)), b.normal(b.n(MI), 64)
    return lambda: x.index_add(0, i, s)


@row("gather dim1 [8192,8192] f32", bytes=16 * 64 * MI)
def gather(b):
    x, i = b.normal(b.n(8192), 8192), b.numbers(8192, b.n(8192), 8192)
    return lambda: x.gather(1, i)


of("masked_select 16M", lambda b, x: x[x > 0], normal(16 * MI), bytes=4 * 16 * MI)
row("randn f32 64M", bytes=4 * 64 * MI)(lambda b: lambda: b.t.randn(b.n(64 * MI), device="cuda"))
unary("dropout 0.1 bf16 64M", lambda b, x: b.F.dropout(x, 0.1), "bf16", bytes=4 * 64 * MI, fuse=True)


# Products and convolutions
def product(size, dtype=None, tf32=False):
    def make(b):
        if tf32:
            b.t.set_float32_matmul_precision("high")
        x, y = normal(size, size, dtype=dtype)(b), normal(size, size, dtype=dtype, scaled=-1)(b)
        return lambda: x @ y

    return make


row("mm 4096 f32", flops=2 * 4096**3)(product(4096))
row("mm 8192 bf16", flops=2 * 8192**3)(product(8192, "bf16"))
row("mm 1024 bf16", flops=2 * 1024**3)(product(1024, "bf16"))
of("linear+bias bf16 [8192,4096]x4096", lambda b, x, w, y: b.F.linear(x, w, y), normal(8192, 4096, dtype="bf16"),
   normal(4096, 4096, dtype="bf16", scaled=-1), normal(4096, dtype="bf16", scaled=-1), flops=2 * 8192 * 4096**2)  # fmt: skip
of("linear+gelu bf16 [8192,1024]x4096", lambda b, x, w, y: b.F.gelu(b.F.linear(x, w, y)), normal(8192, 1024, dtype="bf16"),
   normal(4096, 1024, dtype="bf16", scaled=-1), normal(4096, dtype="bf16", scaled=-1), flops=2 * 8192 * 4096 * 1024, fuse=True)  # fmt: skip
of("bmm 96x1024x64x1024 bf16", lambda b, x, y: x @ y, normal(96, 1024, 64, dtype="bf16", scaled=1), normal(96, 64, 1024, dtype="bf16", scaled=-1),
   flops=2 * 96 * 1024 * 64 * 1024)  # fmt: skip
of("mv 16384 f32", lambda b, x, y: x @ y, normal(16384, 16384), normal(16384, scaled=-1), bytes=4 * 16384**2)


def convolution(dtype=None, last=False, back=False, groups=1, tf32=None):
    def make(b):
        if tf32 is not None:  # By default PyTorch's convolutions round to TF32; naru's follow the switch for products
            b.t.backends.cudnn.allow_tf32 = b.t.backends.cuda.matmul.allow_tf32 = tf32
        x, w = normal(64, 256, 56, 56, dtype=dtype)(b), normal(256, 256 // groups, 3, 3, dtype=dtype, scaled=-1)(b)
        if last:
            x, w = x.contiguous(memory_format=b.t.channels_last), w.contiguous(memory_format=b.t.channels_last)
        if not back:
            return lambda: b.F.conv2d(x, w, padding=1, groups=groups)
        x.requires_grad_(), w.requires_grad_()
        g = b.t.ones_like(b.F.conv2d(x, w, padding=1, groups=groups)).detach()
        return lambda: b.t.autograd.grad(b.F.conv2d(x, w, padding=1, groups=groups), (x, w), g)

    return make


CONVOLUTION = 2 * 64 * 256 * 256 * 9 * 56 * 56
row("conv 3x3 256 tf32", flops=CONVOLUTION)(convolution(tf32=True))
row("conv 3x3 256 f32", flops=CONVOLUTION)(convolution(tf32=False))
row("conv 3x3 256 bf16", flops=CONVOLUTION)(convolution("bf16"))
row("conv 3x3 256 bf16 channels_last", flops=CONVOLUTION)(convolution("bf16", True))
row("conv 3x3 256 bf16 channels_last fwd+bwd", flops=3 * CONVOLUTION, grad=True)(convolution("bf16", True, True))
row("conv depthwise 3x3 256 bf16", bytes=4 * 64 * 256 * 56 * 56)(convolution("bf16", groups=256))


# Attention
def attention(length, back):
    def make(b):
        q, k, v, g = (normal(8, 12, length, 64, dtype="bf16", scaled=2)(b) for _ in range(4))
        call = lambda: b.F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
        if not back:
            return call
        leaves = [x.requires_grad_() for x in (q, k, v)]
        return lambda: b.t.autograd.grad(call(), leaves, g)

    return make


for length in (1024, 4096):
    row(f"sdpa causal bf16 8x12x{length}x64", flops=2 * 96 * length**2 * 64, fuse=True)(attention(length, False))
    row(f"sdpa causal bf16 8x12x{length}x64 fwd+bwd", flops=7 * 96 * length**2 * 64, fuse=True, grad=True)(attention(length, True))


# Optimizers: GPT-2 small's parameters
@row("AdamW step 124M f32, 148 tensors", bytes=28 * 124 * 10**6, fuse=True, grad=True)
def adamw(b):
    layer = [(768,), (768,), (2304, 768), (2304,), (768, 768), (768,), (768,), (768,), (3072, 768), (3072,), (768, 3072), (768,)]
    shapes = layer if b.tiny else [(50257, 768), (1024, 768), *12 * layer, (768,), (768,)]
    parameters = [b.t.nn.Parameter(b.normal(*s)) for s in shapes]
    for p in parameters:
        p.grad = b.t.randn_like(p.detach())
    return b.t.optim.AdamW(parameters, lr=1e-4, **({} if b.own else {"fused": True})).step


# Copies
def copy(pinned, up):
    def make(b):
        host, device = b.t.randn(b.n(64 * MI)), b.t.empty(b.n(64 * MI), device="cuda")
        host = host.pin_memory() if pinned else host
        return (lambda: device.copy_(host, non_blocking=True)) if up else (lambda: host.copy_(device, non_blocking=True))

    return make


row("copy to device, pinned 256MB", bytes=256 * MI)(copy(True, True))
row("copy to device, pageable 256MB", bytes=256 * MI)(copy(False, True))
row("copy to host, pinned 256MB", bytes=256 * MI)(copy(True, False))
of("copy within 1GiB", lambda b, x, y: y.copy_(x), normal(256 * MI), normal(256 * MI), bytes=8 * 256 * MI)
# The host path
of("HOST add_ of 1000", lambda b, x, y: x.add_(y), normal(1000, scaled=-1), normal(1000, scaled=-1))
of("HOST x+y of 1000", lambda b, x, y: x + y, normal(1000, scaled=-1), normal(1000, scaled=-1))
of("HOST mm 64x64 bf16", lambda b, x, y: x @ y, normal(64, 64, dtype="bf16", scaled=-1), normal(64, 64, dtype="bf16", scaled=-1))
of("HOST sum of 1000 .item()", lambda b, x: x.sum().item(), normal(1000, scaled=-1))
of("HOST x[i] 64 of 1000", lambda b, x, i: x[i], normal(1000, scaled=-1), lambda b: b.numbers(1000, 64))
row("tf32 mm 8192", flops=2 * 8192**3)(product(8192, tf32=True))


def timed(b, make, found, fused=False):
    """Appends the times of a row's call to `found`."""
    wait, made, kept = b.t.cuda.synchronize, make(b), [None] * 4
    event = b.t.cuda.Event()

    def call():
        result = made()
        if b.own and fused:
            event.record()
        return result

    start = time.perf_counter()
    kept[0] = call()
    wait()
    found["first_s"] = round(time.perf_counter() - start, 3)
    kept[1] = call()
    wait()
    start = time.perf_counter()
    kept[0] = call()
    wait()
    once = max(1e-6, time.perf_counter() - start)
    loops = 2 if b.tiny else int(min(300, max(3, 0.08 / once)))
    best = host = 1e9
    for _ in range(3):
        start = time.perf_counter()
        for i in range(loops):
            kept[i & 1] = call()
        submitted = time.perf_counter()
        wait()
        end = time.perf_counter()
        best, host = min(best, (end - start) / loops), min(host, (submitted - start) / loops)
    found.update(ms=round(best * 1e3, 4), host_us=round(host * 1e6, 2), loops=loops)
    return best


def measure(library, path, only, seconds, tiny):
    begun, b = time.monotonic(), Bench(library, tiny)
    with open(path, "a", buffering=1) as out:
        for name, (make, options) in ROWS.items():
            if only not in name:
                continue
            found = {"library": library, "row": name}
            if time.monotonic() - begun > seconds:
                found["error"] = "no time left"
            else:
                b.t.manual_seed(0)
                if b.own:
                    b.t._C.set_fusion(bool(options.get("fuse")))
                try:
                    with b.t.enable_grad() if options.get("grad") else b.t.no_grad():
                        best = timed(b, make, found, bool(options.get("fuse")))
                    if "bytes" in options and not tiny:
                        found["gbps"] = round(options["bytes"] / best / 1e9, 1)
                    if "flops" in options and not tiny:
                        found["tflops"] = round(options["flops"] / best / 1e12, 2)
                except Exception as error:  # noqa: BLE001
                    found["error"] = f"{type(error).__name__}: {error}"[:300]
            out.write(json.dumps(found) + "\n")
            if "was lost" in found.get("error", ""):
                return 3
            b.t.cuda.empty_cache()
    return 0


def beside(path, markdown):
    """Compares both libraries' rows, sorted by the ratio of naru's time to PyTorch's."""
    rows = {}
    with open(path) as lines:
        for line in lines:
            found = json.loads(line)
            rows.setdefault(found["row"], {})[found["library"]] = found

    def ratio(both):
        ours, theirs = (both.get(k, {}).get("ms") for k in ("naru", "torch"))
        return ours / theirs if ours and theirs else 0

    def told(r):
        if not r or "error" in r:
            return (r or {}).get("error", "-")[:60]
        rate = f", {r['gbps']:.0f} GB/s" if "gbps" in r else f", {r['tflops']:.0f} TFLOP/s" if "tflops" in r else ""
        return f"{r['ms']:.4f} ms{rate}, host {r['host_us']:.1f}"

    if markdown:
        print("| row | naru / PyTorch | naru | PyTorch |\n|---|---|---|---|")
    for name, both in sorted(rows.items(), key=lambda r: -ratio(r[1])):
        cells = [name, f"{ratio(both):.2f}", told(both.get("naru")), told(both.get("torch"))]
        print("| " + " | ".join(cells) + " |" if markdown else f"{cells[0]:46} {cells[1]:>7}  {cells[2]:40} | {cells[3]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=("naru", "torch", "beside"))
    parser.add_argument("file")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--tiny", action="store_true", help="operands of little size: whether all rows run")
    parser.add_argument("--markdown", action="store_true")
    a = parser.parse_args()
    if a.library == "beside":
        return beside(a.file, a.markdown)
    return measure(a.library, a.file, a.only, a.seconds, a.tiny)


if __name__ == "__main__":
    sys.exit(main())
