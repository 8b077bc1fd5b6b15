"""What type checkers find in programs that use naru, in an environment that has naru and the types of `import torch`, and nothing else.

Run by ./run test --types, in an environment of its own (tools/requirements-types.txt).
"""
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import programs
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools import torch_stubs  # noqa: E402

# Scripts say no types of their own, and a module's call gives Any, as in PyTorch; all else of --strict holds.
SCRIPTS = ["--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls", "--allow-untyped-decorators", "--allow-any-generics"]
# What is the programs' own: by file, what is said there, and why it is no fault of naru's types (PyTorch's say the same but for the last).
THEIRS = {
    "seed_sequential_on_the_best_device": ("DataParallel|\"cpu\"|has no attribute|known attribute", "a name gets another type; .grad may be None"),
    "docs_memory": ('expression has type "Sequential"', "a name gets a module of another type"),
    "docs_tutorials_gpu_basics": ("DataParallel", "a name gets a module of another type"),
    "seed_devices_of_tensors": ("expression has type \"str\"", "a name gets another type"),
    "seed_choosing_a_device": ("expression has type \"device\"|\"str\" has no attribute", "a name gets another type"),
    "docs_tutorials_kernels": ("expression has type \"device\"", "a name gets another type"),
    "seed_memory_figures": ("list\\[Tensor\\]", "lists are appended to a list of tensors"),
    "docs_tutorials_choosing_and_moving": ("possibly unbound", "a loop may have no pass"),
    "docs_tutorials_device_management": ("possibly unbound", "a loop may have no pass"),
    "distributed_train": ("possibly unbound", "a loop may have no pass"),
    "seed_products_on_every_device": ("possibly unbound", "a loop may have no pass"),
    "test_parallel": ("multiple values", "a call with * and a keyword"),
    "docs_notebooks": ("_repr_html_", "it is there only after set_printoptions(html=True)"),
    # Of the libraries that the demo draws with.
    "demo": ("SubFigure", "matplotlib's"),
    "export_digits": ("sklearn", "scikit-learn has no types"),
}


def ours(found):
    """What is not the programs' own."""
    return [line for line in found if not ((entry := THEIRS.get(line.split(".py")[0])) and re.search(entry[0], line))]


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """The Python of an environment with naru (this tree's) and torch-stubs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (site / "naru.pth").write_text(f"{ROOT / 'python'}\n")
    with zipfile.ZipFile(torch_stubs.write_wheel(tmp_path_factory.mktemp("dist"))) as archive:
        archive.extractall(site)
    # What programs use beside naru comes from this environment.
    (site / "others.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return folder, programs.write(folder)


def mypy(inside, folder, *arguments):
    command = [sys.executable, "-m", "mypy", "--python-executable", str(inside), "--strict", "--no-error-summary", *map(str, arguments)]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return ours([line for line in done.stdout.splitlines() if ": note: " not in line])


def pyright(inside, folder, *arguments):
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-m", "pyright", "--pythonpath", str(inside), "--outputjson", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 0
    return ours([f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']}" for d in found["generalDiagnostics"] if d["severity"] == "error"])


def test_mypy_finds_nothing_in_scripts_and_pages(inside, scripts):
    folder, paths = scripts
    assert mypy(inside, folder, *SCRIPTS, *paths) == []


def test_pyright_finds_nothing_in_scripts_and_pages(inside, scripts):
    folder, paths = scripts
    assert pyright(inside, folder, *paths) == []


def test_mypy_finds_nothing_in_the_demo_with_all_that_strict_asks(inside):
    assert mypy(inside, ROOT / "examples", "demo.py") == []


def test_pyright_finds_nothing_in_the_demo(inside):
    assert pyright(inside, ROOT / "examples", "demo.py") == []


# Twenty programs of the packages in tools/requirements-types.txt, written for PyTorch.
PUBLIC = """
einops/layers/torch.py torchinfo/torchinfo.py torchmetrics/functional/regression/mse.py torchmetrics/functional/classification/accuracy.py
torchmetrics/classification/confusion_matrix.py timm/models/resnet.py timm/models/convnext.py timm/models/mobilenetv3.py timm/models/efficientnet.py
timm/optim/lion.py timm/optim/madgrad.py timm/optim/lamb.py timm/loss/asymmetric_loss.py timm/layers/mlp.py timm/layers/attention.py timm/data/mixup.py
timm/utils/model_ema.py pytorch_optimizer/optimizer/adabelief.py pytorch_optimizer/optimizer/lamb.py pytorch_optimizer/optimizer/shampoo.py
""".split()
# What is said there of torch itself: a name that it lacks or that has no type.
OF_TORCH = re.compile(r'of module "(torch|naru)|import symbol|for class "object"|Import "torch|Variable not allowed in type expression.*torch\.')
# No names of PyTorch's (2.15), either.
NOT_THERE = ("_params_t",)


def test_names_of_torch_that_public_programs_use_have_types(inside, tmp_path):
    site = Path(pytest.__file__).parents[1]
    paths = [site / name for name in PUBLIC]
    assert len(paths) == 20 and [p for p in paths if not p.exists()] == []
    found = [line if "type expression" not in line else f"{line}: {source_line(site, paths, line)}" for line in pyright(inside, tmp_path, *paths)]
    assert [line for line in found if OF_TORCH.search(line) and not any(f'"{name}"' in line for name in NOT_THERE)] == []


def source_line(site, paths, message):
    """The line that a message is about."""
    name, number = message.split(":")[:2]
    return " ".join(p.read_text().split("\n")[int(number) - 1] for p in paths if p.name == name)


TYPED = """
import torch
from torch import nn, Tensor
from torch.utils.data import DataLoader
import torch.nn.functional as F
import naru

x = torch.ones(2, 3)
reveal_type(x)  # naru._C.Tensor
reveal_type(torch.max(x, 1).values)  # naru._C.Tensor
reveal_type(x.topk(2).indices)  # naru._C.Tensor
reveal_type(x.sort()[1])  # naru._C.Tensor
reveal_type(x.size(0))  # int
reveal_type(x.size())  # naru._C.Size
reveal_type(torch.tensor([1]))  # naru._C.Tensor
reveal_type(x.nonzero(as_tuple=True)[0])  # naru._C.Tensor
reveal_type(torch.empty(size=(2, 3)))  # naru._C.Tensor
reveal_type(x.permute(dims=(1, 0)))  # naru._C.Tensor
values, indices = x.min(dim=0)
reveal_type(indices)  # naru._C.Tensor
reveal_type(torch.linalg.eigh(x).eigenvectors)  # naru._C.Tensor
reveal_type(nn.Linear(2, 3).weight)  # naru._C.Tensor
reveal_type(torch.float32)  # naru._C.dtype
reveal_type(torch.device("cuda"))  # naru._C.device
reveal_type(torch.cuda.is_available())  # bool
reveal_type(torch.Generator().manual_seed(0))  # naru._C.Generator
reveal_type(F.relu(x))  # naru._C.Tensor
reveal_type(torch.utils.data.DataLoader([1]).batch_size)  # int | None
labels: torch.LongTensor | torch.cuda.LongTensor | None = None
s: torch.cuda.Stream = torch.cuda.current_stream()
m: nn.Module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.ReflectionPad2d(1), nn.LazyLinear(4))
o: torch.optim.Optimizer = torch.optim.AdamW(m.parameters(), lr=0.1)


@torch.no_grad()
def f(a: int) -> str:
    return ""


@torch.inference_mode()
def g(a: int) -> str:
    return ""


reveal_type(f(1))  # str
reveal_type(g(1))  # str
"""


def test_types_of_what_programs_hold_are_known(inside, tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--python-executable", str(inside), "--strict", "--no-error-summary", "typed.py"]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    told = dict(re.findall(r'^typed\.py:(\d+): note: Revealed type is "([^"]+)"', done.stdout, re.MULTILINE))
    lines = TYPED.split("\n")
    wanted = {str(i + 1): line.split("  # ")[1] for i, line in enumerate(lines) if line.startswith("reveal_type")}
    assert {i: t.removeprefix("builtins.") for i, t in told.items()} == wanted and ": error: " not in done.stdout, done.stdout
    (tmp_path / "plain.py").write_text("import torch\nfrom torch.distributed import ProcessGroup, init_process_group\n\n\n@torch.no_grad\ndef f(a: int) -> str:\n    return ''\n\n\nf(1).upper()\n")
    assert pyright(inside, tmp_path, "plain.py", "typed.py") == []


# Where names are made when naru is loaded, and where a function stands before the module of its name: a type checker sees Any.
UNKNOWN = {"naru.backends.cuda", "naru.nn.functional", "naru.nn.modules.activation"} | {
    "naru.nn.parallel.parallel_apply", "naru.nn.parallel.data_parallel", "naru.nn.parallel.replicate", "naru.nn.utils.weight_norm",
    "naru.nn.utils.spectral_norm", "naru.multiprocessing.spawn",
    "naru.library", "naru.jit.annotations", "naru.distributed", "naru.distributed.tensor",  # placeholders
    "naru.return_types",
    "naru.autograd.gradcheck", "naru.distributed.rendezvous",  # functions, too
    "naru.distributed.elastic", "naru.distributed.nn",  # placeholders, as those that follow
    *(f"naru.distributed.checkpoint.{name}" for name in "fsspec_filesystem hf_storage logger logging_handlers planner_helpers protocol "
      "quantized_hf_storage resharding staging utils".split()),
    *(f"naru.fx.{name}" for name in "graph.CodeGen graph_module.reduce_package_graph_module proxy.MetaProxy proxy.ParameterProxy proxy.Scope "
      "proxy.ScopeContextManager".split()),
    "naru.hub.tqdm",  # another package's
}  # fmt: skip


def test_every_public_name_is_known_to_type_checkers(inside, tmp_path):
    import importlib

    names = [(space, name) for space in torch_stubs.modules() for name in torch_stubs.names_of(importlib.import_module(space))]
    text = "".join(f"import {space}\n" for space in torch_stubs.modules()) + "".join(f"reveal_type({space}.{name})\n" for space, name in names)
    (tmp_path / "names.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--python-executable", str(inside), "--strict", "names.py"]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True).stdout
    at = {text.count("\n") - len(names) + 1 + i: f"{space}.{name}" for i, (space, name) in enumerate(names)}
    told = {at[int(i)]: t for i, t in re.findall(r'^names\.py:(\d+): note: Revealed type is "(.*)"$', done, re.MULTILINE)}
    assert len(told) > 2000
    said_to_be_any = {f"{space}.{name}" for space, name in names if getattr(importlib.import_module(space), name, None) is Any}
    assert {f"{s}.{n}" for s, n in names} - set(told) == set(), done[-3000:]
    unknown = {n for n, t in told.items() if t == "Any"} - said_to_be_any - UNKNOWN
    assert sorted(n for n in unknown if n.rpartition(".")[0] not in UNKNOWN) == []
    print(f"{len(told)} names, {sum(t == 'Any' for t in told.values())} of them Any")
