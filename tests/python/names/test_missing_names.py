"""Using a PyTorch name that naru lacks raises a clear error, and `naru check` finds such names without running the program."""

import importlib
import subprocess
import sys

import naru
import pytest
from naru import _missing
from naru._command.check import check_source
from naru._missing.elsewhere import SAME
from naru._missing.nearest import NEAREST, nearest_to

MODULES = sorted(module for module in _missing.names() if module and module[0].islower() and not module.startswith(("device", "dtype")))


def missing(qualified):
    """Whether naru has nothing of that name."""
    try:
        found = naru
        for part in qualified.split("."):
            found = getattr(found, part)
    except (AttributeError, ImportError):
        return True
    return _missing.is_absent(found, qualified)


LACKED = [name for name in ("package", "sparse", "nn.quantized", "cuda.graph_annotations", "backends.xnnpack", "utils.bundled_inputs", "Tensor.to_mkldnn") if missing(name)]


@pytest.mark.parametrize("qualified", LACKED)
def test_asking_for_it_is_an_attribute_error_that_names_it_and_what_comes_nearest(qualified):
    found, *rest = [naru, *qualified.split(".")]
    with pytest.raises(AttributeError, match=rf"^torch\.{qualified.split('.')[0]}.* is in PyTorch 2\.15 but not in naru yet(; nearest: .+)?; naru check SCRIPT lists all$"):
        for part in rest:
            found = getattr(found, part)


@pytest.mark.parametrize("line, qualified", [("from naru import package", "package"), ("from naru.utils import bundled_inputs", "utils.bundled_inputs"), ("from naru.backends import xnnpack", "backends.xnnpack")])
def test_from_import_is_an_import_error_with_the_same_words(line, qualified):
    with pytest.raises(ImportError) as raised:
        exec(line)
    assert str(raised.value) == _missing.said(qualified) and "but not in naru yet" in str(raised.value)


def test_a_module_that_is_missing_says_so_where_torch_means_naru(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("try:\n    import torch.jit.mobile_nothing\nexcept ImportError as e:\n    print(e)\ntry:\n    import torch.package\nexcept ImportError as e:\n    print(e)\n"
                      "try:\n    from torch.optim.sgd import functional_sgd\nexcept ImportError as e:\n    print(e)\nimport torch\n"
                      "from torch.optim.adamw import AdamW\nfrom torch.cuda.amp.autocast_mode import autocast\nfrom torch.cuda.amp.common import amp_definitely_not_available\nfrom torch.nn.modules.loss import CTCLoss\nimport torch.utils.benchmark.utils.timer as t\n"
                      "print(AdamW is torch.optim.AdamW, autocast is torch.cuda.amp.autocast, CTCLoss is torch.nn.CTCLoss, t.Timer is torch.utils.benchmark.Timer)\n"
                      "try:\n    from torch.optim.adamw import adamw\nexcept ImportError as e:\n    print(e)\n"
                      "print(hasattr(torch, 'package'), hasattr(torch.ones(1), 'to_mkldnn'))\n")
    done = subprocess.run([sys.executable, "-m", "naru", "run", str(script)], capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said[0].startswith("No module named 'torch.jit"), done.stdout + done.stderr
    assert said[1] == f"No module named 'torch.package': {_missing.said('package')}"
    assert said[2].startswith("cannot import name 'functional_sgd'") and said[3] == "True True True True" and said[5] == "False False"
    assert said[4] == _missing.said("optim.adamw.adamw")


def test_a_name_that_pytorch_has_not_either_is_pythons_own_error():
    with pytest.raises(AttributeError, match="^module 'torch' has no attribute 'zeroes'$"):
        naru.zeroes  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Lineal'"):
        exec("from naru.nn import Lineal")
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wait'"):
        naru.nn.Linear(1, 1).wait  # noqa: B018


def test_hasattr_dir_and_users_own_attributes_do_not_meet_what_is_missing():
    x = naru.ones(2)
    absent = [name for name in vars(naru.Tensor) if isinstance(vars(naru.Tensor)[name], _missing.Absent)]
    assert absent and not any(hasattr(x, name) for name in absent) and not {*absent} & {*dir(x)}

    class Mine(naru.Tensor):
        def to_mkldnn(self):
            return "mine"

    assert x.as_subclass(Mine).to_mkldnn() == "mine"


@pytest.mark.parametrize("module", MODULES)
def test_each_name_of_a_module_is_there_or_said_to_be_missing(module):
    try:
        found = importlib.import_module("naru." + module)
    except ImportError:
        return
    if not hasattr(found, "__getattr__"):
        return  # not importable by name; under `naru run` the finder provides it
    for name in _missing.names()[module]:
        try:
            getattr(found, name)
        except AttributeError as error:
            assert "not in naru yet" in str(error) or "has no attribute" in str(error) and ": " in str(error), f"{module}.{name}: {error}"


@pytest.mark.parametrize("module", SAME)
def test_what_pytorch_has_in_an_inner_module_too_is_found_where_naru_has_it(module):
    owner = importlib.import_module("naru." + SAME[module] if SAME[module] else "naru")
    found = [name for name in _missing.names()[module] if _missing.is_elsewhere(module, name)]
    assert found or any(row.startswith(module + ".") for row in SAME)
    assert all(_missing.from_elsewhere(module, name) is getattr(owner, name) for name in found)
    assert _missing.from_elsewhere(module, "no_such_name") is None


def test_what_comes_nearest_is_said_only_of_what_is_missing():
    assert [name for name in NEAREST if not missing(name) and name not in ("ao", "distributed", "fx.experimental")] == []  # of these only the names exist
    assert nearest_to("fx.experimental.proxy_tensor") == nearest_to("fx.experimental") and nearest_to("fx.Graph") is nearest_to("zeros") is None


PROGRAM = """
import torch, torch.package as h
import torch.nn as nn
from torch.optim import Adam, SGD as S
def train(optim, x):
    model = torch.sparse.spsolve(nn.Linear(3, 4))
    h.PackageImporter('a', 'b')
    x.to_mkldnn()
    optim.foo()
    return torch.nn.functional.relu(x), torch.zeroes(3), nn.Linear.nothing
"""


def test_check_finds_what_is_missing_by_line_and_nothing_else():
    found = check_source(PROGRAM, "train.py")
    assert [(f.line, f.text.split(" ")[0]) for f in found] == [(2, "torch.package"), (6, "torch.sparse.spsolve"), (7, "torch.package.PackageImporter"), (8, "torch.Tensor.to_mkldnn"), (10, "torch.zeroes")]
    assert found[2].text == _missing.said("package.PackageImporter", hint=False) and found[4].text == "torch.zeroes is neither in PyTorch 2.15 nor in naru"


LESS = """
import torch, torchaudio.transforms
from torchtext.data import utils
@torch.compile
def f(x):
    return torch.jit.script(x)
"""


def test_check_says_what_does_less_and_what_is_built_against_pytorch():
    found = check_source(LESS, "train.py")
    assert [(f.line, f.text.split(" ")[0], f.note) for f in found] == [(2, "torchaudio", False), (3, "torchtext", False), (4, "torch.compile", True), (6, "torch.jit.script", True)]


def test_a_name_that_the_program_binds_itself_is_not_pytorchs():
    assert check_source("import torch\ndef f(torch):\n    return torch.package\n", "a.py") == []
    assert check_source("import numpy as torch\ntorch.package\nx.package()\n", "a.py") == []


@pytest.mark.parametrize("program, status, last", [("import torch\ntorch.ones(3).cuda()\n", 0, "1 file read: naru has every name of PyTorch's that is used"), ("import torch\ntorch.package\n", 1, "1 file read: 1 use of what naru lacks"), ("def (", 1, "1 file read: 1 use of what naru lacks")])
def test_the_command_ends_with_a_verdict_and_a_status(tmp_path, program, status, last):
    (tmp_path / "a.py").write_text(program)
    for path in (tmp_path, tmp_path / "a.py"):
        done = subprocess.run([sys.executable, "-m", "naru", "check", str(path)], capture_output=True, text=True)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last), done.stderr


@pytest.mark.parametrize("arguments", [["/nowhere/a.py"], [], ["--what"]])
def test_the_command_says_what_it_can_not_read(arguments):
    done = subprocess.run([sys.executable, "-m", "naru", "check", *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("naru check: ") and not done.stdout
