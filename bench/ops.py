"""Each operator on a small and a large shape beside PyTorch eager: `./run bench --ops` writes bench/operators.md, slowest first.

python bench/ops.py [--threads 1] [--rounds 3] [--only NAME,NAME] [--json FILE]. PyTorch is NARU_PEERS_PYTHON's. Either library works in a process of its own, the rounds
in turn; of a call's medians the least counts.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = HERE / "operators.md"
SLOW = 1.5  # what no operator should be slower than, in PyTorch's times


def operands(library, text, seed):
    """The tensors that a text names."""
    import numpy as np

    rng, made = np.random.default_rng(seed), {}
    for part in text.split("; "):
        name, *sizes = part.split(" ")
        name, _, bound = name.partition("<")
        shape = [int(s) for s in sizes]
        floats = rng.uniform(-0.9 if name == "s" else 0.1, 0.9, shape).astype(np.float32)
        made[name] = library.tensor(rng.integers(0, int(bound), shape) if bound else floats)
    return made


def side(library_name, threads, names):
    """Measures here, and prints a JSON object a call."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[-threads:]))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NARU_NUM_THREADS"):
        os.environ[name] = str(threads)
    library = __import__("naru" if library_name == "naru" else "torch")
    sys.path.insert(0, str(HERE))
    import warnings

    from operator_list import operators
    from timing import median_seconds

    warnings.simplefilter("ignore")
    library.set_num_threads(threads)
    # One thread's work is timed by the processor's time, which others on a shared machine take no part in.
    clock = time.process_time if threads == 1 else time.perf_counter
    address = library.Tensor.data_ptr  # naru holds elementwise work back; asking for the address makes it run
    for name, call, *shapes in operators():
        for size, text in zip(("small", "large"), shapes):
            if names and name not in names:
                continue
            values = {"t": library, "F": library.nn.functional, **operands(library, text, 3)}
            run = eval(f"lambda: {call}", values)

            def one(run=run):
                out = run()
                address(out[0] if isinstance(out, tuple) else out)
            try:
                with library.no_grad():
                    seconds = median_seconds(one, target=0.004, repetitions=5, warm=2, limit=0.5, clock=clock)
            except Exception as e:  # noqa: BLE001
                print(f"{library_name}: {name}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
                continue
            print(json.dumps({"name": name, "size": size, "operands": text, "seconds": seconds}), flush=True)


def measure(threads, rounds, names, peers):
    """{(name, size): {"operands", "naru", "torch"}}"""
    found = {}
    for _ in range(rounds):
        for library, python in (("naru", sys.executable), ("torch", peers)):
            done = subprocess.run([python, __file__, "--side", library, "--threads", str(threads), "--only", ",".join(names)], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            print(done.stderr, end="", file=sys.stderr)
            for line in done.stdout.splitlines():
                r = json.loads(line)
                row = found.setdefault((r["name"], r["size"]), {"operands": r["operands"]})
                row[library] = min(r["seconds"], row.get(library, r["seconds"]))
    return {key: row for key, row in found.items() if "naru" in row and "torch" in row}


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def summary(found):
    """One line: how many calls, what the middle one takes in PyTorch's times, how many are slower than they should be."""
    ratio = [row["naru"] / row["torch"] for row in found.values()]
    return f"{len(ratio)} calls, median naru / PyTorch {statistics.median(ratio):.2f}, {sum(r > SLOW for r in ratio)} above {SLOW}"


def page(found, threads, rounds, version):
    """The page: the slowest beside PyTorch first."""
    ratio = {key: row["naru"] / row["torch"] for key, row in found.items()}
    out = [
        "# Operators beside PyTorch",
        "",
        f"Made by `./run bench --ops` on {datetime.date.today()}: each operator of `bench/operator_list.py` on a small and a large shape, float32, called from Python, without gradients,",
        f"{threads} thread{'s' * (threads > 1)}, beside PyTorch {version} eager; the least of the medians of {rounds} rounds, in time of the processor where there is one thread. Slowest first. A machine that does other",
        "work at the same time shares its caches with it: small calls differ by half from run to run.",
        "",
        f"{summary(found)} (slower than they should be), {sum(r < 1 for r in ratio.values())} faster than PyTorch.",
        "",
        "| operator | operands | naru | PyTorch | naru / PyTorch |",
        "|---|---|---|---|---|",
    ]
    for key in sorted(found, key=lambda k: -ratio[k]):
        row = found[key]
        out.append(f"| {key[0]} | {row['operands'].replace('<', ' below ')} | {show(row['naru'])} | {show(row['torch'])} | {ratio[key]:.2f} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="./run bench --ops")
    parser.add_argument("--side", choices=("naru", "torch"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="these operators; nothing is written then")
    parser.add_argument("--json", help="also write the figures here")
    options = parser.parse_args()
    names = [n for n in options.only.split(",") if n]
    if options.side:
        return side(options.side, options.threads, names)
    peers = os.environ.get("NARU_PEERS_PYTHON")
    if not peers:
        sys.exit("bench/ops.py: NARU_PEERS_PYTHON names no Python that has torch; ./run bench --ops does")
    version = subprocess.run([peers, "-c", "import torch; print(torch.__version__.split('+')[0])"], capture_output=True, text=True).stdout.strip()
    found = measure(options.threads, options.rounds, names, peers)
    if not found:
        sys.exit("bench/ops.py: nothing was measured")
    text = page(found, options.threads, options.rounds, version)
    if options.json:
        Path(options.json).write_text(json.dumps([{"name": n, "size": s, **row} for (n, s), row in found.items()], indent=1))
    if names:
        print(text)
    else:
        PAGE.write_text(text)
        print(f"wrote {PAGE.relative_to(ROOT)}")
    print(summary(found))


if __name__ == "__main__":
    main()
