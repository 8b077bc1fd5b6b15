"""What packages import from PyTorch's private module of this name: a module's tensor by its name, exchanged for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C

if TYPE_CHECKING:
    from ..modules.module import Module

_MISSING = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts `tensor` where the module has its parameter, buffer or attribute `name`, and returns what was there. A parameter's place takes tensors of any
    kind. KeyError for a name with a dot, AttributeError for one that the module lacks, unless allow_missing."""
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    held = next((table for table in (module._parameters, module._buffers) if name in table), None)
    before = held[name] if held is not None else getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING and before is not None and not isinstance(before, _C.Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if held is not None:
        held[name] = tensor
    else:
        setattr(module, name, tensor)
    return None if before is _MISSING else before
