"""`as_torch`: for programs that import naru first, and then use `import torch`."""

from __future__ import annotations


def as_torch() -> None:
    """Makes `import torch` mean naru in this process, and in those that it starts with `os.fork` or `multiprocessing`.

    `naru run` does this for a whole script; use this for notebooks and programs that cannot be started with it. Raises RuntimeError if
    another torch is loaded.

    >>> naru.as_torch()  # doctest: +SKIP
    >>> import torch     # doctest: +SKIP
    >>> torch is naru    # doctest: +SKIP
    """
    from .._command.runner import install_torch_alias

    install_torch_alias()
