"""`torchvision.datasets` from files on this machine. naru downloads nothing: `download=True` takes what is there, and where
something is missing the error says which files belong where."""

from __future__ import annotations

from .. import _names
from .cifar import CIFAR10, CIFAR100
from .fakedata import FakeData
from .folder import DatasetFolder, ImageFolder
from .mnist import KMNIST, MNIST, FashionMNIST
from .vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100", "KMNIST", "MNIST", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "VisionDataset"]

__getattr__ = _names.module_getattr(__name__)
