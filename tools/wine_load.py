"""Loads the extension for Windows under wine, beside a stand-in for Python's DLL: shows that its libraries are found, that it is put at its addresses,
and that what is constructed at loading is. No function of Python runs.

    python tools/wine_load.py EXTENSION.pyd COMPILER

COMPILER compiles C for Windows. The stand-in has the names that the extension wants, and ends the process if one is called. The exit status is 1 if
it does not load.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import linked, under_wine  # noqa: E402

STAND_IN = """#include <stdio.h>
#include <stdlib.h>
static void called(const char* name) { fprintf(stderr, "%s is called at loading\\n", name); exit(4); }
"""
LOADER = """#include <stdio.h>
#include <windows.h>
int main(int argc, char** argv) {
  HMODULE library = LoadLibraryA(argv[1]);
  if (!library) return fprintf(stderr, "%s can't be loaded: error %lu\\n", argv[1], GetLastError()), 1;
  if (!GetProcAddress(library, "PyInit__C")) return fprintf(stderr, "it has no PyInit__C\\n"), 2;
  puts("loaded");
  return argc - 2;
}
"""


def stand_in(names: set[str], data: set[str]) -> str:
    """A C program that exports the names: functions that end the process, and room for any type's object."""
    lines = [f"__declspec(dllexport) long long {name}[64];" for name in sorted(names & data)]
    lines += [f'__declspec(dllexport) void {name}(void) {{ called("{name}"); }}' for name in sorted(names - data)]
    return STAND_IN + "\n".join(lines) + "\n"


def trouble(extension: Path, compiler: str, data: set[str]) -> str | None:
    """Why the extension does not load under wine; "" if it does, None where there is no wine. data: the names that are no functions."""
    wine = under_wine.wine()
    if wine is None:
        return None
    found = linked.read("windows-x64", extension)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "loader.c").write_text(LOADER)
        (folder / extension.name).write_bytes(extension.read_bytes())
        work = [["-o", "loader.exe", "loader.c"]]
        for dll in (each for each in found.libraries if each.lower().startswith("python")):
            (folder / f"{dll}.c").write_text(stand_in(found.wanted[dll], data))
            work.append(["-shared", "-fno-builtin", "-w", "-o", dll, f"{dll}.c"])
        for arguments in work:
            done = subprocess.run([*shlex.split(compiler), *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                return f"the stand-in was not compiled: {done.stderr}"
        done = subprocess.run([wine, "loader.exe", extension.name], cwd=folder, env=under_wine.prepared(wine), capture_output=True, text=True,
                              errors="replace", timeout=under_wine.SECONDS)  # fmt: skip
    return "" if done.returncode == 0 and done.stdout.strip() == "loaded" else f"{extension.name} under wine: status {done.returncode}: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    said = trouble(Path(sys.argv[1]), sys.argv[2], set(sys.argv[3:]))
    print("no wine on this machine" if said is None else said or "it loads")
    sys.exit(1 if said else 0)
