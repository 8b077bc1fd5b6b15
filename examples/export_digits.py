"""Handwritten digits for the examples: scikit-learn's 1,797 scans of 8 × 8 pixels, brought to 28 × 28.

As a program it writes them to a file that the C++ example reads:

    ./run python examples/export_digits.py [digits.bin]

The file, all numbers little-endian:
    8 bytes            b"NARUDIG1"
    3 × int32          count, height, width
    count × uint8      labels, 0 to 9
    count × height × width × float32   pixels, row by row, 0 (paper) to 1 (ink)
"""

from __future__ import annotations

import struct
import sys

import numpy as np

SIZE = 28


def enlarge(images: np.ndarray, size: int = SIZE) -> np.ndarray:
    """Bilinear interpolation of (n, h, w) images to (n, size, size), their edges kept in place."""
    for axis in (1, 2):
        old = images.shape[axis]
        # The centre of each new pixel, in old pixels.
        at = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
        below = np.minimum(at.astype(int), old - 2)
        share = (at - below).astype(images.dtype).reshape([-1 if a == axis else 1 for a in range(3)])
        images = images.take(below, axis) * (1 - share) + images.take(below + 1, axis) * share
    return images


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """(1797, 784) float32 pixels from 0 to 1, and 1,797 int64 labels."""
    try:
        from sklearn.datasets import load_digits as scans
    except ImportError:
        sys.exit("The digits come with scikit-learn, which is not installed here: pip install scikit-learn")
    data = scans()
    images = enlarge(data.images.astype(np.float32) / 16)
    return np.ascontiguousarray(images.reshape(len(images), -1)), data.target.astype(np.int64)


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "digits.bin"
    images, labels = load_digits()
    with open(path, "wb") as file:
        file.write(b"NARUDIG1" + struct.pack("<3i", len(images), SIZE, SIZE))
        file.write(labels.astype(np.uint8).tobytes())
        file.write(images.astype("<f4").tobytes())
    print(f"{path}: {len(images)} digits of {SIZE} × {SIZE} pixels")


if __name__ == "__main__":
    main()
