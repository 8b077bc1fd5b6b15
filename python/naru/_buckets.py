"""Gradients that processes average together, as a communication hook gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from . import Tensor


class GradBucket:
    """Gradients that are averaged together, as passed to a communication hook.

    Args:
        index: the bucket's index, from 0.
        buffer: all gradients in one vector.
        parameters: their parameters.
        is_last: whether it is the last bucket of this backward.

    >>> weight = naru.ones(2, 2)
    >>> bucket = naru.distributed.GradBucket(0, naru.arange(4.0), [weight], True)
    >>> bucket.gradients()[0].shape, bucket.is_last()
    (torch.Size([2, 2]), True)
    """

    def __init__(self, index: int, buffer: Tensor, parameters: Sequence[Tensor], is_last: bool) -> None:
        self._index, self._buffer, self._parameters, self._is_last = index, buffer, list(parameters), is_last

    def index(self) -> int:
        """The bucket's index, from 0."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in one vector, which may be written to."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the vector by another one of the same size."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Views of the buffer in the shapes of the parameters."""
        return views_of(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients are in the bucket."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether it is the last bucket of this backward."""
        return self._is_last


def views_of(flat: Tensor, models: Iterable[Tensor]) -> list[Tensor]:
    """Views of consecutive parts of a vector, in the shapes of the models."""
    found, at = [], 0
    for model in models:
        found.append(flat[at : at + model.numel()].view(model.shape))
        at += model.numel()
    return found
