"""One side of one benchmark line: python work.py LIBRARY LINE THREADS prints one JSON object per work, {"work": ..., "seconds": ...}; with "check",
numbers of its results, and "tolerance" where the line compares them.

LIBRARY is naru, torch, compile (torch.compile), channels_last (torch in that layout), jax or numpy. Run by run.py, each library in a process of its
own. One thread stays on one processor, and is measured in processor time, which other work on the machine does not add to.
"""
import importlib
import json
import os
import subprocess
import sys
import time

LIBRARY, LINE, THREADS = sys.argv[1], sys.argv[2], int(sys.argv[3])
if THREADS == 1:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NARU_NUM_THREADS"):
    os.environ[name] = str(THREADS)

from timing import median_seconds  # noqa: E402


def row(work, seconds, check=None, tolerance=1e-3):
    """work: a name, or a list of names for which the measurement counts."""
    for name in [work] if isinstance(work, str) else work:
        print(json.dumps({"work": name, "seconds": seconds, **({} if check is None else {"check": check, "tolerance": tolerance})}), flush=True)


def report(work, call, check=None, tolerance=1e-3, **options):
    clock = time.process_time if THREADS == 1 else time.perf_counter
    row(work, median_seconds(call, clock=clock, **options), check, tolerance)


def import_seconds(module):
    """Median seconds that importing takes beyond NumPy's own import, each time in a new process, with bytecode, as whatever pip installed has it."""
    text = f"import numpy, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    runs = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=env).stdout for _ in range(6)]
    return sorted(map(float, runs[1:]))[2]  # the first may have written it


side = importlib.import_module({"numpy": "side_numpy", "jax": "side_jax"}.get(LIBRARY, "side_torch"))
side.Side(LIBRARY, THREADS, row, report, import_seconds).run(LINE)
