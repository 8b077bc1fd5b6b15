"""`torch.nn.utils.prune`: parameters with masks."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ... import _C, _missing, linalg
from ._pre_hooks import take_off
from .convert_parameters import parameters_to_vector

Tensor = _C.Tensor

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """Base of the ways to prune: a hook before forward that sets module.name to name_orig times name_mask.

    A subclass has PRUNING_TYPE, "unstructured", "structured" (with an attribute dim) or "global", and compute_mask(t, default_mask).
    """

    _tensor_name: str | None = None
    PRUNING_TYPE: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._name(), self.apply_mask(module))

    def _name(self) -> str:
        if self._tensor_name is None:
            raise AssertionError("the pruning method has not been applied to a module")
        return self._tensor_name

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor of importance scores, given the mask there is."""

    def apply_mask(self, module: Any) -> Tensor:
        """The module's tensor, masked."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def _joined(cls, module: Any, name: str, args: tuple, kwargs: dict) -> BasePruningMethod:
        """A new method, in a container with those that the tensor was pruned by before."""
        old = [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(old) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        before = module._forward_pre_hooks.pop(old[0]) if old else None
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if before is None:
            return method
        container = before if isinstance(before, PruningContainer) else PruningContainer(before)
        container.add_pruning_method(method)
        return container

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> BasePruningMethod:
        """Prunes module.name, on top of what it was pruned by before; scores say which elements matter, the tensor itself unless given."""
        method = cls._joined(module, name, args, kwargs)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape} vs {original.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = _C.ones_like(original.detach())
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            module.register_buffer(name + "_mask", method.compute_mask(scores, default_mask=default_mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {scores.shape} vs {t.shape}")
        return t * self.compute_mask(scores, default_mask=_C.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Makes the masked tensor a parameter again."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.detach()
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """The methods that a tensor was pruned by, in their order."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method. TypeError for what is none, ValueError for one of another tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method, which sees what the others have left."""
        method: Any = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype).clone()
        if method.PRUNING_TYPE == "unstructured":
            left: Any = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
            dim = method.dim + t.dim() if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
            kept = default_mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
            left = tuple(kept if d == dim else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[left] = method.compute_mask(t.detach()[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


class _Amount(BasePruningMethod):
    """Base of the methods with an amount: a share, or a number of elements or channels."""

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        whole = isinstance(amount, numbers.Integral)
        if amount < 0 or (not whole and amount > 1.0):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size: int) -> int:
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class _AmountOfChannels(_Amount):
    """Base of the methods that prune whole channels along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _check(self, t: Tensor) -> int:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return self._count(t.shape[self.dim])

    def _mask(self, t: Tensor, default_mask: Tensor, kept: Tensor) -> Tensor:
        """The mask there is, with the channels at the places `kept` alone."""
        channels = _C.zeros(t.shape[self.dim], dtype=t.dtype, device=t.device).index_fill(0, kept, 1)
        shape = [1] * t.dim()
        shape[self.dim] = -1
        return channels.view(shape) * default_mask.to(t.dtype)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the parameters that pruning has."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask there is."""
        return default_mask


class RandomUnstructured(_Amount):
    """Prunes elements at random: a share (float) or so many (int)."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask."""
        return _without(default_mask, _C.rand_like(t.detach()), self._count(t.numel()), True)


class L1Unstructured(_Amount):
    """Prunes the elements of least absolute value: a share (float) or so many (int)."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask."""
        return _without(default_mask, t.detach().abs(), self._count(t.numel()), False)


def _without(mask: Tensor, scores: Tensor, count: int, largest: bool) -> Tensor:
    """The mask with 0 for so many of the greatest or least scores."""
    mask = mask.contiguous().clone()
    if count:
        mask.view(-1)[_C.topk(scores.reshape(-1), count, largest=largest)[1]] = 0
    return mask


class RandomStructured(_AmountOfChannels):
    """Prunes channels along `dim` at random: a share (float) or so many (int)."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask."""
        count = self._check(t)
        if count == 0:
            return default_mask
        order = _C.argsort(_C.rand(t.shape[self.dim]))
        return self._mask(t, default_mask, order[count:].to(t.device))


class LnStructured(_AmountOfChannels):
    """Prunes the channels along `dim` of least n-norm: a share (float) or so many (int). n: a number, "fro" or "nuc"."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask."""
        count = self._check(t)
        if count == 0:
            return default_mask
        norms = _channel_norms(t.detach(), self.n, self.dim)
        return self._mask(t, default_mask, _C.topk(norms, t.shape[self.dim] - count, largest=True)[1])


def _channel_norms(t: Tensor, n: Any, dim: int) -> Tensor:
    dims = [d for d in range(t.dim()) if d != dim % t.dim()]
    if n == "nuc" or (n == "fro" and len(dims) == 2):
        return linalg.matrix_norm(t, n, tuple(dims) if len(dims) == 2 else (-2, -1))
    return linalg.vector_norm(t, 2 if n == "fro" else n, dims)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask there is, times the one given."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Gives module.name a mask of ones. Returns the module, as all of these functions do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes elements of module.name at random: a share (float) or so many (int)."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes the elements of module.name of least absolute value (or score): a share (float) or so many (int).

    >>> import naru
    >>> layer = naru.nn.Linear(2, 2)
    >>> int((naru.nn.utils.prune.l1_unstructured(layer, "weight", 3).weight == 0).sum())
    3
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes channels of module.name along `dim` at random: a share (float) or so many (int)."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None) -> Any:
    """Prunes the channels of module.name along `dim` of least n-norm: a share (float) or so many (int)."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes module.name by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: dict | None = None, **kwargs: Any) -> None:
    """Prunes several tensors as if they were one.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: a class whose PRUNING_TYPE is "unstructured" (TypeError for others); kwargs are its arguments.
        importance_scores: scores by such pairs; the tensors themselves where there are none.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores_of = {} if importance_scores is None else importance_scores
    if not isinstance(scores_of, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    tensors = [getattr(module, name).detach() for module, name in parameters]
    scores = parameters_to_vector([scores_of.get((module, name), t) for (module, name), t in zip(parameters, tensors)])
    masks = parameters_to_vector([getattr(module, name + "_mask", _C.ones_like(t)) for (module, name), t in zip(parameters, tensors)])
    container = PruningContainer()
    method = pruning_method(**kwargs)
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    whole = container.compute_mask(scores, masks)
    start = 0
    for (module, name), t in zip(parameters, tensors):
        custom_from_mask(module, name, mask=whole[start : start + t.numel()].view_as(t))
        start += t.numel()


def remove(module: Any, name: str) -> Any:
    """Makes the masked module.name a parameter again. ValueError where it is not pruned."""
    if not take_off(module, lambda hook: isinstance(hook, BasePruningMethod) and hook._tensor_name == name):
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    return module


def is_pruned(module: Any) -> bool:
    """Whether a tensor of the module or of those below is pruned."""
    return any(isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values())


__getattr__ = _missing.module_getattr(__name__)
