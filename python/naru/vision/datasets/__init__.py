"""`torchvision.datasets`, read from local files. naru downloads nothing: `download=True` uses the files that are present, and the error for missing
files lists what belongs where."""

from __future__ import annotations

from .. import _names
from .cifar import CIFAR10, CIFAR100
from .fakedata import FakeData
from .folder import DatasetFolder, ImageFolder
from .mnist import KMNIST, MNIST, FashionMNIST
from .stl10 import STL10
from .vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100", "KMNIST", "MNIST", "STL10", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "VisionDataset"]

__getattr__ = _names.module_getattr(__name__)
