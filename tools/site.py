"""The site: the pages under docs/ and a reference made from docstrings, by Sphinx, into site/. `./run docs` calls it.

python -m tools.site [--strict]    --strict: a warning of Sphinx's is an error
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
DOCS, SITE, API = ROOT / "docs", ROOT / "site", ROOT / "docs" / "api"

# The namespaces of the reference, and what each is for.
NAMESPACES = {
    "naru": "tensors, their functions, devices",
    "naru.nn": "modules",
    "naru.nn.functional": "functions of networks",
    "naru.nn.init": "first values of parameters",
    "naru.nn.utils": "norms, packed sequences, vectors of parameters",
    "naru.optim": "optimizers",
    "naru.optim.lr_scheduler": "schedules of learning rates",
    "naru.autograd": "derivatives",
    "naru.autograd.functional": "Jacobians, Hessians",
    "naru.amp": "mixed precision",
    "naru.cuda": "devices of kind cuda",
    "naru.mps": "devices of kind mps",
    "naru.xpu": "devices of kind xpu",
    "naru.cpu": "the processor",
    "naru.accelerator": "the best device, whatever its kind",
    "naru.fallback": "operators that a device lacks",
    "naru.linalg": "linear algebra",
    "naru.fft": "Fourier transforms",
    "naru.special": "special functions",
    "naru.signal.windows": "windows",
    "naru.random": "random numbers",
    "naru.utils.data": "data sets and loaders",
    "naru.utils.dlpack": "tensors of other libraries",
    "naru.serialization": "files",
    "naru.safetensors": "safetensors files",
}


def public(module: ModuleType) -> list[str]:
    """The names of a namespace that are functions or classes of naru's."""
    found = []
    for name in sorted(set(getattr(module, "__all__", None) or dir(module)), key=str.lower):
        thing = getattr(module, name, None)
        ours = str(getattr(thing, "__module__", "naru") or "naru").startswith("naru")
        if not name.startswith("_") and callable(thing) and not inspect.ismodule(thing) and ours:
            found.append(name)
    return found


def write_missing() -> None:
    """Writes docs/api/missing.md: which public names of PyTorch naru has, and what comes nearest to the others."""
    from naru._missing import VERSION, names
    from naru._missing.nearest import nearest_to

    rows, lacking, have, all_ = [], [], 0, 0
    for space, words in sorted(names().items()):
        where = importlib.import_module("naru")
        for part in filter(None, space.split(".")):
            where = getattr(where, part, None)
        shown, there = (
            "torch" + (f".{space}" if space else ""),
            [w for w in words if where is not None and hasattr(where, w)],
        )
        have, all_ = have + len(there), all_ + len(words)
        if where is None:
            nearest = nearest_to(space)
            rows.append(f"| `{shown}` | 0 of {len(words)} | {nearest or ''} |")
            continue
        rows.append(f"| `{shown}` | {len(there)} of {len(words)} | |")
        absent = sorted(set(words) - set(there), key=str.lower)
        if absent:
            qualified = [(w, nearest_to(f"{space}.{w}" if space else w)) for w in absent]
            lacking += [f"## {shown}", "", ", ".join(f"`{w}`" + (f" ({n})" if n else "") for w, n in qualified), ""]
    head = [
        "# What is missing",
        "",
        f"Of the {all_} public names of PyTorch {VERSION} naru has {have}. Made when the site is built, by asking;",
        "`naru check SCRIPT` asks for one program.",
        "",
    ]
    text = [*head, "| namespace | there | nearest |", "|---|---|---|", *rows, "", *lacking]
    (API / "missing.md").write_text("\n".join(text), encoding="utf-8")


def write_reference() -> int:
    """Writes docs/api; returns how many names it has."""
    shutil.rmtree(API, ignore_errors=True)
    API.mkdir()
    count, rows, seen = 0, [], set()
    for space, about in NAMESPACES.items():
        module = importlib.import_module(space)
        lines = [
            f"# {space}",
            "",
            about[0].upper() + about[1:] + ".",
            "",
            "```{eval-rst}",
            f".. py:currentmodule:: {space}",
            "",
        ]
        for name in public(module):
            thing = getattr(module, name)
            if not inspect.getdoc(thing):
                continue
            lines += [f".. {'autoclass' if inspect.isclass(thing) else 'autofunction'}:: {space}.{name}"]
            lines += ["   :members:"] if space == "naru" and name == "Tensor" else []
            lines += (
                ["   :no-index:", ""] if thing in seen else [""]
            )  # a name that stands in several namespaces has its place in the first
            seen.add(thing)
            count += 1
        (API / f"{space}.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")
        rows.append(f"| [{space}]({space}.md) | {about} |")
    contents = [
        "What PyTorch has and naru lacks: [the list](missing.md).",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *NAMESPACES,
        "missing",
        "```",
        "",
    ]
    text = [
        "# Reference",
        "",
        f"{count} names, from their docstrings.",
        "",
        "| namespace | |",
        "|---|---|",
        *rows,
        "",
        *contents,
    ]
    (API / "index.md").write_text("\n".join(text), encoding="utf-8")
    return count


def main() -> int:
    sys.path.insert(0, str(ROOT / "python"))
    count = write_reference()
    write_missing()
    strict = ["-W", "--keep-going"] if "--strict" in sys.argv else []
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-j",
        "auto",
        "-d",
        str(ROOT / "build" / "doctrees"),
        *strict,
        str(DOCS),
        str(SITE),
    ]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status == 0:
        print(
            f"naru: {SITE.relative_to(ROOT)}/index.html: {len(list(SITE.rglob('*.html')))} pages, "
            f"{count} names in the reference"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
