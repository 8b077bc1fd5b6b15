"""`torch.nn.utils.prune`: pruning of parameters with masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _C, _missing
from ._pre_hooks import take_off
from ._pruning import BasePruningMethod, PruningContainer, _Amount, _AmountOfChannels, _channel_norms, _without
from .convert_parameters import parameters_to_vector

Tensor = _C.Tensor

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class Identity(BasePruningMethod):
    """Prunes nothing, but sets up the parameter and the mask of pruning.

    >>> naru.nn.utils.prune.Identity().prune(naru.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The existing mask, unchanged."""
        return default_mask


class RandomUnstructured(_Amount):
    """Prunes elements at random: a fraction (float) or a number (int) of them.

    Args:
        amount: the fraction (a float in [0, 1]) or the number (an int) of elements; ValueError for others.

    >>> naru.nn.utils.prune.RandomUnstructured(0.25).prune(naru.ones(8)).sum()
    tensor(6.)
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The existing mask without the pruned elements."""
        return _without(default_mask, _C.rand_like(t.detach()), self._count(t.numel()), True)


class L1Unstructured(_Amount):
    """Prunes the elements with the smallest absolute values: a fraction (float) or a number (int) of them.

    Args:
        amount: the fraction (a float in [0, 1]) or the number (an int) of elements; ValueError for others.

    >>> naru.nn.utils.prune.L1Unstructured(2).prune(naru.tensor([1.0, -3.0, 0.5, 2.0]))
    tensor([ 0., -3.,  0.,  2.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The existing mask without the pruned elements."""
        return _without(default_mask, t.detach().abs(), self._count(t.numel()), False)


class RandomStructured(_AmountOfChannels):
    """Prunes channels along `dim` at random: a fraction (float) or a number (int) of them.

    Args:
        amount: the fraction (a float in [0, 1]) or the number (an int) of channels; ValueError for others.
        dim: the dimension of channels.

    >>> pruned = naru.nn.utils.prune.RandomStructured(1, dim=0).prune(naru.ones(3, 2))
    >>> pruned.sum(1).sort().values
    tensor([0., 2., 2.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The existing mask without the pruned channels."""
        count = self._check(t)
        if count == 0:
            return default_mask
        order = _C.argsort(_C.rand(t.shape[self.dim]))
        return self._mask(t, default_mask, order[count:].to(t.device))


class LnStructured(_AmountOfChannels):
    """Prunes the channels along `dim` with the smallest n-norm: a fraction (float) or a number (int) of them. n: a number, "fro" or "nuc".

    Args:
        amount: the fraction (a float in [0, 1]) or the number (an int) of channels; ValueError for others.
        dim: the dimension of channels.

    >>> naru.nn.utils.prune.LnStructured(1, n=2, dim=0).prune(naru.tensor([[1.0, 1.0], [3.0, 4.0]]))
    tensor([[0., 0.],
            [3., 4.]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The existing mask without the pruned channels."""
        count = self._check(t)
        if count == 0:
            return default_mask
        norms = _channel_norms(t.detach(), self.n, self.dim)
        return self._mask(t, default_mask, _C.topk(norms, t.shape[self.dim] - count, largest=True)[1])


class CustomFromMask(BasePruningMethod):
    """Prunes with a given mask.

    Args:
        mask: the mask, of the tensor's shape: 0 for pruned elements, else 1.

    >>> naru.nn.utils.prune.CustomFromMask(naru.tensor([1, 0, 1])).prune(naru.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 3.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of the existing mask and the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Gives module.name a mask of ones. Returns the module, as all functions here do.

    >>> layer = naru.nn.utils.prune.identity(naru.nn.Linear(2, 1), "weight")
    >>> layer.weight_mask
    tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes elements of module.name at random: a fraction (float) or a number (int) of them.

    Args:
        module: the module. name: the parameter's name.
        amount: the fraction (a float in [0, 1]) or the number (an int) of elements; ValueError for others.

    >>> layer = naru.nn.utils.prune.random_unstructured(naru.nn.Linear(2, 4), "weight", 0.5)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes the elements of module.name with the smallest absolute values (or scores): a fraction (float) or a number (int) of them.

    Args:
        amount: the fraction (a float in [0, 1]) or the number (an int) of elements.
        importance_scores: scores of the parameter's shape; the parameter itself if None.

    >>> import naru
    >>> layer = naru.nn.Linear(2, 2)
    >>> int((naru.nn.utils.prune.l1_unstructured(layer, "weight", 3).weight == 0).sum())
    3
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes channels of module.name along `dim` at random: a fraction (float) or a number (int) of them.

    Args:
        module: the module. name: the parameter's name.
        amount: the fraction (a float in [0, 1]) or the number (an int) of channels; ValueError for others.

    >>> layer = naru.nn.utils.prune.random_structured(naru.nn.Linear(2, 4), "weight", 2, dim=0)
    >>> layer.weight_mask.sum(1).sort().values
    tensor([0., 0., 2., 2.])
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None) -> Any:
    """Prunes the channels of module.name along `dim` with the smallest n-norm: a fraction (float) or a number (int) of them.

    Args:
        module: the module. name: the parameter's name.
        amount: the fraction (a float in [0, 1]) or the number (an int) of channels; ValueError for others.
        n: a number, inf, "fro" or "nuc".
        importance_scores: scores of the parameter's shape; the parameter itself if None.

    >>> layer = naru.nn.Linear(2, 3)
    >>> layer.weight.data = naru.tensor([[1.0, 1.0], [0.0, 3.0], [2.0, 2.0]])
    >>> naru.nn.utils.prune.ln_structured(layer, "weight", 2, n=2, dim=0).weight
    tensor([[0., 0.],
            [0., 3.],
            [0., 0.]], grad_fn=<MulBackward0>)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes module.name with a given mask.

    Args:
        module: the module. name: the parameter's name.
        mask: the mask, of the parameter's shape: 0 for pruned elements, else 1.

    >>> layer = naru.nn.utils.prune.custom_from_mask(naru.nn.Linear(3, 1), "weight", naru.tensor([[1, 0, 1]]))
    >>> layer.weight != 0
    tensor([[ True, False,  True]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: dict | None = None, **kwargs: Any) -> None:
    """Prunes several tensors together, as if they were one.

    Args:
        parameters: pairs of a module and a parameter's name.
        pruning_method: a class whose PRUNING_TYPE is "unstructured" (TypeError for others); kwargs are its arguments.
        importance_scores: scores by (module, name) pairs; by default the tensors themselves.

    >>> first, last = naru.nn.Linear(2, 2), naru.nn.Linear(2, 2)
    >>> pairs = [(first, "weight"), (last, "weight")]
    >>> naru.nn.utils.prune.global_unstructured(pairs, naru.nn.utils.prune.L1Unstructured, amount=3)
    >>> int((first.weight == 0).sum() + (last.weight == 0).sum())
    3
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
    """Makes the masked module.name a parameter again. ValueError if it is not pruned.

    >>> layer = naru.nn.utils.prune.identity(naru.nn.Linear(2, 1), "weight")
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_orig']
    >>> [name for name, _ in naru.nn.utils.prune.remove(layer, "weight").named_parameters()]
    ['bias', 'weight']
    """
    if not take_off(module, lambda hook: isinstance(hook, BasePruningMethod) and hook._tensor_name == name):
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    return module


def is_pruned(module: Any) -> bool:
    """Whether any tensor of the module or of its submodules is pruned.

    >>> layer = naru.nn.Linear(2, 1)
    >>> before = naru.nn.utils.prune.is_pruned(layer)
    >>> before, naru.nn.utils.prune.is_pruned(naru.nn.utils.prune.identity(layer, "weight"))
    (False, True)
    """
    return any(isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values())


__getattr__ = _missing.module_getattr(__name__)
