"""Parses command lines, calls the commands' functions, and shows help.

A command is a plain function: its options, help and completion are derived from its parameters, their types and its docstring. Lines are parsed by
the standard library's argparse, so that commands start fast and need no other package. If Cyclopts is installed, it provides help, completion and
the error messages for invalid lines. A test checks that both parse alike.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Literal

from . import commands, plain, screen
from .plain import WrongLine

EXTRA = "pip install cyclopts rich"
GROUPS = {"jupyter": "Notebooks in which `import torch` is naru."}
COMMANDS: dict[str, Callable[..., int]] = {
    "run": commands.run, "torchrun": commands.torchrun, "check": commands.check, "devices": commands.devices, "doctor": commands.doctor, "selftest": commands.selftest,
    "bench": commands.bench, "memory": commands.memory, "diverge": commands.diverge, "kernelcheck": commands.kernelcheck, "top": commands.top, "jupyter install": commands.jupyter_install,
    "version": commands.version,
}  # fmt: skip
# Commands that run a program: all arguments after the program belong to it.
PROGRAMS = ("run", "torchrun", "memory", "diverge", "kernelcheck")
# Commands that check the virtual devices in the environment first. `naru run` does not: its script may still set the variables.
OF_DEVICES = ("devices", "doctor", "selftest", "bench", "memory", "diverge", "kernelcheck")
ASKED = {"run": "which script? e.g. naru run train.py", "torchrun": "which script? e.g. naru torchrun --nproc_per_node=4 train.py", "memory": "which script? e.g. naru memory train.py",
         "kernelcheck": "which script? e.g. naru kernelcheck train.py", "diverge": "which script? e.g. naru diverge --a cpu --b cuda:0 train.py",
         "check": "which script or folder? e.g. naru check train.py", "selftest": "which device? e.g. naru selftest cuda:0"}  # fmt: skip
SUMMARY = "Tensors and neural networks on every device of the machine, by PyTorch's names."
STATUS = "Exit status: 0 done, 1 the answer is no, 2 the command line or the environment is wrong, 130 interrupted; `naru run`: the script's own."


def has_cyclopts() -> bool:
    """Whether Cyclopts is installed, for help, colors and completion."""
    import importlib.util

    return "cyclopts" in sys.modules or importlib.util.find_spec("cyclopts") is not None


def app() -> Any:
    """The commands as a Cyclopts application."""
    import cyclopts

    from ..torch_version import __version__

    options = {"default_parameter": cyclopts.Parameter(negative=()), "help_flags": ["--help", "-h"], "version_flags": [], "help_format": "markdown"}
    made = cyclopts.App(name="naru", help=SUMMARY, version=str(__version__), help_epilogue=STATUS, **options)
    groups = {name: cyclopts.App(name=name, help=text, **options) for name, text in GROUPS.items()}
    for words, function in COMMANDS.items():
        *outer, name = words.split()
        (groups[outer[0]] if outer else made).command(function, name=name)
    for group in groups.values():
        made.command(group)
    return made


def completion(shell: Literal["bash", "zsh", "fish"], /, *, install: bool = False) -> int:
    """Prints or installs shell completion of commands and options.

        naru completion bash --install
        eval "$(naru completion bash)"

    Args:
        shell: The shell: bash, zsh or fish.
        install: Install the script where the shell looks for it, and print its path.
    """
    if not has_cyclopts():
        return screen.wrong("completion", f"needs Cyclopts, which this Python does not have: {EXTRA}")
    if install:
        print(app().install_completion(shell=shell))
    else:
        print(app().generate_completion(shell=shell))
    return 0


COMMANDS["completion"] = completion


def overview() -> str:
    """All commands, one line each, without Cyclopts."""
    rows = [(f"naru {words}", plain.described(function)[0].split("\n")[0]) for words, function in COMMANDS.items()]
    return "\n".join([SUMMARY, "", screen.table(rows), "", "naru COMMAND --help says more of each.", STATUS, f"Colours and completion: {EXTRA}"])


def show_help(words: str) -> int:
    """Prints the help of a command, or of all commands for ""."""
    if has_cyclopts():
        app().help_print(words.split())
    elif words in COMMANDS:
        plain.parser_of(words, COMMANDS[words]).print_help()
    else:
        print(overview())
    return 0


def by_cyclopts(words: str, arguments: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Like `plain.parse`, with Cyclopts's error messages."""
    import cyclopts

    joined: list[str] = []
    for word in arguments:  # Cyclopts accepts `-` as an option's value only in one word with the option
        if word == "-" and joined and joined[-1].startswith("--"):
            joined[-1] += "=-"
        else:
            joined.append(word)
    try:
        _, bound, _ = app().parse_args([*words.split(), *joined], exit_on_error=False, print_error=False)
    except cyclopts.MissingArgumentError as error:
        raise WrongLine(str(error) if "parameter -" in str(error) else "") from None
    except cyclopts.UnusedCliTokensError as error:
        raise WrongLine(f"what is '{error.unused_tokens[0]}'?") from None
    except cyclopts.CycloptsError as error:
        raise WrongLine(str(error)) from None
    return list(bound.args), bound.kwargs


Parser = Callable[[str, list[str]], tuple[list[Any], dict[str, Any]]]


def by_argparse(words: str, arguments: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Parses a line with argparse. Raises WrongLine."""
    return plain.parse(words, COMMANDS[words], arguments)


def parse(words: str, arguments: list[str], parser: Parser) -> tuple[list[Any], dict[str, Any]]:
    """The positional and named arguments for the command's function. Raises WrongLine."""
    program: list[str] = []
    if words in PROGRAMS:
        arguments, program = plain.split_program(COMMANDS[words], arguments)
        if not program:
            raise WrongLine("")
    positional, named = parser(words, arguments)
    return [*positional, *program], {name: value for name, value in named.items() if value is not None}


def understood(words: str, arguments: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Parses with argparse, which starts fast; if the line is wrong, Cyclopts produces the better error message."""
    try:
        return parse(words, arguments, by_argparse)
    except WrongLine as error:
        if has_cyclopts() and not isinstance(error, plain.WrongValue):
            parse(words, arguments, by_cyclopts)
        raise


def command_of(arguments: list[str]) -> tuple[str, list[str]]:
    """The command that a line names, and the remaining arguments; "" if there is no such command."""
    for count in (2, 1):
        if (words := " ".join(arguments[:count])) in COMMANDS:
            return words, arguments[count:]
    return "", arguments


def _asks_for_help(words: str, arguments: list[str]) -> bool:
    own = plain.split_program(COMMANDS[words], arguments)[0] if words in PROGRAMS else arguments
    return bool({"-h", "--help"} & {*own, *arguments[:1]})


def main(arguments: list[str]) -> int:
    """Runs a command line; returns the exit status."""
    try:
        status = _run(arguments)
        if sys.stdout and not (arguments and arguments[0] in PROGRAMS):  # a program's unflushed output is its own responsibility
            sys.stdout.flush()  # flush here, so that a closed pipe raises within this try block
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as head, has closed the pipe: it needs no more output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        return show_help(command_of(arguments[1:])[0])
    if arguments[0] == "--version":
        arguments = ["version", *arguments[1:]]
    words, rest = command_of(arguments)
    if words == "run" and rest and not (rest[0].startswith("--") or rest[0] == "-h"):
        return commands.run(*rest)  # no options to parse: start the script at once
    if words == "torchrun" and rest and rest[0] not in ("-h", "--help"):
        return commands.torchrun(*rest)  # torchrun parses its own options
    if not words:
        if arguments[0] in GROUPS and not [a for a in arguments[1:] if not a.startswith("-")]:
            return show_help(arguments[0])
        names = ", ".join(COMMANDS)
        return screen.wrong("", f"there is no command '{' '.join(arguments[: 1 + (arguments[0] in GROUPS)])}'; the commands are {names}")
    if _asks_for_help(words, rest):
        return show_help(words)
    try:
        positional, named = understood(words, rest)
    except WrongLine as error:
        text = str(error) or ASKED.get(words, "an argument is missing")
        return screen.wrong(words, f"{text.rstrip('.')} (`naru {words} --help` says what there is)")
    if words == "selftest":
        # Run even if the kernel self-check fails: the table shows which operators are wrong.
        os.environ["NARU_SELF_CHECK"] = "0"
    if words in OF_DEVICES:
        from .. import _C

        try:
            _C._virtual_devices()
        except RuntimeError as error:  # environment variables describe invalid devices
            return screen.wrong("", str(error))
    return COMMANDS[words](*positional, **named)
