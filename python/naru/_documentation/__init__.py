"""Examples in tables beside this file, which docstrings show and a test runs: `examples.doctest` has those of the functions that are written in C++,
the others those of Python functions that are made in loops or for several kinds of devices.

A block is a name, as the extension has it (`fft_fft`), and lines as Python shows them; an empty line ends it. Behind a colon the name may have those of
parameters that the function's own text does not explain: `parameters.txt` says what they are, everywhere or of some functions.
"""

from __future__ import annotations

import functools
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
    """The blocks of a table by name: the parameters that are to be explained, and the example."""
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
    """What parameters are, by name, or by name and function: "dim", "dim cat"."""
    found = {}
    for line in (_FOLDER / "parameters.txt").read_text(encoding="utf-8").splitlines():
        head, _, text = line.partition(": ")
        name, _, functions = head.partition(" of ")
        found |= dict.fromkeys([f"{name} {function}" for function in functions.split()] or [name], text)
    return found


def example(name: str) -> str:
    """What stands below the text of a function: what parameters are that the text does not name, and its example, or those of the function which
    it does in place; "" where there is none.

    >>> from naru._documentation import example
    >>> print(example("atan2_").partition("\\n\\n")[0])
    Args:
        other: the second operand, which is broadcast against the first; dtypes are promoted
    """
    blocks, base = _blocks("examples"), name.removesuffix("_")
    parameters, text = blocks.get(name) or blocks.get(base) or ([], "")
    words = _glossary()
    rows = [f"    {p}: {words.get(f'{p} {name}') or words.get(f'{p} {base}') or words[p]}" for p in parameters]
    return "\n".join(["Args:", *rows, "", text] if rows else [text])


def show(names: dict[str, Any], table: str, **words: str) -> None:
    """Puts the examples of a table below the docstrings of a module's functions and classes (`names`, its globals). `words` are put in for
    their names in capitals: KIND for the kind of device.

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
