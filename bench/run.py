"""The benchmark suite: naru beside NumPy, PyTorch (eager, channels_last and torch.compile) and JAX, all sides in one run.

python bench/run.py [--json FILE] [--check] [--lines 1,4,13b] [--threads 1,2] [--rounds 3] [--no-peers] [--avx2] puts the rows of these lines into
bench/results.json and results.md, line by line. Peers run from NARU_PEERS_PYTHON, the interpreter of the environment that `./run bench` makes. Each
library works in a process of its own, line by line in turn; "arena" is the same library with an allocator that keeps its pages.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

from operands import difference
from report import disagreements, keep, shortfalls, table, this_run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = Path(os.environ.get("NARU_BUILD", ROOT / "build" / "release")) / "bench" / "cpp"
LINES = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "13b", "14", "14b", "14c", "15", "15b", "16", "17", "19", "20", "22", "22b")
PARTS_OF_A_STEP = ("DDP: half of the batch alone", "DDP: all_reduce of the gradients")
CPP_LINES = ("1", "10", "13")
# Which peers a line is measured with, and whether memory counts there.
COMPILED = ("4", "5", "6", "7", "8", "12", "13", "14", "15", "15b")
CHANNELS_LAST = ("15", "15b")
ARENA = ("3", "4", "5", "6", "7", "8", "12", "14", "14c", "15", "15b")
# Everything held to AVX2, on a machine with more.
AVX2 = {"NARU_ISA": "avx2", "NARU_LOOP_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
        "OPENBLAS_CORETYPE": "Haswell", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}
# glibc gives nothing back, and maps nothing by the piece.
KEEP_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=68719476736:glibc.malloc.arena_max=1"}


def rows_of(command, env=None):
    """The JSON objects a program prints, one a line."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        print(f"  {' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def program(name):
    found = [p for p in (PROGRAMS / name, PROGRAMS.parent / name) if p.exists()]
    if not found:
        sys.exit(f"bench: the program {name} is not built; ./run bench builds it")
    return found[0]


def libtorch_home(peers):
    """The folder of the torch package of the peers' environment, and whether it has the new ABI of strings (0 or 1); None without PyTorch."""
    where = subprocess.run([peers, "-c", "import torch, os; print(os.path.dirname(torch.__file__)); print(int(torch._C._GLIBCXX_USE_CXX11_ABI))"],
                           capture_output=True, text=True)
    return where.stdout.split() if where.returncode == 0 else None


def libtorch_program(peers, source):
    """A C++ program of PyTorch's side, compiled against the torch package of the peers' environment (kept in build/)."""
    if not (found := libtorch_home(peers)):
        return None, {}
    home, abi = found
    target = ROOT / "build" / f"libtorch_{source.stem.removeprefix('libtorch_')}"
    env = {"LD_LIBRARY_PATH": f"{home}/lib:" + os.environ.get("LD_LIBRARY_PATH", "")}
    if not target.exists() or target.stat().st_mtime < max(file.stat().st_mtime for file in (source, HERE / "cpp" / "report.h")):
        print(f"  compiling PyTorch's side: {source.name}", flush=True)
        built = subprocess.run(["g++", "-O2", "-std=c++20", "-DLIBTORCH", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{home}/include",
                                f"-I{home}/include/torch/csrc/api/include", str(source), "-o", str(target), f"-L{home}/lib", "-Wl,--no-as-needed",
                                "-ltorch_cpu", "-ltorch", "-lc10"], capture_output=True, text=True)
        if built.returncode != 0:
            print(built.stderr[-1500:], file=sys.stderr)
            return None, {}
    return target, env


def openblas():
    """The library that naru's products open, as it would open it: the environment for limits.cpp."""
    wheel = subprocess.run([sys.executable, "-c", "import scipy_openblas32 as o; print(o.get_lib_dir() + '/' + o.get_library(fullname=True))"],
                           capture_output=True, text=True)
    wide = "avx512f" in Path("/proc/cpuinfo").read_text()
    return {"NARU_OPENBLAS": wheel.stdout.strip(), "OPENBLAS_NUM_THREADS": "1", **({"OPENBLAS_CORETYPE": "SkylakeX"} if wide else {})}


def limit_of(line, work, threads, limits):
    """Seconds no program can beat on this machine, from what limits.cpp measured; None where no limit was measured."""
    at = {name: seconds for (name, t), seconds in limits.items() if t == threads}
    if not at:
        return None
    if line == "19":
        return at.get(work)
    if line == "3":
        return at["memset 64 MiB"]
    if line == "4" and "first call" not in work:
        return at["copy 16 M"] / (16 if "1 M" in work else 1)
    if line == "5":
        return at["triad 16 M"] if "x + y" in work else at["copy 16 M"]
    if line == "6" and "sort" not in work:
        return at["read 16 M"] if "16 M" in work else at["copy 4 M"] if "cumsum" in work else at["read 4 M"]
    if line == "7":
        return at["copy 4 M"] * (2 if "backward" in work else 1) + (at["read 4 M"] if "backward" in work else 0)
    if line == "8":
        return at["copy 16 M"]
    if line == "9":
        return 2 * float(work.split()[-1]) ** 3 * at["one fp32 operation"]
    if line == "10" and work.startswith("matmul"):
        return limits.get((f"OpenBLAS {work.split()[2].rstrip(',')}", 1))
    if line == "10":
        return 2 * 203264 * int(work.split()[-1]) * at["one fp32 operation"]
    if line == "12":
        return 52.4e6 * at["one fp32 operation"]
    if line == "17" and work.startswith("matmul"):
        return 2 * float(work.split()[-1]) ** 3 * at["one fp32 operation"]
    if line == "13b" and "T 64, B 16, 128 to 128, forward" in work:  # the products of input and state, and their two gradients
        return 2 * 64 * 16 * 256 * (512 if work.startswith("LSTM") else 384) * at["one fp32 operation"] * (3 if "backward" in work else 1)
    return None


def sides_of(line, threads, peers):
    """(name, command, environment) of everything that runs for a line."""
    naru = {"PYTHONPATH": str(ROOT / "python"), **({"NARU_RANDOM": "pytorch"} if line == "20" else {})}
    sides = []
    if line in CPP_LINES and threads == 1:
        sides.append(("naru", [program("small"), str(line)], {"NARU_NUM_THREADS": "1"}))
    if line == "17":  # as many threads as PoCL takes
        xpu = {"NARU_OPENCL_CPU": "1", "NARU_VIRTUAL": ""}
        return [("naru", [program("opencl"), "naru"], xpu), ("hand", [program("opencl"), "hand"], xpu)]
    if line == "19":  # in 2 and 4 processes of one thread
        side, one = [HERE / "distributed.py"], {"OMP_NUM_THREADS": "1"}
        sides.append(("naru", [sys.executable, *side, "naru"], {**naru, **one}))
        if peers:
            sides.append(("torch", [peers, *side, "torch"], one))
        if mpi_of_naru():
            sides.append(("mpi", [sys.executable, *side, "mpi"], one))
        return sides
    if line == "22b":
        compile_time = [sys.executable, HERE / "compile_time.py"]
        sides.append(("naru", [*compile_time, "naru/naru.h", ROOT / "include"], {}))
        if home := libtorch_home(peers) if peers else None:
            sides.append(("torch", [*compile_time, "torch/torch.h", f"{home[0]}/include", f"{home[0]}/include/torch/csrc/api/include"], {}))
        return sides
    if line == "22":
        sides.append(("naru", [program("side_by_side")], {"NARU_NUM_THREADS": "1"}))
    if line in ("1", "22"):
        source = HERE / ("peers/libtorch_small.cpp" if line == "1" else "cpp/side_by_side.cpp")
        binary, env = libtorch_program(peers, source) if peers else (None, {})
        if binary:
            sides.append(("torch", [binary], env))
        return sides
    for library in ("naru", "numpy", "torch", "channels_last", "compile", "jax"):
        python = sys.executable if library in ("naru", "numpy") else peers
        if not python or (library == "compile" and line not in COMPILED) or (library == "channels_last" and line not in CHANNELS_LAST):
            continue
        command = [python, HERE / "work.py", library, line, str(threads)]
        sides.append((library, command, naru if library == "naru" else {}))
        if library != "naru" and line in ARENA:
            sides.append((f"{library} arena", command, KEEP_PAGES))
    return sides


def mpi_of_naru():
    """The library of MPI that naru finds; "" without one."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([sys.executable, "-c", "import naru; print(naru._C._mpi_path())"], capture_output=True, text=True, env=env).stdout.strip()


def least(rows, more):
    """Both dictionaries, the lesser time where a work is in both."""
    for work, seconds in more.items():
        rows[work] = min(seconds, rows.get(work, seconds))


def differences(work, checks):
    """By side: how far its results are from naru's, in tolerances (above 1: they differ)."""
    mine = checks.get("naru", {}).get(work)
    return {side: difference(mine["check"], rows[work]["check"]) / mine["tolerance"] for side, rows in checks.items() if mine and side != "naru" and work in rows}


def names_of(peers):
    """How the sides are called in the table."""
    names = {"naru": "naru", "numpy": "numpy " + version(sys.executable, "numpy"), "hand": "OpenCL by hand", "mpi": "MPI itself"}
    if peers:
        names |= {"torch": "torch " + version(peers, "torch"), "compile": "torch.compile", "channels_last": "torch channels_last", "jax": "jax " + version(peers, "jax")}
    return names


def measure(lines, thread_counts, peers, rounds, names):
    """Yields the rows of each line, for each number of threads."""
    print("limits", flush=True)
    limits = {}
    for _ in range(rounds):
        least(limits, {(r["limit"], r["threads"]): r["seconds"] for r in rows_of([program("limits")], openblas())})
    for line in lines:
        for threads in thread_counts:
            if (line in ("1", "2", "19", "22", "22b") and threads != thread_counts[0]) or (line == "17" and threads != thread_counts[-1]):
                continue
            print(f"line {line}, {threads} thread{'s' if threads > 1 else ''}", flush=True)
            times, checks = {}, {}
            for _ in range(rounds):
                for side, command, env in sides_of(line, threads, peers):
                    rows = rows_of(command, env)
                    least(times.setdefault(side, {}), {r["work"]: r["seconds"] for r in rows})
                    checks[side] = {r["work"]: r for r in rows if "check" in r}
            mine = times.pop("naru", {})
            if {"DDP: step", *PARTS_OF_A_STEP} <= mine.keys():
                limits["DDP: step", threads] = sum(mine[part] for part in PARTS_OF_A_STEP)
            results = []
            for work, seconds in mine.items():
                others = {f"{names[k.split()[0]]}{' arena' * k.endswith('arena')}": v[work] for k, v in times.items() if work in v}
                results.append({"line": line, "work": work, "threads": threads, "unit": "s", "naru": seconds, "peers": others,
                                "limit": limit_of(line, work, threads, limits), "differences": differences(work, checks)})
            yield results


def version(python, package):
    return subprocess.run([python, "-c", f"import {package}; print({package}.__version__.split('+')[0])"], capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the rows as a JSON list")
    parser.add_argument("--check", action="store_true", help="print what falls short of the goals; exit 1 if anything does")
    parser.add_argument("--lines", default=",".join(map(str, LINES)))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=1, help="so often is everything measured; the least of the medians counts")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="PyTorch and JAX (default), or NumPy only")
    parser.add_argument("--avx2", action="store_true", help="hold naru and the peers to AVX2")
    args = parser.parse_args()
    if args.avx2:
        os.environ.update(AVX2)
    peers = os.environ.get("NARU_PEERS_PYTHON") if args.peers else None
    if args.peers and not peers:
        print("NARU_PEERS_PYTHON is not set: PyTorch and JAX are left out (./run bench sets it)")
    lines = args.lines.split(",")
    if unknown := [n for n in lines if n not in LINES]:
        parser.error(f"--lines: there is no line {', '.join(unknown)}; the lines are {', '.join(LINES)}")
    names = names_of(peers)
    run = this_run(datetime.date.today(), names, args.avx2)
    results = []
    for rows in measure(lines, [int(n) for n in args.threads.split(",")], peers, args.rounds, names):
        results += rows
        if peers:
            keep(rows, run, LINES)
    print(table(results))
    missed = shortfalls(results)
    wrong = disagreements(results)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    for line in missed:
        print("falls short:", line)
    for line in wrong:
        print("differs:", line)
    if wrong or (args.check and missed):
        sys.exit(1)


if __name__ == "__main__":
    main()
