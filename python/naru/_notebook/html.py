"""HTML display of tensors: shape, dtype and device, a small image if possible, a histogram of the values, and the text."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._C import Tensor

MOST = 128  # pixels across; larger tensors are subsampled on their device before they are read
LEAST = 4  # smaller ones are easier to read as numbers
SHOWN = 192  # size on the page, in pixels, to which small images are enlarged
BINS, HIGH = 32, 48  # of a histogram: the bars, and its height in pixels
FEWEST, COUNTED = 16, 1 << 16  # values of which a histogram is shown, and of how many at most


def png(width: int, height: int, channels: int, rows: bytes) -> bytes:
    """Encodes 8-bit samples as PNG: greyscale (1 channel), RGB (3) or RGBA (4), row by row."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    stride = width * channels
    lines = b"".join(b"\0" + rows[at : at + stride] for at in range(0, len(rows), stride))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def _planes(x: Tensor) -> Tensor | None:
    """(height, width, channels) if the tensor can be shown as an image: a matrix, or 1, 3 or 4 channels in the first or last dimension."""
    if x.dim() == 2:
        candidates = [x.unsqueeze(2)]
    elif x.dim() == 3:
        candidates = [x.permute(1, 2, 0), x]
    else:
        return None
    for found in candidates:
        if found.shape[2] in (1, 3, 4) and min(found.shape[:2]) >= LEAST:
            return found[:: -(-found.shape[0] // MOST), :: -(-found.shape[1] // MOST)]
    return None


def _samples(x: Tensor) -> tuple[Tensor, str]:
    """Scales values to 0 ... 255; returns also the values of black and white. uint8 images and floats within 0 ... 1 are not rescaled."""
    import naru

    if x.dtype in (naru.uint8, naru.bool):
        scale = 255 if x.dtype == naru.bool else 1
        return x.to(naru.uint8) * scale, "0 … 1" if scale > 1 else "0 … 255"
    values = x.to(naru.float32)
    finite = values.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    low, high = finite.min().item(), finite.max().item()
    if x.shape[2] > 1 and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scaled = (values.nan_to_num(nan=low, posinf=high, neginf=low) - low) * (255 / (high - low) if high > low else 0.0)
    return scaled.clamp(0, 255).round().to(naru.uint8), f"{low:.4g} … {high:.4g}"


def picture(x: Tensor) -> str:
    """An `img` element for a tensor, and the values of its darkest and brightest samples; "" if it can't be shown as an image."""
    import naru

    if x.is_sparse or x.is_complex() or x.device.type == "meta" or x.numel() == 0:
        return ""
    with naru.no_grad():
        planes = _planes(x.detach())
        if planes is None:
            return ""
        samples, extent = _samples(planes)
        height, width, channels = samples.shape
        data = png(width, height, channels, bytes(samples.cpu().flatten().tolist()))
    times = max(1, SHOWN // max(width, height))
    source = "data:image/png;base64," + base64.b64encode(data).decode()
    size = f'width="{width * times}" height="{height * times}"'
    return f'<img src="{source}" {size} style="image-rendering:pixelated;border:1px solid #8888" alt="" title="{extent}"><br><small>{extent}</small>'


def histogram(x: Tensor) -> str:
    """An `svg` element: how often values occur between the least and the greatest finite one, of at most 65,536 values at equal distances; below
    it these two, the mean and the standard deviation, and how many are not finite. "" for few values, or where they have no order."""
    import naru

    if x.is_sparse or x.is_complex() or x.dtype == naru.bool or x.device.type == "meta" or x.numel() < FEWEST:
        return ""
    with naru.no_grad():
        values = x.detach().flatten()[:: -(-x.numel() // COUNTED)].to(naru.float32)
        finite = values[values.isfinite()]
        lost, some = values.numel() - finite.numel(), f" of {values.numel():,} of {x.numel():,} values" if values.numel() < x.numel() else ""
        words = [f"{lost:,} not finite"] if lost else []
        if finite.numel() == 0:
            return f"<small>{words[0]}{some}</small><br>"
        low, high = finite.min().item(), finite.max().item()
        counts = naru.histc(finite.cpu(), BINS, low, high).tolist()
        deviation, mean = naru.std_mean(finite, correction=0)
    words.insert(0, f"{low:.4g} … {high:.4g}, mean {mean.item():.4g} ± {deviation.item():.4g}")
    most, wide = max(counts), SHOWN / BINS
    bars = "".join(
        f'<rect x="{i * wide:g}" y="{HIGH * (1 - n / most):.1f}" width="{wide - 1:g}" height="{HIGH * n / most:.1f}"/>' for i, n in enumerate(counts) if n
    )
    picture = f'<svg width="{SHOWN}" height="{HIGH}" fill="#48c" style="border-bottom:1px solid #8888">{bars}</svg>'
    return f"{picture}<br><small>{', '.join(words)}{some}</small><br>"


def tensor_html(x: Tensor) -> str:
    """The HTML of a tensor in a notebook, used after `naru.set_printoptions(html=True)`.

    >>> import naru
    >>> text = tensor_html(naru.eye(8))
    >>> "(8, 8)" in text, "torch.float32" in text, "data:image/png" in text
    (True, True, True)
    """
    facts: list[Any] = [type(x).__name__, f"({', '.join(map(str, x.shape))}{',' if x.dim() == 1 else ''})", x.dtype, x.device]
    if x.requires_grad:
        facts.append("requires_grad")
    head = " · ".join(html.escape(str(fact)) for fact in facts)
    shown = "<br>".join(part for part in (picture(x), histogram(x)) if part)
    text = f'<pre style="margin:0">{html.escape(repr(x))}</pre>'
    if shown:
        text = f"<details><summary><small>values</small></summary>{text}</details>"
    return f'<div class="naru-tensor"><code>{head}</code>{"<br>" if shown else ""}{shown}{text}</div>'
