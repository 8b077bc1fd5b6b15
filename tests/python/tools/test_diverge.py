"""`naru diverge`: two runs of a script, and the first operator whose bits differ."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import naru
import pytest
from naru._command.diverge import compared, first_difference
from naru._command.line import main

SCRIPT = """\
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    x = torch.randn(16, 8, device=device)
    loss = (model(x) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = model[0].weight.detach().cpu().numpy()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.setenv("NARU_VIRTUAL", "cuda:1")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_devices_that_give_the_same_bits_do_not_diverge(script, capsys):
    assert main(["diverge", "--a", "cpu,NARU_FUSE=0", "--b", "cuda", str(script)]) == 0
    text = capsys.readouterr().out
    assert "a = cpu, NARU_FUSE=0, b = cuda" in text and "operators gave the same bits" in text.splitlines()[-1]


def test_the_line_of_the_operator_that_a_device_does_wrongly_is_found_with_its_inputs(script, capsys):
    # Its kernels write a wrong first element in elementwise results, and the self-check at first use is off.
    script.write_text("import torch\nx = torch.tensor([1.0, 2.0])\ny = x.view(2, 1)\nz = y.exp()\n")
    wrong = "cuda,NARU_VIRTUAL_WRONG=cuda:0,NARU_SELF_CHECK=0"
    assert main(["diverge", "--a", "cpu", "--b", wrong, "--json", str(script)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["why"] == "bits" and found["operator"]["name"] == "exp" and found["operator"]["line"].endswith("train.py:4") and found["same"] == 2
    assert found["operator"]["inputs"] == ["float32 [2, 1], from 1 to 2"]
    (result,) = found["operator"]["results"]
    assert (result["differ"], result["elements"], result["first"]["at"]) == (1, 2, "[0, 0]")
    assert result["first"]["a"] == {"bits": "0x402df854", "value": pytest.approx(2.7182817)}
    assert result["first"]["b"]["bits"] == "0x002df854"


def test_programs_that_go_different_ways_and_scripts_that_fail_are_said_to(script, capsys):
    script.write_text("import os, torch\nx = torch.ones(2)\ny = x + 1 if os.environ.get('WAY') else x * 2\n")
    assert main(["diverge", "--a", "cpu", "--b", "WAY=1", str(script)]) == 1
    text = capsys.readouterr().out
    assert "mul at " in text and "and add at " in text and "train.py:3" in text
    script.write_text("import torch\ntorch.ones(2)\nraise ValueError('no more')\n")
    assert main(["diverge", "--a", "cpu", "--b", "cpu", str(script)]) == 2
    assert "ValueError: no more" in capsys.readouterr().err
    assert main(["diverge", "--a", "cpu", "--b", "pgu", str(script)]) == 2
    assert "'pgu' is neither a device nor NAME=VALUE" in capsys.readouterr().err
    assert main(["diverge", "--a", "cpu", "--b", "NARU_VIRTUAL=cuda:1 SIDE=b", str(script)]) == 2
    assert "separate them by commas: NARU_VIRTUAL=cuda:1,SIDE=b" in capsys.readouterr().err
    # A variable that can't be read, though the script never looks at it.
    script.write_text("import torch\ntorch.ones(2)\n")
    assert main(["diverge", "--a", "cpu", "--b", "NARU_VIRTUAL=cuda:x", str(script)]) == 2
    assert "'x' is not a number" in capsys.readouterr().err
    assert main(["diverge", "--a", "cpu", "--b", "cpu", os.fspath(script) + "x"]) == 2
    capsys.readouterr()
    assert main(["diverge", os.fspath(script), "--a", "cpu", "--b", "cuda"]) == 2 and "--b stands behind the program" in capsys.readouterr().err
    assert main(["diverge", "--a", "cpu", os.fspath(script)]) == 2 and main(["diverge", "--a", "cpu", "--b", "cpu"]) == 2


def test_another_version_is_run_by_its_own_python(script, tmp_path, monkeypatch, capsys):
    """One that adds otherwise, in an environment of its own; this one's folder on PYTHONPATH does not come before it."""
    home = Path(naru.__file__).parent
    monkeypatch.setenv("PYTHONPATH", str(home.parent))
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = (environment / "lib").glob("python3*/site-packages")
    shutil.copytree(home, site / "naru", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    extension = Path(naru._C.__file__)
    (site / "naru" / extension.name).symlink_to(extension)
    with (site / "naru" / "__init__.py").open("a") as file:
        file.write("\n\ndef relu(x):\n    return _C.exp(x)\n")
    script.write_text("import torch\nx = torch.ones(2) * 2\ny = torch.relu(x)\n")
    assert main(["diverge", "--a", "cpu", "--b", f"cpu,python={environment / 'bin' / 'python'}", "--json", str(script)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["operator"]["name"] == "relu" and found["operator"]["line"].endswith("train.py:3") and found["other"]["name"] == "exp"


def test_notes_are_compared_in_order_and_results_by_their_bits(tmp_path):
    (tmp_path / "a").write_text('["add"]\n["mul"]\n')
    (tmp_path / "b").write_text('["add"]\n')
    assert first_difference(tmp_path / "a", tmp_path / "a") == (2, None, None)
    assert first_difference(tmp_path / "a", tmp_path / "b") == (1, ["mul"], None) and first_difference(tmp_path / "b", tmp_path / "a") == (1, None, ["mul"])
    kept = {"dtype": "bfloat16", "shape": [2], "size": 2, "bytes": b"\x80\x3f\x00\x00"}
    # -0 and 0 are equal numbers with different bits.
    found = compared(kept, {**kept, "bytes": b"\x80\x3f\x00\x80"})
    assert found["differ"] == 1 and found["first"] == {"at": "[1]", "a": {"bits": "0x0000", "value": 0.0}, "b": {"bits": "0x8000", "value": -0.0}}
    assert found["largest"] == 0
