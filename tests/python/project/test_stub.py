"""The extension's stub and the types of `import torch` agree with actual results and names."""
import ast
import sys
import zipfile
from pathlib import Path

import pytest

import naru

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from tools import stub, torch_stubs  # noqa: E402

SYMMETRIC = [[4.0, 1.0], [1.0, 3.0]]
# Functions that accept other inputs than a matrix.
MORE = {"histogram": (4,), "kthvalue": (1,), "topk": (1,), "triangular_solve": 2, "linalg_solve_ex": 2, "linalg_lstsq": 2} | dict.fromkeys(
    ("max", "min", "median", "nanmedian", "cummax", "cummin"), (0,)
)


@pytest.mark.parametrize("name, fields", [(name, fields.split()) for fields, names in stub.FIELDS.items() for name in names.split()])
def test_results_have_the_fields_that_the_stub_says(name, fields):
    x = naru.tensor(SYMMETRIC)
    more = MORE.get(name, ())
    space, function = (naru.linalg, name.removeprefix("linalg_")) if name.startswith("linalg_") else (naru, name)
    found = getattr(space, function)(x, *((x,) if more == 2 else more))
    assert len(found) == len(fields)
    for field, part in zip(fields, found):
        assert getattr(found, field) is part


def test_the_types_of_torch_name_what_naru_has(tmp_path):
    with zipfile.ZipFile(torch_stubs.write_wheel(tmp_path)) as archive:
        names = archive.namelist()
        root = archive.read("torch-stubs/__init__.pyi").decode()
        nn = archive.read("torch-stubs/nn/__init__.pyi").decode()
    assert {"torch-stubs/nn/functional.pyi", "torch-stubs/utils/data/__init__.pyi", "torch-stubs/optim/lr_scheduler.pyi"} <= set(names)
    assert not [n for n in names if n.startswith("torch-stubs/_") and n != "torch-stubs/__init__.pyi"]
    for text, wanted in ((root, {"Tensor", "ones", "no_grad", "nn", "cuda"}), (nn, {"Linear", "Module", "functional"})):
        exported = {alias.asname for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert wanted <= exported and "annotations" not in exported
    assert "Requires-Dist: naru==0.1.0" in zipfile.ZipFile(next(tmp_path.glob("*.whl"))).read("naru_torch_stubs-0.1.0.dist-info/METADATA").decode()


def test_the_stub_has_every_name_of_tensors():
    path = Path(naru._C.__file__).with_name("_C.pyi")
    if not path.exists():
        pytest.skip(f"{path} is not there: this extension was built without a stub (a sanitizer's, or a cross-compiled one)")
    (body,) = (node.body for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    told = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    names = {name for name in dir(naru.ones(1)) if not name.startswith("_") or name.startswith(("__array_n", "__dl"))}
    assert names - told == set()


def test_every_name_that_is_loaded_when_asked_for_is_told_to_type_checkers():
    tree = ast.parse((Path(naru.__file__)).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"]
    told = {alias.asname for block in blocks for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {name for name in naru._LAZY if not name.startswith("_")} - told == set(), "import them under TYPE_CHECKING, as `name as name`"
