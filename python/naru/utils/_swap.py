"""`swap_tensors`: exchanges the contents of two Tensor objects."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from .. import _C

Tensor = _C.Tensor


def _poisoned(grad_outputs: Any) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the tensor was swapped between forward and backward. With "
        "torch.__future__.set_swap_module_params_on_conversion(True), change a module's device or dtype before forward, or after backward."
    )


def _check_owners(t: Tensor, name: str) -> None:
    """RuntimeError if anything but an AccumulateGrad node refers to the tensor; that node then raises if backward reaches it."""
    count = t._use_count()
    if count == 1:
        return
    if count > 2 or not t.is_leaf or not t.requires_grad:
        raise RuntimeError(
            f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} make sure you are not holding references "
            "to the tensor in other places."
        )
    _C._gradient_edge(t)[0].register_prehook(_poisoned)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges two Tensor objects: class, attributes, elements, gradient and history; references to one then see the other.

    Args:
        t1, t2: tensors without other references (weak references, views, or graphs that saved them; RuntimeError).

    >>> a, b = naru.zeros(2), naru.nn.Parameter(naru.ones(3))
    >>> naru.utils.swap_tensors(a, b)
    >>> a
    Parameter containing:
    tensor([1., 1., 1.], requires_grad=True)
    >>> b
    tensor([0., 0.])
    """
    for t, name in ((t1, "t1"), (t2, "t2")):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))  # type: ignore[attr-defined]
    if slots != set(copyreg._slotnames(type(t2))):  # type: ignore[attr-defined]
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for t, name in ((t1, "t1"), (t2, "t2")):
        _check_owners(t, name)
    for attribute in ("__class__", "__dict__"):
        one, two = getattr(t1, attribute), getattr(t2, attribute)
        setattr(t1, attribute, two)
        setattr(t2, attribute, one)
    for slot in slots:
        held = [(t, getattr(t, slot)) for t in (t1, t2) if hasattr(t, slot)]
        for t, _ in held:
            delattr(t, slot)
        for t, value in held:
            setattr(t2 if t is t1 else t1, slot, value)
    _C._swap_tensor_impl(t1, t2)
