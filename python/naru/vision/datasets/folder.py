"""Datasets of files stored in one folder per class."""

from __future__ import annotations

import os
from typing import Any

from .. import _names
from .._pil import pillow
from .vision import StandardTransform, VisionDataset

__getattr__ = _names.module_getattr(__name__)

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename: str, extensions: Any) -> bool:
    """True if `filename` ends in `extensions` (a string or a tuple of strings), ignoring case.

    >>> naru.vision.datasets.folder.has_file_allowed_extension("cat.PNG", (".png", ".jpg"))
    True
    """
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename: str) -> bool:
    """True if `filename` has an image file extension (one of IMG_EXTENSIONS).

    >>> naru.vision.datasets.folder.is_image_file("cat.png"), naru.vision.datasets.folder.is_image_file("cat.txt")
    (True, False)
    """
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: Any) -> tuple[list[str], dict[str, int]]:
    """Returns the sorted subfolder names of `directory` and a dict from name to class index. Raises FileNotFoundError if there are none.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     os.mkdir(os.path.join(root, "dog")); os.mkdir(os.path.join(root, "cat"))
    ...     naru.vision.datasets.folder.find_classes(root)
    (['cat', 'dog'], {'cat': 0, 'dog': 1})
    """
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: place for place, name in enumerate(classes)}


def make_dataset(
    directory: Any, class_to_idx: dict[str, int] | None = None, extensions: Any = None, is_valid_file: Any = None, allow_empty: bool = False
) -> list[tuple[str, int]]:
    """Returns (path, class index) of each file in the class folders of `directory`, recursively, sorted by name. `class_to_idx`: maps class name to
    index; defaults to the result of `find_classes`.

    Exactly one of `extensions` and `is_valid_file` selects the files (ValueError otherwise). Raises FileNotFoundError if a class has no files,
    unless `allow_empty`.

    >>> import os, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     (pathlib.Path(root) / "cat").mkdir(); (pathlib.Path(root) / "cat" / "1.png").touch()
    ...     [(os.path.basename(path), c) for path, c in naru.vision.datasets.folder.make_dataset(root, extensions=".png")]
    [('1.png', 0)]
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    counts = is_valid_file if extensions is None else lambda path: has_file_allowed_extension(path, extensions)
    found = []
    empty = set(class_to_idx)
    for name in sorted(class_to_idx):
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            paths = [path for path in (os.path.join(folder, file) for file in sorted(files)) if counts(path)]
            found += [(path, class_to_idx[name]) for path in paths]
            if paths:
                empty.discard(name)
    if empty and not allow_empty:
        what = f" Supported extensions are: {extensions if isinstance(extensions, str) else ', '.join(extensions)}" if extensions else ""
        raise FileNotFoundError(f"Found no valid file for the classes {', '.join(sorted(empty))}.{what}")
    return found


def pil_loader(path: Any) -> Any:
    """Returns the image in the file `path` as RGB.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     path = os.path.join(root, "x.png")
    ...     naru.vision.io.write_png(naru.zeros(1, 2, 3, dtype=naru.uint8), path)
    ...     naru.vision.datasets.folder.pil_loader(path).size
    (3, 2)
    """
    with open(path, "rb") as file:
        return pillow().open(file).convert("RGB")


default_loader = pil_loader


class DatasetFolder(VisionDataset):
    """Pairs of (what `loader` returns for the file, class) for files root/CLASS/... . `extensions`, `is_valid_file` and `allow_empty` as for
    `make_dataset`. `transform`, `target_transform`: applied to sample and class.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     (pathlib.Path(root) / "cat").mkdir(); _ = (pathlib.Path(root) / "cat" / "1.txt").write_text("meow")
    ...     naru.vision.datasets.DatasetFolder(root, lambda path: pathlib.Path(path).read_text(), ".txt")[0]
    ('meow', 0)
    """

    def __init__(
        self,
        root: Any,
        loader: Any,
        extensions: Any = None,
        transform: Any = None,
        target_transform: Any = None,
        is_valid_file: Any = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        classes, class_to_idx = self.find_classes(self.root)
        self.loader = loader
        self.extensions = extensions
        self.classes = classes
        self.class_to_idx = class_to_idx
        self.samples = self.make_dataset(self.root, class_to_idx, extensions, is_valid_file, allow_empty)
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(directory: Any, class_to_idx: Any, extensions: Any = None, is_valid_file: Any = None, allow_empty: bool = False) -> Any:
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: Any) -> tuple[list[str], dict[str, int]]:
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        sample = self.loader(path)
        return StandardTransform(self.transform, self.target_transform)(sample, target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pairs of (RGB PIL image, class) for the images `root`/CLASS/... . `transform`, `target_transform`: applied to image and class; `loader`,
    `is_valid_file` and `allow_empty` as for `DatasetFolder`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     os.mkdir(os.path.join(root, "cat"))
    ...     naru.vision.io.write_png(naru.zeros(1, 2, 3, dtype=naru.uint8), os.path.join(root, "cat", "1.png"))
    ...     data = naru.vision.datasets.ImageFolder(root, transform=naru.vision.transforms.ToTensor())
    ...     data.classes, data[0][0].shape, data[0][1]
    (['cat'], torch.Size([3, 2, 3]), 0)
    """

    def __init__(
        self,
        root: Any,
        transform: Any = None,
        target_transform: Any = None,
        loader: Any = default_loader,
        is_valid_file: Any = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
