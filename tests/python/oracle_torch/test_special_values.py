"""special_values.json agrees with PyTorch. `./run test --torch` runs this in PyTorch's environment."""
import json
import os
import sys
import warnings
from pathlib import Path

import pytest

if os.environ.get("NARU_ORACLE") != "torch":
    pytest.skip("PyTorch is compared with by ./run test --torch only", allow_module_level=True)

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from special_values import FILE, answer, subjects  # noqa: E402


def test_the_file_of_special_values_is_what_pytorch_says():
    facts = json.loads(FILE.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = {key: answer(torch, torch.nn.functional, subject) for key, subject in subjects().items()}
    assert {key for key in said if said[key] != facts.get(key)} == set(), "tests/python/support/special_values.py makes it again"
