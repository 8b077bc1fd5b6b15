"""Event files: TensorFlow records (length, checksum, bytes, checksum) of protocol buffers, as far as a writer needs them."""

from __future__ import annotations

import struct
from typing import Any


def _table() -> list[int]:
    found = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        found.append(n)
    return found


_CRC = _table()


def _checksum(data: bytes) -> int:
    """CRC-32C, masked as in TensorFlow records.

    >>> hex(_checksum(b"123456789"))
    '0xc78ab0e5'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """A file record."""
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", _checksum(head)) + data + struct.pack("<I", _checksum(data))


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer field."""
    return _varint(field << 3) + _varint(int(value))


def double(field: int, value: float) -> bytes:
    """A 64-bit field."""
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    """A 32-bit field."""
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def data(field: int, value: bytes | str) -> bytes:
    """A field of bytes, text, or a nested message."""
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def doubles(field: int, values: Any) -> bytes:
    """A packed field of 64-bit numbers."""
    return data(field, struct.pack(f"<{len(values)}d", *values))


# --- messages: Event, Summary.Value, HistogramProto, Image, TensorProto, SummaryMetadata


def event(wall_time: float, step: int, summary: bytes = b"", file_version: str | None = None, graph: bytes | None = None) -> bytes:
    """An Event."""
    out = double(1, wall_time)
    if step:
        out += number(2, step)
    if graph is not None:
        return out + data(4, graph)
    return out + (data(3, file_version) if file_version is not None else data(5, summary))


def scalar(tag: str, value: float) -> bytes:
    """A Summary of a scalar."""
    return data(1, data(1, tag) + single(2, value))


def histogram(tag: str, stats: tuple[float, float, float, float, float], limits: list[float], counts: list[float]) -> bytes:
    """A Summary of a histogram: (min, max, number, sum, sum of squares), the upper limits of buckets, and their counts."""
    message = b"".join(double(i + 1, v) for i, v in enumerate(stats)) + doubles(6, limits) + doubles(7, counts)
    return data(1, data(1, tag) + data(5, message))


def image(tag: str, height: int, width: int, channels: int, png: bytes) -> bytes:
    """A Summary of an image."""
    return data(1, data(1, tag) + data(4, number(1, height) + number(2, width) + number(3, channels) + data(4, png)))


def text(tag: str, value: str) -> bytes:
    """A Summary of a text."""
    string = 7  # DT_STRING
    tensor = number(1, string) + data(2, data(2, number(1, 1))) + data(8, value)
    return data(1, data(1, tag) + data(9, data(1, data(1, "text"))) + data(8, tensor))


def audio(tag: str, rate: int, samples: Any) -> bytes:
    """A Summary of audio: 16-bit mono samples, as WAV."""
    import io
    import wave

    file = io.BytesIO()
    with wave.Wave_write(file) as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    message = single(1, rate) + number(2, 1) + number(3, len(samples)) + data(4, file.getvalue()) + data(5, "audio/wav")
    return data(1, data(1, tag) + data(6, message))


def curve(tag: str, rows: list[list[float]]) -> bytes:
    """A Summary of true and false positives, true and false negatives, precision and recall, one row each, by threshold."""
    count = len(rows[0])
    shape = data(2, number(1, len(rows))) + data(2, number(1, count))
    tensor = number(1, 1) + data(2, shape) + b"".join(single(5, v) for row in rows for v in row)  # of type float
    plugin = data(1, "pr_curves") + data(2, number(2, count))
    return data(1, data(1, tag) + data(9, data(1, plugin)) + data(8, tensor))


def png(pixels: Any) -> bytes:
    """Encodes a uint8 image (height, width, 1, 3 or 4 channels) as PNG."""
    import zlib

    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + bytes(row.contiguous().flatten().tolist()) for row in pixels)

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
