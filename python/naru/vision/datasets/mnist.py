"""MNIST and other datasets in its format: IDX files, plain or gzip-compressed."""

from __future__ import annotations

import gzip
import os
from typing import Any

import numpy as np

import naru

from .. import _names
from .._pil import pillow
from .vision import StandardTransform, VisionDataset, refuse_missing

__getattr__ = _names.module_getattr(__name__)

# The third byte of an IDX file gives its element type; elements are big-endian.
_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_sn3_pascalvincent_tensor(path: Any, strict: bool = True) -> Any:
    """Returns the tensor stored in the IDX file `path`. Raises ValueError if it is not an IDX file or, with `strict`, if its length differs from
    what its header says.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     path = pathlib.Path(root, "labels")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))  # bytes, of one dimension, of size 2
    ...     naru.vision.datasets.mnist.read_sn3_pascalvincent_tensor(path)
    tensor([5, 7], dtype=torch.uint8)
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rb") as file:
        data = file.read()
    dims = data[3] if len(data) >= 4 else 0
    if len(data) < 4 or data[0] != 0 or data[1] != 0 or data[2] not in _DTYPES or not 1 <= dims <= 3 or len(data) < 4 + 4 * dims:
        raise ValueError(f"{path} is no IDX file: it has to begin with 0, 0, a type of {sorted(_DTYPES)} and 1 to 3 dimensions")
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(dims)]
    dtype = np.dtype(_DTYPES[data[2]])
    wanted, found = int(np.prod(shape, dtype=object)), (len(data) - 4 - 4 * dims) // dtype.itemsize
    if found < wanted or (strict and found != wanted):
        raise ValueError(f"{path} says that it holds {' x '.join(map(str, shape))} numbers, and holds {found}: it is cut off or damaged")
    array = np.frombuffer(data, dtype=dtype, count=wanted, offset=4 + 4 * dims).reshape(shape)
    return naru.from_numpy(array.astype(dtype.newbyteorder("=")))


class MNIST(VisionDataset):
    """MNIST digits: pairs of (28 x 28 greyscale PIL image, label 0..9), after `transform` and `target_transform`. The training set, or the test set
    if `train` is False.

    Files are expected in `root`/MNIST/raw: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, or the
    same names with .gz. Raises RuntimeError if they are missing: nothing is downloaded, and `download` is ignored.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     raw = pathlib.Path(root, "MNIST", "raw"); raw.mkdir(parents=True)
    ...     for part in ("train", "t10k"):
    ...         _ = (raw / f"{part}-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(784))
    ...         _ = (raw / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]))
    ...     data = naru.vision.datasets.MNIST(root)
    >>> data[0][0].size, data.classes[data[0][1]]
    ((28, 28), '5 - five')
    """

    classes = [
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine",
    ]  # fmt: skip

    def __init__(self, root: Any, train: bool = True, transform: Any = None, target_transform: Any = None, download: bool = False) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        missing = [name for name in self._files(True) + self._files(False) if self._find(name) is None]
        if missing:
            refuse_missing(type(self).__name__, missing, self.raw_folder, " (each may have .gz behind its name)")
        images, labels = (read_sn3_pascalvincent_tensor(self._find(name)) for name in self._files(train))
        self._check(images, labels)
        self.data, self.targets = images, labels.long()

    @staticmethod
    def _files(train: bool) -> list[str]:
        part = "train" if train else "t10k"
        return [f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"]

    def _find(self, name: str) -> str | None:
        paths = [os.path.join(self.raw_folder, name + ending) for ending in ("", ".gz")]
        return next((path for path in paths if os.path.isfile(path)), None)

    def _check(self, images: Any, labels: Any) -> None:
        if images.dtype != naru.uint8 or images.dim() != 3:
            raise ValueError(
                f"images of {type(self).__name__} are bytes in 3 dimensions; the file has {images.dtype}, {images.dim()} dimensions"
            )
        if labels.dtype != naru.uint8 or labels.dim() != 1 or labels.shape[0] != images.shape[0]:
            raise ValueError(
                f"labels of {type(self).__name__} are bytes, one an image ({images.shape[0]}); the file has {labels.dtype}, {list(labels.shape)}"
            )

    @property
    def raw_folder(self) -> str:
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def processed_folder(self) -> str:
        return os.path.join(self.root, type(self).__name__, "processed")

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = pillow().fromarray(self.data[index].numpy()), int(self.targets[index])
        return StandardTransform(self.transform, self.target_transform)(image, target)

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train is True else 'Test'}"


class FashionMNIST(MNIST):
    """FashionMNIST: images of clothing in the MNIST format, in `root`/FashionMNIST/raw. `train`, `transform`, `target_transform` and `download` as
    for MNIST.

    >>> naru.vision.datasets.FashionMNIST.classes[:3]
    ['T-shirt/top', 'Trouser', 'Pullover']
    """

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """KMNIST: handwritten Japanese characters in the MNIST format, in `root`/KMNIST/raw. `train`, `transform`, `target_transform` and `download` as
    for MNIST.

    >>> naru.vision.datasets.KMNIST.classes[:3]
    ['o', 'ki', 'su']
    """

    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
