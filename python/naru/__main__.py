"""The `naru` command.

    naru run SCRIPT [ARGS...]      runs a script that says `import torch`, unchanged
    naru run -m MODULE [ARGS...]   the same for a module
    naru run --random pytorch ...  the same with the random numbers of PyTorch's cpu (docs/random.md)
    naru check SCRIPT|FOLDER       what a program uses of PyTorch that naru lacks, without running it; exit status 1 where anything is missing
    naru devices [--json]          a table of the devices of this machine; with --coverage: how each of them serves each operator
    naru doctor [KIND] [--json]    for each kind of device: available, or the reason and the remedy;
                                   with a kind, the exit status is 1 where it is not available
    naru selftest DEVICE [--quick] every operator on a device against float64 on the CPU; exit status 1 where one is wrong
    naru bench [OPTIONS]           products of large matrices, copies and launches on every device, beside NumPy, PyTorch and MLX
                                   (--size, --dtype, --device, --repeat, --json FILE, --picture FILE; naru bench --help)
    naru version                   the version
"""

from __future__ import annotations

import os
import sys


def _split(command: str, arguments: list[str], words: int, flags: tuple[str, ...]) -> tuple[list[str], set[str]]:
    """Words and flags; ends the program with status 2 where there are others than the command knows."""
    given = [a for a in arguments if not a.startswith("-")]
    marked = {a for a in arguments if a.startswith("-")}
    unknown = sorted(marked - set(flags)) + given[words:]
    if unknown:
        print(f"naru {command}: what is '{unknown[0]}'? `naru help` lists what there is", file=sys.stderr)
        raise SystemExit(2)
    return given, marked


def _devices(arguments: list[str]) -> int:
    from ._command.report import devices_json, devices_table

    _, flags = _split("devices", arguments, 0, ("--json", "--coverage"))
    if "--coverage" in flags:
        from ._command.coverage import coverage_json, coverage_table

        print(coverage_json() if "--json" in flags else coverage_table())
    else:
        print(devices_json() if flags else devices_table())
    return 0


def _doctor(arguments: list[str]) -> int:
    import json

    from ._command.report import KINDS, diagnosis, doctor_report

    kinds, flags = _split("doctor", arguments, 1, ("--json",))
    if kinds and kinds[0] not in KINDS:
        print(f"naru doctor: there is no kind '{kinds[0]}'; the kinds are {', '.join(KINDS)}", file=sys.stderr)
        return 2
    asked = tuple(kinds) or KINDS
    print(json.dumps([diagnosis(kind) for kind in asked], indent=2) if flags else doctor_report(asked))
    return 0 if not kinds or diagnosis(kinds[0])["available"] else 1


def _selftest(arguments: list[str]) -> int:
    from . import _C

    words, flags = _split("selftest", arguments, 1, ("--quick",))
    if not words:
        print("naru selftest: which device? e.g. naru selftest cuda:0", file=sys.stderr)
        return 2
    try:
        device = _C._describe_device(_C.device(words[0]))["device"]
    except RuntimeError as error:
        print(f"naru selftest: {error}", file=sys.stderr)
        return 2
    from .testing.selftest import report

    text, right = report(device, bool(flags))
    print(text)
    return 0 if right else 1


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    from ._command.runner import run_module, run_script

    if arguments[0] == "--random" or arguments[0].startswith("--random="):
        name, rest = (arguments[0].partition("=")[2], arguments[1:]) if "=" in arguments[0] else (" ".join(arguments[1:2]), arguments[2:])
        if name not in ("philox", "pytorch") or not rest:
            print("naru run --random: philox or pytorch, and then the script; e.g. naru run --random pytorch train.py", file=sys.stderr)
            return 2
        os.environ["NARU_RANDOM"] = name  # the processes that the script starts, too
        arguments = rest
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("naru run -m: the name of a module is missing", file=sys.stderr)
            return 2
        return run_module(arguments[1], arguments[2:])
    return run_script(arguments[0], arguments[1:])


def _check(arguments: list[str]) -> int:
    from ._command.check import check

    words, _ = _split("check", arguments, 1, ())
    if not words:
        print("naru check: which script or folder? e.g. naru check train.py", file=sys.stderr)
        return 2
    return check(words[0])


def _bench(arguments: list[str]) -> int:
    from ._command.bench_report import main as bench

    return bench(arguments)


def _version(arguments: list[str]) -> int:
    from .torch_version import __version__

    print(__version__)
    return 0


_COMMANDS = {
    "run": _run, "check": _check, "devices": _devices, "doctor": _doctor, "selftest": _selftest, "bench": _bench, "version": _version,
    "--version": _version,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__)
        return 0
    command = _COMMANDS.get(arguments[0])
    if command is None:
        names = ", ".join(name for name in _COMMANDS if not name.startswith("-"))
        print(f"naru: there is no command '{arguments[0]}'; the commands are {names}", file=sys.stderr)
        return 2
    if command is _selftest:
        # Also where the first kernel was wrong: the table says which operators are.
        os.environ["NARU_SELF_CHECK"] = "0"
    if command in (_devices, _doctor, _selftest, _bench):
        from . import _C

        try:
            _C.devices()
        except RuntimeError as error:  # the environment's variables name devices that cannot be
            print(f"naru: {error}", file=sys.stderr)
            return 2
    return command(arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
