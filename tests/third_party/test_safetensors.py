"""safetensors: files that naru's functions by that name write are the package's, and the other way round."""
import json
import subprocess
import sys

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

READER = """
import json, sys
import numpy as np
from safetensors.numpy import load_file, save_file
tensors = load_file(sys.argv[1])
print(json.dumps({name: value.tolist() for name, value in tensors.items()}))
save_file({name: value * 2 for name, value in tensors.items()}, sys.argv[2])
"""


def test_the_package_reads_a_file_and_its_file_is_read(tmp_path, device):
    tensors = {"a": torch.arange(6.0, device=device).reshape(2, 3), "b": torch.arange(3, device=device)}
    save_file(tensors, tmp_path / "a.safetensors", {"made by": "a test"})
    # Without the alias, and with NumPy alone: the package's own code.
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}\n{READER}", tmp_path / "a.safetensors", tmp_path / "b.safetensors"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout) == {name: t.tolist() for name, t in tensors.items()}
    assert all(torch.equal(value.cpu(), 2 * tensors[name].cpu()) for name, value in load_file(tmp_path / "b.safetensors", device=device).items())
    with safe_open(tmp_path / "a.safetensors", framework="pt", device=device) as file:
        assert file.metadata() == {"made by": "a test"} and file.get_slice("a")[:, 1:].tolist() == [[1, 2], [4, 5]]


def test_a_models_state_is_written_and_read(tmp_path, device):
    model, other = torch.nn.Linear(3, 2).to(device), torch.nn.Linear(3, 2).to(device)
    save_model(model, str(tmp_path / "m.safetensors"))
    assert load_model(other, tmp_path / "m.safetensors") in (([], []), (set(), []))
    assert torch.equal(model.weight, other.weight)


def test_what_shares_memory_is_refused(tmp_path):
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="share memory"):
        save_file({"x": x, "y": x}, tmp_path / "x.safetensors")
