"""Examples of the functions that are written in C++: a table, `examples.doctest`, which their docstrings show and a test runs.

A block is a name, as the extension has it (`fft_fft`), and lines as Python shows them; an empty line ends it.
"""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def examples() -> dict[str, str]:
    """The examples by name."""
    text = (Path(__file__).parent / "examples.doctest").read_text(encoding="utf-8")
    return dict(block.split("\n", 1) for block in text.strip().split("\n\n"))


def example(name: str) -> str:
    """What stands below the text of a function: its example, or that of the function which it does in place; "" where there is none.

    >>> from naru._documentation import example
    >>> example("abs_").splitlines()[1]
    'tensor([1.5000, 0.0000, 2.2500])'
    """
    return examples().get(name) or examples().get(name.removesuffix("_"), "")
