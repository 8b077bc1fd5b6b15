"""`torch.utils.cpp_extension`: PyTorch's extensions are built against PyTorch's headers, and there are none here; each name says what to use."""

from __future__ import annotations

from typing import Any, NoReturn

from .._missing import fail

__all__ = ["BuildExtension", "CUDAExtension", "CUDA_HOME", "CppExtension", "include_paths", "library_paths", "load", "load_inline"]

CUDA_HOME = None


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.utils.cpp_extension.{name} builds against PyTorch's own headers, which naru is not: use naru.kernel for a kernel in C (it runs on "
        "every device), or C++ over naru's headers (docs/cpp.md; naru/torch.h has libtorch's names)"
    )


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError, with what to use."""
    _refuse("load")


def load_inline(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError, with what to use."""
    _refuse("load_inline")


def CppExtension(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError, with what to use."""
    _refuse("CppExtension")


def CUDAExtension(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError, with what to use."""
    _refuse("CUDAExtension")


def include_paths(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError, with what to use."""
    _refuse("include_paths")


def library_paths(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError, with what to use."""
    _refuse("library_paths")


class BuildExtension:
    """NotImplementedError, with what to use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> NoReturn:
        """NotImplementedError, with what to use."""
        _refuse("BuildExtension")


def __getattr__(name: str) -> Any:
    fail("utils.cpp_extension", name)
    raise AttributeError(f"module 'torch.utils.cpp_extension' has no attribute {name!r}")
