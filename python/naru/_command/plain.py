"""Command lines with only the standard library: derives options and help from a command's function, for when Cyclopts is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


class WrongLine(Exception):
    """A command line that can't be parsed; the message is one line."""


class WrongValue(WrongLine):
    """A known option with an invalid value."""


class Parameter(NamedTuple):
    """A parameter of a command's function. `convert` makes its value from one word; it is None for a flag."""

    name: str
    option: str  # "--no-peers"; "" for a positional parameter
    convert: Callable[[str], Any] | None
    choices: tuple[str, ...]
    several: bool
    default: Any  # inspect.Parameter.empty if required
    help: str


def described(function: Callable[..., int]) -> tuple[str, dict[str, str]]:
    """Splits a docstring into the text without `Args:` and the description of each parameter."""
    import inspect

    text, _, listed = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    found: dict[str, str] = {}
    for line in inspect.cleandoc(listed).splitlines():
        name, colon, rest = line.partition(": ")
        if colon and not line.startswith(" "):
            found[name] = rest
        elif found:
            found[next(reversed(found))] += " " + line.strip()
    return text.strip(), found


def parameters(function: Callable[..., int]) -> list[Parameter]:
    """The parameters of a command's function. Supported types: bool (a flag), str, int, Literal of words, and of these `| None` or a list."""
    import inspect
    import types
    import typing

    hints, (_, texts) = typing.get_type_hints(function), described(function)
    found = []
    for name, p in inspect.signature(function).parameters.items():
        hint, several = hints[name], p.kind is p.VAR_POSITIONAL
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            (hint,) = (part for part in typing.get_args(hint) if part is not type(None))
        if typing.get_origin(hint) is list:
            (hint,), several = typing.get_args(hint), True
        choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
        convert = None if hint is bool else str if choices else hint
        option = "--" + name.replace("_", "-") if p.kind is p.KEYWORD_ONLY else ""
        found.append(Parameter(name, option, convert, choices, several, p.default, texts.get(name, "")))
    return found


def split_program(function: Callable[..., int], words: list[str]) -> tuple[list[str], list[str]]:
    """Returns (the command's own options, the program with all that follows it). A program's arguments are never parsed as the command's."""
    valued = {p.option for p in parameters(function) if p.option and p.convert}
    at = 0
    while at < len(words) and words[at].startswith("--") and words[at] != "--":
        at += 2 if words[at] in valued else 1
    return words[:at], words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:]


def _value(p: Parameter) -> Callable[[str], Any]:
    """Returns the function that converts a word to a parameter's value."""
    import argparse

    def value(word: str) -> Any:
        if p.choices and word not in p.choices:
            raise argparse.ArgumentTypeError(f"wanted {', '.join(p.choices[:-1])} or {p.choices[-1]}, got '{word}'")
        assert p.convert is not None
        try:
            return p.convert(word)
        except ValueError:
            raise argparse.ArgumentTypeError(f"wanted a number, got '{word}'") from None

    return value


def parser_of(words: str, function: Callable[..., int]) -> argparse.ArgumentParser:
    """The argparse parser of one command."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            if ": wanted " in message:
                raise WrongValue(message.removeprefix("argument "))
            raise WrongLine(message.replace("unrecognized arguments: ", "unknown option or word: "))

    made = Parser(prog=f"naru {words}", description=described(function)[0], allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    for p in parameters(function):
        given = f" (default: {p.default})" if p.option and p.default not in (None, False) else ""
        more: dict[str, Any] = {"help": (p.help + given).replace("%", "%%")}
        if p.convert:
            more["type"] = _value(p)
        if not p.option:
            # Optional here: line.py has the error message for a missing argument.
            metavar = f"{{{','.join(p.choices)}}}" if p.choices else p.name.upper()
            made.add_argument(p.name, nargs="*" if p.several else "?", metavar=metavar, **more)
        elif p.convert is None:
            made.add_argument(p.option, action="store_true", **more)
        else:
            metavar = f"{{{','.join(p.choices)}}}" if p.choices else "N" if p.convert in (int, float) else "WORD"
            made.add_argument(p.option, action="append" if p.several else "store", default=p.default, metavar=metavar, **more)
    return made


def parse(words: str, function: Callable[..., int], arguments: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and named arguments for a command's function. Raises WrongLine."""
    import argparse
    import inspect

    try:
        found = vars(parser_of(words, function).parse_args(arguments))
    except argparse.ArgumentError as error:
        raise WrongLine(str(error)) from None
    positional: list[Any] = []
    for p in parameters(function):
        if p.option:
            continue
        value = found.pop(p.name)
        if p.several:
            positional += value
        elif value is not None:
            positional.append(value)
        elif p.default is inspect.Parameter.empty:
            raise WrongLine("")
    return positional, found
