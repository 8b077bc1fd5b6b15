"""scikit-learn and SciPy work on tensors through the array API: on the cpu, and on a device where they need no host-only code."""
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("library, module", [("scikit-learn", "sklearn"), ("scipy", "scipy")])
def test_functions_give_tensors_on_the_device_with_the_values_that_they_give_for_numpys_arrays(library, module):
    if find_spec(module) is None:
        pytest.skip(f"{library} is not installed")
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "NARU_VIRTUAL": "cuda:1"}
    done = subprocess.run([sys.executable, str(Path(__file__).parents[1] / "support" / "array_api_libraries.py"), library], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) >= 50 and {name: words for name, words in found.items() if words} == {}
