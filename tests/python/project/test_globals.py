"""docs/globals.md lists exactly the global state of the C++ sources."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = {ROOT / "src": ROOT / "src", ROOT / "python" / "bindings": ROOT / "python"}
# A pattern for each kind of global; the group is its name.
PATTERNS = [re.compile(p, re.M) for p in (
    r"\bthread_local\b[^;\n]*?[\s*&](\w+)(?:\[\w*\])?\s*(?:;|=|\{\})",
    r"^(?:inline )?(?:constinit )?std::atomic(?:<.*?>|_\w+) (?:\w+::)?(\w+)(?:\[\])?\s*(?:;|=|\{)",
    r"^(?:constinit )?[\w:]+ \(\*(\w+)\)\([^)]*\)(?: noexcept)? =",
    r"static (?:const )?[\w:<>, ]+?[&*]\s?(?:const )?(\w+) =\s*\*?new\b",
    r"^(?:bool|int) (\w+) = [^;]*;",
)]  # fmt: skip


def found():
    """(name, file) of each global in the sources."""
    globals_ = set()
    for folder, base in FOLDERS.items():
        for path in folder.rglob("*"):
            if path.suffix in (".h", ".cpp"):
                text = re.sub(r"//[^\n]*", "", path.read_text())
                globals_ |= {(m[1], path.relative_to(base).as_posix()) for p in PATTERNS for m in p.finditer(text)}
    return globals_


def listed():
    rows = re.findall(r"^\| (`.*?) \| (`.*?) \| .+ \|$", (ROOT / "docs" / "globals.md").read_text(), re.M)
    return {(name, file) for names, files in rows for name in re.findall(r"`(\w+)`", names) for file in re.findall(r"`([^`]+)`", files)}


def test_each_global_has_a_row():
    missing = {(name, file) for name, file in found() if not any(name == n and (Path(file).with_suffix("") == Path(f).with_suffix("")) for n, f in listed())}
    assert missing == set(), "say in docs/globals.md why each exists"


def test_no_row_is_of_a_global_that_is_gone():
    here = found()
    texts = {file: (ROOT / "src" / file if (ROOT / "src" / file).exists() else ROOT / "python" / file).read_text() for _, file in listed()}
    names = {name for name, _ in here}
    gone = {(name, file) for name, file in listed() if name not in names and not re.search(rf"\b{name}\b", texts[file])}
    assert gone == set() and len(here) > 80
