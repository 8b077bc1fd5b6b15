"""Examples in tables in this folder, which docstrings show and a test runs. `examples.doctest` has the examples of functions written in C++, the
other tables have those of Python functions that are generated in loops or shared by several kinds of device.

A block is a name as the extension has it (`fft_fft`), followed by lines as Python shows them; an empty line ends it. A colon after the name introduces
the parameters that the function's own text does not explain; `parameters.txt` describes them, for all functions or for some.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def tables() -> list[str]:
    """The names of the tables.

    >>> from naru._documentation import tables
    >>> "examples" in tables()
    True
    """
    return sorted(path.stem for path in _FOLDER.glob("*.doctest"))


@functools.cache
def _blocks(table: str) -> dict[str, tuple[list[str], str]]:
    """The blocks of a table by name: the parameters to explain, and the example."""
    found = {}
    for block in (_FOLDER / f"{table}.doctest").read_text(encoding="utf-8").strip().split("\n\n"):
        head, text = block.split("\n", 1)
        name, _, parameters = head.partition(":")
        found[name] = parameters.split(), text
    return found


def examples(table: str = "examples") -> dict[str, str]:
    """The examples of a table, by name.

    >>> from naru._documentation import examples
    >>> examples()["numel"].splitlines()[-1]
    '6'
    """
    return {name: text for name, (_, text) in _blocks(table).items()}


@functools.cache
def _glossary() -> dict[str, str]:
    """Descriptions of parameters, by name, or by name and function: "dim", "dim cat"."""
    found = {}
    for line in (_FOLDER / "parameters.txt").read_text(encoding="utf-8").splitlines():
        head, _, text = line.partition(": ")
        name, _, functions = head.partition(" of ")
        found |= dict.fromkeys([f"{name} {function}" for function in functions.split()] or [name], text)
    return found


def _block(name: str) -> tuple[list[str], str]:
    """The block of a function, or that of the out-of-place function of an in-place one."""
    blocks = _blocks("examples")
    return blocks.get(name) or blocks.get(name.removesuffix("_")) or ([], "")


def example(name: str) -> str:
    """The example of a function of the extension; "" if there is none.

    >>> from naru._documentation import example
    >>> example("numel").splitlines()[-1]
    '6'
    """
    return _block(name)[1]


# Functions whose two tensors may be on different devices: what they write is copied, or they only use shapes and dtypes.
_ANY_DEVICE = {"as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter", "is_same_size", "lu_unpack", "result_type", "can_cast"}
_DIMENSIONS = {"dim", "dim0", "dim1", "axis0", "axis1", "start_dim", "end_dim"}


def signatures_in(text: str, name: str) -> list[list[tuple[str, str, bool]]]:
    """Parses the signatures at the beginning of a function's text: (type, name, whether it is optional) for each parameter.

    >>> from naru._documentation import signatures_in
    >>> signatures_in("sum(Tensor input, tuple of ints dim = None) -> Tensor", "sum")
    [[('Tensor', 'input', False), ('tuple of ints', 'dim', True)]]
    """
    found = []
    for line in text.splitlines():
        if line.startswith(f"{name}(") and ") -> " in line:
            inside = line[len(name) + 1 : line.rindex(") -> ")]
            parts = (part.strip().partition(" = ") for part in re.sub(r"\(.*?\)|\[.*?\]", "", inside).split(","))
            found.append([(*part.rpartition(" ")[::2], bool(given)) for part, given, _ in parts if part.strip("*/")])
    return found


def raised(text: str, name: str, of_a_tensor: bool = False) -> list[str]:
    """The errors that follow from a function's parameters, one per line; `of_a_tensor`: it is a method.

    >>> from naru._documentation import raised
    >>> raised("gather(Tensor input, int dim, Tensor index) -> Tensor", "gather")
    ['RuntimeError: for tensors on different devices', 'IndexError: for a dimension that the tensor does not have']
    """
    rows = []
    for parameters in signatures_in(text, name):
        tensors = [p for kind, p, optional in parameters if kind == "Tensor" and not optional]
        if len(tensors) + of_a_tensor > 1 and name.removesuffix("_") not in _ANY_DEVICE:
            rows.append("RuntimeError: for tensors on different devices")
        if any(kind in ("int", "tuple of ints") and p in _DIMENSIONS for kind, p, _ in parameters):
            rows.append("IndexError: for a dimension that the tensor does not have")
    return [row for i, row in enumerate(rows) if row not in rows[:i]]


def below(text: str, name: str) -> str:
    """The end of the docstring of a function ("add") or a method ("Tensor.add"): descriptions of parameters that the text does not name, what it
    raises, and its example.

    >>> from naru._documentation import below
    >>> print(below("atan2_(Tensor other) -> Tensor", "Tensor.atan2_").partition("\\n\\n")[0])
    Args:
        other: the second operand, which is broadcast against the first; dtypes are promoted
    """
    of_a_tensor, name = name.startswith("Tensor."), name.removeprefix("Tensor.")
    parameters, shown = _block(name)
    words, base = _glossary(), name.removesuffix("_")
    explained = [f"    {p}: {words.get(f'{p} {name}') or words.get(f'{p} {base}') or words[p]}" for p in parameters]
    errors = [f"    {row}" for row in raised(text, name, of_a_tensor)]
    parts = [["Args:", *explained] if explained else [], ["Raises:", *errors] if errors else [], [shown] if shown else []]
    return "\n\n".join("\n".join(part) for part in parts if part)


def show(names: dict[str, Any], table: str, **words: str) -> None:
    """Appends the examples of a table to the docstrings of a module's functions and classes (`names`, its globals). `words` replace their names
    in capitals: KIND is replaced with the kind of device.

    >>> from naru._documentation import show
    >>> def synchronize(): "Waits."
    >>> show({"synchronize": synchronize}, "devices", MODULE="cuda", KIND="cuda")
    >>> synchronize.__doc__.splitlines()[3]
    '...     x = naru.ones(2, device="cuda") * 3'
    """
    for name, text in examples(table).items():
        value = names.get(name)
        if value is not None and ">>>" not in (value.__doc__ or ""):
            for word, meant in words.items():
                text = text.replace(word, meant)
            own = (value.__doc__ or "").rstrip()
            indent = min((line[: len(line) - len(line.lstrip())] for line in own.splitlines()[1:] if line.strip()), default="")
            value.__doc__ = f"{own}\n\n" + "".join(f"{indent}{line}\n" for line in text.splitlines())
