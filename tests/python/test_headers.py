"""The public headers: with every compiler that is here, without warnings, each alone, and nothing of fmt in them."""
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[2] / "include"
HEADERS = sorted(p.relative_to(INCLUDE).as_posix() for p in (INCLUDE / "naru").glob("*.h"))
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Werror".split()
SHADOWS = {"clang++": ["-Wshadow"]}  # g++ also speaks of parameters called as a member is
FOR_OTHERS = {"naru/eigen.h": "Eigen/Core", "naru/format.h": "fmt/format.h"}  # opt in: they need what others install


def compile_headers(compiler, standard, headers):
    text = "".join(f"#include <{h}>\n" for h in headers)
    command = [compiler, f"-std=c++{standard}", *WARNINGS, *SHADOWS.get(compiler, []), f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


@pytest.mark.parametrize("standard", ["20", "2b"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_all_of_naru_compiles_without_warnings(compiler, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    done = compile_headers(compiler, standard, ["naru/naru.h"])
    assert done.returncode == 0, done.stderr[:3000]


def test_each_header_stands_alone():
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda h: (h, compile_headers("g++", "20", [h])), [h for h in HEADERS if h not in FOR_OTHERS])
        failed = {h: done.stderr[:500] for h, done in results if done.returncode}
    assert not failed


def test_public_headers_include_only_each_other_and_the_standard_library():
    for header in set(HEADERS) - set(FOR_OTHERS):
        for name in re.findall(r'#\s*include\s+[<"]([^">]+)[">]', (INCLUDE / header).read_text()):
            assert name.startswith("naru/") or re.fullmatch(r"[a-z_]+", name), f"{header} includes {name}"
