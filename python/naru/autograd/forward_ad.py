"""`torch.autograd.forward_ad`: tensors with a tangent, and the tangents of what is computed of them.

A dual tensor is one that requires gradients; `unpack_dual` finds the tangent of a result as the derivative of backward by the gradient that it
starts with. So it costs about as much as two backwards, the graph is kept as long as its results are, and operators without a second derivative
(functions of the user's that are once_differentiable) have none.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from .. import _C, _missing
from . import grad
from .grad_mode import enable_grad

Tensor = _C.Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Local(threading.local):
    def __init__(self) -> None:
        self.duals: list[tuple[Tensor, Tensor]] | None = None


_here = _Local()


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
    if tensor.shape != tangent.shape:
        raise RuntimeError(f"Expected tangent to be of the shape of the primal, {tuple(tensor.shape)}, but got {tuple(tangent.shape)}")
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _here.duals.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a `tensor`; the tangent is None outside of a level, and where no dual tensor is part of it. `level` is taken: there
    is one.

    >>> import naru.autograd.forward_ad as fwad
    >>> with fwad.dual_level():
    ...     fwad.unpack_dual(fwad.make_dual(naru.tensor(0.0), naru.tensor(2.0)).sin()).tangent
    tensor(2.)
    """
    if _here.duals is None or not _here.duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    for dual, tangent in _here.duals:
        if dual is tensor:
            return UnpackedDualTensor(tensor.detach(), tangent)
    with enable_grad():
        start = _C.zeros_like(tensor.detach()).requires_grad_()
        first = grad(tensor, [dual for dual, _ in _here.duals], start, create_graph=True, allow_unused=True)
        if all(g is None for g in first):
            return UnpackedDualTensor(tensor, None)
        pairs = [(g, t) for g, (_, t) in zip(first, _here.duals) if g is not None and g.requires_grad]
        differentiable = any(t.requires_grad for _, t in pairs)
        found = None
        if pairs:
            (found,) = grad([g for g, _ in pairs], [start], [t for _, t in pairs], retain_graph=True, create_graph=differentiable, allow_unused=True)
    return UnpackedDualTensor(tensor.detach(), _C.zeros_like(tensor.detach()) if found is None else found)


__getattr__ = _missing.module_getattr(__name__)
