"""Compiles C++ extensions: finds the compiler, keeps what was built in a folder, and builds again only what has changed."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._serialization.atomic_file import atomic_file

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[1]
INCLUDE = PACKAGE / "include"
HEADERS = INCLUDE / "naru" / "torch" / "headers"
LIB = PACKAGE / "lib"
STANDARD = "-std=c++20"


def compiler() -> list[str]:
    """The C++ compiler's command: CXX, else the first of g++, clang++ and c++ that is there. RuntimeError if there is none."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise RuntimeError(f"torch.utils.cpp_extension: the compiler in CXX={os.environ['CXX']!r} was not found; wanted the name of a C++20 compiler")
        return chosen
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return [name]
    raise RuntimeError(
        "torch.utils.cpp_extension: no C++ compiler was found (g++, clang++ and c++ are not in PATH): install one that knows C++20 "
        "(apt-get install g++), or name it in CXX"
    )


def pybind11_include() -> str:
    """The folder of pybind11's headers. ImportError, with the remedy, if it is not installed."""
    spec = importlib.util.find_spec("pybind11")
    if spec is None or spec.origin is None:
        raise ImportError("torch.utils.cpp_extension: extensions need the headers of pybind11, which is not installed: pip install 'pybind11>=2.13'")
    return str(Path(spec.origin).parent / "include")


def library() -> Path:
    """libnaru.so of this installation. RuntimeError if it has none."""
    found = sorted(LIB.glob("libnaru.so.*"))
    if not found:
        raise RuntimeError(f"torch.utils.cpp_extension: this installation of naru has no libnaru.so in {LIB}, so it cannot build extensions (Linux's wheels have it)")
    return found[-1]


def include_folders(python: bool) -> list[str]:
    """The folders of headers. python: pybind11's and Python's, too."""
    folders = [str(INCLUDE), str(HEADERS)]
    return [*folders, pybind11_include(), sysconfig.get_path("include")] if python else folders


def link_flags() -> list[str]:
    """What links naru's library, and finds it when the extension is loaded."""
    return [f"-L{LIB}", f"-l:{library().name}", f"-Wl,-rpath,{LIB}"]


def with_standard(flags: list[str]) -> list[str]:
    """The flags in C++20 at least: naru's headers need it, and sources for C++14 and C++17 are taken as C++20."""
    kept = [flag for flag in flags if not (flag.startswith(("-std=c++", "-std=gnu++")) and flag.rpartition("+")[2] in ("11", "14", "17", "1y", "1z"))]
    return kept if any(flag.startswith("-std=") for flag in kept) else [STANDARD, *kept]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def _identity(path: Any) -> Any:
    """What changes if a file changes."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size]


class Failure(Exception):
    """A compiler's error, with its text."""


def run(command: list[str], folder: Path, verbose: bool) -> None:
    """Runs a compiler. Failure if it fails."""
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if verbose and done.stderr:
        print(done.stderr, file=sys.stderr)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other processes out of a build folder."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _dependencies(listing: Path) -> list[str]:
    """The files that a compiler has read, as it lists them for make."""
    text = listing.read_text(errors="replace").replace("\\\n", " ").partition(": ")[2]
    return [part.replace("\\ ", " ") for part in re.split(r"(?<!\\)\s+", text) if part]


def up_to_date(target: Path, key: str) -> bool:
    """Whether a file was built with this key and nothing that it was built of has changed since."""
    try:
        noted = json.loads(Path(f"{target}.json").read_text())
    except (OSError, ValueError):
        return False
    return target.exists() and noted["key"] == key and all(_identity(path) == before for path, before in noted["read"].items())


def _note(target: Path, key: str, read: list[str]) -> None:
    path = Path(f"{target}.json")
    with atomic_file(path, "w", encoding="utf-8") as file:
        json.dump({"key": key, "read": {each: _identity(each) for each in read}}, file)


def compile_file(source: Path, target: Path, flags: list[str], verbose: bool) -> bool:
    """Compiles a file if it, a header or a flag has changed since. Returns whether it did."""
    command = [*compiler(), *flags]
    key = _digest(command, _identity(shutil.which(command[0])), str(source), _identity(library()))
    if up_to_date(target, key):
        return False
    partial, listing = target.with_name(f"{target.name}.{os.getpid()}.o"), target.with_name(f"{target.name}.d")
    run([*command, "-MD", "-MF", str(listing), "-c", str(source), "-o", str(partial)], target.parent, verbose)
    partial.replace(target)
    _note(target, key, _dependencies(listing))
    return True


def link(objects: list[Path], target: Path, flags: list[str], shared: bool, verbose: bool) -> None:
    """Links objects into a library or a program if one of them or a flag has changed since."""
    command = [*compiler(), *(["-shared"] if shared else []), *map(str, objects), *flags]
    key = _digest(command)
    if up_to_date(target, key):
        return
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    run([*command, "-o", str(partial)], target.parent, verbose)
    partial.replace(target)
    _note(target, key, [str(o) for o in objects])


class Job(NamedTuple):
    """An extension to be built: its name, sources, flags, folder, and what it becomes."""

    name: str
    sources: list[str]
    cflags: list[str]
    ldflags: list[str]
    folder: Path
    python: bool = True
    standalone: bool = False
    verbose: bool = False


def common_flags(cflags: list[str]) -> list[str]:
    """The flags for all extensions: -O2 unless another level is given."""
    optimised = [] if any(flag.startswith("-O") for flag in cflags) else ["-O2"]
    return ["-fPIC", *optimised, *(f"-isystem{folder}" for folder in include_folders(True)), *with_standard(cflags)]


def write(path: Path, text: str) -> None:
    """Writes a whole file at once: a process that reads it never sees a part."""
    with atomic_file(path, "w", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def _failures_of(job: Job) -> Iterator[None]:
    try:
        yield
    except Failure as error:
        raise RuntimeError(f"Error building extension '{job.name}': {error}") from None


def compile_sources(job: Job) -> tuple[list[Path], str]:
    """Compiles a job's sources that have changed. Returns its objects, and what changes if they do. RuntimeError, with the compiler's text, if that
    fails."""
    flags = common_flags(job.cflags)
    own = [] if job.standalone else [f"-DTORCH_EXTENSION_NAME={job.name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    objects = [job.folder / f"{Path(source).stem}.{_digest(source)[:8]}.o" for source in job.sources]
    with _failures_of(job):
        count = int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1)
        with ThreadPoolExecutor(max(1, min(count, len(objects)))) as pool:
            made = [
                pool.submit(compile_file, Path(source), target, [*own, *flags], job.verbose)
                for source, target in zip(job.sources, objects)
            ]
            for each in made:
                each.result()
    return objects, _digest(job.ldflags, [(str(each), _identity(each)) for each in objects])


def link_objects(job: Job, objects: list[Path], target: Path) -> None:
    """Links a job's objects. RuntimeError, with the linker's text, if that fails."""
    with _failures_of(job):
        link(objects, target, [*job.ldflags, *link_flags()], not job.standalone, job.verbose)
