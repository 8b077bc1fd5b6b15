"""Helpers for tests that compare bits: the bits of a tensor, and modes of execution."""
import contextlib

import naru
import numpy as np
from naru import _C


def bits(t):
    """What a tensor holds, bit by bit; one NaN is as good as another."""
    a = (t.float() if t.dtype == naru.bfloat16 else t).detach().cpu().contiguous().numpy()
    if a.dtype.kind == "f" and np.isnan(a).any():
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    return str(t.dtype), a.shape, a.tobytes()


@contextlib.contextmanager
def switched(setter, value):
    """setter(value), which returns what was set before, for the length of a block."""
    before = setter(value)
    try:
        yield
    finally:
        setter(before)


def unfused():
    """Inside, every operator is run by itself, nothing is deferred."""
    return switched(_C.set_fusion, False)
