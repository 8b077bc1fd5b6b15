"""Base classes of v2 transforms: they accept nested samples (lists, tuples, dictionaries) and transform all images in them with the same
parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import naru

from ....nn.modules.module import Module
from ..._pil import is_pil
from ...tv_tensors import Image, wrap

if TYPE_CHECKING:
    from collections.abc import Callable


def is_pure_tensor(inpt: Any) -> bool:
    """True if `inpt` is a plain tensor (not a tv_tensors.Image).

    >>> naru.vision.transforms.v2.functional.is_pure_tensor(naru.ones(1))
    True
    """
    return isinstance(inpt, naru.Tensor) and not isinstance(inpt, Image)


def flatten(sample: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Flattens a sample: returns its leaves in order, and a function that rebuilds a sample from as many new leaves."""
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
    """Base class. Subclasses define `transform(inpt, params)` for one image, and `make_params(flat_inputs)` for the random parameters that all
    images share.

    Images are PIL images and `tv_tensors.Image`; if there are none, the first tensor is the image.

    >>> class Darker(naru.vision.transforms.v2.Transform):
    ...     def transform(self, inpt, params):
    ...         return inpt * 0.5
    >>> Darker()({"picture": naru.ones(1, 1, 2), "label": 3})
    {'picture': tensor([[[0.5000, 0.5000]]]), 'label': 3}
    """

    _transformed_types: tuple[Any, ...] = (naru.Tensor, is_pil)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Checks the inputs; may raise."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _is_transformed(self, inpt: Any) -> bool:
        return any(isinstance(inpt, kind) if isinstance(kind, type) else kind(inpt) for kind in self._transformed_types)

    def _transformed(self, flat: list[Any]) -> list[bool]:
        """For each leaf of a sample, whether it is to be transformed."""
        take_tensor = not any(isinstance(inpt, Image) or is_pil(inpt) for inpt in flat)
        wanted = []
        for inpt in flat:
            take = self._is_transformed(inpt)
            if take and is_pure_tensor(inpt):
                take, take_tensor = take_tensor, False
            wanted.append(take)
        return wanted

    def _skips(self) -> bool:
        """Draws whether to skip the transform."""
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
    """The docstring of the v1 class, adapted for v2.

    >>> doc_of(naru.vision.transforms.Pad).splitlines()[-2].strip()
    '>>> naru.vision.transforms.v2.Pad((1, 0), fill=9)(naru.tensor([[[1, 2]]]))'
    """
    return (base.__doc__ or "").replace("naru.vision.transforms.", "naru.vision.transforms.v2.")


class OfV1(Transform):
    """Mixin, placed before a v1 class among the bases: draws parameters once per sample, and applies them to all its images."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"drawn": self._draw(flat_inputs[0]) if flat_inputs else None}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = self._apply_to(inpt, params["drawn"])
        return tuple(_like(part, inpt) for part in out) if isinstance(out, tuple) else _like(out, inpt)


def _like(out: Any, inpt: Any) -> Any:
    return wrap(out, like=inpt) if isinstance(inpt, Image) and not isinstance(out, Image) else out


class MaybeOfV1(OfV1):
    """As `OfV1`, for transforms applied with probability `p`."""

    def _skips(self) -> bool:
        return naru.rand(1).item() >= self.p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"drawn": True}


__all__ = ["MaybeOfV1", "OfV1", "Transform", "doc_of", "flatten", "is_pure_tensor"]
