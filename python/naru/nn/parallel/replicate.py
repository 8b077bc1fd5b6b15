"""Replicas of a module on several devices.

Copies of parameters and buffers are kept between calls: one is renewed only when the version counter of the original has changed. The modules
themselves are cheap, so they are made for each call, and changes of attributes, hooks and submodules take effect.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ... import _C
from ...autograd import Function
from .comm import device_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..modules.module import Module

Tensor = _C.Tensor


class _Copied(Function):
    """Returns a kept copy as if it were computed from the original tensor: the gradient goes to the original's device."""

    @staticmethod
    def forward(ctx: Any, original: Tensor, copy: Tensor) -> Tensor:
        ctx.home = original.device
        return copy.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.to(ctx.home), None


def _state(t: Tensor) -> tuple[int, int]:
    return _C._writes(t), _C._address(t)


class Copies:
    """Copies of tensors on other devices.

    >>> from naru.nn.parallel.replicate import Copies
    >>> with naru.virtual("cuda", count=1):
    ...     copies, x = Copies(), naru.ones(2)
    ...     there = copies.of(x, naru.device("cuda:0"))
    ...     there.device, copies.of(x, naru.device("cuda:0")) is there
    (device(type='cuda', index=0), True)
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, _C.device], tuple[weakref.ref, tuple[int, int], Tensor, int]] = {}
        self.made = 0  # number of copies made or renewed

    def of(self, original: Tensor, device: _C.device) -> Tensor:
        """A copy of the original's values on the device; not part of its history."""
        key = (id(original), device)
        kept = self._kept.get(key)
        if kept is not None:
            source, version, copy, own_version = kept
            # The version counts in-place writes; a newly assigned `data` has another address.
            if (
                source() is original
                and version == _state(original)
                and own_version == _C._writes(copy)
                and copy.dtype == original.dtype
                and copy.shape == original.shape
            ):
                return copy
        with _C.no_grad():
            copy = original.detach().to(device, non_blocking=True, copy=True)
        self.made += 1
        forget = lambda _, kept=self._kept, key=key: kept.pop(key, None)  # noqa: E731
        self._kept[key] = (weakref.ref(original, forget), _state(original), copy, _C._writes(copy))
        return copy


def _shallow(module: Module) -> Module:
    replica = module.__new__(type(module))
    replica.__dict__ = module.__dict__.copy()
    for name in ("_parameters", "_buffers", "_modules"):
        replica.__dict__[name] = module.__dict__[name].copy()
    replica.__dict__["_is_replica"] = True
    return replica


def replicate(network: Module, devices: Sequence[Any], detach: bool = False, copies: Copies | None = None) -> list[Module]:
    """Replicas of the module on `devices`. Parameters must be on the first device, where the replica shares them. Gradients of the other replicas'
    parameters flow to the originals unless `detach`. copies: a cache of copies from previous calls.

    Args:
        network: a module. devices: devices or indices.

    >>> with naru.virtual("cuda", count=2):
    ...     models = naru.nn.parallel.replicate(naru.nn.Linear(2, 2).to("cuda"), [0, 1])
    ...     [str(m.weight.device) for m in models]
    ['cuda:0', 'cuda:1']
    """
    copies = copies if copies is not None else Copies()
    places = [device_of(d) for d in devices]
    modules = list(network.modules())
    number = {id(m): i for i, m in enumerate(modules)}
    # Tensors shared between modules of the original stay shared in a replica.
    replicas = []
    for place in places:
        here: dict[int, Tensor] = {}

        def on_device(t: Tensor, parameter: bool, place: _C.device = place, here: dict[int, Tensor] = here) -> Tensor:
            if t.device == place:
                return t.detach() if detach and parameter else t
            if id(t) not in here:
                copy = copies.of(t, place)
                linked = parameter and t.requires_grad and _C.is_grad_enabled() and not detach
                here[id(t)] = _Copied.apply(t, copy) if linked else copy
            return here[id(t)]

        made = [_shallow(m) for m in modules]
        for replica in made:
            attributes = replica.__dict__
            for name, child in attributes["_modules"].items():
                if child is not None:
                    attributes["_modules"][name] = made[number[id(child)]]
            for name, buffer in attributes["_buffers"].items():
                if buffer is not None:
                    attributes["_buffers"][name] = on_device(buffer, False)
            former = {n: on_device(p, True) for n, p in attributes["_parameters"].items() if p is not None}
            if any(p is not attributes["_parameters"][n] for n, p in former.items()):
                # Copies are not parameters but results of autograd functions, so they are plain attributes.
                attributes["_parameters"] = type(attributes["_parameters"])((n, None) for n, p in attributes["_parameters"].items() if p is None)
                attributes.update(former)
                attributes["_former_parameters"] = former
        replicas.append(made[0])
    return replicas
