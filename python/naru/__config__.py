"""`torch.__config__`: what this build and its libraries are, as text."""

from __future__ import annotations

from . import _C
from .torch_version import NARU_VERSION, __version__


def show() -> str:
    """Returns the versions of naru and of the PyTorch interface, the processor's instruction sets, and the matrix product libraries, one per line.

    >>> print(naru.__config__.show().splitlines()[0].split(" ")[0])
    naru
    """
    return f"naru {NARU_VERSION} with the interface of PyTorch {__version__}\n  - CPU capability usage: {_C.isa_name().upper()}\n  - Libraries: {_C.matmul_libraries()}\n"


def parallel_info() -> str:
    """Returns how many threads cpu operators may use.

    >>> print(naru.__config__.parallel_info().split(":")[0])
    naru.get_num_threads()
    """
    return f"naru.get_num_threads(): {_C.get_num_threads()}\n"
