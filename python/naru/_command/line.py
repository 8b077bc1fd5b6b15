"""From a command line to the call of a command's function, and what is said of commands.

A command is a plain function: what it takes, its types and its docstring are all that its options, its help and its completion are made of. Lines are
read by the standard library's argparse, so that commands start at once and need no other package; help, completion and the words for what is wrong
with a line are Cyclopts's, where it is installed. A test holds both to the same understanding.
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
    "bench": commands.bench, "memory": commands.memory, "diverge": commands.diverge, "top": commands.top, "jupyter install": commands.jupyter_install,
    "version": commands.version,
}  # fmt: skip
# All that stands behind their program is the program's.
PROGRAMS = ("run", "torchrun", "memory", "diverge")
# Where the environment's variables name devices that cannot be, these say so first; a script of `naru run` may yet set them.
OF_DEVICES = ("devices", "doctor", "selftest", "bench", "memory", "diverge")
ASKED = {"run": "which script? e.g. naru run train.py", "torchrun": "which script? e.g. naru torchrun --nproc_per_node=4 train.py", "memory": "which script? e.g. naru memory train.py",
         "diverge": "which script? e.g. naru diverge --a cpu --b cuda:0 train.py",
         "check": "which script or folder? e.g. naru check train.py", "selftest": "which device? e.g. naru selftest cuda:0"}  # fmt: skip
SUMMARY = "Tensors and neural networks on every device of the machine, by PyTorch's names."
STATUS = "Exit status: 0 done, 1 the answer is no, 2 the command line or the environment is wrong, 130 interrupted; `naru run`: the script's own."


def has_cyclopts() -> bool:
    """Whether help, colours and completion can be had."""
    import importlib.util

    return "cyclopts" in sys.modules or importlib.util.find_spec("cyclopts") is not None


def app() -> Any:
    """The commands as an application of Cyclopts."""
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
    """Completion of commands and options by the Tab key: prints the shell's script, or installs it.

        naru completion bash --install
        eval "$(naru completion bash)"

    Args:
        shell: Whose.
        install: Puts the script where the shell looks for it, and says where that is.
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
    """All commands, a line each, without Cyclopts."""
    rows = [(f"naru {words}", plain.described(function)[0].split("\n")[0]) for words, function in COMMANDS.items()]
    return "\n".join([SUMMARY, "", screen.table(rows), "", "naru COMMAND --help says more of each.", STATUS, f"Colours and completion: {EXTRA}"])


def show_help(words: str) -> int:
    """Prints the help of a command; "": of all."""
    if has_cyclopts():
        app().help_print(words.split())
    elif words in COMMANDS:
        plain.parser_of(words, COMMANDS[words]).print_help()
    else:
        print(overview())
    return 0


def by_cyclopts(words: str, arguments: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """As `plain.parse`, with Cyclopts's words for what is wrong."""
    import cyclopts

    joined: list[str] = []
    for word in arguments:  # a `-` behind an option is its value, which Cyclopts doesn't see unless they are one word
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
    """The call that a line means. Raises WrongLine."""
    return plain.parse(words, COMMANDS[words], arguments)


def parse(words: str, arguments: list[str], parser: Parser) -> tuple[list[Any], dict[str, Any]]:
    """What the command's function is called with: positional and named arguments. Raises WrongLine."""
    program: list[str] = []
    if words in PROGRAMS:
        arguments, program = plain.split_program(COMMANDS[words], arguments)
        if not program:
            raise WrongLine("")
    positional, named = parser(words, arguments)
    return [*positional, *program], {name: value for name, value in named.items() if value is not None}


def understood(words: str, arguments: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The same by argparse, which starts at once; Cyclopts knows better what to say of a line that is wrong."""
    try:
        return parse(words, arguments, by_argparse)
    except WrongLine as error:
        if has_cyclopts() and not isinstance(error, plain.WrongValue):
            parse(words, arguments, by_cyclopts)
        raise


def command_of(arguments: list[str]) -> tuple[str, list[str]]:
    """The command that a line names, and what follows it; "" where there is none of that name."""
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
        if sys.stdout and not (arguments and arguments[0] in PROGRAMS):  # what a program left unwritten is its own affair
            sys.stdout.flush()  # here, where a reader that went away is heard of
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the output has what it wanted: head, say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        return show_help(command_of(arguments[1:])[0])
    if arguments[0] == "--version":
        arguments = ["version", *arguments[1:]]
    words, rest = command_of(arguments)
    if words == "run" and rest and not (rest[0].startswith("--") or rest[0] == "-h"):
        return commands.run(*rest)  # nothing to read: a script starts at once
    if words == "torchrun" and rest and rest[0] not in ("-h", "--help"):
        return commands.torchrun(*rest)  # reads its line itself
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
        # Also where the first kernel was wrong: the table says which operators are.
        os.environ["NARU_SELF_CHECK"] = "0"
    if words in OF_DEVICES:
        from .. import _C

        try:
            _C._virtual_devices()
        except RuntimeError as error:  # the environment's variables name devices that cannot be
            return screen.wrong("", str(error))
    return COMMANDS[words](*positional, **named)
