"""The `naru` command.

    naru run SCRIPT [ARGS...]      runs a script that says `import torch`, unchanged
    naru run -m MODULE [ARGS...]   the same for a module
    naru devices                   a table of the devices of this machine
    naru doctor                    for each kind of device: available, or the reason and the remedy
    naru version                   the version
"""

from __future__ import annotations

import sys


def _devices(arguments: list[str]) -> int:
    from ._report import devices_table

    print(devices_table())
    return 0


def _doctor(arguments: list[str]) -> int:
    from ._report import doctor_report

    print(doctor_report())
    return 0


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    from ._runner import run_module, run_script

    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("naru run -m: the name of a module is missing", file=sys.stderr)
            return 2
        return run_module(arguments[1], arguments[2:])
    return run_script(arguments[0], arguments[1:])


def _version(arguments: list[str]) -> int:
    from ._version import __version__

    print(__version__)
    return 0


_COMMANDS = {"run": _run, "devices": _devices, "doctor": _doctor, "version": _version, "--version": _version}


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
    return command(arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
