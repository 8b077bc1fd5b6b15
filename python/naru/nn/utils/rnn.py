"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from ... import _C, _missing

Tensor = _C.Tensor

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: list[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Tensors (L_i, ...) stacked as (max L, N, ...), or (N, max L, ...) with batch_first.

    >>> import naru
    >>> naru.nn.utils.rnn.pad_sequence([naru.ones(2), naru.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    return _C._pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of `pad_sequence`, cut back to their lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(padded_sequences, lengths.tolist())]

__getattr__ = _missing.module_getattr(__name__)
