"""Calls of modules with replaced parameters and buffers, and stacking the state of several modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from ..nn.utils.stateless import _functional_call

if TYPE_CHECKING:
    from ..nn import Module

Tensor = _C.Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers than its own, which are not changed.

    Args:
        parameter_and_buffer_dicts: tensors by their dotted names, or a list of such dicts with disjoint names (ValueError).
        args: the arguments: a tuple, or a single one.
        kwargs: the keyword arguments.
        tie_weights: whether a tensor given for one name also replaces the tensors tied to it under other names.
        strict: whether all names, and only those, must be given (RuntimeError).

    Gradients flow to the given tensors. Tensors that the module reassigns during the call (such as running means) are written to the dict.

    >>> import naru
    >>> layer = naru.nn.Linear(2, 1, bias=False)
    >>> naru.func.functional_call(layer, {"weight": naru.tensor([[1.0, 2.0]])}, naru.tensor([3.0, 4.0]))
    tensor([11.])
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Sequence) and not isinstance(given, (dict, str)):
        if not all(isinstance(part, dict) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for part in given for name in part]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for part in given for name, value in part.items()}
    elif not isinstance(given, dict):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}")
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def _stacked(tensors: list[Tensor], name: str) -> Tensor:
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = _C.stack(tensors)
    return result.detach().requires_grad_() if tensors[0].requires_grad else result


def stack_module_state(models: Sequence[Module] | Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stacks the parameters, and the buffers, of `models`, modules of one class, along a new first dimension. Returns two dicts. RuntimeError
    for modules of several classes or modes.

    >>> params, buffers = naru.func.stack_module_state([naru.nn.Linear(3, 2) for _ in range(4)])
    >>> params["weight"].shape
    torch.Size([4, 2, 3])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {name: _stacked([each[name] for each in named], name) for name in named[0]}

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Removes the running statistics of all batch norms in the module `root`, in place, so that `vmap` can run them. Returns `root`.

    >>> net = naru.func.replace_all_batch_norm_modules_(naru.nn.Sequential(naru.nn.BatchNorm1d(2)))
    >>> net[0].running_mean is None, net[0].track_running_stats
    (True, False)
    """
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
