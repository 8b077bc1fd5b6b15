"""Runs the program of `naru run` and `naru memory`: a script, `-m MODULE`, `-c CODE`, or `-` (standard input)."""

from __future__ import annotations

import sys

from . import screen
from .runner import run_module, run_script, run_text


def run_program(command: str, program: list[str]) -> int:
    """Runs a program as `__main__` with naru as `torch`. Returns its exit status, 2 if there is no program."""
    first, rest = program[0], program[1:]
    if first in ("-m", "-c") and not rest:
        return screen.wrong(command, f"{first}: {'the name of a module' if first == '-m' else 'the code'} is missing")
    if first == "-m":
        return run_module(rest[0], rest[1:])
    if first == "-c":
        return run_text(rest[0], "<string>", ["-c", *rest[1:]])
    if first == "-":
        return run_text(sys.stdin.read(), "<stdin>", ["-", *rest])
    if first.startswith("-"):
        return screen.wrong(command, f"what is '{first}'? Its own options stand before the script, and the script's behind it (`naru {command} --help`)")
    return run_script(first, rest)
