"""Helpers for the tests of the loader's workers: datasets, loaders, and process inspection."""
import collections
import os
import time

import naru
import naru as torch
from naru.utils import data as D
import numpy as np
import pytest

HOME = os.path.dirname(os.path.dirname(os.path.abspath(naru.__file__)))
# With the address sanitizer, a program that forks must have one thread, and so no virtual devices (./run sanitize python).
with_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no device cuda, not even a virtual one (NARU_VIRTUAL)")
CONTEXTS = ["fork", "spawn", "forkserver"]
Point = collections.namedtuple("Point", "x y")


class Mixed(D.Dataset):
    """A bit of everything, small and large."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return {
            "large": torch.arange(20000).reshape(2, 100, 100) + i,
            "small": torch.ones(2, dtype=torch.bfloat16) * i,
            "array": np.full((90, 90), i, dtype=np.float32),
            "point": Point(i, [float(i), f"text {i}"]),
            "empty": torch.zeros(0, 3),
        }


class Call(D.Dataset):
    """Samples by a function of the number."""

    def __init__(self, function, size=8):
        self.function, self.size = function, size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return self.function(i)


def loader(function, size=8, **options):
    return D.DataLoader(Call(function, size), **{"num_workers": 2, "multiprocessing_context": "fork", **options})


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def gone(pid):
    """Whether a process has ended (one that waits to be reaped counts)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass within two minutes"
        time.sleep(0.01)


def plain(samples):
    return samples


def killed(how):
    def sample(i):
        if i == 5:
            how()
        return i

    return sample
