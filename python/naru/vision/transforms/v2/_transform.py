"""What transforms of v2 are: they take samples of any shape (lists, tuples, dictionaries), and change all pictures in them in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import naru

from ....nn.modules.module import Module
from ..._pil import is_pil
from ...tv_tensors import Image, wrap

if TYPE_CHECKING:
    from collections.abc import Callable


def is_pure_tensor(inpt: Any) -> bool:
    """Whether `inpt` is a tensor that is said to be no picture (no tv_tensors.Image).

    >>> naru.vision.transforms.v2.functional.is_pure_tensor(naru.ones(1))
    True
    """
    return isinstance(inpt, naru.Tensor) and not isinstance(inpt, Image)


def flatten(sample: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """What is in a sample, in order, and the function that makes a sample of as many others."""
    if isinstance(sample, dict):
        keys, parts = list(sample), list(sample.values())

        def rebuild(values: list[Any]) -> Any:
            made = dict(zip(keys, values))
            return made if type(sample) is dict else type(sample)(made)

    elif isinstance(sample, (list, tuple)):
        parts = list(sample)

        def rebuild(values: list[Any]) -> Any:
            return type(sample)(*values) if hasattr(sample, "_fields") else type(sample)(values)

    else:
        return [sample], lambda values: values[0]
    inner = [flatten(part) for part in parts]
    flat = [value for values, _ in inner for value in values]

    def unflatten(values: list[Any]) -> Any:
        made, place = [], 0
        for of, again in inner:
            made.append(again(values[place : place + len(of)]))
            place += len(of)
        return rebuild(made)

    return flat, unflatten


class Transform(Module):
    """To write one's own: `transform(inpt, params)` for one picture, and `make_params(flat_inputs)` for what chance decides about all of them.

    Pictures are PIL images and `tv_tensors.Image`; where there are none, the first tensor is one.

    >>> class Darker(naru.vision.transforms.v2.Transform):
    ...     def transform(self, inpt, params):
    ...         return inpt * 0.5
    >>> Darker()({"picture": naru.ones(1, 1, 2), "label": 3})
    {'picture': tensor([[[0.5000, 0.5000]]]), 'label': 3}
    """

    _transformed_types: tuple[Any, ...] = (naru.Tensor, is_pil)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """May raise."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _is_transformed(self, inpt: Any) -> bool:
        return any(isinstance(inpt, kind) if isinstance(kind, type) else kind(inpt) for kind in self._transformed_types)

    def _transformed(self, flat: list[Any]) -> list[bool]:
        """For each part of a sample whether it is to be transformed."""
        take_tensor = not any(isinstance(inpt, Image) or is_pil(inpt) for inpt in flat)
        wanted = []
        for inpt in flat:
            take = self._is_transformed(inpt)
            if take and is_pure_tensor(inpt):
                take, take_tensor = take_tensor, False
            wanted.append(take)
        return wanted

    def _skips(self) -> bool:
        """Whether chance decides that nothing is done."""
        return False

    def forward(self, *inputs: Any) -> Any:
        flat, unflatten = flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat)
        if self._skips():
            return inputs if len(inputs) > 1 else inputs[0]
        wanted = self._transformed(flat)
        params = self.make_params([inpt for inpt, take in zip(flat, wanted) if take])
        return unflatten([self.transform(inpt, params) if take else inpt for inpt, take in zip(flat, wanted)])


def doc_of(base: type) -> str:
    """The docstring of a class of v1 for that of v2.

    >>> doc_of(naru.vision.transforms.Pad).splitlines()[-2].strip()
    '>>> naru.vision.transforms.v2.Pad((1, 0), fill=9)(naru.tensor([[[1, 2]]]))'
    """
    return (base.__doc__ or "").replace("naru.vision.transforms.", "naru.vision.transforms.v2.")


class OfV1(Transform):
    """Stands before a class of v1 among another's bases: draws once for a sample, and does the same to all its pictures."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"drawn": self._draw(flat_inputs[0]) if flat_inputs else None}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = self._apply_to(inpt, params["drawn"])
        return tuple(_like(part, inpt) for part in out) if isinstance(out, tuple) else _like(out, inpt)


def _like(out: Any, inpt: Any) -> Any:
    return wrap(out, like=inpt) if isinstance(inpt, Image) and not isinstance(out, Image) else out


class MaybeOfV1(OfV1):
    """As `OfV1`, for those that are done with probability `p`."""

    def _skips(self) -> bool:
        return naru.rand(1).item() >= self.p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"drawn": True}


__all__ = ["MaybeOfV1", "OfV1", "Transform", "doc_of", "flatten", "is_pure_tensor"]
