"""`torch.utils.cpp_extension.BuildExtension`: setuptools' build_ext for extensions over naru."""

from __future__ import annotations

import os
from typing import Any

from setuptools.command.build_ext import build_ext

from . import _cpp_build


class BuildExtension(build_ext):
    """The command that builds `CppExtension`s: `setup(ext_modules=[CppExtension(...)], cmdclass={"build_ext": BuildExtension})`. setuptools makes it,
    with arguments of its own (`dist`, and `kw`, which sets the command's attributes).

    `with_options(**options)` is accepted; of its options, `no_python_abi_suffix=True` leaves Python's version out of the file's name.

    >>> naru.utils.cpp_extension.BuildExtension.__name__
    'BuildExtension'
    """

    _options: dict[str, Any] = {}

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The command with options."""
        return type("BuildExtension", (cls,), {"_options": {**cls._options, **options}})

    def build_extensions(self) -> None:
        """Builds them, with the C++ compiler and the flags that naru's headers need."""
        command = _cpp_build.compiler()
        for executable in ("compiler_so", "compiler_so_cxx", "compiler_cxx"):
            found = getattr(self.compiler, executable, None)
            if found:
                self.compiler.set_executable(executable, [*command, *list(found)[1:]])
        for extension in self.extensions:
            flags = extension.extra_compile_args
            if isinstance(flags, dict):
                if flags.get("nvcc"):
                    raise NotImplementedError(f"BuildExtension: naru does not compile CUDA, for which extension {extension.name!r} has flags; nearest: naru.kernel")
                flags = flags.get("cxx", [])
            name = extension.name.rpartition(".")[2]
            extension.extra_compile_args = [*_cpp_build.with_standard(list(flags)), f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
        super().build_extensions()

    def get_ext_filename(self, name: str) -> str:
        """The file's name."""
        path = super().get_ext_filename(name)
        if not self._options.get("no_python_abi_suffix"):
            return path
        folder, file = os.path.split(path)
        return os.path.join(folder, f"{file.partition('.')[0]}.{file.rpartition('.')[2]}")
