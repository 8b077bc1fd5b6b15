"""The modules of python/naru have no import cycles."""
import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3] / "python"


def modules():
    """Names of modules and their paths; a package has the name of its folder."""
    found = {}
    for path in sorted((ROOT / "naru").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _packages(name):
    """The packages that a module is in."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def _is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _statements(nodes):
    """Import statements, those within functions too, but not those for type checkers alone."""
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif _is_type_checking(node):
            yield from _statements(node.orelse)
        else:
            yield from _statements(ast.iter_child_nodes(node))


def imported(name, text, known, is_package):
    """The modules among `known` that a module's text imports, with the packages on the way to them that it is not itself in."""
    named = set()
    for statement in _statements([ast.parse(text)]):
        if isinstance(statement, ast.Import):
            named.update(alias.name for alias in statement.names)
            continue
        base = name.split(".")[: len(name.split(".")) - statement.level + is_package] if statement.level else []
        source = ".".join(base + ([statement.module] if statement.module else []))
        named.update(inner if (inner := f"{source}.{alias.name}") in known else source for alias in statement.names)
    on_the_way = {package for other in named for package in _packages(other)} - set(_packages(name))
    return ((named | on_the_way) & known) - {name}


def circles(graph):
    """The sets of modules that reach one another (Tarjan's strongly connected components of more than one)."""
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in sorted(graph[v]):
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(graph):
        if v not in number:
            visit(v)
    return found


def graph():
    found = modules()
    known = {*found, "naru._C"}
    edges = {name: imported(name, path.read_text(), known, path.name == "__init__.py") for name, path in found.items()}
    return {**edges, "naru._C": set()}


def test_no_module_imports_itself_by_way_of_others():
    found = circles(graph())
    assert not found, "circles of imports:\n" + "\n".join(", ".join(circle) for circle in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from . import b", {"p.b"}),
        ("from .b import f", {"p.b"}),
        ("from . import f", {"p"}),
        ("from .sub import c", {"p.sub", "p.sub.c"}),
        ("from .sub import name_of_the_package", {"p.sub"}),
        ("import p.sub.c", {"p.sub", "p.sub.c"}),
        ("def f():\n  if True:\n    from .b import g", {"p.b"}),
        ("if TYPE_CHECKING:\n  from .sub import c\nelse:\n  from .b import g", {"p.b"}),
        ("import os, json", set()),
    ],
)
def test_the_imports_of_a_text_are_found(text, expected):
    assert imported("p.a", text, {"p", "p.a", "p.b", "p.sub", "p.sub.c"}, False) == expected


def test_a_circle_is_found_through_several_modules():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
