"""`torch.backends.cpu`"""

from __future__ import annotations


def get_cpu_capability() -> str:
    """The instruction set in use, as PyTorch names it.

    >>> naru.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    True
    """
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        return "DEFAULT"
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
