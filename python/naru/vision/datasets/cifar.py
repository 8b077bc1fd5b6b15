"""CIFAR-10 and CIFAR-100, in their Python (pickle) format."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from .. import _names
from .._pil import pillow
from .vision import StandardTransform, VisionDataset, refuse_missing

__getattr__ = _names.module_getattr(__name__)

# The only globals that a pickled dictionary of arrays needs. A file that names any other is refused.
_ALLOWED = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    *((core, name) for core in ("numpy.core.multiarray", "numpy._core.multiarray") for name in ("_reconstruct", "scalar")),
    *((core, "_frombuffer") for core in ("numpy.core.numeric", "numpy._core.numeric")),
    ("_codecs", "encode"),
}


_CORE = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a file of CIFAR: it is not one, or was tampered with")
        # The files use module names from older NumPy versions.
        return super().find_class(module.replace("numpy.core", _CORE), name)


def _read(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        entry = _Unpickler(file, encoding="latin1").load()
    if not isinstance(entry, dict):
        raise ValueError(f"{path} is no file of CIFAR: it holds no dictionary")
    return entry


class CIFAR10(VisionDataset):
    """CIFAR-10: pairs of (32 x 32 RGB PIL image, label 0..9), after `transform` and `target_transform`. The training set, or the test set if
    `train` is False.

    The unpacked files (data_batch_1 .. 5, test_batch, batches.meta) are expected in `root`/cifar-10-batches-py. Raises RuntimeError if they are
    missing: nothing is downloaded, and `download` is ignored.

    >>> import pathlib, pickle, tempfile, numpy as np
    >>> CIFAR10 = naru.vision.datasets.CIFAR10
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = pathlib.Path(root, CIFAR10.base_folder); folder.mkdir()
    ...     for name in CIFAR10.train_list + CIFAR10.test_list:
    ...         _ = (folder / name).write_bytes(pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [3]}))
    ...     _ = (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["airplane", "automobile", "bird", "cat"]}))
    ...     data = CIFAR10(root)
    >>> len(data), data[0][0].size, data.classes[data[0][1]]
    (5, (32, 32), 'cat')
    """

    base_folder = "cifar-10-batches-py"
    filename = "cifar-10-python.tar.gz"
    train_list = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"]
    test_list = ["test_batch"]
    meta = {"filename": "batches.meta", "key": "label_names"}

    def __init__(self, root: Any, train: bool = True, transform: Any = None, target_transform: Any = None, download: bool = False) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        folder = os.path.join(self.root, self.base_folder)
        names = [*self.train_list, *self.test_list, self.meta["filename"]]
        missing = [name for name in names if not os.path.isfile(os.path.join(folder, name))]
        if missing:
            refuse_missing(type(self).__name__, missing, folder, f"; {self.filename} has them: tar -xzf {self.filename} -C {self.root}")
        parts, self.targets = [], []
        for name in self.train_list if train else self.test_list:
            path = os.path.join(folder, name)
            entry = _read(path)
            labels = entry.get("labels", entry.get("fine_labels"))
            pixels = entry.get("data")
            if labels is None or not isinstance(pixels, np.ndarray) or pixels.shape != (len(labels), 3072):
                raise ValueError(f"{path} is damaged: it should have 3072 bytes of data for each of its labels")
            parts.append(pixels)
            self.targets.extend(int(label) for label in labels)
        self.data = np.ascontiguousarray(np.vstack(parts).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.classes = list(_read(os.path.join(folder, self.meta["filename"]))[self.meta["key"]])
        self.class_to_idx = {name: place for place, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = pillow().fromarray(self.data[index]), self.targets[index]
        return StandardTransform(self.transform, self.target_transform)(image, target)

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train is True else 'Test'}"


class CIFAR100(CIFAR10):
    """CIFAR-100: pairs of (32 x 32 RGB PIL image, label 0..99), from the files train, test and meta in `root`/cifar-100-python. `train`,
    `transform`, `target_transform` and `download` as for CIFAR10.

    >>> naru.vision.datasets.CIFAR100.train_list, naru.vision.datasets.CIFAR100.base_folder
    (['train'], 'cifar-100-python')
    """

    base_folder = "cifar-100-python"
    filename = "cifar-100-python.tar.gz"
    train_list = ["train"]
    test_list = ["test"]
    meta = {"filename": "meta", "key": "fine_label_names"}
