"""`torch.utils.cpp_extension`: naru cannot build PyTorch extensions, which need PyTorch's headers; each name raises an error with an alternative."""

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
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.load("mine", ["mine.cpp"])
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("load")


def load_inline(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.load_inline("mine", "int f() { return 1; }")
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("load_inline")


def CppExtension(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.CppExtension("mine", ["mine.cpp"])
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("CppExtension")


def CUDAExtension(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.CUDAExtension("mine", ["mine.cu"])
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("CUDAExtension")


def include_paths(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.include_paths()
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("include_paths")


def library_paths(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.library_paths()
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """
    _refuse("library_paths")


class BuildExtension:
    """Raises NotImplementedError, with an alternative.

    Raises NotImplementedError for all arguments: naru does not build PyTorch extensions.

    >>> try:
    ...     naru.utils.cpp_extension.BuildExtension()
    ... except NotImplementedError as error:
    ...     print("naru.kernel" in str(error))
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> NoReturn:
        """Raises NotImplementedError, with an alternative."""
        _refuse("BuildExtension")


def __getattr__(name: str) -> Any:
    fail("utils.cpp_extension", name)
    raise AttributeError(f"module 'torch.utils.cpp_extension' has no attribute {name!r}")
