"""Generates include/naru/indexed_methods.inc and src/autograd/engine/indexed_methods.inc: gives x[mask] every method of Tensor, read from
include/naru/tensor.h.

    python tools/indexed_methods.py [--check]

`./run format` runs it, so methods added to Tensor are picked up automatically.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DECLARED = ROOT / "include" / "naru" / "indexed_methods.inc"
DEFINED = ROOT / "src" / "autograd" / "engine" / "indexed_methods.inc"
HEAD = """// The methods of Tensor for naru/indexed.h{}. Written by tools/indexed_methods.py (./run format) from naru/tensor.h.
// clang-format off
"""
METHOD = re.compile(r"^  (?P<result>[\w:<>, &*]+?[ &*])(?P<name>\w+)\((?P<parameters>(?:[^()]|\([^()]*\))*)\) const(?: noexcept)?(?:;| \{)", re.M)
# Methods that the class defines itself; and grad_fn, whose type is complete only with naru/autograd/node.h.
OWN = {"operator", "impl", "is", "defined", "select_first", "grad_fn"}


def names_of(parameters: str) -> list[str]:
    """The names in a parameter list, without types and defaults."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(parameters):
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append(parameters[start:i])
            start = i + 1
    parts.append(parameters[start:])
    return [re.search(r"(\w+)\s*$", p.split("=")[0]).group(1) for p in parts if p.strip()]


def without_defaults(parameters: str) -> str:
    return re.sub(r" = (?:\{[^}]*\}|[^,{}]+)", "", parameters)


def forwarders(header: str) -> tuple[str, str]:
    """Returns declarations and definitions."""
    body = header[header.index("\nclass Tensor {") :]
    body = body[: body.index("\n private:")]
    body = re.sub(r'^#include "(naru/(?:tensor|function)_methods.inc)"$', lambda m: (ROOT / "include" / m[1]).read_text(), body, flags=re.M)
    body = re.sub(r"//[^\n]*", "", body)
    body = re.sub(r"#define NARU_OP(?:.*\\\n)*.*\n", "", body)
    body = re.sub(r"  template <[^\n]*\n(?:[^\n]*\n)", "", body)
    declared, defined = [], []
    for m in METHOD.finditer(body):
        result, name, parameters = m["result"].strip(), m["name"], " ".join(m["parameters"].split())
        if name in OWN or result.startswith("autograd::"):  # a type that naru/tensor.h only forward-declares
            continue
        # Returned by value: a reference could point into the temporary tensor that was read.
        result = re.sub(r"^const (\w+)\s*&$", r"\1", result)
        call = f"read().{name}({', '.join(names_of(parameters))})"
        declared.append(f"{result} {name}({parameters}) const;")
        defined.append(f"{result} Indexed::{name}({without_defaults(parameters)}) const {{ return {call}; }}")
    return tuple(HEAD.format(what) + "\n".join(lines) + "\n" for what, lines in (("", declared), (", each on what was read", defined)))


def main() -> int:
    for path, text in zip((DECLARED, DEFINED), forwarders((ROOT / "include" / "naru" / "tensor.h").read_text())):
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            print(f"{path.relative_to(ROOT)} does not have the methods of Tensor as they are: ./run format writes it", file=sys.stderr)
            return 1
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
