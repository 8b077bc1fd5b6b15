"""The public headers: with every compiler that is here, without warnings, each alone, and nothing of fmt in them."""
import functools
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[2] / "include"
HEADERS = sorted(p.relative_to(INCLUDE).as_posix() for p in (INCLUDE / "naru").glob("*.h"))
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
FOR_OTHERS = {"naru/eigen.h": "Eigen/Core", "naru/format.h": "fmt/format.h"}  # opt in: they need what others install


# Compiled once for those that include them, the last one first. What a header sees is the same: all that it includes, and nothing else.
SHARED = ("naru/tensor.h", "naru/ops.h")


def compile_headers(compiler, standard, headers, more=()):
    text = "".join(f"#include <{h}>\n" for h in headers)
    command = [compiler, f"-std=c++{standard}", *WARNINGS, *more, f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


@functools.cache
def included_by(header):
    """All of naru's headers that it includes, through others too (some meet themselves again), and the header itself."""
    found, left = set(), [header]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += re.findall(r'#\s*include\s+"(naru/[^"]+)"', (INCLUDE / name).read_text())
    return found


def precompile(header, folder):
    target = folder / f"{Path(header).stem}.h"
    target.write_text(f"#include <{header}>\n")
    command = ["g++", "-std=c++20", *WARNINGS, f"-I{INCLUDE}", "-x", "c++-header", target, "-o", f"{target}.gch"]
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.mark.parametrize("standard", ["20", "2b"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_all_of_naru_compiles_without_warnings(compiler, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    done = compile_headers(compiler, standard, ["naru/naru.h"])
    assert done.returncode == 0, done.stderr[:3000]


def test_each_header_stands_alone(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")

    def alone(header):
        shared = [name for name in SHARED if name in included_by(header) and header not in included_by(name)]
        return header, compile_headers("g++", "20", [header], ["-include", made[shared[-1]], "-Winvalid-pch"] if shared else [])

    with ThreadPoolExecutor(2) as pool:
        made = dict(zip(SHARED, pool.map(lambda h: precompile(h, tmp_path), SHARED)))
        results = pool.map(alone, [h for h in HEADERS if h not in FOR_OTHERS])
        failed = {h: done.stderr[:500] for h, done in results if done.returncode}
    assert not failed


def test_public_headers_include_only_each_other_and_the_standard_library():
    for header in set(HEADERS) - set(FOR_OTHERS):
        for name in re.findall(r'#\s*include\s+[<"]([^">]+)[">]', (INCLUDE / header).read_text()):
            own = header == "naru/standard.h" and name.startswith("bits/")  # where the library is known, and has them
            assert own or name.startswith("naru/") or re.fullmatch(r"[a-z_]+", name), f"{header} includes {name}"


# What costs a program more to include than all of naru (g++ 12 has <ostream> in <memory>).
COSTLY = {"complex", "sstream", "iostream", "fstream", "regex", "mutex", "future", "thread", "chrono", "ranges", "variant", "unordered_set", "random"}
# What naru/standard.h is for.
COSTLY |= {"functional", "memory", "unordered_map", "algorithm", "stl_algo.h"}


def test_naru_brings_no_costly_headers_along():
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    command = ["g++", "-std=c++20", f"-I{INCLUDE}", "-M", "-x", "c++", "-"]
    made = subprocess.run(command, input="#include <naru/naru.h>\n", capture_output=True, text=True, check=True).stdout
    assert COSTLY.isdisjoint(Path(name).name for name in made.split())


VIEW = """
#include <naru/naru.h>
#ifndef __cpp_lib_mdspan
#error there is no mdspan
#endif
float corner(const naru::Tensor& t) {
  const auto view = naru::mdspan_of<float, 2>(t);
  static_assert(decltype(view)::rank() == 2);
  return view[view.extent(0) - 1, 0];
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_tensors_are_seen_as_mdspans_where_the_library_has_them(compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    command = [compiler, "-std=c++2b", *WARNINGS, f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=VIEW, capture_output=True, text=True)
    if "there is no mdspan" in done.stderr:
        pytest.skip(f"the standard library of {compiler} has no mdspan")
    assert done.returncode == 0, done.stderr[:3000]
