"""Virtual devices for the whole run, so that every test sees several kinds of device on any machine."""
import os

os.environ.setdefault("NARU_VIRTUAL", "cuda:2,mps:1")
for hides in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
    os.environ.pop(hides, None)
# Kernels of devices are not kept: writing them takes as long as compiling (the test of the cache has one of its own).
os.environ.setdefault("NARU_CACHE_DIR", "")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import naru  # noqa: E402

DEVICES = ["cpu", "cuda:0", "mps:0"]


@pytest.fixture(params=DEVICES)
def device(request):
    """Every kind of device that this machine has, virtual ones included."""
    return request.param


@pytest.fixture(autouse=True)
def seeded():
    naru.manual_seed(0)
    np.random.seed(0)
