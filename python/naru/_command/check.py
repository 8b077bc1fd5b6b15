"""`naru check`: finds the PyTorch names that a program uses and naru lacks, by static analysis."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from inspect import getattr_static
from types import ModuleType
from typing import Any, NamedTuple

from .._missing import Absent, from_elsewhere, is_absent as is_placeholder, is_pytorchs, names, said
from ..vision._names import said as said_of_vision
from .runner import is_absent
from .screen import progress, say, wrong

# Top-level packages that programs import, and their location in naru.
_ROOTS = {"torch": "", "naru": "", "torchvision": "vision", "functorch": "functorch"}


# Functions that do less here than in PyTorch, and what.
_LESS = {
    **dict.fromkeys(("compile", "compiler.compile"), "returns the function itself; its operators are fused as they always are"),
    **dict.fromkeys(("jit.script", "jit.trace", "jit.trace_module", "jit.freeze", "jit.optimize_for_inference"), "returns what it is given; nothing is compiled to TorchScript"),
    "jit.fork": "calls the function at once",
    "distributed.init_process_group": "knows the backends of docs/distributed.md; 'nccl' takes NCCL where it is installed",
}
# PyTorch's sister packages, which are built against it.
_SISTERS = ("torchaudio", "torchtext", "torchdata", "torchrec", "torch_xla", "torch_tensorrt", "intel_extension_for_pytorch")


class Finding(NamedTuple):
    """A name that a program uses; `text` is the message about it. note: naru has the name, but it does less than PyTorch's."""

    file: str
    line: int
    text: str
    note: bool = False


def _known(root: str) -> bool:
    """Whether `root` resolves to naru under `naru run`; torchvision does if it is not installed."""
    return root in _ROOTS and (root != "torchvision" or is_absent(root))


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _is_module(qualified: str) -> bool:
    if qualified.partition(".")[0] == "vision":
        return _has(qualified) and isinstance(_find(qualified), ModuleType)
    return qualified == "" or qualified in names() or any(module.startswith(qualified + ".") for module in names())


class _Reader(ast.NodeVisitor):
    """Resolves a file's names to PyTorch's modules and their members. Scopes are not distinguished: a name that is bound to something else anywhere
    in the file is ignored, so that nothing unrelated to PyTorch is reported."""

    def __init__(self, tree: ast.AST) -> None:
        self.known: dict[str, str] = {}  # a name in the file -> PyTorch's name, without `torch.`
        self.used: list[tuple[int, str]] = []  # (line, qualified)
        self.methods: list[tuple[int, str]] = []
        self.sisters: list[tuple[int, str]] = []
        for node in ast.walk(tree):
            self._take_import(node)
        for node in ast.walk(tree):
            for name in self._bound(node):
                self.known.pop(name, None)
        self.visit(tree)

    def _take_import(self, node: ast.AST) -> None:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        self.sisters += [(node.lineno, name.partition(".")[0]) for name in modules if name and name.partition(".")[0] in _SISTERS]
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, _, rest = alias.name.partition(".")
                if not _known(root):
                    continue
                self.known[alias.asname or root] = _join(_ROOTS[root], rest if alias.asname else "")
                if rest:
                    self.used.append((node.lineno, _join(_ROOTS[root], rest)))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            root, _, rest = node.module.partition(".")
            if not _known(root):
                return
            if rest:
                self.used.append((node.lineno, _join(_ROOTS[root], rest)))
            rest = _join(_ROOTS[root], rest)
            for alias in node.names:
                if alias.name == "*":
                    continue
                qualified = f"{rest}.{alias.name}" if rest else alias.name
                self.known[alias.asname or alias.name] = qualified
                self.used.append((node.lineno, qualified))

    @staticmethod
    def _bound(node: ast.AST) -> list[str]:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            return [node.id]
        if isinstance(node, ast.arg):
            return [node.arg]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node.name]
        return []

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.known:
            qualified = self.known[inner.id]
            # Resolve attributes of modules only; attributes of functions and classes are not checked, except Tensor's methods.
            for part in reversed(parts):
                if not (_is_module(qualified) or qualified == "Tensor"):
                    break
                qualified = f"{qualified}.{part}" if qualified else part
            self.used.append((node.lineno, qualified))
            return
        self.methods.append((node.lineno, node.attr))
        self.generic_visit(node)


def _find(qualified: str) -> Any:
    """What naru has under a name (without `torch.`). Raises AttributeError or ImportError if there is nothing."""
    import importlib

    import naru

    found: Any = naru
    path = ""
    for part in qualified.split("."):
        before, path = path, f"{path}.{part}"
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError):
            same = from_elsewhere(before[1:], part)
            if same is not None:
                found = same
                continue
            if not hasattr(found, "__path__"):
                raise
            found = importlib.import_module("naru" + path)
    return found


def _has(qualified: str) -> bool:
    try:
        return not is_placeholder(_find(qualified), qualified)
    except (AttributeError, ImportError):
        return False


def _tensor_lacks(method: str) -> bool:
    """Whether a method of an unknown object is probably a Tensor method that naru lacks: no other common class has a method of that name."""
    import naru

    if not isinstance(getattr_static(naru.Tensor, method, None), Absent):
        return False
    others = [list, dict, str, bytes, tuple, set, int, slice]
    with contextlib.suppress(ImportError):
        import numpy as np

        others += [np, np.linalg, np.ndarray]
    return not any(hasattr(other, method) for other in (*others, naru.linalg, naru.nn.Module, naru.optim.Optimizer, naru.Generator))


def check_source(source: str, file: str) -> list[Finding]:
    """The names in a program's source that naru lacks, in line order; each name once per line.

    >>> for f in check_source("import torch\\nmodel = torch.package.PackageImporter(f)\\n", "train.py"): print(f.line, f.text)
    2 torch.package.PackageImporter is in PyTorch 2.15 but not in naru yet; nearest: torch.save and torch.load of a state_dict, beside the program's own files
    """
    try:
        reader = _Reader(ast.parse(source, file))
    except (SyntaxError, ValueError) as error:
        return [Finding(file, getattr(error, "lineno", None) or 1, f"it can't be read: {getattr(error, 'msg', error)}")]
    found: dict[tuple[int, str], Finding] = {}
    for line, package in reader.sisters:
        found[line, package] = Finding(file, line, f"{package} is built against PyTorch's own libraries, so it needs PyTorch itself; naru has nothing in its place")
    for line, qualified in reader.used:
        if qualified in _LESS:
            found[line, qualified] = Finding(file, line, f"torch.{qualified} {_LESS[qualified]}", True)
        if _has(qualified) or any(part.startswith("_") for part in qualified.split(".")):
            continue
        if qualified.startswith("vision."):
            text = said_of_vision("torch" + qualified)
        elif is_pytorchs(qualified):
            text = said(qualified, hint=False)
        else:
            text = f"torch.{qualified} is neither in PyTorch 2.15 nor in naru"
        # `from torch.hub import load` reports the same name twice.
        found.setdefault((line, qualified), Finding(file, line, text))
    for line, method in reader.methods:
        if _tensor_lacks(method):
            found.setdefault((line, method), Finding(file, line, said(f"Tensor.{method}", hint=False)))
    kept = {key: f for key, f in found.items() if not any(line == key[0] and other.startswith(key[1] + ".") for line, other in found)}
    return sorted(kept.values(), key=lambda f: (f.line, f.text))


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, inner, files in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name != "__pycache__")
        found += [os.path.join(folder, name) for name in sorted(files) if name.endswith(".py")]
    return found


def _summary(files: int, findings: int, notes: int) -> str:
    read = f"{files} files" if files != 1 else "1 file"
    things = f"{findings} uses" if findings != 1 else "1 use"
    less = f"; {notes} that {'does' if notes == 1 else 'do'} less than in PyTorch" if notes else ""
    return f"{read} read: " + (f"{things} of what naru lacks" if findings else "naru has every name of PyTorch's that is used") + less


def check(path: str, as_json: bool = False) -> int:
    """Prints the names that naru lacks for a file, or for each .py file in a folder, and a verdict on the last line. Returns the exit status: 1 if
    anything is missing, 2 if there is nothing to read."""
    files = _files(path)
    if not files:
        return wrong("check", f"there is no .py file in '{path}'")
    findings: list[Finding] = []
    with progress("reading", len(files)) as tell:
        for file in files:
            tell(file)
            try:
                with open(file, encoding="utf-8", errors="replace") as opened:
                    findings += check_source(opened.read(), file)
            except OSError as error:
                return wrong("check", f"can't open file '{file}': {error.strerror}")
    missing, notes = ([f for f in findings if f.note is kind] for kind in (False, True))
    if as_json:
        as_dicts = {kind: [{"file": f.file, "line": f.line, "text": f.text} for f in some] for kind, some in (("missing", missing), ("notes", notes))}
        print(json.dumps({"files": len(files), **as_dicts}, indent=2))
    else:
        for f in findings:
            say((f"{f.file}:{f.line}", "cyan"), f": {f.text}")
        say((_summary(len(files), len(missing), len(notes)), "yellow" if missing else "green"))
    return 1 if missing else 0
