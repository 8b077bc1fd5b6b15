"""The Python text of a graph: names for its nodes, and one line for each."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import re
import types
import typing
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import _C
from ._names import is_known, qualified_name
from .node import Node, type_name

if TYPE_CHECKING:
    from .graph import Graph

_MODULE = _C.__name__.partition(".")[0]  # what `torch` is in the text
_GLOBALS = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "device": _C.device}
_RESERVED = frozenset((*_GLOBALS, "torch", "fx_pytree", "pytree"))
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>", "and_": "&",
    "or_": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
}  # fmt: skip
_UNARY = {"neg": "-", "pos": "+", "invert": "~"}
_IN_PLACE = {f"i{name.rstrip('_')}": f"{sign}=" for name, sign in _BINARY.items() if sign[-1] not in "=<>" or sign in ("<<", ">>")}
_NUMBERED = re.compile(r"(.*)_(\d+)$")


class Namespace:
    """Names that are given once: a name that is taken gets a number."""

    def __init__(self) -> None:
        self._objects: dict[Any, str] = {}
        self._taken: set[str] = set()
        self._count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A name like `candidate`; that of `obj` if it has one."""
        if obj is not None and obj in self._objects:
            return self._objects[obj]
        candidate = re.sub(r"\W+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        numbered = _NUMBERED.match(candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, 0)
        number = number or self._count.get(base, 0)
        while candidate in self._taken or self._is_reserved(candidate):
            number += 1
            candidate = f"{base}_{number}"
        self._taken.add(candidate)
        self._count[base] = number
        if obj is not None:
            self._objects[obj] = candidate
        return candidate

    def associate(self, name: str, obj: Any) -> None:
        """Gives `obj` this very name."""
        self._objects[obj] = name
        self._taken.add(name)

    @staticmethod
    def _is_reserved(name: str) -> bool:
        return name in keyword.kwlist or hasattr(builtins, name) or name in _RESERVED


def snake_case(name: str) -> str:
    """`MaxPool2d` -> `max_pool2d`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


@dataclass
class PythonCode:
    """The text of a graph's function (`src`), and the objects that its names stand for (`globals`).

    >>> naru.fx.symbolic_trace(lambda x: x).graph.python_code("self").src.strip()
    'def forward(self, x):\\n    return x'
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None


def _is_found(name: str, obj: Any) -> bool:
    """Whether naru has this object under PyTorch's name."""
    found: Any = import_module(_MODULE)
    for part in name.split(".")[1:]:
        if (found := getattr(found, part, None)) is None:
            return False
    return found is obj or is_known(obj, name)


class Writer:
    """Writes the function of a graph."""

    def __init__(self, graph: Graph, root: str, verbose: bool = False) -> None:
        self.graph, self.root, self.verbose = graph, root, verbose
        self.names = Namespace()
        self.globals: dict[str, Any] = {**_GLOBALS, "torch": import_module(_MODULE)}
        self.wrapped: dict[str, None] = {}
        self.free = [root] if root else []
        self.returns = ""
        for node in graph.nodes:
            self.names.associate(node.name, node)

    def name_of(self, hint: str, obj: Any) -> str:
        """A name in the text for a function, a type or a property of tensors."""
        if hint.startswith("torch.") and _is_found(hint, obj):
            return hint
        if getattr(builtins, hint, None) is obj:
            self.globals[hint] = obj
            return hint
        name = re.sub(r"\W+", "_", hint)
        if self.globals.get(name) is not obj:
            name = self.names.create_name(name)
            self.globals[name] = obj
        return name

    def type(self, kind: Any) -> str:
        if kind in (None, type(None)) or isinstance(kind, str):
            return "NoneType" if kind in (None, type(None)) else repr(kind)
        origin = typing.Union if isinstance(kind, getattr(types, "UnionType", ())) else getattr(kind, "__origin__", None)
        if origin is None or not getattr(kind, "__args__", ()):
            return self.name_of(type_name(kind), kind)
        alias = getattr(typing, getattr(kind, "_name", None) or "", None) if repr(kind).startswith("typing.") else None
        origin = alias if getattr(alias, "__origin__", None) is origin else origin
        return f"{self.type(origin)}[{','.join('...' if a is ... else self.type(a) for a in kind.__args__)}]"

    def value(self, a: Any) -> str:
        """An argument in the text."""
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.name_of(type_name(type(a)), type(a))}({', '.join(map(self.value, a))})"
        if isinstance(a, (list, tuple)):
            inner = ", ".join(map(self.value, a))
            return f"[{inner}]" if isinstance(a, list) else f"({inner}{',' * (len(a) == 1)})"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(item)}" for key, item in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({self.value(a.start)}, {self.value(a.stop)}, {self.value(a.step)})"
        if isinstance(a, enum.Enum):
            return f"{self.type(type(a))}.{a.name}"
        if isinstance(a, (_C.dtype, _C.layout, _C.memory_format)):
            return str(a)
        if isinstance(a, type) or getattr(a, "__origin__", None):
            return self.type(a)
        if callable(a):
            return self.name_of(qualified_name(a), a)
        return repr(a)

    def call(self, function: str, node: Node, skip: int = 0) -> str:
        given = [*map(self.value, node.args[skip:]), *(f"{key} = {self.value(item)}" for key, item in node.kwargs.items())]
        return f"{function}({', '.join(given)})"

    def attribute(self, target: str) -> str:
        text = self.root
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({text}, "{part}")'
        return text

    def function(self, node: Node) -> str:
        """The right side of the line of a call of a function."""
        name = qualified_name(node.target)  # type: ignore[arg-type]
        short, args = name.rpartition(".")[2], node.args
        if name.startswith("_operator.") and not node.kwargs:
            if short in _BINARY and len(args) == 2:
                return f"{self.value(args[0])} {_BINARY[short]} {self.value(args[1])}"
            if short in _UNARY and len(args) == 1:
                return f"{_UNARY[short]}{self.value(args[0])}"
            if short == "getitem" and len(args) == 2:
                return f"{self.value(args[0])}[{self.value(args[1])}]"
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier() and isinstance(args[0], Node):
            return f"{args[0].name}.{args[1]}"
        text = self.name_of(name, node.target)
        if node.meta.get("is_wrapped"):
            self.wrapped[text] = None
        return self.call(text, node)

    def line(self, node: Node) -> str | None:
        typed = f"{node.name} : {self.type(node.type)}" if node.type else node.name
        if node.op == "placeholder":
            target = str(node.target)
            self.free.append(f"{target}{f' : {self.type(node.type)}' if node.type else ''}{f' = {self.value(node.args[0])}' if node.args else ''}")
            return f"{node.name} = {target.lstrip('*')}" if target.lstrip("*") != node.name else None
        if node.op == "output":
            self.returns = f" -> {self.type(node.type)}" if node.type else ""
            return f"return {self.value(node.args[0])}"
        if node.op == "call_function":
            name = qualified_name(node.target)  # type: ignore[arg-type]
            short = name.rpartition(".")[2]
            if name.startswith("_operator.") and short in _IN_PLACE and len(node.args) == 2 and not node.kwargs:
                first = self.value(node.args[0])
                return f"{first} {_IN_PLACE[short]} {self.value(node.args[1])};  {typed} = {first}"
            return f"{typed} = {self.function(node)}"
        if node.op == "call_method":
            return f"{typed} = {self.call(f'{self.value(node.args[0])}.{node.target}', node, 1)}"
        text = self.attribute(str(node.target))
        return f"{typed} = {self.call(text, node) if node.op == 'call_module' else text}"

    def write(self) -> PythonCode:
        nodes = list(self.graph.nodes)
        last = {other: node for node in nodes for other in node.all_input_nodes}
        dead = {
            node: [other.name for other in node.all_input_nodes if last[other] is node] + ([] if node.users else [node.name])
            for node in nodes
        }
        lines, told = [], None
        for node in nodes:
            if self.verbose and node.op not in ("placeholder", "output") and (where := node.stack_trace or "") != told:
                told = where
                lines.append(f"# {where.strip().splitlines()[0].strip()}" if where else "# No stacktrace found for following nodes")
            text = self.line(node)
            if text is None:
                continue
            if node.op not in ("placeholder", "output"):
                text += f";  {' = '.join(dead[node])} = None" if dead[node] else ""
            lines.append(text)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        return PythonCode(f"\n{wraps}\n\ndef forward({', '.join(self.free)}){self.returns}:\n{body}    ", self.globals)
