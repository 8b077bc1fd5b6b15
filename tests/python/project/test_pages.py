"""The pages in docs/ are correct: their code runs and prints the output shown, and their tables are complete."""

import functools
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import naru
import pytest

ROOT = Path(__file__).resolve().parents[3]

from tools import doc_blocks, site
from tools.sanitized import SANITIZED

PAGES = doc_blocks.all_pages()
KOREAN = sorted((ROOT / "docs" / "ko").rglob("*.md"))
RUN = [
    p for p in PAGES if p not in KOREAN
]  # the Korean pages have exactly the same code and output
LANGUAGES = {"python", "text", "console", "cpp", "sh", "yaml", "toml", "cmake", "run", "virtual", ""}


def name(page):
    return str(page.relative_to(ROOT))


def hangs(page):
    return SANITIZED and "num_workers" in page.read_text()


def of(language):
    return [
        (page, b)
        for page in PAGES
        for b in doc_blocks.blocks_of(page)
        if b.language == language and b.skipped is None
    ]


@functools.cache
def faults():
    """What is wrong in each page. Pages run in a process that has not used a device, each in a fork of it."""
    code = "import json; from tools import doc_blocks as d; d.prepare()\n"
    code += "print(json.dumps({p: d.run_page(d.Path(p))[0] for p in sys.argv[1:]}))"
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path[:0] = {[str(ROOT), str(Path(naru.__file__).parents[1])]!r}; {code}",
        *(str(p) for p in RUN if not hangs(p)),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_code_of_a_page_runs_and_prints_what_stands_below_it(page):
    if hangs(page):
        pytest.skip("a loader's worker that is forked beside other threads waits for the sanitizer's lock")
    assert faults()[str(page)] == []


def test_a_page_that_lies_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(doc_blocks, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n\n"
                    "```python\nx  # -> 1\nx  # -> 3\n```\n\n```python raises\nx\n```\n\n"
                    "```python\ny\n```\n\n```console\n$ echo a\nb\n```\n")  # fmt: skip
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(tmp_path)
    run = doc_blocks._Page(page)
    run.run()
    assert [fault.split(":")[1] for fault in run.wrong] == ["7", "12", "16", "20", "24"], run.wrong


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_cpp_of_the_pages_compiles():
    source = doc_blocks.cpp_source(PAGES)
    command = ["g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{ROOT / 'include'}", "-x", "c++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:4000]
    print(f"{source.count('namespace block')} blocks of C++ compile")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_commands_that_are_not_run_are_ones_that_bash_can_read():
    for page, block in of("sh"):
        done = subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True)
        assert done.returncode == 0, f"{name(page)}:{block.line}: {done.stderr}"


def test_every_block_has_a_language_and_one_that_does_not_run_says_why():
    for page in PAGES:
        for block in doc_blocks.blocks_of(page):
            assert block.language in LANGUAGES, f"{name(page)}:{block.line}: {block.language}"
            assert block.skipped is None or len(block.skipped) > 10, (
                f"{name(page)}:{block.line}: no-run, and no reason"
            )
            if block.skipped is not None:
                print(f"not run: {name(page)}:{block.line}: {block.skipped}")


@pytest.mark.parametrize("page", KOREAN, ids=name)
def test_a_korean_page_has_the_code_of_the_english_one_and_its_output(page):
    english = ROOT / "docs" / page.relative_to(ROOT / "docs" / "ko")

    def code(path):
        """Without comments (but for `# -> ...`, which says what is printed) and without what has no language."""
        blocks = [
            x
            for b in doc_blocks.blocks_of(path)
            if b.language and (not b.hidden or b.language == "virtual")
            for x in (b, b.shows)
            if x
        ]
        return [(b.language, b.rest, re.sub(r" *(#|//)(?! ->) .*", "", b.text)) for b in blocks]

    assert english.exists(), f"there is no {name(english)}"
    assert code(page) == code(english)


def prose(page):
    """A page without its code and its comments."""
    text = re.sub(r"^<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", KOREAN, ids=name)
def test_a_korean_page_says_what_the_english_one_does(page):
    """It has the same sections, points and rows of tables in the same order, and all its figures."""
    english = ROOT / "docs" / page.relative_to(ROOT / "docs" / "ko")
    if page.name == "index.md":
        return  # the tables of contents differ, since some pages exist only in English

    def built(path):
        found = (re.match(r"#+ |\| | *(?:-|\d+\.) ", line) for line in prose(path).splitlines())
        return [m[0] for m in found if m]

    def figures(path):
        return Counter(re.findall(r"\d+(?:[.,]\d+)*", prose(path)))

    assert built(page) == built(english)
    assert figures(english) - figures(page) == Counter()
    # It links to Korean pages where they exist.
    links = re.findall(r"\]\(((?:\.\./)+[\w/-]+\.md)", prose(page))
    assert [link for link in links if (page.parent / link).resolve() in translated()] == []


def translated():
    """The English pages that there are in Korean, too."""
    return {ROOT / "docs" / page.relative_to(ROOT / "docs" / "ko") for page in KOREAN}


def test_what_a_user_reads_is_there_in_korean():
    # Generated pages, pages for contributors, and pages about single backends exist only in English.
    alone = {"architecture", "array-api", "conformance", "conformance-programs", "coverage", "cpp-parity", "cuda"}
    alone |= {"dependencies", "globals", "glossary", "kernelcheck", "mps", "opencl", "operators", "platforms", "testing", "vision", "gpu-results", "rocm"}
    english = {p for p in PAGES if p.parent != ROOT and p not in KOREAN and p.stem not in alone}
    assert english == translated()


def test_every_link_from_page_to_page_leads_somewhere():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            if (page.parent / target).resolve().parent != ROOT / "docs" / "api":  # generated with the website
                assert (page.parent / target).exists(), f"{name(page)}: {target}"


@pytest.mark.parametrize(
    "first", [p for p in (ROOT / "docs" / "index.md", ROOT / "docs" / "ko" / "index.md")], ids=name
)
def test_every_page_has_a_place_in_the_contents(first):
    def contents(page):
        entries = [
            e
            for text in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
            for e in text.splitlines()
            if e and e[0] != ":"
        ]
        found = [page.parent / f"{e}.md" for e in entries if not e.startswith("api/")]
        return [page, *(p for child in found for p in contents(child))]

    listed = contents(first)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(first.parent.rglob("*.md")) - set((ROOT / "docs" / "api").glob("*.md"))


def test_a_line_of_a_page_fits_the_window():
    """Tables and code apart, and what programs write."""
    for page in PAGES:
        if page.parent == ROOT / "docs" and page.stem in ("coverage", "cpp-parity"):
            continue
        long = [line for line in prose(page).splitlines() if len(line) > 120 and line[0] != "|"]
        assert long == [], name(page)


# --- tables that must be complete -------------------------------------------------------------------------------

ENVIRONMENT = [p for p in (ROOT / "docs" / "environment.md", ROOT / "docs" / "ko" / "environment.md") if p.exists()]


def variables_read():
    """Every NARU_* that the sources read from the environment."""
    # Some variables are passed to a helper in C++, and no other strings look like this.
    ours = r'"(NARU_[A-Z0-9_]*[A-Z0-9])"'
    read = (
        rf"environ(?:\.get|\.setdefault|\.pop)?[\[(]\s*{ours}|{ours} (?:not )?in os\.environ|\$\{{(NARU_[A-Z0-9_]+)"
    )
    found = set()
    for folder in ("src", "include", "python/bindings", "bench/cpp"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".h", ".cpp", ".inc"):
                found |= set(re.findall(ours, path.read_text()))
    for path in [
        ROOT / "run",
        *(p for f in ("python", "tools", "bench", "tests/python") for p in (ROOT / f).rglob("*.py")),
    ]:
        found |= {n for groups in re.findall(read, path.read_text()) for n in groups if n}
    return {n for n in found if not n.startswith("NARU_FAKE_")} - {"NARU_ORACLE"} - {"NARU_QEMU_CPU"}


@pytest.mark.parametrize("page", ENVIRONMENT, ids=name)
def test_the_page_of_environment_variables_has_each_that_is_read_and_no_other(page):
    read = variables_read()
    assert len(read) > 25
    told = {
        n
        for row in page.read_text().splitlines()
        if row.startswith("| `")
        for n in re.findall(r"`(NARU_[A-Z0-9_]+)`", row.split(" | ")[0])
    }
    assert told == read


@pytest.mark.parametrize("page", [p for p in PAGES if p.name == "troubleshooting.md"], ids=name)
def test_troubleshooting_has_each_state_of_the_doctor(page):
    table = (
        (ROOT / "src" / "runtime" / "device" / "availability.cpp")
        .read_text()
        .split("kTable[kDriverStates] = {")[1]
        .split("\n};")[0]
    )
    states = re.findall(r'^    \{"([^"]+)"', table, re.MULTILINE)
    assert len(states) > 8
    assert [s for s in states if s != "works"] == re.findall(r"^\| `([^`]+)` \|", page.read_text(), re.MULTILINE)


def test_the_reference_has_every_namespace_and_what_is_in_it_says_what_it_is():
    spaces = site.namespaces()
    assert {"naru.nn", "naru.distributions", "naru.distributed", "naru.profiler", "naru.vision.ops"} < set(spaces)
    assert [space for space, module in spaces.items() if not site.about(module)] == []
    silent = {n for m in spaces.values() for n in site.public(m) if not inspect.getdoc(getattr(m, n))}
    assert silent <= {"layout", "memory_format"}  # types whose values are constants of torch


def named_files(text):
    return re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:h|cpp|inc|py))`", text)


def test_the_map_of_the_sources_names_each_folder_and_only_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.split("## The folders of src")[1].split("\n## ")[0]
    listed = set()
    for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", cell):
            head, _, inner = path.partition("{")
            listed |= {head + each for each in inner.rstrip("}").split(",")}
    src = ROOT / "src"
    folders = {p.parent.relative_to(src).as_posix() for p in src.rglob("*.cpp")} - {"backends/cpu"}
    assert listed == folders
    roots = (ROOT, src, ROOT / "include", ROOT / "python", ROOT / "python" / "naru")
    assert len(named_files(text)) > 50
    assert [path for path in named_files(text) if not any((root / path).exists() for root in roots)] == []
