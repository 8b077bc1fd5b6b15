"""A copy of the sources that a test may change. It is compiled with the flags of build/release and linked with what that build has made."""
import functools
import importlib.machinery
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tools.sanitized import SANITIZED

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "release"
ARCHIVE = BUILD / "src" / "libnaru.a"
OBJECTS = BUILD / "python" / "bindings"
PACKAGE = ROOT / "python" / "naru"
EXTENSION = PACKAGE / f"_C{importlib.machinery.EXTENSION_SUFFIXES[0]}"
COMMON = "src/ir/expr.cpp"  # has the flags of most sources
# Headers that nearly every source includes, compiled once for a tree.
HEADERS = "fmt/format.h algorithm array atomic cmath functional map memory mutex optional span string thread unordered_map variant vector"
COPIED = ("cmake", "docs", "include", "python", "src", "tests/python", "tools", "CMakeLists.txt")


def missing():
    """Why no tree can be compiled here, or None."""
    if SANITIZED:
        return "the sources are compiled with the flags of build/release, not with a sanitizer's"
    needed = [BUILD / "compile_commands.json", ARCHIVE, OBJECTS / "libnanobind-static.a", PACKAGE / "lib" / "libnaru.so", EXTENSION]
    absent = [str(path.relative_to(ROOT)) for path in needed if not path.exists()]
    return f"there is no {' and no '.join(absent)}: ./run build python naru_objects" if absent else None


@functools.cache
def flags():
    """{folder of sources: the compiler, and its arguments except files and levels of optimization}."""
    (compiler,) = re.findall(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words, file = shlex.split(entry["command"]), Path(entry["file"])
        sources = re.findall(r'#include "(.*)"', file.read_text()) if "Unity" in file.parts else [str(file)]
        kept = [word for word in words if re.match(r"-(D|I|f|std=|Wall|Wextra)", word)]
        for source in sources:
            found.setdefault(Path(source).parent, [compiler, *kept])
    return found


class Tree:
    """A copy of the sources in `folder`. Names of files are paths relative to the repository."""

    def __init__(self, folder):
        self.folder = Path(folder)

        def ignored(folder, names):
            built = {"lib", "include", "share"} if Path(folder) == PACKAGE else set()
            return {name for name in names if name == "__pycache__" or name in built or name.startswith("_C.cp")}

        for name in COPIED:
            source = ROOT / name
            shutil.copytree(source, self.folder / name, ignore=ignored) if source.is_dir() else shutil.copy(source, self.folder / name)
        (self.folder / "python" / "naru" / "lib").symlink_to(PACKAGE / "lib")
        self.own_extension()

        self.changed = set()

    def path(self, name):
        return self.folder / name

    def write(self, name, text):
        self.changed.add(name)
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)

    def replace(self, name, old, new):
        """`old` must stand in the file once."""
        text = self.path(name).read_text()
        assert text.count(old) == 1, f"{name} has {text.count(old)} times: {old}"
        self.write(name, text.replace(old, new))

    def restore(self, name):
        """Makes a file what it is in the repository, and removes one that is not there."""
        self.changed.discard(name)
        original = ROOT / name
        shutil.copy(original, self.path(name)) if original.exists() else self.path(name).unlink()

    def restore_all(self):
        for name in sorted(self.changed):
            self.restore(name)

    def flags_of(self, name):
        words = flags()[(ROOT / name).parent]
        for folder in ("include", "src", "python/bindings"):
            words = [f"-I{self.folder}/{folder}" if word == f"-I{ROOT}/{folder}" else word for word in words]
        return [*words, "-O0"]

    @functools.cache
    def precompiled(self):
        header = self.folder / "headers.h"
        header.write_text("".join(f"#include <{name}>\n" for name in HEADERS.split()))
        subprocess.run([*self.flags_of(COMMON), "-x", "c++-header", "-o", f"{header}.gch", str(header)], check=True)
        return str(header)

    def compile(self, name, *arguments, like=None):
        """Compiles a source without optimization: (the object's path, what the compiler said). The path is None if it failed.

        arguments: -fsyntax-only, for no object; like: a source of the folder whose flags are used, if not those of its own.
        """
        words = self.flags_of(like or name)
        if words == self.flags_of(COMMON):
            words = [*words, "-include", self.precompiled()]
        made = self.folder / f"{name.replace('/', '_')}.o"
        output = [] if "-fsyntax-only" in arguments else ["-c", "-o", str(made)]
        done = subprocess.run([*words, *arguments, *output, str(self.path(name))], capture_output=True, text=True)
        return (None if done.returncode else made), done.stderr

    def compile_together(self, names, *arguments):
        """Compiles sources of one folder as one, as the build does."""
        first = Path(names[0])
        name = str(first.with_name(f"all_from_{first.name}"))
        self.path(name).write_text("".join(f'#include "{Path(n).name}"\n' for n in names))
        try:
            return self.compile(name, *arguments)
        finally:
            self.path(name).unlink()

    def link(self, program, objects):
        """Links a program of objects and the library; returns what the linker said.

        A function that an object and the library both have is the object's.
        """
        words = [flags()[ROOT / "src" / "ir"][0], "-o", str(self.path(program)), *map(str, objects), str(ARCHIVE), "-Wl,--allow-multiple-definition"]
        words += ["-Wl,--undefined=naru_asmjit_globals", "-lasmjit", "-lfmt", "-lpthread", "-ldl"]
        return subprocess.run(words, capture_output=True, text=True).stderr

    def link_extension(self, objects):
        """Links naru._C with functions of these objects in place of its own; returns what the linker said."""
        target = self.path(f"python/naru/{EXTENSION.name}")
        target.unlink(missing_ok=True)
        own = sorted((OBJECTS / "CMakeFiles" / "naru_python.dir").rglob("*.cxx.o"))
        words = [flags()[ROOT / "src" / "ir"][0], "-shared", "-o", str(target), *map(str, objects), *map(str, own), str(OBJECTS / "libnanobind-static.a")]
        words += [str(PACKAGE / "lib" / "libnaru.so"), "-lfmt", "-ldl", "-static-libstdc++", "-Wl,--as-needed", "-Wl,--gc-sections", "-Wl,-s"]
        words += ["-Wl,--allow-multiple-definition", "-Wl,-rpath,$ORIGIN/lib", f"-Wl,--version-script={ROOT}/python/bindings/extension.map"]
        return subprocess.run(words, capture_output=True, text=True).stderr

    def own_extension(self):
        """Gives the tree the extension of the repository."""
        target = self.path(f"python/naru/{EXTENSION.name}")
        target.unlink(missing_ok=True)
        target.symlink_to(EXTENSION)

    def run(self, program, *arguments):
        """Runs a program of the tree, `python` with the tree's package, or `cmake`: what it printed, and its exit status if that is not 0."""
        first = {"python": sys.executable, "cmake": "cmake"}.get(program, str(self.path(program)))
        environment = os.environ | {"PYTHONPATH": str(self.path("python")), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([first, *arguments], capture_output=True, text=True, cwd=self.folder, env=environment, timeout=300)
        return done.stdout + done.stderr + (f"exit status {done.returncode}" if done.returncode else "")
