"""`torch.utils.cpp_extension`: C++ extensions, written against libtorch's common surface, built over naru's headers (docs/cpp-extensions.md).

CUDA and SYCL sources are not compiled: `naru.kernel` takes kernels, and runs them on every device.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .._missing import fail
from . import _cpp_build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._cpp_setuptools import BuildExtension as BuildExtension

__all__ = [
    "BuildExtension", "CUDAExtension", "CUDA_HOME", "CppExtension", "SyclExtension", "check_compiler_is_gcc", "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version", "get_cxx_compiler", "get_default_build_root", "include_paths", "is_ninja_available",
    "library_paths", "load", "load_inline", "remove_extension_h_precompiler_headers", "verify_ninja_availability",
]  # fmt: skip

CUDA_HOME = None
_OTHER_LANGUAGES = {".cu": "CUDA", ".cuh": "CUDA", ".hip": "HIP", ".sycl": "SYCL", ".mm": "Metal"}
# What this process has loaded: by folder and name, then by what the library was built of.
_loaded: dict[str, dict[str, Any]] = {}
# How often a module of a name was imported, less one.
_imported: dict[str, int] = {}


def _refuse(function: str, what: str, language: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.utils.cpp_extension.{function}: naru does not compile {language} ({what}); nearest: naru.kernel, which takes a kernel in C and runs it on "
        "every device, and C++ sources for the cpu"
    )


def _check_languages(function: str, sources: Sequence[Any]) -> None:
    for source in sources:
        language = _OTHER_LANGUAGES.get(Path(source).suffix)
        if language:
            _refuse(function, os.fspath(source), language)


def get_default_build_root() -> str:
    """The folder below which extensions are built: TORCH_EXTENSIONS_DIR, else `extensions` in naru's cache (NARU_CACHE_DIR, ~/.cache/naru). Where that
    is to be nowhere (NARU_CACHE_DIR is empty), a folder that is removed at the end.

    >>> import os
    >>> os.path.basename(naru.utils.cpp_extension.get_default_build_root()) != ""
    True
    """
    if chosen := os.environ.get("TORCH_EXTENSIONS_DIR"):
        return os.path.expanduser(chosen)
    cache = os.environ.get("NARU_CACHE_DIR", os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "naru"))
    return os.path.join(cache, "extensions") if cache else _passing_root()


@functools.cache
def _passing_root() -> str:
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="naru-extensions-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _folder_for(name: str, chosen: str | os.PathLike[str] | None) -> Path:
    if chosen is not None:
        return Path(chosen).absolute()
    return Path(get_default_build_root()) / f"py{sys.version_info.major}{sys.version_info.minor}_cpu" / name


def _import(name: str, path: Path) -> Any:
    """The module in a file. pybind11 gives each name one module in a process, so that the second of a name is imported as a submodule: for the
    function that makes it, only the last part of the name counts."""
    number = _imported[name] = _imported.get(name, -1) + 1
    spec = importlib.util.spec_from_file_location(f"{name}_v{number}.{name}" if number else name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__name__ = name
    from .._functions import compiled

    compiled.collect()
    return module


def _build_and_load(job: _cpp_build.Job) -> Any:
    """Builds an extension if need be, and loads it. A library that this process has loaded keeps its file: a changed one gets another."""
    from ..ops import load_library  # type: ignore[attr-defined]

    with _cpp_build.locked(job.folder):
        objects, key = _cpp_build.compile_sources(job)
        if job.standalone:
            _cpp_build.link_objects(job, objects, job.folder / job.name)
            return str(job.folder / job.name)
        loaded = _loaded.setdefault(str(job.folder / job.name), {})
        if key not in loaded:
            target = job.folder / (f"{job.name}_v{len(loaded)}.so" if loaded else f"{job.name}.so")
            _cpp_build.link_objects(job, objects, target)
            if job.python:
                loaded[key] = _import(job.name, target)
            else:
                load_library(str(target))
                loaded[key] = str(target)
        return loaded[key]


def load(
    name: str, sources: str | Sequence[str], extra_cflags: Sequence[str] | None = None, extra_cuda_cflags: Any = None, extra_sycl_cflags: Any = None,
    extra_ldflags: Sequence[str] | None = None, extra_include_paths: Any = None, build_directory: Any = None, verbose: bool = False,
    with_cuda: bool | None = None, with_sycl: bool | None = None, is_python_module: bool = True, is_standalone: bool = False, keep_intermediates: bool = True,
) -> Any:  # fmt: skip
    """Compiles C++ sources into an extension, loads it and returns its module. What was built is kept: only what has changed is compiled again.

    RuntimeError, with the compiler's text, if that fails, and without a compiler; ImportError without pybind11; NotImplementedError for CUDA and SYCL.

    Args:
        name: the module's name, which is TORCH_EXTENSION_NAME in the sources.
        sources: the files, or one of them.
        extra_cflags: for the compiler, before which is -O2 unless there is another level. C++20 is compiled, whatever -std says.
        extra_ldflags, extra_include_paths: for the linker; folders of headers.
        build_directory: where it is built; a folder of the name in `get_default_build_root()` by default.
        verbose: print the commands.
        is_python_module: False: only load the library, for its operators (torch.ops), and return its path.
        is_standalone: build a program, and return its path.
        extra_cuda_cflags, extra_sycl_cflags, keep_intermediates: ignored. with_cuda, with_sycl: True is an error.

    >>> try:
    ...     naru.utils.cpp_extension.load("mine", ["mine.cu"])
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    files = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    _check_languages("load", files)
    if with_cuda or with_sycl:
        _refuse("load", "with_cuda=True" if with_cuda else "with_sycl=True", "CUDA" if with_cuda else "SYCL")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"torch.utils.cpp_extension.load: wanted the name of a module, such as 'mine', got {name!r}")
    if missing := [os.fspath(file) for file in files if not os.path.exists(file)]:
        raise FileNotFoundError(f"torch.utils.cpp_extension.load: there is no file {missing[0]!r} (looked in {os.getcwd()})")
    include = [extra_include_paths] if isinstance(extra_include_paths, (str, os.PathLike)) else list(extra_include_paths or [])
    flags = [*(extra_cflags or []), *(f"-I{os.path.abspath(folder)}" for folder in include)]
    return _build_and_load(
        _cpp_build.Job(
            name, [os.path.abspath(file) for file in files], flags, list(extra_ldflags or []), _folder_for(name, build_directory),
            is_python_module, is_standalone, verbose=verbose,
        )
    )  # fmt: skip


def _bindings(functions: Any) -> list[str]:
    """The module's definition that binds functions; their names, or a dict of names and docstrings."""
    named = [functions] if isinstance(functions, str) else functions
    if isinstance(named, (list, tuple)):
        named = {name: name for name in named}
    if not isinstance(named, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    quoted = {name: str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for name, text in named.items()}
    return ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *(f'm.def("{name}", {name}, "{text}");' for name, text in quoted.items()), "}"]


def load_inline(
    name: str, cpp_sources: str | Sequence[str], cuda_sources: Any = None, sycl_sources: Any = None, functions: Any = None,
    extra_cflags: Sequence[str] | None = None, extra_cuda_cflags: Any = None, extra_sycl_cflags: Any = None, extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Any = None, build_directory: Any = None, verbose: bool = False, with_cuda: bool | None = None, with_sycl: bool | None = None,
    is_python_module: bool = True, with_pytorch_error_handling: bool = True, keep_intermediates: bool = True, use_pch: bool = False,
    no_implicit_headers: bool = False, gil_not_used: bool = False,
) -> Any:  # fmt: skip
    """Compiles C++ from strings into an extension `name`, loads it and returns its module; otherwise as `load`.

    Args:
        cpp_sources: the source, or a list of pieces of it.
        cuda_sources, sycl_sources: NotImplementedError if they are given.
        functions: the names of the functions that the module has, or a dict of names and docstrings.
        no_implicit_headers: True: do not add `#include <torch/extension.h>`.
        extra_cflags, extra_ldflags, extra_include_paths, build_directory, verbose, is_python_module: as in `load`.
        extra_cuda_cflags, extra_sycl_cflags, keep_intermediates, with_pytorch_error_handling, gil_not_used: ignored, as is use_pch: the precompiled
            header would be of 220 MB and save a third of the time. with_cuda, with_sycl: True is an error.

    >>> try:
    ...     naru.utils.cpp_extension.load_inline("mine", "", cuda_sources="__global__ void f() {}")
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    if cuda_sources or with_cuda:
        _refuse("load_inline", "cuda_sources" if cuda_sources else "with_cuda=True", "CUDA")
    if sycl_sources or with_sycl:
        _refuse("load_inline", "sycl_sources" if sycl_sources else "with_sycl=True", "SYCL")
    pieces = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    text = "\n".join([*([] if no_implicit_headers else ["#include <torch/extension.h>"]), *pieces, *(_bindings(functions) if functions is not None else [])])
    folder = _folder_for(name, build_directory)
    include = [extra_include_paths] if isinstance(extra_include_paths, (str, os.PathLike)) else list(extra_include_paths or [])
    with _cpp_build.locked(folder):
        source = folder / f"main_{_cpp_build._digest(text)[:8]}.cpp"
        if not source.exists():
            _cpp_build.write(source, text + "\n")
    flags = [*(extra_cflags or []), *(f"-I{os.path.abspath(each)}" for each in include)]
    return _build_and_load(
        _cpp_build.Job(name, [str(source)], flags, list(extra_ldflags or []), folder, is_python_module, verbose=verbose)
    )


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers that extensions are compiled with; none with `torch_include_dirs=False`. NotImplementedError for another
    `device_type` than "cpu".

    >>> [path.rpartition("naru/")[2] for path in naru.utils.cpp_extension.include_paths()]
    ['include', 'torch/headers']
    """
    if device_type != "cpu":
        _refuse("include_paths", f"device_type={device_type!r}", device_type.upper())
    return _cpp_build.include_folders(python=False) if torch_include_dirs else []


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: str | None = None) -> list[str]:
    """The folder of libnaru.so, which extensions are linked with; none with `torch_include_dirs=False`. NotImplementedError for another
    `device_type` than "cpu". `cross_target_platform` is ignored.

    >>> [path.rpartition("naru/")[2] for path in naru.utils.cpp_extension.library_paths()]
    ['lib']
    """
    if device_type != "cpu":
        _refuse("library_paths", f"device_type={device_type!r}", device_type.upper())
    return [str(_cpp_build.LIB)] if torch_include_dirs else []


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A `setuptools.Extension` `name` with naru's headers and library, for `setup(ext_modules=[...], cmdclass={"build_ext": BuildExtension})`.

    NotImplementedError for CUDA sources. `extra_compile_args` may be a list, or a dict with the key "cxx".

    >>> naru.utils.cpp_extension.CppExtension("mine", ["mine.cpp"]).language
    'c++'
    """
    import setuptools

    _check_languages("CppExtension", sources)
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *_cpp_build.include_folders(python=False), _cpp_build.pybind11_include()]
    kwargs["extra_link_args"] = [*kwargs.get("extra_link_args", []), *_cpp_build.link_flags()]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError for each `name`: naru compiles no CUDA sources. The alternatives are `naru.kernel`, and `CppExtension` for C++.

    >>> try:
    ...     naru.utils.cpp_extension.CUDAExtension("mine", ["mine.cu"])
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("CUDAExtension", ", ".join(map(str, sources)), "CUDA")


def SyclExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError for each `name`: naru compiles no SYCL sources. The alternatives are `naru.kernel`, and `CppExtension` for C++.

    >>> try:
    ...     naru.utils.cpp_extension.SyclExtension("mine", ["mine.sycl"])
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("SyclExtension", ", ".join(map(str, sources)), "SYCL")


def get_cxx_compiler() -> str:
    """The compiler that builds extensions: CXX, else g++, clang++ or c++. RuntimeError if there is none.

    >>> naru.utils.cpp_extension.get_cxx_compiler() != ""
    True
    """
    return " ".join(_cpp_build.compiler())


def _version_text(compiler: str) -> str:
    try:
        return subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"torch.utils.cpp_extension: the compiler {compiler!r} does not say its version: {error}") from None


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a compiler is GNU's.

    >>> naru.utils.cpp_extension.check_compiler_is_gcc("no-such-compiler")
    False
    """
    try:
        return "Free Software Foundation" in _version_text(compiler)
    except RuntimeError:
        return False


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler is there, and GNU's or clang.

    >>> naru.utils.cpp_extension.check_compiler_ok_for_platform("no-such-compiler")
    False
    """
    try:
        return re.search("Free Software Foundation|clang", _version_text(compiler)) is not None
    except RuntimeError:
        return False


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, Any]:
    """Whether a compiler knows the C++20 that naru's headers are in (g++ 12, clang 14), and its version.

    >>> naru.utils.cpp_extension.get_compiler_abi_compatibility_and_version("no-such-compiler")[0]
    False
    """
    from ..torch_version import TorchVersion

    if not check_compiler_ok_for_platform(compiler):
        return False, TorchVersion("0.0.0")
    text = _version_text(compiler)
    found = re.search(r"(\d+\.\d+\.\d+)", text)
    version = found[1] if found else "0.0.0"
    return int(version.partition(".")[0]) >= (14 if "clang" in text else 12), TorchVersion(version)


def is_ninja_available() -> bool:
    """Whether `ninja` is in PATH. naru builds extensions without it.

    >>> naru.utils.cpp_extension.is_ninja_available() in (True, False)
    True
    """
    import shutil

    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """RuntimeError if `ninja` is not in PATH. naru builds extensions without it.

    >>> try:
    ...     naru.utils.cpp_extension.verify_ninja_availability()
    ... except RuntimeError:
    ...     pass
    """
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def remove_extension_h_precompiler_headers() -> None:
    """Does nothing: naru keeps no precompiled headers.

    >>> naru.utils.cpp_extension.remove_extension_h_precompiler_headers()
    """


def __getattr__(name: str) -> Any:
    if name == "BuildExtension":  # its base class is setuptools', which takes a while to import
        from ._cpp_setuptools import BuildExtension

        return BuildExtension
    fail("utils.cpp_extension", name)
    raise AttributeError(f"module 'torch.utils.cpp_extension' has no attribute {name!r}")
