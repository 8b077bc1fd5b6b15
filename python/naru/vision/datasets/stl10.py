"""STL-10, in its binary format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _names
from .._pil import pillow
from .vision import StandardTransform, VisionDataset, refuse_missing

__getattr__ = _names.module_getattr(__name__)

_BYTES = 3 * 96 * 96  # of a picture


class STL10(VisionDataset):
    """STL-10: pairs of (96 x 96 RGB PIL image, label 0..9, or -1 without one), after `transform` and `target_transform`. `split` is "train", "test",
    "unlabeled" or "train+unlabeled"; `folds` (0..9) takes one of the ten predefined parts of the training set.

    The unpacked files (train_X.bin, train_y.bin, ...) are expected in `root`/stl10_binary. Raises RuntimeError if those of the split are missing:
    nothing is downloaded, and `download` is ignored. ValueError for other splits and folds.

    >>> import pathlib, tempfile
    >>> STL10 = naru.vision.datasets.STL10
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = pathlib.Path(root, STL10.base_folder); folder.mkdir()
    ...     _ = (folder / "test_X.bin").write_bytes(bytes(2 * 3 * 96 * 96)), (folder / "test_y.bin").write_bytes(bytes([10, 1]))
    ...     data = STL10(root, split="test")
    >>> len(data), data[0][0].size, data[0][1]
    (2, (96, 96), 9)
    """

    base_folder = "stl10_binary"
    filename = "stl10_binary.tar.gz"
    class_names_file = "class_names.txt"
    folds_list_file = "fold_indices.txt"
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self, root: Any, split: str = "train", folds: int | None = None, transform: Any = None, target_transform: Any = None, download: bool = False
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        if split not in self.splits:
            raise ValueError(f"STL10: wanted split to be one of {', '.join(map(repr, self.splits))}, got {split!r}")
        if folds is not None and folds not in range(10):
            raise ValueError(f"STL10: wanted folds to be None or an int from 0 to 9, got {folds!r}")
        self.split, self.folds = split, folds
        self._folder = os.path.join(self.root, self.base_folder)
        self._check_files()
        pixels, labels = zip(*(self._read(part) for part in split.split("+")))
        self.data, self.labels = np.concatenate(pixels), np.concatenate(labels)
        names = os.path.join(self._folder, self.class_names_file)
        if os.path.isfile(names):
            with open(names, encoding="utf-8") as file:
                self.classes = file.read().splitlines()

    def _check_files(self) -> None:
        wanted = [f"{part}_X.bin" for part in self.split.split("+")] + [f"{part}_y.bin" for part in self.split.split("+") if part != "unlabeled"]
        wanted += [self.folds_list_file] if self.folds is not None and "train" in self.split else []
        missing = [name for name in wanted if not os.path.isfile(os.path.join(self._folder, name))]
        if missing:
            refuse_missing("STL10", missing, self._folder, f"; {self.filename} has them: tar -xzf {self.filename} -C {self.root}")

    def _read(self, part: str) -> tuple[Any, Any]:
        """The pictures and labels of a part; of "train", those of the fold."""
        path = os.path.join(self._folder, f"{part}_X.bin")
        pixels = np.fromfile(path, np.uint8)
        if part == "unlabeled":
            labels = np.full(pixels.size // _BYTES, -1, np.int64)
        else:
            labels = np.fromfile(os.path.join(self._folder, f"{part}_y.bin"), np.uint8).astype(np.int64) - 1
        if pixels.size != len(labels) * _BYTES:
            wanted = len(labels) * _BYTES
            raise ValueError(f"{path} is damaged: it should have {_BYTES} bytes for each picture, {wanted} in all, and has {pixels.size}")
        pixels = pixels.reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2)  # a picture's bytes run down its columns
        if part == "train" and self.folds is not None:
            with open(os.path.join(self._folder, self.folds_list_file), encoding="utf-8") as file:
                chosen = np.array(file.read().splitlines()[self.folds].split(), np.int64)
            pixels, labels = pixels[chosen], labels[chosen]
        return pixels, labels

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = pillow().fromarray(np.ascontiguousarray(self.data[index].transpose(1, 2, 0)))
        return StandardTransform(self.transform, self.target_transform)(image, int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"
