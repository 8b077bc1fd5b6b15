"""Runs the code blocks of the pages in docs/: Python and its output, commands, and C++.

    python -m tools.doc_blocks [PAGE...]            runs the pages and reports errors; exit status 1 if there are any
    python -m tools.doc_blocks --write [PAGE...]    writes what was printed into the pages

The format of pages (also described in docs/testing.md):

    ```python                 runs in order, in one namespace per page; `torch` is naru
    ```python raises          must end with an exception, whose last line (Name: text) counts as printed
    ```python file=NAME       is written to that file, in the page's own empty folder
    ```python no-run: REASON  does not run
    ```text                   directly after such a block: its output, and the value of its last expression; `...` matches anything
    f(x)  # -> text           what this statement prints, or the expression's value
    ```console                lines `$ command` run in that folder, with bash; the lines below are the output
    ```sh                     is syntax-checked by bash, not run
    ```cpp                    is compiled, not linked: a whole program, or statements after `using namespace naru`
    <!-- run: CODE -->        Python that runs and is not shown; <!-- cpp: CODE --> C++ that is compiled and not shown, at namespace scope
    <!-- virtual: cuda:4 -->  the page's NARU_VIRTUAL (default cuda:2,mps:1)
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import importlib.metadata
import io
import linecache
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
VIRTUAL = "cuda:2,mps:1"
PATIENCE = 120  # time limit for a page, in seconds

_FENCE = re.compile(r"^( *)(`{3,})(.*)$")
_HIDDEN = re.compile(r"^<!-- (run|cpp|virtual):(.*?)-->", re.DOTALL | re.MULTILINE)
_ARROW = re.compile(r"#\s*-> ?(.*)$")


@dataclass
class Block:
    """A fenced or hidden block: its language, the other words of the fence, its text, and its line in the page (from 0)."""

    language: str
    rest: str
    text: str
    line: int
    hidden: bool = False
    shows: Block | None = field(default=None, repr=False)  # the ```text block after it

    @property
    def skipped(self) -> str | None:
        """The reason why it is not run; None if it is."""
        return self.rest.removeprefix("no-run").lstrip(": ") if self.rest.startswith("no-run") else None

    @property
    def file(self) -> str | None:
        return self.rest.removeprefix("file=") if self.rest.startswith("file=") else None


def all_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if "api" not in p.relative_to(DOCS).parts)]


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, including hidden ones, in order."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in _HIDDEN.finditer(text):
        line = text.count("\n", 0, match.start(2))
        found.append(Block({"run": "python"}.get(match[1], match[1]), "", match[2], line, hidden=True))
    lines, i, last = text.split("\n"), 0, -2
    while i < len(lines):
        opening = _FENCE.match(lines[i])
        if not opening:
            i += 1
            continue
        begin = i
        i += 1
        while i < len(lines) and lines[i].strip() != opening[2]:
            i += 1
        words = opening[3].strip().split(" ", 1)
        indent = len(opening[1])
        block = Block(
            words[0],
            words[1] if len(words) > 1 else "",
            "\n".join(x[indent:] for x in lines[begin + 1 : i]),
            begin + 1,
        )
        i += 1
        if block.language.startswith("{"):  # a MyST directive, such as a table of contents
            continue
        if block.language == "text" and found and not any(x.strip() for x in lines[last:begin]):
            shown = max((b for b in found if not b.hidden and b.line < begin), key=lambda b: b.line, default=None)
            if shown is not None and shown.language == "python":
                shown.shows = block
                last = i
                continue
        found.append(block)
        last = i
    return sorted(found, key=lambda b: b.line)


def same(wanted: str, got: str) -> bool:
    """Whether the output matches the expected text, in which `...` matches anything."""

    def plain(text: str) -> str:
        return "\n".join(x.rstrip() for x in text.strip("\n").split("\n")) + "\n"

    return doctest.OutputChecker().check_output(plain(wanted), plain(got), doctest.ELLIPSIS)


class _Page:
    """Runs a page, in its own process and folder."""

    def __init__(self, page: Path) -> None:
        self.page, self.wrong = page, []
        self.printed: dict[int, str] = {}  # line of the block -> its output, if the page shows it
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module

    def fault(self, line: int, text: str) -> None:
        self.wrong.append(f"{self.page.relative_to(ROOT)}:{line + 1}: {text}")

    def run(self) -> None:
        for block in blocks_of(self.page):
            if block.skipped is not None or block.language not in ("python", "console"):
                continue
            if block.file:
                Path(block.file).write_text(block.text + "\n", encoding="utf-8")
            elif block.language == "console":
                self.console(block)
            else:
                self.python(block)

    def console(self, block: Block) -> None:
        said: list[str] = []
        for part in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE):
            if not part.startswith("$ "):
                continue
            command, _, wanted = part[2:].partition("\n")
            shell = (
                f'naru() {{ "{sys.executable}" -m naru "$@"; }}; python() {{ "{sys.executable}" "$@"; }}; {command}'
            )
            done = subprocess.run(
                ["bash", "-c", shell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            said.append(f"$ {command}\n{done.stdout.rstrip()}".rstrip())
            if not same(wanted, done.stdout):
                self.fault(
                    block.line,
                    f"`{command}` (exit status {done.returncode}) printed\n{done.stdout}instead of\n{wanted}",
                )
        self.printed[block.line] = "\n".join(said)

    def python(self, block: Block) -> None:
        name = self.page.stem.replace("-", "_") + ".py"
        linecache.cache[name] = (len(block.text), None, [x + "\n" for x in block.text.split("\n")], name)
        out, lines = io.StringIO(), block.text.split("\n")
        raised = None
        try:
            body = ast.parse(block.text, name).body
            for statement in body:
                arrow = _ARROW.search(lines[(statement.end_lineno or 1) - 1])
                said = self.statement(statement, name, shown=arrow is not None or statement is body[-1])
                if arrow is None:
                    out.write(said)
                elif not same(arrow[1], said):
                    self.fault(block.line + statement.lineno - 1, f"printed {said.strip()!r}, and not {arrow[1]!r}")
        except BaseException as error:  # noqa: BLE001 - any exception is a result of the page
            out.write(getattr(error, "said_before", ""))
            raised = error
            out.write(f"{type(error).__name__}: {error}\n")
        if (raised is not None) != (block.rest == "raises"):
            self.fault(block.line, f"raised {type(raised).__name__}: {raised}" if raised else "raised nothing")
        if block.shows is not None:
            self.printed[block.shows.line] = out.getvalue()
            if not same(block.shows.text, out.getvalue()):
                self.fault(block.shows.line, f"printed\n{out.getvalue()}instead of\n{block.shows.text}")

    def statement(self, statement: ast.stmt, name: str, shown: bool) -> str:
        """Runs a statement and returns its output; if it is to be shown, an expression's value is shown as by the interpreter."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                if isinstance(statement, ast.Expr):
                    code = compile(ast.Expression(statement.value), name, "eval")
                    value = eval(code, self.module.__dict__)  # noqa: S307
                    if shown and value is not None and not out.getvalue():
                        print(repr(value))
                else:
                    exec(compile(ast.Module([statement], []), name, "exec"), self.module.__dict__)  # noqa: S102
            except BaseException as error:
                error.said_before = out.getvalue()  # type: ignore[attr-defined]
                raise
        return out.getvalue()


def _child(page: Path, pipe: object) -> None:
    signal.alarm(PATIENCE)
    given = [b.text.strip() for b in blocks_of(page) if b.language == "virtual"]
    os.environ["NARU_VIRTUAL"] = given[0] if given else VIRTUAL
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run = _Page(page)
        run.run()
        os.chdir("/")
    pipe.send((run.wrong, run.printed))  # type: ignore[attr-defined]


def run_page(page: Path) -> tuple[list[str], dict[int, str]]:
    """Runs a page; returns its errors and the output of its blocks.

    Each page runs in a fork of this process, which must not have used a device.
    """
    there, here = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(page, here))
    child.start()
    here.close()
    try:
        answer = there.recv()
    except EOFError:
        answer = None
    child.join()
    return answer or (
        [
            f"{page.relative_to(ROOT)}: the process ended with {child.exitcode} ({-signal.SIGALRM}: after {PATIENCE} s)"
        ],
        {},
    )


def write_outputs(page: Path, printed: dict[int, str]) -> None:
    lines = page.read_text(encoding="utf-8").split("\n")
    for block in sorted((b for a in blocks_of(page) for b in (a, a.shows) if b), key=lambda b: -b.line):
        said = printed.get(block.line)
        if said is not None and not same(block.text, said):
            end = block.line + (block.text.count("\n") + 1 if block.text or lines[block.line].strip() != "```" else 0)
            lines[block.line : end] = said.rstrip("\n").split("\n")
    page.write_text("\n".join(lines), encoding="utf-8")


def prepare() -> None:
    """Makes `torch` naru, and clears environment variables for naru, devices and an outer pytest."""
    plain = (
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "PYTORCH_ENABLE_MPS_FALLBACK",
        "PYTEST_ADDOPTS",
        "PYTEST_CURRENT_TEST",
    )
    for name in [n for n in os.environ if n in plain or n.startswith(("NARU_", "PYTEST_XDIST"))]:
        del os.environ[name]
    os.environ["NARU_CACHE_DIR"] = ""
    import naru
    from naru._command.runner import install_torch_alias

    install_torch_alias()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(naru.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    if not any(e.value.startswith("naru.") for e in importlib.metadata.entry_points(group="pytest11")):
        os.environ["PYTEST_PLUGINS"] = "naru.testing.pytest_plugin"  # an installed naru registers the plugin by its entry point


# --- C++ ------------------------------------------------------------------------------------------------------------


def cpp_source(pages: list[Path]) -> str:
    """Combines all distinct C++ blocks into one file: each in a namespace, whole programs as they are, statements in a function."""
    includes, parts, seen = {"#include <iostream>", "#include <naru/naru.h>"}, [], set()
    for page in pages:
        scope = ""
        for block in blocks_of(page):
            if block.language != "cpp" or block.skipped is not None:
                continue
            if block.hidden:
                scope += block.text
                continue
            if block.text in seen:
                continue
            seen.add(block.text)
            body = re.sub(r"^#include.*$", lambda m: includes.add(m[0]) or "", block.text, flags=re.MULTILINE)
            whole = re.search(r"^(int main|struct|class|template|TORCH_LIBRARY)\b", body, re.MULTILINE)
            where = f'#line {block.line + 1} "{page.relative_to(ROOT)}"\n'
            body = where + body if whole else f"void block() {{\n{where}{body}\n}}"
            parts.append(f"namespace block{len(parts)} {{\nusing namespace naru;\n{scope}\n{body}\n}}\n")
    return "\n".join([*sorted(includes), *parts])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.doc_blocks", description="runs the code blocks of the pages"
    )
    parser.add_argument("--write", action="store_true", help="write what was printed into the pages")
    parser.add_argument("--cpp", action="store_true", help="print the C++ of the pages instead, as one file")
    parser.add_argument("pages", nargs="*", type=Path)
    arguments = parser.parse_args()
    pages = [p.resolve() for p in arguments.pages] or all_pages()
    if arguments.cpp:
        print(cpp_source(pages))
        return 0
    prepare()
    wrong = []
    for page in pages:
        faults, printed = run_page(page)
        if arguments.write and printed:
            write_outputs(page, printed)
        wrong += faults
    print("\n".join(wrong) or f"{len(pages)} pages are as they say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
