"""What PyTorch gives for the tests' programs: `facts.json`, written by the tests themselves beside PyTorch (conftest.py says how)."""
import functools
import json
import math
import os
from pathlib import Path

import torch

PATH = Path(__file__).parent / "facts.json"
RECORDING = os.environ.get("THIRD_PARTY_RECORD") == "1"
# The unit of float32's rounding, times what a few thousand roundings of a small network may add up to.
TOLERANCE = 2.0**-24 * 512


def _plain(value):
    if isinstance(value, torch.Tensor):
        return _plain(value.detach().cpu().tolist())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _scale(value):
    """The largest finite number within."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return max(map(_scale, value), default=0.0)
    return abs(value) if isinstance(value, float) and math.isfinite(value) else 0.0


def _differences(mine, theirs, bound, path=""):
    if isinstance(theirs, dict) and isinstance(mine, dict) and mine.keys() == theirs.keys():
        return [d for k in theirs for d in _differences(mine[k], theirs[k], bound, f"{path}.{k}")]
    if isinstance(theirs, list) and isinstance(mine, list) and len(mine) == len(theirs):
        return [d for i, (a, b) in enumerate(zip(mine, theirs)) for d in _differences(a, b, bound, f"{path}[{i}]")]
    if isinstance(theirs, float) and isinstance(mine, (int, float)):
        same = abs(mine - theirs) <= bound if math.isfinite(theirs) else mine == theirs or (mine != mine and theirs != theirs)
        return [] if same else [f"{path}: {mine} here, {theirs} in PyTorch"]
    return [] if mine == theirs else [f"{path}: {mine!r} here, {theirs!r} in PyTorch"]


def compare(name, value, tolerance=TOLERANCE):
    """Compares a value (numbers, texts, tensors, lists and dicts of them) with PyTorch's by that name, each list or dict in proportion to its
    largest number."""
    mine = json.loads(json.dumps(_plain(value)))
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    if RECORDING:
        known[name] = mine
        PATH.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
        return
    theirs = known[name]
    parts = theirs.items() if isinstance(theirs, dict) else [("", theirs)]
    wrong = []
    for key, part in parts:
        got = mine.get(key) if isinstance(theirs, dict) else mine
        wrong += _differences(got, part, tolerance * max(_scale(part), 1e-30), f"{name}.{key}")
    assert not wrong, f"{len(wrong)} differ: " + "; ".join(wrong[:5])


def recorded(test):
    """A test whose result is compared with PyTorch's."""

    @functools.wraps(test)
    def compared(*args, **kwargs):
        which = "".join(f"[{value}]" for name, value in kwargs.items() if name not in ("device", "tmp_path"))
        compare(f"{test.__module__.removeprefix('test_')}.{test.__name__.removeprefix('test_')}{which}", test(*args, **kwargs))

    return compared
