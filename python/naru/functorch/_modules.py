"""Modules as functions of their parameters and buffers, in tuples of tensors instead of the dicts of `torch.func.functional_call`."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

from .. import _C
from ..func import functional_call
from ..nn import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor


def _warn(name: str, new: str) -> None:
    warnings.warn(f"`functorch.{name}` is deprecated and will be deleted from PyTorch. Please use `torch.func.{new}` instead.", FutureWarning, stacklevel=3)


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters and buffers, as `make_functional_with_buffers` makes it. `stateless_model` is the module; `names` and
    `buffer_names` give the order of the tensors.

    >>> f, params, buffers = naru.functorch.make_functional_with_buffers(naru.nn.BatchNorm1d(2))
    >>> f(params, buffers, naru.ones(2, 2)).shape
    torch.Size([2, 2])
    """

    def __init__(self, stateless_model: Module, names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        object.__setattr__(self, "stateless_model", stateless_model)  # bypass __setattr__: its parameters are not this module's
        self.names, self.buffer_names = tuple(names), tuple(buffer_names)

    def _called(self, params: Sequence[Tensor], buffers: Sequence[Tensor], args: tuple, kwargs: dict[str, Any]) -> Any:
        for kind, given, names in (("parameters", params, self.names), ("buffers", buffers, self.buffer_names)):
            if len(given) != len(names):
                raise RuntimeError(f"{type(self).__name__}: wanted {len(names)} {kind} ({', '.join(names)}), got {len(given)}")
        return functional_call(self.stateless_model, {**dict(zip(self.names, params)), **dict(zip(self.buffer_names, buffers))}, args, kwargs)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Calls the module with `args` and `kwargs`, and these `params` and `buffers`; RuntimeError if their number is wrong."""
        return self._called(params, buffers, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters, as `make_functional` makes it. `stateless_model` is the module; `names` and
    `buffer_names` give the order of the tensors.

    >>> f, params = naru.functorch.make_functional(naru.nn.Linear(2, 1))
    >>> f(params, naru.ones(3, 2)).shape
    torch.Size([3, 1])
    """

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Calls the module with `args` and `kwargs`, and these `params`; RuntimeError if their number is wrong."""
        return self._called(params, (), args, kwargs)


def _taken_apart(kind: type, model: Module, disable_autograd_tracking: bool) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    own = copy.deepcopy(model)
    params, buffers = dict(own.named_parameters()), dict(own.named_buffers())
    if disable_autograd_tracking:
        for p in params.values():
            p.requires_grad_(False)
    return kind(own, params, buffers), tuple(params.values()), tuple(buffers.values())


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """Returns (a function of the parameters and the arguments of `model`, the parameters of a copy of it). RuntimeError for a `model` with buffers.

    `disable_autograd_tracking`: the parameters do not require gradients. Deprecated (FutureWarning): use `torch.func.functional_call`.

    >>> f, params = naru.functorch.make_functional(naru.nn.Linear(2, 1, bias=False))
    >>> f([naru.ones(1, 2)], naru.tensor([2.0, 3.0]))
    tensor([5.])
    """
    _warn("make_functional", "functional_call")
    if any(True for _ in model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    return _taken_apart(FunctionalModule, model, disable_autograd_tracking)[:2]


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Returns (a function of the parameters, the buffers and the arguments of `model`, the parameters of a copy of it, its buffers).

    `disable_autograd_tracking`: the parameters do not require gradients. Deprecated (FutureWarning): use `torch.func.functional_call`.

    >>> f, params, buffers = naru.functorch.make_functional_with_buffers(naru.nn.BatchNorm1d(2))
    >>> len(params), len(buffers)
    (2, 3)
    """
    _warn("make_functional_with_buffers", "functional_call")
    return _taken_apart(FunctionalModuleWithBuffers, model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """`make_functional_with_buffers` of `models`, modules of one class: their parameters and buffers, each stacked along a new first dimension,
    for `vmap` of the function. RuntimeError for modules of several classes or modes. Deprecated (FutureWarning): use
    `torch.func.stack_module_state`.

    >>> f, params, buffers = naru.functorch.combine_state_for_ensemble([naru.nn.Linear(3, 2) for _ in range(4)])
    >>> naru.vmap(f, (0, 0, None))(params, buffers, naru.ones(3)).shape
    torch.Size([4, 2])
    """
    _warn("combine_state_for_ensemble", "stack_module_state")
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    parts = [_taken_apart(FunctionalModuleWithBuffers, m, False) for m in models]
    params, buffers = (tuple(_C.stack(list(column)).detach() for column in zip(*(part[i] for part in parts))) for i in (1, 2))
    return parts[0][0], params, buffers
