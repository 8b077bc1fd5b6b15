"""Operators on nested tensors whose components differ in several dimensions (layout torch.strided): one call for each component."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._stand_in import DIMS, leaves, mapped, sizes_of
from ._tensor import BY_COMPONENT, NestedTensor, canonical, components, first_nested, from_components, is_nested, rule, unsupported

Tensor = _C.Tensor

# How many dimensions the arguments after the tensor begin with; other functions are in DIMS, or have no dimension arguments.
_FIRST = {"transpose": 2, "swapaxes": 2, "swapdims": 2, "unsqueeze": 1, "squeeze": 1, "narrow": 1, "unflatten": 1, "flatten": 2}
_NONE = frozenset("linear matmul bmm mm layer_norm rms_norm scaled_dot_product_attention glu t".split())
_SIZES = frozenset("view reshape".split())


def _dims(name: str, ndim: int, dims: Any) -> Any:
    if isinstance(dims, (tuple, list)):
        return tuple(_dims(name, ndim, d) for d in dims)
    at = canonical(ndim, dims)
    if at == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return at - 1


def _shifted(name: str, x: NestedTensor, args: list, kwargs: dict[str, Any]) -> None:
    """Converts the dimensions among the arguments to those of a component, in place."""
    ndim = x.dim() + (name == "unsqueeze")
    count = 1 if name in DIMS else _FIRST[name]
    at = DIMS[name][0] if name in DIMS else 0
    for i in range(at, min(at + count, len(args))):
        args[i] = _dims(name, ndim, args[i])
    for key in ("dim", "dim0", "dim1", "start_dim", "end_dim", "dims"):
        if kwargs.get(key) is not None:
            kwargs[key] = _dims(name, ndim, kwargs[key])


@rule(BY_COMPONENT)
def by_component(func: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls the function once for each component; the results become a nested tensor."""
    nest = first_nested(args, kwargs)
    rest, named = list(args[1:]), dict(kwargs)
    if name == "permute":
        order = [canonical(nest.dim(), d) for d in sizes_of(args[1:])]
        if order[0] != 0:
            raise RuntimeError("Permute is not supported on the batch dimension for jagged NT")
        rest = [d - 1 for d in order[1:]]
    elif name in _SIZES:
        return _viewed(name, nest, sizes_of(args[1:]))
    elif name in DIMS or name in _FIRST:
        _shifted(name, nest, rest, named)
    elif name not in _NONE:
        raise unsupported(name, nest, ", whose components differ in several dimensions")
    batches = {x._ragged.batch for x in leaves((*args, *kwargs.values())) if is_nested(x)}
    if len(batches) > 1:
        raise RuntimeError(f"{name}(): wanted nested tensors of as many components, got {sorted(batches)}")

    def one(i: int) -> Any:
        def part(x: Any) -> Any:
            return parts[id(x)][i] if is_nested(x) else x

        return func(*mapped(part, (args[0], *rest)), **mapped(part, named))

    parts = {id(x): components(x) for x in leaves((*args, *kwargs.values())) if is_nested(x)}
    return _collected([one(i) for i in range(nest._ragged.batch)], nest.layout)


def _collected(results: list, layout: Any) -> Any:
    if isinstance(results[0], Tensor):
        return from_components(results, layout)
    made = [from_components(list(column), layout) for column in zip(*results)]
    kind = type(results[0])
    return kind(made) if kind in (tuple, list) else kind(*made) if hasattr(kind, "_fields") else kind(made)


def _viewed(name: str, x: NestedTensor, sizes: tuple) -> NestedTensor:
    """A view of each component, where -1 keeps the component's size in that dimension."""
    if not sizes or sizes[0] not in (-1, x._ragged.batch):
        raise RuntimeError(f"{name}(): for now nested view cannot change the size of the first dimension, {x._ragged.batch}; got {sizes}")
    parts = components(x)
    return from_components([getattr(c, name)([own if w == -1 and own is not None else w for w, own in _beside(sizes[1:], c)]) for c in parts], x.layout)


def _beside(sizes: tuple, component: Tensor) -> list:
    own = list(component.shape)
    return [(w, own[i] if i < len(own) else None) for i, w in enumerate(sizes)]
