"""Generates python/naru/_missing/names.txt: the public names of PyTorch 2.15, by module. Runs in PyTorch's environment:

    .venv-peers/bin/python tools/pytorch_names.py

A module's names are those in its ``__all__``, or else those defined in it or in another module of PyTorch. A class that people use through its
methods (``Tensor``, ``nn.Module``) counts as a module.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import sys
import textwrap
import types
import warnings
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "python" / "naru" / "_missing" / "names.txt"
TENSOR = OUT.with_name("tensor_names.py")  # in a separate file, because it is read at each import of naru
# Names that are not called by users, or only by PyTorch's own machinery.
INNER = ("ao.nn", "ao.ns", "contrib", "distributed.elastic.rendezvous", "fx.experimental", "fx.passes", "jit.mobile", "nn.intrinsic", "nn.qat",
         "nn.quantizable", "nn.quantized", "onnx.ops", "quantization", "utils.benchmark.examples", "utils.data.datapipes", "utils.hipify",
         "utils.serialization")  # fmt: skip
CLASSES = ("Tensor", "nn.Module", "optim.Optimizer", "Generator", "device", "dtype", "Size")


def is_public(value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch.") and "._" not in value.__name__
    module = getattr(value, "__module__", None)
    if isinstance(value, type) or inspect.isroutine(value):
        return not isinstance(module, str) or module.startswith("torch")
    return True


def of_module(module: types.ModuleType, top: bool) -> list[str]:
    if hasattr(module, "__all__") and not top:
        return [name for name in module.__all__ if isinstance(name, str)]
    # The top-level module also contains TorchScript's types, which are not user functions.
    listed = set(getattr(module, "__all__", ()))
    return [name for name, value in vars(module).items()
            if is_public(value) and (not top or name in listed or not isinstance(value, type) or value.__module__ == "torch")]  # fmt: skip


def all_names() -> dict[str, list[str]]:
    import torch

    found = {"": of_module(torch, True)}
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda _: None):
            name = info.name.removeprefix("torch.")
            if any(part.startswith("_") for part in name.split(".")) or any(name.startswith(inner + ".") for inner in INNER):
                continue
            try:
                found[name] = of_module(importlib.import_module(info.name), False)
            except BaseException:  # needs something that this machine lacks
                found[name] = []
        for name in ("linalg", "fft", "special", "amp", "cuda.amp", "random"):
            found.setdefault(name, of_module(importlib.import_module("torch." + name), False))
    for name in CLASSES:
        value: object = torch
        for part in name.split("."):
            value = getattr(value, part)
        found[name] = dir(value)
    return {module: sorted({name for name in names if not name.startswith("_")}) for module, names in found.items()}


def main() -> None:
    import torch

    lines = [f"# The public names of PyTorch {torch.__version__.split('+')[0]}, by module; written by tools/pytorch_names.py."]
    found = all_names()
    for module, names in sorted(found.items()):
        lines.append(f"torch.{module}:" if module else "torch:")
        lines += textwrap.wrap(" ".join(names), 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    tensor = textwrap.wrap(" ".join(found["Tensor"]), 140, initial_indent="    ", subsequent_indent="    ")
    TENSOR.write_text('"""The public names of PyTorch\'s Tensor; written by tools/pytorch_names.py."""\n\nNAMES = """\n'
                      + "\n".join(tensor) + '\n"""\n', encoding="utf-8")  # fmt: skip
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{OUT}: {len(lines)} lines", file=sys.stderr)


if __name__ == "__main__":
    main()
