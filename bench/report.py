"""The rows of the benchmark: kept in results.json, one each, and shown in results.md.

A run replaces the rows of the lines that it measures, and leaves the others, with the date and machine of their own run: the whole takes more than
an hour, and a machine is seldom quiet for so long.
"""
import json
import os
import platform
import statistics
from pathlib import Path

from goals import MEDIANS, goals_of

HERE = Path(__file__).resolve().parent
KEPT, PAGE = HERE / "results.json", HERE / "results.md"
HEADER = """# Benchmarks

Medians of the runs listed below; each row names its run. Command: `./run bench` (`--lines` for some). Lower is better. "arena": with an allocator that
keeps its pages (glibc, nothing mapped by the piece or given back). With 1 thread everything runs on one processor, and times are processor time. The
limit is what the machine allowed in the same run: memory set, read, copied, added; fp32 arithmetic at its peak; OpenBLAS itself.
"""


def show(seconds):
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(results):
    lines = ["| line | work | threads | naru | peers | best peer / naru | limit | limit / naru | run |", "|---|---|---|---|---|---|---|---|---|"]
    for r in results:
        peers = ", ".join(f"{k} {show(v)}" for k, v in r["peers"].items()) or "–"
        best = min(r["peers"].values(), default=None)
        cells = (r["line"], r["work"], r["threads"], show(r["naru"]), peers, f"{best / r['naru']:.2f} ×" if best else "–", show(r["limit"]),
                 f"{100 * r['limit'] / r['naru']:.0f} %" if r["limit"] else "–", r.get("run", "–"))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def shortfalls(results):
    """What falls short of the goals (goals.py), the furthest first."""
    missed = []
    for r in results:
        for goal, reached in goals_of(r):
            if reached < 1:
                missed.append((reached, f"line {r['line']}, {r['work']}, {r['threads']} thread{'s' * (r['threads'] > 1)}: {goal}; {100 * reached:.0f} % reached"))
    for begin, value in MEDIANS:
        for threads in sorted({r["threads"] for r in results}):
            ratios = [min(r["peers"].values()) / r["naru"] for r in results if r["work"].startswith(begin) and r["threads"] == threads and r["peers"]]
            if ratios and statistics.median(ratios) < value:
                reached = statistics.median(ratios) / value
                missed.append((reached, f"{begin}, the median of {len(ratios)}, {threads} thread{'s' * (threads > 1)}: at least {value:g} × as fast; {100 * reached:.0f} % reached"))
    return [text for _, text in sorted(missed)]


def disagreements(results):
    """Works whose results are not a peer's, or that were compared with none although they can be."""
    return [f"line {r['line']}, {r['work']}, {r['threads']} thread{'s' * (r['threads'] > 1)}: {side}'s results differ by {by:.3g} tolerances"
            for r in results for side, by in r["differences"].items() if not by <= 1]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def this_run(date, names, avx2):
    """What is said of a run: when, where, beside what, and how busy the machine was."""
    return {"date": str(date), "processor": processor(), "processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
            "python": platform.python_version(), "peers": [v for k, v in names.items() if k != "naru"], **({"avx2": True} if avx2 else {})}


def described(number, run):
    held = "; naru and the peers are held to AVX2" if run.get("avx2") else ""
    busy = "" if run["load"] is None else f" (load {run['load']} at the start)"
    return f"{number}. {run['date']}: {run['processor']}, {run['processors']} processors{busy}, Python {run['python']}; peers: {', '.join(run['peers'])}{held}."


def rounded(value):
    """The numbers of a row to four digits."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def keep(measured, run, order):
    """Puts the rows of a run in place of older ones of the same lines and numbers of threads, and writes both files.

    measured: rows; run: what `this_run` says; order: the names of all lines.
    """
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"runs": [], "rows": []}
    runs, avx2 = kept["runs"], run.get("avx2", False)
    if run not in runs:
        runs.append(run)
    done = {(r["line"], r["threads"]) for r in measured}
    rows = [r for r in kept["rows"] if (r["line"], r["threads"]) not in done or runs[r["run"] - 1].get("avx2", False) != avx2]
    rows += [{**r, "run": runs.index(run) + 1} for r in measured]
    rows.sort(key=lambda r: (runs[r["run"] - 1].get("avx2", False), order.index(r["line"]), r["threads"]))
    # Runs that have lost all their rows leave the list.
    alive = sorted({r["run"] for r in rows})
    rows = [{**r, "run": alive.index(r["run"]) + 1} for r in rows]
    runs = [runs[number - 1] for number in alive]
    each = ",\n  ".join(json.dumps(rounded(r), ensure_ascii=False) for r in rows)
    KEPT.write_text(f'{{\n "runs": {json.dumps(runs, ensure_ascii=False)},\n "rows": [\n  {each}\n ]\n}}\n')
    short = "".join(f"- {line}\n" for line in shortfalls(rows)) or "Nothing.\n"
    said = "\n".join(described(number, r) for number, r in enumerate(runs, 1))
    PAGE.write_text(f"{HEADER}\nRuns:\n\n{said}\n\n{table(rows)}\n\nWhat falls short of the goals (bench/goals.py):\n\n{short}")
