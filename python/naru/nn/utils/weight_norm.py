"""Weights as a direction times a norm: the older implementation, by a forward pre-hook. `parametrizations.weight_norm` is the newer one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from ... import _C, _missing
from ..parameter import Parameter, UninitializedParameter
from ._pre_hooks import take_off

if TYPE_CHECKING:
    from ..modules.module import Module

Tensor = _C.Tensor
M = TypeVar("M", bound="Module")

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The norms of v's slices along `dim`, with size 1 in the other dimensions; dim -1: the norm of all of v."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v.norm(dim=others, keepdim=True) if others else v.abs()


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """v with its slices scaled to norm g."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes a module's weight from its norm and its direction.

    Args:
        name: the name of a parameter.
        dim: the dimension whose slices have one norm each; None: one norm for the whole weight.

    >>> layer = naru.nn.utils.weight_norm(naru.nn.Linear(2, 1))
    >>> [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    ['WeightNorm']
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight."""
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Adds the hook to a module. RuntimeError if there is one for that name."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        if any(isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replaces module.name by two parameters, a direction (name_v) and a norm (name_g), whose product is computed before each forward. Returns the module.

    Args:
        name: the name of a parameter.
        dim: the dimension whose slices have one norm each; None: one norm for the whole weight.

    >>> list(dict(naru.nn.utils.weight_norm(naru.nn.Linear(2, 1)).named_parameters()))
    ['bias', 'weight_g', 'weight_v']
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undoes `weight_norm`; the weight keeps its current value. ValueError if there is none.

    Args:
        module: the module.
        name: the parameter's name.

    >>> layer = naru.nn.utils.weight_norm(naru.nn.Linear(2, 1))
    >>> [name for name, _ in naru.nn.utils.remove_weight_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    if not take_off(module, lambda hook: isinstance(hook, WeightNorm) and hook.name == name):
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    return module


__getattr__ = _missing.module_getattr(__name__)
