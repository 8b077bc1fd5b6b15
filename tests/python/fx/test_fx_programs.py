"""Programs that use torch.fx have the graphs, the code and the results of PyTorch 2.15 (support/fx_programs.py)."""
import json
import math

import fx_programs
import pytest

import naru as torch
import naru.fx
import naru.nn.utils.fusion  # noqa: F401

FACTS = json.loads(fx_programs.FACTS.read_text())
PROGRAMS = fx_programs.facts(torch, torch.nn, torch.nn.functional)
# The unit of float32's rounding, times what a hundred roundings of a small network add up to.
TOLERANCE = 2.0**-24 * 100


def differences(mine, theirs, path):
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys(), path
        return [d for key in theirs for d in differences(mine[key], theirs[key], f"{path}.{key}")]
    if isinstance(theirs, list):
        assert len(mine) == len(theirs), path
        return [d for i, (m, t) in enumerate(zip(mine, theirs)) for d in differences(m, t, f"{path}[{i}]")]
    if isinstance(theirs, float):
        same = isinstance(mine, float) and (math.isclose(mine, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (mine != mine and theirs != theirs))
        return [] if same else [f"{path}: {mine} here, {theirs} in PyTorch"]
    return [] if type(mine) is type(theirs) and mine == theirs else [f"{path}:\n{mine}\nhere, in PyTorch:\n{theirs}"]


def test_every_program_was_recorded():
    assert sorted(PROGRAMS) == sorted(FACTS) and len(FACTS) >= 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_in_pytorch(name):
    mine = json.loads(json.dumps(PROGRAMS[name]()))
    assert differences(mine, FACTS[name], name) == []
