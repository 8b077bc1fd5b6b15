"""`torch.nn.utils.rnn`: sequences of different lengths, padded into one tensor, and packed without padding."""

from __future__ import annotations

from ... import _missing
from .._packed import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
    "unpad_sequence",
]  # fmt: skip

__getattr__ = _missing.module_getattr(__name__)
