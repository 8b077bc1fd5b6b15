"""`torch.autograd.forward_ad`: tensors with a tangent, and the tangents of what is computed of them.

A dual tensor is one that requires gradients; `unpack_dual` walks the graph that was recorded of it, forward (src/autograd/engine/forward.h).
Each operator has a rule, or takes the derivative of its own backward; functions of the user's that are once_differentiable have none. The graph
is kept as long as its results are. A function of the user's with a jvp gives its results their tangents itself. What operators save within a
level outlives in-place writes (src/autograd/graph/kept.h); no_grad() does not stop tangents, inference_mode() does.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any, NamedTuple

from .. import _C, _missing
from .grad_mode import enable_grad

Tensor = _C.Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Dual(NamedTuple):
    """A tensor with a tangent: what its gradient goes along, on which in-place changes leave no mark, and the tangent."""

    edge: Tensor
    tangent: Any
    outside: bool  # whether the program differentiates what is computed of it, besides


class _Local(threading.local):
    def __init__(self) -> None:
        self.duals: list[_Dual] | None = None
        self.levels: list[list[_Dual]] = []  # those, and those of transforms under way, the outermost first
        self.unpacked: list[_Dual] | None = None  # those whose products are computed now


_here = _Local()


def _set_levels(levels: list[list[_Dual]]) -> int:
    """What operators save within a level keeps its value when it is written in place: tangents are found later. Returns the gradient mode."""
    _here.levels = levels
    return _C._carry_tangents(bool(levels))


class UnpackedDualTensor(NamedTuple):
    """A tensor, `primal`, and its `tangent`, or None.

    >>> with naru.autograd.forward_ad.dual_level():
    ...     naru.autograd.forward_ad.unpack_dual(naru.ones(1))
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begins the level in which dual tensors can be made. RuntimeError within another.

    >>> import naru.autograd.forward_ad as fwad
    >>> level = fwad.enter_dual_level()
    >>> x = fwad.make_dual(naru.tensor(3.0), naru.tensor(1.0))
    >>> fwad.unpack_dual(x * x).tangent
    tensor(6.)
    >>> fwad.exit_dual_level()
    """
    if _here.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _here.duals = []
    _set_levels([*_here.levels, _here.duals])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level; tangents of its tensors are gone. `level` is taken: there is one. RuntimeError where there is none.

    >>> import naru.autograd.forward_ad as fwad
    >>> level = fwad.enter_dual_level()
    >>> x = fwad.make_dual(naru.tensor(3.0), naru.tensor(1.0))
    >>> fwad.exit_dual_level(); fwad.unpack_dual(x).tangent is None
    True
    """
    if _here.duals is None:
        raise RuntimeError("Trying to exit a forward AD level when no level is active.")
    _set_levels([level for level in _here.levels if level is not _here.duals])
    _here.duals = None


class dual_level:
    """A block in which dual tensors can be made.

    >>> import naru
    >>> with dual_level():
    ...     x = make_dual(naru.tensor(0.0), naru.tensor(2.0))
    ...     print(unpack_dual(x.sin()).tangent)
    tensor(2.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()

    def __call__(self, func: Any) -> Any:
        import functools

        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with dual_level():
                return func(*args, **kwargs)

        return wrapped


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` with a `tangent` of its shape and type. `level` is taken: there is one. RuntimeError outside of a level; ValueError where they
    are not floating point.

    >>> import naru.autograd.forward_ad as fwad
    >>> with fwad.dual_level():
    ...     x = fwad.make_dual(naru.tensor([1.0, 2.0]), naru.tensor([1.0, 0.0]))
    ...     fwad.unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor([1., 4.]), tangent=tensor([2., 0.]))
    """
    if _here.duals is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    for value, name in ((tensor, "primal"), (tangent, "tangent")):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    _same_size(tensor, tangent)
    if _is_dual(tensor):
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported.")
    if _is_dual(tangent):
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level 0 is not supported.")
    if _is_batched(tensor):
        transforms = _transforms()
        (plain, levels), (tangent, _) = transforms._lifted(tensor), transforms._lifted(tangent)
        return transforms._around(_with_tangent(plain, tangent, _here.duals), levels)
    return _with_tangent(tensor, tangent, _here.duals)


def _transforms() -> Any:
    return importlib.import_module("naru.func._transforms")


def _is_batched(tensor: Any) -> bool:
    return _C._batch_level(tensor) > 0


def _same_size(tensor: Tensor, tangent: Tensor) -> None:
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of "
            f"size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )


def _with_tangent(tensor: Tensor, tangent: Any, duals: list[_Dual], outside: bool = False) -> Tensor:
    """The tensor's elements, with a history that begins here: no leaf, as it may be written in place."""
    with enable_grad():
        start = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        edge = start.view_as(start)
        _C._mark_tangent(edge)
    duals.append(_Dual(edge, tangent, outside or tensor.requires_grad or tangent.requires_grad))
    return _C._at_gradient_edge(*_C._gradient_edge(edge), tensor)


def _set_tangent(tensor: Tensor, tangent: Any, duals: list[_Dual], outside: bool) -> Tensor:
    """The result of a function of the user's, with the tangent that its jvp gave: the tensor itself where it has a history."""
    _same_size(tensor, tangent)
    if not tensor.requires_grad:
        return _with_tangent(tensor, tangent, duals, outside)
    _C._mark_tangent(tensor)
    duals.append(_Dual(_C._at_gradient_edge(*_C._gradient_edge(tensor), tensor.detach()), tangent, outside))
    return tensor


class _With:
    """A block with further dual tensors, those of a transform; without any for None, in a jvp of the user's, whose tensors are like others."""

    def __init__(self, duals: list[_Dual] | None) -> None:
        self.duals = duals

    def __enter__(self) -> None:
        self.before = _here.levels
        self.mode = _set_levels([] if self.duals is None else [*_here.levels, self.duals])

    def __exit__(self, *exc: object) -> None:
        _set_levels(self.before)
        _C._restore_grad_mode(self.mode)


class _Unpacking:
    """A block in which functions of the user's that have given their results tangents end the way of gradients. Nothing is overwritten before
    the tangents are there, unless those of an outer level are wanted later."""

    def __init__(self, duals: list[_Dual]) -> None:
        self.duals = duals

    def __enter__(self) -> None:
        self.before, _here.unpacked = _here.unpacked, self.duals
        self.mode = _C._carry_tangents(any(level is not self.duals for level in _here.levels))

    def __exit__(self, *exc: object) -> None:
        _here.unpacked = self.before
        _C._carry_tangents(bool(_here.levels))
        _C._restore_grad_mode(self.mode)


def _is_dual(tensor: Tensor) -> bool:
    """Whether a dual tensor of this level is part of it."""
    return bool(_here.duals) and tensor.requires_grad and _tangent(tensor, _here.duals) is not None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a `tensor`; the tangent is None outside of a level, and where no dual tensor is part of it. `level` is taken: there
    is one.

    >>> import naru.autograd.forward_ad as fwad
    >>> with fwad.dual_level():
    ...     fwad.unpack_dual(fwad.make_dual(naru.tensor(0.0), naru.tensor(2.0)).sin()).tangent
    tensor(2.)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}")
    found = _tangent(tensor, _here.duals) if _here.duals and tensor.requires_grad else None
    return UnpackedDualTensor(tensor if found is None else tensor.detach(), found)


def _tangent(tensor: Tensor, duals: list[_Dual]) -> Any:
    if _is_batched(tensor):
        plain, levels = _transforms()._layers(tensor)
        found = _tangent(plain, duals)
        return None if found is None else _transforms()._around(found, levels)
    edge = _C._gradient_edge(tensor)
    for dual in reversed(duals):
        if _C._gradient_edge(dual.edge) == edge:
            return dual.tangent
    found = _pushed([tensor], duals, True if any(dual.outside for dual in duals) else None)[0]
    if found is None:
        return None
    # Of its own: a jvp may write it.
    return found.clone() if any(found.is_set_to(d.tangent) for d in duals if not _is_batched(d.tangent) and not _is_batched(found)) else found


def _pushed(outputs: list[Tensor], duals: list[_Dual], create_graph: bool | None) -> list[Any]:
    """The tangents of plain outputs, None where no dual is part of one; of batches of tangents one entry after the other."""
    batched = [dual.tangent for dual in duals if _is_batched(dual.tangent)]
    if not batched:
        with enable_grad(), _Unpacking(duals):
            return _C._push_forward(outputs, [dual.edge for dual in duals], [dual.tangent for dual in duals], create_graph)
    transforms = _transforms()
    number = max(_C._batch_level(t) for t in batched)
    size = next(level.size for level in transforms.here.levels if level.number == number)
    rows = []
    for i in range(size):
        one = [d._replace(tangent=_C._batch_value(d.tangent).select(0, i)) if _C._batch_level(d.tangent) == number else d for d in duals]
        rows.append(_pushed(outputs, one, create_graph))
    return [None if column[0] is None else _C._make_batched(_C.stack(list(column)), number) for column in zip(*rows)]


_missing_name = _missing.module_getattr(__name__)


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # PyTorch's name, by which packages ask whether a level is active: 0, or -1 without one
        return -1 if _here.duals is None else 0
    return _missing_name(name)
