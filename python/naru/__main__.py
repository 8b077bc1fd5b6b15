"""The `naru` command. `naru help` lists the subcommands, docs/command-line.md describes them. They are in _command/commands.py."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    from ._command.line import main as run

    return run(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
