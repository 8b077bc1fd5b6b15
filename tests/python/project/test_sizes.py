"""Limits on the length of files and functions, in C++ and in Python; and clang-format's check of the C++ sources."""
import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("src", "include", "python", "tests")
FILE_LINES = 800
FUNCTION_LINES = 80


def sources(*suffixes):
    return sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in suffixes and p.is_file() and "__pycache__" not in p.parts)


def python_functions(text):
    """(name, lines) of each function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


_SKIPPED = re.compile(
    r'R"([^\s()\\]{0,16})\(.*?\)\1"' r"|//[^\n]*|/\*.*?\*/" r'|"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])+'" r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.S | re.M,
)


def _bare(text):
    """C++ without comments, literals and directives; every line keeps its number."""

    def blank(match):
        # An apostrophe within a number separates digits.
        if match[0].startswith("'") and match.start() and (text[match.start() - 1].isalnum()):
            return match[0]
        return "\n" * match[0].count("\n")

    return _SKIPPED.sub(blank, text)


# What may follow the closing brace of a member's initializer or a default argument.
_WITHIN_A_HEAD = ("{", ",", ")")
_NEXT = re.compile(r"\s*(\S?)")
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def cpp_functions(text):
    """(head, lines) of each function that is defined at a file's, a namespace's or a class's level; lambdas count with the function they are in."""
    bare = _bare(text)
    stack = []  # stack of (whether it is a namespace or class, start of its head or None)
    head = 0  # start of the current statement
    for mark in re.finditer(r"[{};]", bare):
        at, c = mark.start(), mark[0]
        if c == "{":
            words = bare[head:at]
            outside = all(scope for scope, _ in stack)
            if not outside:
                stack.append((False, None))
            elif re.search(r"\)", words) and not re.search(r"=\s*$", words):
                stack.append((False, head))
            else:
                stack.append((bool(_SCOPE.search(words)), None))
            if stack[-1][0]:
                head = at + 1
        elif c == "}" and stack:
            scope, begin = stack.pop()
            after = _NEXT.match(bare, at + 1)[1]
            if begin is not None and after not in _WITHIN_A_HEAD:
                first = _NEXT.match(bare, begin).start(1)
                name = " ".join(bare[first:at].split("{")[0].split())
                yield name[:80], bare.count("\n", first, at) + 1
            if all(outer for outer, _ in stack) and after not in _WITHIN_A_HEAD:
                head = at + 1
        elif c == ";" and all(scope for scope, _ in stack):
            head = at + 1


def too_long():
    """What is longer than it may be, with its lines."""
    found = {}
    for path in sources(".cpp", ".h", ".inc", ".py"):
        name, text = str(path.relative_to(ROOT)), path.read_text()
        lines = len(text.splitlines())
        if lines > FILE_LINES:
            found[name] = lines
        for function, length in (python_functions if path.suffix == ".py" else cpp_functions)(text):
            if length > FUNCTION_LINES:
                found[f"{name}: {function}"] = length
    return found


def test_no_file_and_no_function_is_too_long_to_be_read():
    found = too_long()
    assert not found, f"files may have {FILE_LINES} lines and functions {FUNCTION_LINES}; take these apart: {found}"


def test_the_lines_of_a_cpp_function_are_counted():
    text = """
#include "a.h"
namespace naru {
struct S {
  S() : a{1}, b({2}) {
    a = 1;
  }
  int f() const { return '{'; }  // }
  int a, b = 1'000;
};
constexpr int kTable[] = {1, 2,
                          3};
template <class T>
T g(T x) {
  const char* s = "}";
  /* } */
  return [&] {
    return x;
  }();
}
enum class E { A, B };
TEST(Suite, Name) {
  const auto raw = R"(
}}}
)";
}
}  // namespace naru
"""
    found = [(head.split("(")[0].split()[-1], lines) for head, lines in cpp_functions(text)]
    assert found == [("S", 3), ("f", 1), ("g", 8), ("TEST", 5)]


def test_clang_format_has_nothing_to_change():
    if shutil.which("clang-format") is None:
        pytest.skip("clang-format is not installed; `./run test` and `./run format` install it")
    done = subprocess.run([ROOT / "run", "format", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, "`./run format` fixes this:\n" + done.stderr[-3000:]
