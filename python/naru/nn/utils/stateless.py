"""`torch.nn.utils.stateless`: calls of modules with replaced parameters and buffers. `torch.func.functional_call` is the newer name."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

from ... import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..modules.module import Module

Tensor = _C.Tensor

__all__ = ["functional_call"]


def _tensors(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers of the module, under all of their names."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _untied(own: dict[str, Tensor], given: dict[str, Any]) -> dict[str, Any]:
    """Extends values given for one name of a shared tensor to its other names. ValueError if they conflict."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for tied in names.values():
        values = [given[name] for name in tied if name in given]
        if len(tied) == 1 or not values:
            continue
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(tied, values[0]))
    return result


def _check_strictly(module: Module, own: dict[str, Tensor], given: dict[str, Any]) -> None:
    unexpected, missing = sorted(name for name in given if name not in own), sorted(name for name in own if name not in given)
    errors = [f"{what} key(s): {', '.join(map(repr, names))}." for what, names in (("Unexpected", unexpected), ("Missing", missing)) if names]
    if errors:
        raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(errors)))


# Marks an attribute that does not exist.
_ABSENT = object()


def _owner(module: Module, path: str) -> Module:
    """The submodule at the path; AttributeError or TypeError naming the part that does not exist or is not a module."""
    owner = module
    for index, part in enumerate(path.split(".") if path else ()):
        try:
            inner = getattr(owner, part)
        except AttributeError:
            raise AttributeError(f"{owner._get_name()} has no attribute `{part}`") from None
        if not callable(getattr(inner, "named_parameters", None)):
            raise TypeError(f"submodule `{'.'.join(path.split('.')[: index + 1])}`: {inner} is not an instance of torch.nn.Module")
        owner = inner
    return owner


def _swap(module: Module, name: str, value: Any) -> Any:
    """Sets a parameter, buffer or attribute to a value; returns the old value, or _ABSENT if there was none."""
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    path, _, last = name.rpartition(".")
    owner = _owner(module, path)
    for registry in (owner._parameters, owner._buffers):
        if last in registry:
            before, registry[last] = registry[last], value
            if value is _ABSENT:
                del registry[last]
            return before
    before = getattr(owner, last, _ABSENT)
    if before is not _ABSENT and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    own = vars(owner)
    if value is _ABSENT:
        del own[last]
    elif before is _ABSENT or last in own:
        own[last] = value  # bypasses registration, so a given parameter does not become one of the module's
    else:
        setattr(owner, last, value)  # a property, such as of a parametrization
    return before


@contextlib.contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Any], tie_weights: bool = False, strict: bool = False, stack_weights: bool = False
) -> Iterator[None]:
    """Within it, the module uses these tensors instead of its own. Tensors that it reassigns are written back to the dict."""
    own = _tensors(module)
    given = _untied(own, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_strictly(module, own, given)
    before: dict[str, Any] = {}
    try:
        for name, value in given.items():
            if not isinstance(value, Tensor) and value is not None:
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            before[name] = _swap(module, name, value)
        yield
    finally:
        for name in reversed(before):
            now = _swap(module, name, before[name])
            if name in parameters_and_buffers and now is not _ABSENT:
                parameters_and_buffers[name] = now


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The older name of `torch.func.functional_call`, deprecated with a warning.

    Args:
        module: the module that is called.
        parameters_and_buffers: tensors by name, which replace the module's during the call.
        args: an argument, or a tuple of them. kwargs: arguments by name.
        tie_weights: whether a tensor that the module has under several names is replaced under all of them.
        strict: whether missing or unexpected names are an error (RuntimeError).

    >>> layer = naru.nn.Linear(2, 1, bias=False)
    >>> naru.nn.utils.stateless.functional_call(layer, {"weight": naru.tensor([[1.0, 2.0]])}, naru.tensor([3.0, 4.0]))
    tensor([11.])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. "
        "Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


__getattr__ = _missing.module_getattr(__name__)
