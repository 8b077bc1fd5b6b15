"""Examples in tables beside this file, which docstrings show and a test runs: `examples.doctest` has those of the functions that are written in C++,
the others those of Python functions that are made in loops or for several kinds of devices.

A block is a name, as the extension has it (`fft_fft`), and lines as Python shows them; an empty line ends it.
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
def examples(table: str = "examples") -> dict[str, str]:
    """The examples of a table, by name.

    >>> from naru._documentation import examples
    >>> examples()["numel"].splitlines()[-1]
    '6'
    """
    text = (_FOLDER / f"{table}.doctest").read_text(encoding="utf-8")
    return dict(block.split("\n", 1) for block in text.strip().split("\n\n"))


def example(name: str) -> str:
    """What stands below the text of a function: its example, or that of the function which it does in place; "" where there is none.

    >>> from naru._documentation import example
    >>> example("abs_").splitlines()[1]
    'tensor([1.5000, 0.0000, 2.2500])'
    """
    return examples().get(name) or examples().get(name.removesuffix("_"), "")


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
