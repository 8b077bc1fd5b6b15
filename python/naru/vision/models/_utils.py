"""Helpers that programs import from torchvision's module of this name."""

from __future__ import annotations

from typing import Any

from ...nn.modules import Module, ModuleDict
from .. import _names

__getattr__ = _names.module_getattr(__name__)


class IntermediateLayerGetter(ModuleDict):
    """Runs a model's children in order and returns the outputs of selected ones.

    Args:
        return_layers: maps names of direct children to names in the result. ValueError if the model has no such child.
    """

    def __init__(self, model: Module, return_layers: dict[str, str]) -> None:
        names = [name for name, _ in model.named_children()]
        if not set(return_layers) <= set(names):
            raise ValueError("return_layers are not present in model")
        last = max(names.index(name) for name in return_layers)
        super().__init__({name: getattr(model, name) for name in names[: last + 1]})
        self.return_layers = {str(key): str(value) for key, value in return_layers.items()}

    def forward(self, x: Any) -> dict[str, Any]:
        out = {}
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """Rounds `v` to the nearest multiple of `divisor`, but never below nine tenths of `v`."""
    found = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * v else found
