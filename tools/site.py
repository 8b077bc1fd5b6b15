"""Builds the website in site/ with Sphinx: the pages in docs/ and a reference generated from docstrings. Called by `./run docs`.

python -m tools.site [--strict]    --strict: Sphinx warnings are errors
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
DOCS, SITE, API = ROOT / "docs", ROOT / "site", ROOT / "docs" / "api"

# The docstring of naru starts with its name, not with a description of its contents.
FIRST = "tensors, their functions, devices"


def namespaces() -> dict[str, ModuleType]:
    """The public modules of naru, packages before their contents; the tests' lists of cases are left out."""
    import naru

    found = {"naru": naru}
    for info in pkgutil.walk_packages(naru.__path__, "naru."):
        private = any(part.startswith("_") for part in info.name.split("."))
        if not private and not info.name.startswith("naru.testing."):
            found[info.name] = importlib.import_module(info.name)
    return dict(sorted(found.items(), key=lambda row: (row[0].count("."), row[0])))


def about(module: ModuleType) -> str:
    """The purpose of a namespace: the first sentence of its docstring, without its name."""
    if module.__name__ == "naru":
        return FIRST
    first = re.split(r"\.(?:\s|$)|\n\n", inspect.getdoc(module) or "", maxsplit=1)[0]
    return " ".join(re.sub(r"^`?torch(vision)?[\w.]*`?(?:'s small core)?:\s+", "", first).split()).rstrip(".")


def public(module: ModuleType) -> list[str]:
    """The names in a namespace that are functions or classes of naru."""
    found = []
    for name in sorted(set(getattr(module, "__all__", None) or dir(module)), key=str.lower):
        thing = getattr(module, name, None)
        ours = str(getattr(thing, "__module__", "naru") or "naru").startswith("naru")
        if not name.startswith("_") and callable(thing) and not inspect.ismodule(thing) and ours:
            found.append(name)
    return found


def write_missing() -> None:
    """Writes docs/api/missing.md: the public PyTorch names that naru has, and the nearest alternatives to the others."""
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
    """Writes docs/api; returns the number of names in it."""
    shutil.rmtree(API, ignore_errors=True)
    API.mkdir()
    pages: list[str] = []
    rows: list[str] = []
    seen: set[int] = set()
    for space, module in namespaces().items():
        things = {name: getattr(module, name) for name in public(module)}
        things = {name: thing for name, thing in things.items() if inspect.getdoc(thing)}
        if {id(thing) for thing in things.values()} <= seen:
            continue  # another namespace documents all of it
        words = about(module)
        lines = [f"# {space}", "", f"{words[0].upper()}{words[1:]}.", ""]
        lines += ["```{eval-rst}", f".. py:currentmodule:: {space}", ""]
        for name, thing in things.items():
            lines += [f".. {'autoclass' if inspect.isclass(thing) else 'autofunction'}:: {space}.{name}"]
            lines += ["   :members:"] if space == "naru" and name == "Tensor" else []
            # A name in several namespaces is indexed in the first one.
            lines += ["   :no-index:", ""] if id(thing) in seen else [""]
            seen.add(id(thing))
        (API / f"{space}.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")
        pages.append(space)
        rows.append(f"| [{space}]({space}.md) | {words.replace('|', chr(92) + '|')} |")
    count = len(seen)
    contents = [
        "What PyTorch has and naru lacks: [the list](missing.md).",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *pages,
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
