"""What tutorials teach runs as it is under `naru run`: with cuda and mps, with one of them, and with neither."""
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "seeds"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
SETTINGS = {"cuda:3,mps:1": {"cuda", "mps"}, "cuda:3": {"cuda"}, "mps:1": {"mps"}, "": set()}

# Programs that name a device without asking whether it is there.
NEEDS = {
    "moving_tensors": "cuda",
    "first_model_on_cuda": "cuda",
    "modules_move_in_place": "cuda",
    "three_errors": "cuda",
    "current_device": "cuda",
    "loader_with_pinned_memory": "cuda",
    "mps_named_outright": "mps",
}


def environment_of(setting):
    environment = {k: v for k, v in os.environ.items() if k not in ("NARU_VIRTUAL", "NARU_CACHING", "PYTORCH_ENABLE_MPS_FALLBACK")}
    if setting:
        environment["NARU_VIRTUAL"] = setting
    if "cuda" not in setting:
        environment["CUDA_VISIBLE_DEVICES"] = ""  # hides this machine's own
    return environment


@functools.cache
def reason(kind, setting):
    command = [sys.executable, "-c", f"import naru; print(naru.why_unavailable({kind!r}))"]
    return subprocess.run(command, env=environment_of(setting), capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("setting", SETTINGS, ids=[s or "none" for s in SETTINGS])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_tutorial_runs_where_its_device_is_and_says_why_where_it_is_not(program, setting):
    command = [sys.executable, "-m", "naru", "run", str(FOLDER / f"{program}.py")]
    done = subprocess.run(command, env=environment_of(setting), capture_output=True, text=True, timeout=120)
    kind = NEEDS.get(program)
    if kind is None or kind in SETTINGS[setting]:
        assert done.returncode == 0, done.stdout + done.stderr
        return
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("Traceback") == 1, done.stderr  # the one error, and nothing chained to it
    last = done.stderr.strip().splitlines()[-1]
    assert "Error: " in last and f"{kind}" in last and len(reason(kind, setting)) > 20 and reason(kind, setting) in last, last


def test_every_program_is_in_the_list_of_those_that_ask_or_exists():
    assert set(NEEDS) <= set(PROGRAMS) and len(PROGRAMS) >= 14
    print(f"{len(PROGRAMS)} programs in {len(SETTINGS)} settings: {len(PROGRAMS) * len(SETTINGS)} runs")
