"""Writes the type stub of the extension: stub.py EXTENSION OUTPUT.

The extension is loaded as ``naru._C`` without the package around it, so that a mistake in the package's Python
files cannot stop the build.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path

from nanobind.stubgen import StubGen


def load(extension: str) -> types.ModuleType:
    package = types.ModuleType("naru")
    package.__path__ = []
    sys.modules["naru"] = package
    loader = importlib.machinery.ExtensionFileLoader("naru._C", extension)
    spec = importlib.util.spec_from_loader("naru._C", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["naru._C"] = module
    loader.exec_module(module)
    return module


class Stubs(StubGen):
    """naru's functions are of a type of their own, and carry their signatures as nanobind's do."""

    def put(self, value: object, name: str | None = None, parent: object | None = None) -> None:
        if hasattr(type(value), "__nb_signature__") and name is not None:
            self.put_nb_func(value, name)
        else:
            super().put(value, name, parent)


def main(extension: str, output: str) -> None:
    stub = Stubs(module=load(extension))
    stub.put(stub.module)
    Path(output).write_text(stub.get(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
