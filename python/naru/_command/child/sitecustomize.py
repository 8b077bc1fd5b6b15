"""Imported at startup by interpreters that a program under `naru run` launches: `torch` is naru there, too.

This file's folder is first in PYTHONPATH. No part of naru is loaded until `torch` is imported. The `sitecustomize` of the machine, which this one
shadows, is run as well.
"""

import os
import sys


class _Waiting:
    """The first finder: replaces itself by naru's finder on the first import of torch."""

    waits_for_naru = True
    _NAMES = ("torch", "safetensors", "torchvision", "functorch")

    def _finder(self):
        home = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if home not in sys.path:
            sys.path.append(home)
        from naru._command import runner

        runner.install_torch_alias()
        return next(finder for finder in sys.meta_path if isinstance(finder, runner.TorchFinder))

    def find_spec(self, name, path=None, target=None):
        return self._finder().find_spec(name, path, target) if name.partition(".")[0] in self._NAMES else None

    def find_distributions(self, context):
        return self._finder().find_distributions(context) if context.name in (None, "torch", "torchvision") else ()


def _others():
    """Runs the `sitecustomize` that comes next in sys.path."""
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if os.path.abspath(folder) != here])
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        spec.loader.exec_module(module_from_spec(spec))


if os.environ.get("NARU_TORCH_ALIAS") == sys.implementation.cache_tag:
    sys.meta_path.insert(0, _Waiting())
_others()
