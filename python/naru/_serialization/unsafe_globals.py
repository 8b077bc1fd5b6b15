"""Finds the globals in a file that are more than plain data, by scanning its pickle's opcodes without executing any."""

from __future__ import annotations

import pickletools
from typing import IO, Any

from .allowed import plain_globals


def _named(text: bytes) -> set[tuple[str, str]]:
    """(module, name) of all globals in a pickle."""
    found: set[tuple[str, str]] = set()
    texts: list[str] = []
    memo: dict[Any, str] = {}
    for code, argument, _ in pickletools.genops(text):
        if code.name == "GLOBAL":
            module, _, name = argument.partition(" ")
            found.add((module, name))
        elif code.name == "STACK_GLOBAL" and len(texts) > 1:
            found.add((texts[-2], texts[-1]))
        elif code.name == "MEMOIZE" and texts:
            memo[len(memo)] = texts[-1]
        elif code.name in ("BINPUT", "LONG_BINPUT", "PUT") and texts:
            memo[int(argument)] = texts[-1]
        elif code.name in ("BINGET", "LONG_BINGET", "GET"):
            texts.append(memo.get(int(argument), ""))
        elif isinstance(argument, str):
            texts.append(argument)
    return found


def in_checkpoint(file: IO[bytes], safe: dict[tuple[str, str], Any]) -> list[str]:
    """The globals in an archive's pickle that are neither plain data nor in `safe`. ValueError if the file is not an archive."""
    from zipfile import BadZipFile, ZipFile

    try:
        archive = ZipFile(file)
    except BadZipFile:
        raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint, or an old one") from None
    with archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        known = plain_globals()
        return sorted(".".join(key) for key in _named(archive.read(name)) if key not in known and key not in safe)
