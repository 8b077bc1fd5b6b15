"""Fuzzers: random calls of every public function (api), of hard numbers (numbers), mutated files (files), and what they have found so far (corpus)."""

from __future__ import annotations

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def search_path() -> str:
    """PYTHONPATH for child processes: the caller's first, so that the naru being tested is the one that is fuzzed, then this tree's."""
    return os.pathsep.join([os.environ.get("PYTHONPATH", ""), ROOT, os.path.join(ROOT, "python")]).lstrip(os.pathsep)
