"""Under `naru run`, an installed package that can't be imported over naru breaks no other: its import is an ImportError."""
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HOME = str(Path(__file__).resolve().parents[3] / "python")
# What packages do at import, and what naru says of it.
STUMBLES = {
    "reads": ("import torch\nnothing = torch._C._no_such_name\n", "module 'torch._C' has no attribute '_no_such_name'"),
    "calls": ("from torch._dynamo.utils import compile_times\ncompile_times()\n", "torch._dynamo.utils.compile_times is in PyTorch 2.15 but not in naru yet"),
    "of_a_tensor": ("import torch\ntorch.Tensor._no_such_method\n", "has no attribute '_no_such_method'"),
    "public": ("import torch\ntorch.package\n", "torch.package is in PyTorch 2.15 but not in naru yet"),
    "within": ("from .part import nothing\n", "torch.package is in PyTorch 2.15 but not in naru yet"),
}


def run(tmp_path, program, installed, folder="site-packages"):
    """Runs a program with a package `bystander` of these sources."""
    package = tmp_path / "lib" / folder / "bystander"
    package.mkdir(parents=True)
    for name, text in installed.items():
        (package / name).write_text(text)
    (tmp_path / "script.py").write_text(textwrap.dedent(program))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HOME, str(package.parent)])}
    done = subprocess.run([sys.executable, "-m", "naru", "run", "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", STUMBLES)
def test_what_a_package_stumbles_over_at_import_is_an_import_error(tmp_path, name):
    source, said = STUMBLES[name]
    code, out, err = run(
        tmp_path,
        """
        try:
            import bystander
        except ImportError as error:
            print(error.name.split(".")[0], "|", error, "|", type(error.__cause__).__name__)
        """,
        {"__init__.py": source, "part.py": "import torch\nnothing = torch.package\n"},
    )
    owner, text, cause = out.split(" | ")
    assert (code, err, owner) == (0, "", "bystander") and text.startswith("bystander") and "can't be imported over naru: " in text and said in text
    assert cause.strip() in ("AttributeError", "NotImplementedError")


def test_a_package_that_asks_for_another_goes_on_without_it(tmp_path):
    code, out, err = run(
        tmp_path, "import bystander\nprint(bystander.HAS)\n",
        {"__init__.py": "try:\n    from . import optional\n    HAS = True\nexcept ImportError:\n    HAS = False\n", "optional.py": STUMBLES["reads"][0]},
    )  # fmt: skip
    assert (code, out, err) == (0, "False\n", "")


@pytest.mark.parametrize("source, kind", [("1 / 0\n", "ZeroDivisionError"), ("import os\nos.no_such_name\n", "AttributeError"), ("class Mine:\n    pass\nMine.nothing\n", "AttributeError")])
def test_a_packages_own_errors_stay_what_they_are(tmp_path, source, kind):
    code, out, err = run(tmp_path, "import bystander\n", {"__init__.py": source})
    assert code == 1 and f"\n{kind}: " in err and "can't be imported" not in err
    assert "importlib" not in err  # nor is the import system seen in tracebacks


def test_the_programs_own_modules_keep_their_errors(tmp_path):
    code, out, err = run(tmp_path, "import bystander\n", {"__init__.py": STUMBLES["reads"][0]}, folder="mine")
    assert code == 1 and "AttributeError: module 'torch._C' has no attribute '_no_such_name'" in err and "can't be imported" not in err


def test_what_packages_ask_at_run_time_is_an_attribute_error_still(tmp_path):
    code, out, err = run(
        tmp_path, "import bystander\n", {"__init__.py": "import torch\nprint(hasattr(torch, 'package'), getattr(torch._C, '_nothing', 3))\n"}
    )
    assert (code, out, err) == (0, "False 3\n", "")


def test_torch_has_its_own_name(tmp_path):
    code, out, err = run(
        tmp_path,
        """
        import torch, torch.nn.functional, pickle
        from torch.utils import data
        print(torch.__name__, torch.nn.functional.__name__, data.__name__, torch.torch is torch, torch._C.__name__)
        import importlib, naru
        print(importlib.import_module("torch.nn") is naru.nn, importlib.import_module(".amp", torch.cuda.__name__) is torch.cuda.amp)
        """,
        {},
    )
    assert (code, err) == (0, "") and out == "torch torch.nn.functional torch.utils.data True torch._C\nTrue True\n"


def test_a_name_that_is_not_there_is_an_import_error_with_the_nearest_one(tmp_path):
    code, out, err = run(
        tmp_path,
        """
        for line in ("from torch.serialization import MAP_LOCATIONS", "from torch import zeroes", "from torch.nn import Linnear", "from torch import qqqq"):
            try:
                exec(line)
            except ImportError as error:
                print(error)
        """,
        {},
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "cannot import name 'MAP_LOCATIONS' from 'torch.serialization': naru has nothing of that name; nearest: torch.serialization.MAP_LOCATION",
        "cannot import name 'zeroes' from 'torch': naru has nothing of that name; nearest: torch.zeros",
        "cannot import name 'Linnear' from 'torch.nn': naru has nothing of that name; nearest: torch.nn.Linear",
        "cannot import name 'qqqq' from 'torch': naru has nothing of that name",
    ]
