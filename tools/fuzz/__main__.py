"""python -m tools.fuzz [api|numbers|files|corpus] [--seconds N] [--seed S]: each for its share of the time (default: all of them, 120 s)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from . import ROOT, search_path


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run fuzz", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["api", "numbers", "files", "corpus", "all"], default="all")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    parts = [given.what] if given.what != "all" else [p for p in ("corpus", "api", "numbers", "files") if os.path.exists(os.path.join(here, p + ".py"))]
    timed = [p for p in parts if p != "corpus"]
    environment = {**os.environ, "PYTHONPATH": search_path()}
    status = 0
    for part in parts:
        arguments = [] if part == "corpus" else ["--seconds", str(given.seconds / len(timed)), "--seed", str(given.seed)]
        status |= subprocess.run([sys.executable, "-m", f"tools.fuzz.{part}", *arguments], env=environment, cwd=ROOT).returncode != 0
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
