"""Packages of others over naru: `torch` means naru here, as under `naru run`, and random numbers are those of PyTorch's cpu.

With THIRD_PARTY_RECORD=1, in an environment that has PyTorch, the same programs run over that, and what they give is written to facts.json.
"""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
RECORDING = os.environ.get("THIRD_PARTY_RECORD") == "1"
for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):  # nothing is asked of a network
    os.environ[name] = "1"

if not RECORDING:
    os.environ.setdefault("NARU_VIRTUAL", "cuda:2")
    from naru._command import runner

    runner.install_torch_alias()
    runner._tell_commands()
    import naru

    naru.random.set_algorithm("pytorch")

import torch  # noqa: E402


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Packages that write logs into the working directory (sbi, lightning) write them into the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def seeded():
    """Every test begins with the same numbers, and leaves the environment's variables as they were: lightning sets some for processes to come."""
    before = dict(os.environ)
    torch.manual_seed(0)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """The host, and a virtual device (where PyTorch is: the host alone)."""
    if RECORDING and request.param == "cuda":
        pytest.skip("recorded on the host")
    return request.param
