"""The goals of the benchmark lines, one row each; `run.py --check` prints what falls short.

A goal is at most so many seconds, at most so many times a limit measured in the same run, or at least so many times as fast as a peer.
"""
from dataclasses import dataclass


@dataclass
class Goal:
    work: str                   # the work's name, or its beginning
    kind: str                   # "seconds", "limits", "best" (of all peers) or a library: how many times as fast as its fastest form
    value: dict | float         # by number of threads, or one for all


GOALS = (
    Goal("add n=1, C++", "seconds", 60e-9),
    Goal("add n=1 with grad, C++", "seconds", 120e-9),
    Goal("(x*y).sum().backward() n=1, C++", "seconds", 0.8e-6),
    Goal("x + y, n=1, Python", "seconds", 120e-9),
    Goal("(x * y).sum().backward(), n=1, Python", "seconds", 1.5e-6),
    Goal("import, beyond NumPy's", "seconds", 30e-3),
    Goal("zeros 64 MiB in a loop", "limits", 1.1),
    Goal("gelu written out in 9 ops, 16 M", "best", 1.3),
    Goal("gelu written out in 9 ops, 16 M", "limits", {2: 2}),
    Goal("gelu written out in 9 ops, 1 M: the first call", "seconds", 1e-3),
    Goal("gelu written out in 9 ops, 1 M", "best", {1: 1.4, 2: 1.6}),
    Goal("x + y, 16 M", "limits", 1.1),
    Goal("exp, 16 M", "best", 1),
    Goal("sum, 16 M", "best", 0.95),
    Goal("max, 16 M", "best", 0.95),
    Goal("sum(0)", "best", 1.2),
    Goal("var(0)", "best", 4),
    Goal("argmax(1)", "best", {1: 1.5, 2: 3}),
    Goal("cumsum(1)", "best", 3),
    Goal("sort(1)", "best", {1: 0.95, 2: 1.8}),
    Goal("softmax, ", "best", {1: 1.5, 2: 1.8}),
    Goal("layer_norm, ", "best", 2),
    Goal("softmax with backward", "best", 1.8),
    Goal("layer_norm with backward", "best", 1.8),
    Goal("transpose", "best", 3),
    Goal("matmul fp32 256", "best", 0.97),
    Goal("matmul fp32 512", "best", 0.97),
    Goal("matmul fp32 1024", "best", 0.97),
    Goal("matmul fp32 2048", "best", 0.97),
    Goal("matmul fp32 4096", "best", 0.97),
    Goal("matmul fp32 1024", "limits", 1 / 0.85),
    Goal("matmul fp32 2048", "limits", 1 / 0.85),
    Goal("matmul fp32 4096", "limits", 1 / 0.85),
    Goal("matmul fp32 8, C++", "seconds", 0.08e-6),
    Goal("matmul fp32 64, C++", "limits", 1.1),
    Goal("MLP 784-256-10 forward, batch 1", "seconds", {1: 9e-6, 2: 6.5e-6}),
    Goal("MLP 784-256-10 forward, batch 64", "best", 1.1),
    Goal("MLP 784-256-10 training step, batch 64, SGD", "limits", {1: 1.15, 2: 1.35}),
    Goal("MLP 784-256-10 training step, batch 64, SGD", "best", {1: 1.15, 2: 1.6}),
    Goal("MLP 784-256-10 training step, batch 64, Adam", "best", {1: 1.25, 2: 1.6}),
    Goal("MLP 784-256-10 training step, batch 64, Adam", "torch", {1: 1.35, 2: 2}),
    Goal("MLP 2-16-1 training step, batch 4, SGD", "seconds", 12e-6),
    Goal("MLP 2-16-1 training step, batch 4, Adam", "seconds", 15e-6),
    Goal("compile a program that includes the whole library", "best", 5),
    Goal("MLP 2-16-1 training step, batch 4, SGD, C++", "seconds", 6e-6),
    Goal("MLP 2-16-1 training step, batch 4, Adam, C++", "seconds", 6e-6),
    Goal("MLP 2-16-1 training step, batch 4, SGD, C++, replayed", "seconds", 2e-6),
    Goal("MLP 2-16-1 training step, batch 4, Adam, C++, replayed", "seconds", 2e-6),
    Goal("matmul bf16", "torch", 1.05),
    Goal("matmul fp16", "torch", 1.05),
    Goal("LSTM", "best", 1.2),
    Goal("GRU", "best", 1.2),
    Goal("LSTM, T 64, B 16, 128 to 128, forward", "best", 1.2),
    Goal("LSTM, T 64, B 16, 128 to 128, forward", "limits", {1: 1.15, 2: 1.3}),
    Goal("GRU, T 64, B 16, 128 to 128, forward", "best", 1.2),
    Goal("GRU, T 64, B 16, 128 to 128, forward", "limits", {1: 1.15, 2: 1.3}),
    Goal("char-GPT step", "best", {1: 1.25, 2: 1.5}),
    Goal("generation", "best", 3),
    Goal("attention (8, 8, ", "best", 1.3),
    Goal("conv ", "best", 1),
    Goal("max pool", "best", 2),
    Goal("batch norm, (32", "best", 1.5),
    Goal("MNIST CNN step", "best", 1.4),
    Goal("ResNet-18", "best", 1.2),
    Goal("U-Net step", "best", 1.4),
    Goal("program ", "best", 1),
    Goal("loader in memory, batch 64, a batch", "seconds", 15e-6),
    Goal("loader in memory, batch 64, the wait", "seconds", 1e-6),
    Goal("x += y, n = 1000, OpenCL: queued", "seconds", 1.5e-6),
    Goal("9 operators in a chain, 16 M, OpenCL", "best", 1 / 1.05),
    Goal("matmul fp32, OpenCL", "limits", 1 / 0.4),
    Goal("all_reduce", "torch", 1.5),
    Goal("all_reduce 64 MiB by MPI", "MPI", 0.7),
    Goal("DDP: step", "limits", 1.1),
    Goal("DDP: step", "torch", 1),
)

# (the beginning of works' names, how many times as fast as the best peer the median of them shall be)
MEDIANS = (("program", 2),)


def goals_of(result):
    """(goal, how much of it is reached) for each goal of a row of results; 1 or more is enough."""
    named = [g for g in GOALS if result["work"].startswith(g.work)]
    longest = max((len(g.work) for g in named), default=0)
    for goal in named:
        value = goal.value.get(result["threads"]) if isinstance(goal.value, dict) else goal.value
        if value is None or len(goal.work) < longest:
            continue
        if goal.kind == "seconds":
            yield f"at most {value * 1e6:g} µs", value / result["naru"]
        elif goal.kind == "limits":
            if result["limit"]:
                yield f"at most {value:.3g} × the limit", value * result["limit"] / result["naru"]
        else:
            peers = [s for name, s in result["peers"].items() if goal.kind == "best" or name.startswith(goal.kind)]
            if peers:
                yield f"at least {value:g} × as fast as {'the best peer' if goal.kind == 'best' else goal.kind}", min(peers) / result["naru"] / value
