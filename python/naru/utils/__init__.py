"""`torch.utils`: data loading, activation checkpointing, pytrees, benchmarks, hook handles; `cmake_prefix_path`, the folder to give to CMake as
CMAKE_PREFIX_PATH, so that find_package(naru) finds the library and the headers of this package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .._missing import fail
from . import hooks
from ._swap import swap_tensors

__all__ = ["benchmark", "checkpoint", "cmake_prefix_path", "cpp_extension", "data", "deterministic", "dlpack", "hooks", "model_zoo", "swap_tensors", "tensorboard"]

cmake_prefix_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")

_MODULES = frozenset(("benchmark", "checkpoint", "cpp_extension", "data", "deterministic", "dlpack", "model_zoo", "tensorboard", "weak", "_pytree"))


if TYPE_CHECKING:
    from . import (
        benchmark as benchmark, checkpoint as checkpoint, cpp_extension as cpp_extension, data as data, deterministic as deterministic, dlpack as dlpack,
        model_zoo as model_zoo, tensorboard as tensorboard,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return importlib.import_module("." + name, __name__)
    fail("utils", name)
    raise AttributeError(f"module 'torch.utils' has no attribute {name!r}")
