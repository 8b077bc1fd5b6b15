"""torch.signal.windows: window functions, symmetric or, with sym=False, periodic.

>>> import naru as torch
>>> torch.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
>>> torch.signal.windows.hann(4, sym=False)
tensor([0.0000, 0.5000, 1.0000, 0.5000])
"""

from .._C import (
    signal_bartlett as bartlett,
    signal_blackman as blackman,
    signal_cosine as cosine,
    signal_exponential as exponential,
    signal_gaussian as gaussian,
    signal_general_cosine as general_cosine,
    signal_general_hamming as general_hamming,
    signal_hamming as hamming,
    signal_hann as hann,
    signal_kaiser as kaiser,
    signal_nuttall as nuttall,
)

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]
