"""./run conformance [--only NAME,NAME [--renew]] [--limit N] [--again] [--log FILE]: runs PyTorch's samples in naru and writes
docs/conformance.json and docs/conformance.md.

PyTorch is run by the interpreter NARU_PEERS_PYTHON. Its recorded results are cached in build/conformance (--again: record them again).
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from . import board
from .runner import ROOT, Runner

FOLDER = ROOT / "build" / "conformance"


def record(folder: Path, arguments: list[str], workers: int) -> str:
    """Has PyTorch record its samples; returns PyTorch's version."""
    python = os.environ["NARU_PEERS_PYTHON"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    children = [
        subprocess.Popen([python, "-m", "tools.conformance.record", str(folder), "--share", f"{i}/{workers}", *arguments], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
        for i in range(workers)
    ]
    if any([c.wait() for c in children]):
        raise SystemExit("PyTorch's side failed (its words are above)")
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__.split('+')[0])"], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def answers(files: list[Path], workers: int) -> list[list[tuple[str, str]]]:
    """naru's outcomes for each file."""
    idle: Queue[Runner] = Queue()
    for _ in range(workers):
        idle.put(Runner())

    def one(path: Path) -> list[tuple[str, str]]:
        runner = idle.get()
        try:
            return runner.answers(path)
        finally:
            idle.put(runner)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, files))


def chosen(path: Path, only: set[str]) -> bool:
    name = path.name.removesuffix(".pickle").rsplit(".", 1)[0]
    return not only or any(name == o.replace("/", ".") or name.startswith(o + ".") and "/" not in o for o in only)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run conformance", description=__doc__)
    parser.add_argument("--only", default="", help="these operators; the page is not written then")
    parser.add_argument("--renew", action="store_true", help="with --only: the page is written, with these operators anew and all others as they are")
    parser.add_argument("--limit", type=int, default=1000, help="samples of an operator and dtype")
    parser.add_argument("--again", action="store_true", help="have PyTorch record its samples anew")
    parser.add_argument("--log", type=Path, help="a file for each sample that is not right")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    version = record(FOLDER, ["--only", given.only, "--limit", str(given.limit), *(["--again"] if given.again else [])], given.workers)
    only = set(filter(None, given.only.split(",")))
    files = sorted(p for p in FOLDER.glob("*.pickle") if chosen(p, only))
    state, log = board.State(version), []
    for path, found in zip(files, answers(files, given.workers)):
        recorded: dict[str, Any] = pickle.loads(path.read_bytes())
        state.add(recorded, found)
        for i, (sample, (outcome, reason)) in enumerate(zip(recorded["samples"], found)):
            if outcome != "right":
                log.append(f"{recorded['op']}\t{recorded['dtype']}\t{i}\t{sample['form']}\t{outcome}\t{reason}\n")
    if given.log:
        given.log.write_text("".join(log))
    text = state.as_json()
    if only and given.renew:
        text = board.renewed(board.STATE.read_text(), text)
    if not only or given.renew:
        board.STATE.write_text(text)
        board.PAGE.write_text(board.page(text))
    print(next(line for line in board.page(text).splitlines() if line.startswith("| **all**")))
    if only:
        print("".join(log[:200]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
