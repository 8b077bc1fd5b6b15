"""Lays out the headers of a Python for another system, from those of the same version for this one.

    python tools/python_headers.py TARGET PYTHON|FOLDER TO [COMPILER]

PYTHON is an interpreter that has its headers, FOLDER one of headers alone (Python.h is in it). TO gets `include/`, which is a copy with
tools/pyconfig.h in place of Python's own, and for Windows `python.def`: the names that the headers declare, of which an import library of the
Python's DLL is made. With COMPILER, a command that compiles C for the target, the sizes that pyconfig.h gives are compared with its own. Prints the
version: 3.12.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PYCONFIG = Path(__file__).with_name("pyconfig.h")
TYPES = {"short": "SHORT", "int": "INT", "long": "LONG", "long long": "LONG_LONG", "float": "FLOAT", "double": "DOUBLE", "long double": "LONG_DOUBLE",
         "void*": "VOID_P", "uintptr_t": "UINTPTR_T", "size_t": "SIZE_T", "wchar_t": "WCHAR_T", "time_t": "TIME_T", "_Bool": "_BOOL"}  # fmt: skip
DECLARED = re.compile(r"\bPyAPI_(FUNC|DATA)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*\**\s*(?:_Py_NO_RETURN\s+)?\(?\**\s*(\w+)")


def folder_of(python: str) -> Path:
    """The folder of headers of an interpreter, or the folder itself."""
    if (Path(python) / "Python.h").is_file():
        return Path(python)
    try:
        done = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True)
        found = Path(done.stdout.strip() or "?")
    except OSError:
        found = Path("?")
    if not (found / "Python.h").is_file():
        raise SystemExit(f"naru: {python} is neither a Python that has its headers nor a folder with Python.h")
    return found


def version_of(headers: Path) -> tuple[int, int]:
    """(3, 12), of patchlevel.h."""
    text = (headers / "patchlevel.h").read_text(encoding="utf-8")
    major, minor = (int(re.search(rf"#define\s+PY_{part}_VERSION\s+(\d+)", text)[1]) for part in ("MAJOR", "MINOR"))
    return major, minor


def names(headers: Path) -> dict[str, bool]:
    """The names that the public headers declare as Python's, and whether each is data."""
    found = {}
    for path in sorted([*headers.glob("*.h"), *headers.glob("cpython/*.h")]):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(encoding="utf-8"), flags=re.S)
        text = re.sub(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.M)
        for kind, name in DECLARED.findall(text):
            found[name] = kind == "DATA"
    return found


def definitions(headers: Path) -> str:
    """The module definition file of the Python's DLL."""
    version = "".join(map(str, version_of(headers)))
    lines = [f"  {name}{' DATA' if data else ''}" for name, data in sorted(names(headers).items())]
    return "\n".join([f"LIBRARY python{version}.dll", "EXPORTS", *lines, ""])


def checks() -> str:
    """A C program that compiles if pyconfig.h gives the compiler's sizes."""
    asserts = [f'_Static_assert(SIZEOF_{macro} == sizeof({type_}), "SIZEOF_{macro}");' for type_, macro in TYPES.items()]
    threads = '#ifdef HAVE_PTHREAD_H\n#include <pthread.h>\n_Static_assert(SIZEOF_PTHREAD_T == sizeof(pthread_t), "SIZEOF_PTHREAD_T");\n#endif'
    ssize = '_Static_assert(sizeof(Py_ssize_t) == sizeof(size_t) && (Py_ssize_t)-1 < 0, "Py_ssize_t");'
    return "\n".join(["#include <Python.h>", "#include <stdint.h>", "#include <time.h>", *asserts, threads, ssize, ""])


def lay_out(target: str, python: str, to: Path, compiler: str = "") -> tuple[int, int]:
    """Writes the headers, and the definition file; returns the version."""
    source = folder_of(python)
    version = version_of(source)
    if not (3, 10) <= version < (4, 0):
        raise SystemExit(f"naru: {source} is of Python {version[0]}.{version[1]}; 3.10 or newer is needed")
    include = to / "include"
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(source, include, ignore=shutil.ignore_patterns("internal", "pyconfig*.h"))
    shutil.copy2(PYCONFIG, include)
    if target.startswith("windows"):
        write(to / "python.def", definitions(source))
    if compiler:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "sizes.c"
            program.write_text(checks(), encoding="utf-8")
            command = [*shlex.split(compiler), "-c", "-I", include, program, "-o", program.with_suffix(".o")]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"naru: tools/pyconfig.h is not for {target}'s compiler and Python {version[0]}.{version[1]}:\n{done.stderr}")
    return version


def write(path: Path, text: str) -> None:
    """Writes a file, unless it has that text: what is made of it is then not made again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    major, minor = lay_out(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
    print(f"{major}.{minor}")
