"""naru as a C++ package: installed (CMake's find_package, pkg-config), as part of the Python package, and as a subproject."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import naru

ROOT = Path(__file__).resolve().parents[3]
PROJECTS = ROOT / "tests" / "install"
BUILD = ROOT / "build" / "release"
AS_IT_SHOULD = "as it should: mm: mat1 and mat2 shapes cannot be multiplied"

pytestmark = [
    pytest.mark.skipif(not (BUILD / "src" / "libnaru.a").exists(), reason="the archive is not built: ./run build naru_objects"),
    pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("ninja") is None, reason="cmake and ninja are not installed"),
]


def run(*command, ok=True, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **more)
    assert not ok or done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    where = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", where)
    return where


def test_a_project_finds_an_installed_naru(prefix, tmp_path):
    run("cmake", "-S", PROJECTS, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    said = run(tmp_path / "uses_naru", tmp_path / "libplugin.so").stdout
    assert AS_IT_SHOULD in said and "one generator for a program and its plugin: yes" in said
    # naru::precompiled, and only for targets that link it.
    assert [path.parent.name for path in tmp_path.glob("CMakeFiles/*/cmake_pch.hxx")] == ["plugin.dir"]


def test_a_project_finds_the_library_of_the_python_package(tmp_path):
    run("cmake", "-S", PROJECTS, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={naru.utils.cmake_prefix_path}")
    run("cmake", "--build", tmp_path)
    said = run(tmp_path / "uses_naru", tmp_path / "libplugin.so").stdout
    assert AS_IT_SHOULD in said and "one generator for a program and its plugin: yes" in said
    library = Path(naru.__file__).parent / "lib"
    assert str(library) in run("readelf", "-d", tmp_path / "uses_naru").stdout, "the program finds the library where it was linked"


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_the_first_program_of_the_page_is_built_as_it_says_from_a_package_of_debian(tmp_path):
    page = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8").partition("\n## A first program\n")[2].partition("\n## ")[0]
    (tmp_path / "first.cpp").write_text(page.partition("```cpp\n")[2].partition("```")[0])
    (tmp_path / "CMakeLists.txt").write_text(page.partition("```cmake no-run: ")[2].partition("\n")[2].partition("```")[0])
    run("cpack", "-G", "DEB", "-B", tmp_path / "packed", cwd=BUILD)
    (package,) = (tmp_path / "packed").glob("libnaru-dev_*.deb")
    asked = run("dpkg-deb", "-f", package, "Depends").stdout
    assert "libstdc++-12-dev" in asked and "asmjit" not in asked and "fmt" not in asked
    run("dpkg-deb", "-x", package, tmp_path / "root")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={tmp_path / 'root' / 'usr'}")
    run("cmake", "--build", tmp_path / "build")
    assert " on cuda:0" in run(tmp_path / "build" / "first", env={**os.environ, "NARU_VIRTUAL": "cuda:2"}).stdout


@pytest.mark.parametrize("version", ["0.2", "1"])
def test_a_version_with_another_interface_is_not_taken(prefix, tmp_path, version):
    (tmp_path / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(asks LANGUAGES NONE)\nfind_package(naru {version} QUIET)\n"
                                             'message(STATUS "found ${naru_FOUND}, looked at ${naru_CONSIDERED_VERSIONS}")\n')
    said = run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}").stdout
    assert "found 0, looked at 0.1.0" in said


def test_pkg_config_says_what_a_program_is_linked_with(prefix, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    folder = next(prefix.glob("**/pkgconfig"))
    words = run("pkg-config", "--cflags", "--libs", "naru", env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).stdout.split()
    run("g++", "-std=c++20", PROJECTS / "main.cpp", *words, "-o", tmp_path / "program")
    assert AS_IT_SHOULD in run(tmp_path / "program", env={**os.environ, "LD_LIBRARY_PATH": str(folder.parent)}).stdout


def test_another_project_fetches_naru_and_builds_it(tmp_path):
    """A layer of it is compiled as that project would; the rest, which takes minutes, is this build's archive."""
    run("cmake", "-S", PROJECTS / "within", "-B", tmp_path, "-G", "Ninja", f"-DNARU={ROOT}")
    run("cmake", "--build", tmp_path, "--target", "naru_core")
    objects = run("ninja", "-C", tmp_path, "-t", "inputs", "has_naru").stdout.split()
    run("ninja", "-C", tmp_path, next(each for each in objects if each.endswith("main.cpp.o")))
    archive = tmp_path / next(each for each in objects if each.endswith("libnaru.a"))
    shutil.copy(BUILD / "src" / "libnaru.a", archive)
    subprocess.run(run("ninja", "-C", tmp_path, "-t", "commands", "-s", "has_naru").stdout, shell=True, check=True, cwd=tmp_path)
    assert AS_IT_SHOULD in run(tmp_path / "has_naru").stdout


def test_another_project_has_naru_as_a_subdirectory(tmp_path):
    run("cmake", "-S", PROJECTS / "within", "-B", tmp_path, "-G", "Ninja", f"-DNARU={ROOT}", "-DFETCH=OFF")
    made = run("ninja", "-C", tmp_path, "-t", "targets", "all").stdout
    assert "naru_tests" not in made and "naru_python" not in made and "examples" not in made, "a part of another project is the library alone"
    assert "-O2 -DNDEBUG" in run("ninja", "-C", tmp_path, "-t", "commands", "naru").stdout, "optimised, where the project has no build type"
    assert "-O2" not in run("ninja", "-C", tmp_path, "-t", "commands", "CMakeFiles/has_naru.dir/main.cpp.o", ok=False).stdout, "the project's own sources are its own"


def test_the_installed_library_knows_nothing_of_the_builder(prefix):
    library = next(prefix.glob("**/libnaru.so.*")).read_bytes()
    assert str(ROOT).encode() not in library and b"RUNPATH" not in run("readelf", "-d", next(prefix.glob("**/libnaru.so.*"))).stdout.encode()
