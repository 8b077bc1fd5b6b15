"""The benchmark suite: lines 1, 2, 3, 4, 5, 9 and 12, naru beside NumPy and PyTorch, both sides in one run.

python bench/run.py [--json FILE] [--check] [--lines 1,4] [--threads 1,2] [--no-peers] writes bench/results.md. Peers run from NARU_PEERS_PYTHON,
the interpreter of the environment that `./run bench` makes. Each library works in a process of its own, line by line in turn.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = Path(os.environ.get("NARU_BUILD", ROOT / "build" / "release")) / "bench" / "cpp"
LINES = (1, 2, 3, 4, 5, 9, 12)


def rows_of(command, env=None):
    """The JSON objects a program prints, one a line."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        print(f"  {' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def program(name):
    found = [p for p in (PROGRAMS / name, PROGRAMS.parent / name) if p.exists()]
    if not found:
        sys.exit(f"bench: the program {name} is not built; ./run bench builds it")
    return found[0]


def libtorch_program(peers):
    """Line 1 of PyTorch, compiled against the torch package of the peers' environment (kept in build/)."""
    where = subprocess.run([peers, "-c", "import torch, os; print(os.path.dirname(torch.__file__)); print(int(torch._C._GLIBCXX_USE_CXX11_ABI))"],
                           capture_output=True, text=True)
    if where.returncode != 0:
        return None, {}
    home, abi = where.stdout.split()
    target = ROOT / "build" / "libtorch_small"
    env = {"LD_LIBRARY_PATH": f"{home}/lib:" + os.environ.get("LD_LIBRARY_PATH", "")}
    source = HERE / "peers" / "libtorch_small.cpp"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        print("  compiling PyTorch's side of line 1", flush=True)
        built = subprocess.run(["g++", "-O2", "-std=c++20", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{home}/include", f"-I{home}/include/torch/csrc/api/include",
                                str(source), "-o", str(target), f"-L{home}/lib", "-Wl,--no-as-needed", "-ltorch_cpu", "-ltorch", "-lc10"],
                               capture_output=True, text=True)
        if built.returncode != 0:
            print(built.stderr[-1500:], file=sys.stderr)
            return None, {}
    return target, env


def limit_of(line, work, threads, limits):
    """Seconds no program can beat on this machine, from what limits.cpp measured; None where no limit was measured."""
    at = {name: seconds for (name, t), seconds in limits.items() if t == threads}
    if not at:
        return None
    if line == 3:
        return at["memset 64 MiB"]
    if line == 4:
        return at["copy 16 M"] / (16 if "1 M" in work else 1)
    if line == 5:
        return at["triad 16 M"] if "x + y" in work else at["copy 16 M"]
    if line == 9:
        return 2 * float(work.split()[-1]) ** 3 * at["one fp32 operation"]
    if line == 12:
        return 52.4e6 * at["one fp32 operation"]
    return None


def measure(lines, thread_counts, peers):
    interpreters = {"naru": sys.executable, "numpy": sys.executable}
    names = {"naru": "naru", "numpy": "numpy " + version(sys.executable, "numpy")}
    if peers:
        interpreters["torch"] = peers
        names["torch"] = "torch " + version(peers, "torch")
    print("limits", flush=True)
    limits = {(r["limit"], r["threads"]): r["seconds"] for r in rows_of([program("limits")])}
    results = []
    for line in lines:
        for threads in thread_counts:
            if line in (1, 2) and threads != thread_counts[0]:
                continue
            print(f"line {line}, {threads} thread{'s' if threads > 1 else ''}", flush=True)
            sides = {}
            if line == 1:
                sides["naru"] = rows_of([program("small")], {"NARU_NUM_THREADS": "1"})
                if peers:
                    binary, env = libtorch_program(peers)
                    if binary:
                        sides["torch"] = rows_of([binary], env)
            else:
                for library, interpreter in interpreters.items():
                    if library == "numpy" and line == 12:
                        continue
                    sides[library] = rows_of([interpreter, HERE / "work.py", library, str(line), str(threads)], {"PYTHONPATH": str(ROOT / "python")} if library == "naru" else {})
            for row in sides["naru"]:
                others = {names[k]: r["seconds"] for k, v in sides.items() if k != "naru" for r in v if r["work"] == row["work"]}
                results.append({"line": line, "work": row["work"], "threads": threads, "unit": "s", "naru": row["seconds"], "peers": others,
                                "limit": limit_of(line, row["work"], threads, limits)})
    return results, names


def version(python, package):
    return subprocess.run([python, "-c", f"import {package}; print({package}.__version__.split('+')[0])"], capture_output=True, text=True).stdout.strip()


def show(seconds):
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(results):
    lines = ["| line | work | threads | naru | peers | best peer / naru | limit | limit / naru |", "|---|---|---|---|---|---|---|---|"]
    for r in results:
        peers = ", ".join(f"{k} {show(v)}" for k, v in r["peers"].items()) or "–"
        best = min(r["peers"].values(), default=None)
        cells = (r["line"], r["work"], r["threads"], show(r["naru"]), peers, f"{best / r['naru']:.2f} ×" if best else "–", show(r["limit"]),
                 f"{100 * r['limit'] / r['naru']:.0f} %" if r["limit"] else "–")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def shortfalls(results):
    """What misses the goals set so far: no line slower than PyTorch by more than 1.5 ×; C++ add at most 150 ns; gelu at least 5 × PyTorch."""
    missed = []
    for r in results:
        torch = next((v for k, v in r["peers"].items() if k.startswith("torch")), None)
        if torch and r["naru"] > 1.5 * torch:
            missed.append(f"line {r['line']}, {r['work']}, {r['threads']} threads: {r['naru'] / torch:.2f} × PyTorch's time (goal ≤ 1.5)")
        if r["work"] == "add n=1, C++" and r["naru"] > 150e-9:
            missed.append(f"line 1, add n=1, C++: {show(r['naru'])} (goal ≤ 150 ns)")
        if r["line"] == 4 and torch and torch / r["naru"] < 5:
            missed.append(f"line 4, {r['work']}, {r['threads']} threads: {torch / r['naru']:.2f} × as fast as PyTorch (goal ≥ 5)")
    return missed


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the rows as a JSON list")
    parser.add_argument("--check", action="store_true", help="print what falls short of the goals; exit 1 if anything does")
    parser.add_argument("--lines", default=",".join(map(str, LINES)))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--no-peers", action="store_true", help="NumPy only")
    args = parser.parse_args()
    peers = None if args.no_peers else os.environ.get("NARU_PEERS_PYTHON")
    if not peers and not args.no_peers:
        print("NARU_PEERS_PYTHON is not set: PyTorch is left out (./run bench sets it)")
    results, names = measure([int(n) for n in args.lines.split(",")], [int(n) for n in args.threads.split(",")], peers)
    text = table(results)
    print(text)
    header = (f"# Benchmarks\n\nMedians of one run on {datetime.date.today()}: {processor()}, {os.cpu_count()} processors, Python {platform.python_version()}; "
              f"peers: {', '.join(v for k, v in names.items() if k != 'naru')}. Command: `./run bench`. Lower is better; the limit is what this machine allowed in the same "
              "minute (memory set, copied, added; fp32 arithmetic at its peak).\n\n")
    if args.lines == ",".join(map(str, LINES)):
        (HERE / "results.md").write_text(header + text + "\n")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    missed = shortfalls(results)
    for line in missed:
        print("falls short:", line)
    if args.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
