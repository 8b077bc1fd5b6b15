"""The base class of image datasets."""

from __future__ import annotations

import os
from typing import Any

from ...utils.data import Dataset
from .. import _names

__getattr__ = _names.module_getattr(__name__)


class StandardTransform:
    """Combines `transform` for inputs and `target_transform` for targets into one function of (input, target).

    >>> both = naru.vision.datasets.vision.StandardTransform(lambda x: x / 255, lambda label: label + 1)
    >>> both(naru.tensor([51.0]), 3)
    (tensor([0.2000]), 4)
    """

    def __init__(self, transform: Any = None, target_transform: Any = None) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        return (
            input if self.transform is None else self.transform(input),
            target if self.target_transform is None else self.target_transform(target),
        )

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        for head, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if transform is not None:
                first, *rest = repr(transform).splitlines()
                lines += [head + first, *(" " * len(head) + line for line in rest)]
        return "\n".join(lines)


class VisionDataset(Dataset):
    """Base class of datasets in the folder `root`. Pass `transforms` of (input, target), or separate `transform` and `target_transform`; passing
    both raises ValueError.

    >>> class One(naru.vision.datasets.VisionDataset):
    ...     def __len__(self): return 1
    ...     def __getitem__(self, i): return self.transforms("picture", 3)
    >>> One(transform=str.upper)[0]
    ('PICTURE', 3)
    """

    def __init__(self, root: Any = None, transforms: Any = None, transform: Any = None, target_transform: Any = None) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        if self.transforms is not None:
            lines.append(repr(self.transforms))  # torchvision indents only the first line
        return "\n".join([f"Dataset {type(self).__name__}", *(" " * 4 + line for line in lines)])


def refuse_missing(name: str, missing: list[str], folder: Any, more: str = "") -> None:
    """Returns the RuntimeError for the files `missing` of the dataset `name` in `folder`; naru downloads nothing. `more`: text to append.

    >>> try:
    ...     naru.vision.datasets.vision.refuse_missing("MNIST", ["labels"], "data")
    ... except RuntimeError as error:
    ...     print(str(error).split(" in ")[0])
    Dataset not found: MNIST needs labels
    """
    raise RuntimeError(
        f"Dataset not found: {name} needs {', '.join(missing)} in {os.path.abspath(folder)}, and naru downloads nothing (download=True only "
        f"takes what is there): put the files there yourself{more}"
    )
