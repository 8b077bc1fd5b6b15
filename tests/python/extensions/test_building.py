"""Building extensions: what is kept and what is built again, errors, flags, and what is refused. The sources are small: most use no tensor."""
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import naru
from naru.utils import _cpp_build, cpp_extension

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
pytest.importorskip("pybind11", reason="pybind11 is not installed")

PLAIN = """
#include <pybind11/pybind11.h>
#include "answer.h"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("answer", [] { return ANSWER; }); }
"""
# The same in C, which compiles in no time.
IN_C = """
#include <Python.h>
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(FACTOR); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "inc", "", -1, methods};
PyMODINIT_FUNC JOIN(PyInit_, TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""


@pytest.fixture
def commands(monkeypatch):
    """The compiler's commands that are run."""
    run, seen = _cpp_build.run, []
    monkeypatch.setattr(_cpp_build, "run", lambda command, *more: (seen.append(command), run(command, *more)))
    return seen


def test_only_what_changed_is_built_again(tmp_path, commands):
    (tmp_path / "plain.cpp").write_text(PLAIN)
    header = tmp_path / "answer.h"
    header.write_text("#define ANSWER 6\n")

    def load():
        before = len(commands)
        module = cpp_extension.load("plain", [tmp_path / "plain.cpp"], extra_cflags=["-O0"], build_directory=tmp_path / "build")
        return module, len(commands) - before

    first, count = load()
    assert first.answer() == 6 and count == 2
    again, count = load()
    assert again is first and count == 0
    header.write_text("#define ANSWER 50\n")
    changed, count = load()
    assert changed.answer() == 50 and count == 2
    assert first.answer() == 6, "what was loaded before stays as it was"
    assert sorted(path.name for path in (tmp_path / "build").glob("*.so")) == ["plain.so", "plain_v1.so"]


def test_flags_count_and_another_process_takes_what_is_there(tmp_path, commands):
    (tmp_path / "plain.cpp").write_text(IN_C)
    for factor in (42, 100):
        before = len(commands)
        module = cpp_extension.load("inc", [tmp_path / "plain.cpp"], extra_cflags=[f"-DFACTOR={factor}"], build_directory=tmp_path / "build")
        assert module.answer() == factor and len(commands) - before == 2
    code = f"""
        from naru.utils import _cpp_build, cpp_extension
        compiled = []
        run, _cpp_build.run = _cpp_build.run, lambda command, *more: (compiled.append("-c" in command), run(command, *more))
        module = cpp_extension.load("inc", [r"{tmp_path}/plain.cpp"], extra_cflags=["-DFACTOR=100"], build_directory=r"{tmp_path}/build")
        print(module.answer(), True in compiled)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["100", "False"], done.stderr


def test_processes_build_the_same_extension_one_after_the_other(tmp_path):
    (tmp_path / "plain.cpp").write_text(IN_C)
    code = f"""
        from naru.utils import cpp_extension
        module = cpp_extension.load("inc", [r"{tmp_path}/plain.cpp"], extra_cflags=["-DFACTOR=1"], build_directory=r"{tmp_path}/b", verbose=True)
        print(module.answer())
    """
    started = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in started]
    assert [out for out, _ in said] == ["1\n", "1\n"], said
    assert sum(error.count(" -c ") for _, error in said) == 1, "one of them compiles, the other waits"


def test_an_error_of_the_compiler_is_raised_with_its_text(tmp_path):
    with pytest.raises(RuntimeError, match=r"Error building extension 'wrong'.*\n(.*\n)*.*error: .*nothing_of_this_name"):
        cpp_extension.load_inline("wrong", "int f() { return nothing_of_this_name; }", no_implicit_headers=True, build_directory=tmp_path)
    with pytest.raises(RuntimeError, match=r"Error building extension 'unlinked'.*\n(.*\n)*.*library_of_no_name"):
        cpp_extension.load_inline("unlinked", "int f();", no_implicit_headers=True, extra_ldflags=["-llibrary_of_no_name"], build_directory=tmp_path)


def test_each_header_of_libtorchs_name_is_there(tmp_path):
    names = sorted(path.relative_to(_cpp_build.HEADERS).as_posix() for path in _cpp_build.HEADERS.rglob("*.*h"))
    of_cuda = [name for name in names if "/cuda/" in name]
    assert len(names) > 60 and len(of_cuda) > 3 and "torch/extension.h" in names
    command = [*_cpp_build.compiler(), *_cpp_build.common_flags([]), "-fsyntax-only", "-x", "c++", "-"]
    text = "".join(f"#include <{name}>\n" for name in names if name not in of_cuda)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:2000]
    refused = subprocess.run(command, input="#include <c10/cuda/CUDAGuard.h>\n", capture_output=True, text=True, timeout=120)
    assert refused.returncode != 0 and "naru compiles no CUDA sources: write the kernel for naru.kernel" in refused.stderr


def test_a_program_and_a_library_without_python(tmp_path):
    (tmp_path / "main.cpp").write_text("#include <cstdio>\nint main() { std::puts(WORD); }\n")
    program = cpp_extension.load("hello", tmp_path / "main.cpp", extra_cflags=['-DWORD="hello"'], build_directory=tmp_path / "b", is_standalone=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "hello\n"
    path = cpp_extension.load_inline("bare", "extern \"C\" int two() { return 2; }", no_implicit_headers=True, build_directory=tmp_path / "c", is_python_module=False)
    import ctypes

    assert ctypes.CDLL(path).two() == 2


def test_verbose_prints_the_commands(tmp_path, capfd):
    cpp_extension.load_inline("told", "int f();", no_implicit_headers=True, extra_cflags=["-DSPECIAL=1"], build_directory=tmp_path, verbose=True, is_python_module=False)
    said = capfd.readouterr().err
    assert "-DSPECIAL=1" in said and "-std=c++20" in said and "-shared" in said


@pytest.mark.parametrize("given, wanted", [
    ([], ["-std=c++20"]), (["-O3", "-std=c++17"], ["-std=c++20", "-O3"]), (["-std=gnu++14"], ["-std=c++20"]), (["-std=c++23"], ["-std=c++23"]),
])  # fmt: skip
def test_the_language_is_cpp20_at_least(given, wanted):
    assert _cpp_build.with_standard(given) == wanted


@pytest.mark.parametrize("call, language", [
    (lambda: cpp_extension.load("x", ["a.cpp", "b.cu"]), "CUDA"), (lambda: cpp_extension.load("x", ["a.cpp"], with_cuda=True), "CUDA"),
    (lambda: cpp_extension.load("x", ["a.sycl"]), "SYCL"), (lambda: cpp_extension.load_inline("x", "", cuda_sources="void f();"), "CUDA"),
    (lambda: cpp_extension.load_inline("x", "", sycl_sources=["void f();"]), "SYCL"), (lambda: cpp_extension.CUDAExtension("x", ["a.cu"]), "CUDA"),
    (lambda: cpp_extension.CppExtension("x", ["a.cu"]), "CUDA"), (lambda: cpp_extension.SyclExtension("x", ["a.sycl"]), "SYCL"),
    (lambda: cpp_extension.include_paths("cuda"), "CUDA"),
])  # fmt: skip
def test_other_languages_are_refused_with_an_alternative(call, language):
    with pytest.raises(NotImplementedError, match=f"naru does not compile {language}.*nearest: naru.kernel"):
        call()


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="there is no file 'absent.cpp'"):
        cpp_extension.load("x", ["absent.cpp"])
    with pytest.raises(ValueError, match="wanted the name of a module, such as 'mine', got 'a-b'"):
        cpp_extension.load("a-b", [])
    with pytest.raises(ValueError, match="Expected 'functions' to be a list or dict"):
        cpp_extension.load_inline("x", "", functions=3, build_directory=tmp_path)
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(RuntimeError, match="the compiler in CXX='no-such-compiler -O2' was not found"):
        cpp_extension.get_cxx_compiler()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no C.. compiler was found .*apt-get install g..."):
        cpp_extension.get_cxx_compiler()
    monkeypatch.setattr(_cpp_build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install 'pybind11>=2.13'"):
        _cpp_build.pybind11_include()
    monkeypatch.setattr(_cpp_build, "LIB", tmp_path)
    with pytest.raises(RuntimeError, match="has no libnaru.so in"):
        cpp_extension.library_paths() and _cpp_build.library()


def test_the_build_root(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert cpp_extension.get_default_build_root() == str(tmp_path)
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR")
    monkeypatch.setenv("NARU_CACHE_DIR", str(tmp_path / "cache"))
    assert cpp_extension.get_default_build_root() == str(tmp_path / "cache" / "extensions")
    monkeypatch.setenv("NARU_CACHE_DIR", "")
    assert "naru-extensions-" in cpp_extension.get_default_build_root()
    code = "from naru.utils.cpp_extension import get_default_build_root as root; import os; print(root(), os.path.isdir(root()))"
    folder, there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert there == "True" and not os.path.exists(folder), "it is removed at the end"


def test_the_compiler_is_known():
    command = cpp_extension.get_cxx_compiler()
    fits, version = cpp_extension.get_compiler_abi_compatibility_and_version(command)
    assert fits and version >= "12" and cpp_extension.check_compiler_ok_for_platform(command)
    assert cpp_extension.check_compiler_is_gcc("g++") and not cpp_extension.check_compiler_is_gcc("no-such-compiler")


def test_a_library_for_pytorch_is_an_error(tmp_path):
    path = tmp_path / "library.so"
    path.write_bytes(b"no library")
    for load in (naru.ops.load_library, naru.classes.load_library):
        with pytest.raises(OSError, match=f"Could not load this library: {path}"):
            load(str(path))


def test_duplicate_operators_and_strange_schemas_are_errors(tmp_path):
    source = """
    #include <torch/library.h>
    TORCH_LIBRARY(twofold, m) {
      m.def("one(Tensor x) -> Tensor");
      m.def("one(Tensor x) -> Tensor");
      m.def("two");
    }
    """
    with pytest.raises(RuntimeError) as error:
        cpp_extension.load_inline("twofold", source, no_implicit_headers=True, extra_cflags=["-O0"], build_directory=tmp_path, is_python_module=False)
    assert "same name and overload name multiple times" in str(error.value) and 'm.def("two"): wanted a schema such as' in str(error.value)
    assert naru.ops.twofold.one is not None
