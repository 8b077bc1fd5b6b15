"""Base classes of pruning methods."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any

from ... import _C, linalg
from ._pre_hooks import take_off

Tensor = _C.Tensor


class BasePruningMethod(ABC):
    """Base of pruning methods: a forward pre-hook that sets module.name to name_orig times name_mask.

    A subclass defines PRUNING_TYPE, "unstructured", "structured" (with an attribute dim) or "global", and compute_mask(t, default_mask).

    >>> class Negative(naru.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t > 0)
    >>> Negative().prune(naru.tensor([-1.0, 2.0, -3.0, 4.0]))
    tensor([-0., 2., -0., 4.])
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
        """The mask for a tensor of importance scores, given the existing mask.

        Args:
            t: the scores. default_mask: the existing mask.

        >>> naru.nn.utils.prune.L1Unstructured(1).compute_mask(naru.tensor([3.0, -1.0]), naru.ones(2))
        tensor([1., 0.])
        """

    def apply_mask(self, module: Any) -> Tensor:
        """The module's tensor, masked."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def _joined(cls, module: Any, name: str, args: tuple, kwargs: dict) -> BasePruningMethod:
        """A new pruning method, in a container together with earlier ones of the same tensor."""
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
        """Prunes module.name, in addition to earlier pruning; scores rank the elements, by default the tensor itself.

        Args:
            args, kwargs: the arguments of the class's constructor.
            importance_scores: scores of the tensor's shape.

        >>> layer = naru.nn.Linear(3, 1)
        >>> _ = naru.nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=2)
        >>> layer.weight_mask.sum()
        tensor(1.)
        """
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
        """A pruned copy of a tensor.

        Args:
            t: the tensor. default_mask: the existing mask; ones if None.
            importance_scores: scores of the tensor's shape; the tensor itself if None.

        >>> naru.nn.utils.prune.L1Unstructured(1).prune(naru.tensor([3.0, -1.0]))
        tensor([3., -0.])
        """
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
    """The pruning methods applied to a tensor, in order.

    Args:
        args: pruning methods of one tensor.

    >>> layer = naru.nn.Linear(3, 1)
    >>> for mask in ([[1, 0, 1]], [[1, 1, 0]]):
    ...     _ = naru.nn.utils.prune.custom_from_mask(layer, "weight", naru.tensor(mask))
    >>> layer.weight_mask, [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    (tensor([[1., 0., 0.]]), ['PruningContainer'])
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method. TypeError for other objects, ValueError for one of another tensor."""
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
        """The mask after the last method, which prunes the elements that the others have left."""
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
    """Base of the methods with an amount: a fraction, or a number of elements or channels."""

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
        """The existing mask, restricted to the channels with indices `kept`."""
        channels = _C.zeros(t.shape[self.dim], dtype=t.dtype, device=t.device).index_fill(0, kept, 1)
        shape = [1] * t.dim()
        shape[self.dim] = -1
        return channels.view(shape) * default_mask.to(t.dtype)


def _without(mask: Tensor, scores: Tensor, count: int, largest: bool) -> Tensor:
    """The mask with 0 for the `count` largest or smallest scores."""
    mask = mask.contiguous().clone()
    if count:
        mask.view(-1)[_C.topk(scores.reshape(-1), count, largest=largest)[1]] = 0
    return mask


def _channel_norms(t: Tensor, n: Any, dim: int) -> Tensor:
    dims = [d for d in range(t.dim()) if d != dim % t.dim()]
    if n == "nuc" or (n == "fro" and len(dims) == 2):
        return linalg.matrix_norm(t, n, tuple(dims) if len(dims) == 2 else (-2, -1))
    return linalg.vector_norm(t, 2 if n == "fro" else n, dims)


BasePruningMethod.__module__ = PruningContainer.__module__ = "naru.nn.utils.prune"  # PyTorch's module of these classes, which pickles name
