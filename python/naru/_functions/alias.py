"""`as_torch`: a program that begins with naru, and goes on with `import torch`."""

from __future__ import annotations


def as_torch() -> None:
    """From here on `import torch` means naru in this process, and in those that it starts by `os.fork` or `multiprocessing`.

    What `naru run` does for a whole script, for notebooks and for programs that can't be started by it. Raises RuntimeError where another
    torch is loaded.

    >>> naru.as_torch()  # doctest: +SKIP
    >>> import torch     # doctest: +SKIP
    >>> torch is naru    # doctest: +SKIP
    """
    from .._command.runner import install_torch_alias

    install_torch_alias()
