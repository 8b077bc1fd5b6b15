"""`set_printoptions`: the core's options, and whether notebooks show tensors as HTML."""

from __future__ import annotations

from typing import Any

from .. import _C


def _as_html(x: Any) -> str:
    from .._notebook.html import tensor_html

    return tensor_html(x)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: float | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
    *,
    html: bool | None = None,
) -> None:
    """Sets how tensors are printed; options that are None do not change.

    Args:
        precision: digits after the decimal point (4).
        threshold: number of elements above which a tensor is summarized (1000).
        edgeitems: elements shown at each end of a summarized dimension (3).
        linewidth: characters per line (80).
        profile: "default", "short" or "full", which the other options override.
        sci_mode: whether to use scientific notation; None: depends on the values.
        html: whether notebooks show a tensor's shape, dtype and device, and a thumbnail of a matrix or an image, instead of the text alone;
            off by default, as in PyTorch. `print` always prints text.

    >>> naru.set_printoptions(precision=2); naru.tensor([1 / 3])
    tensor([0.33])
    >>> naru.set_printoptions(profile="default")
    >>> naru.set_printoptions(html=True)
    >>> "(2, 3)" in naru.zeros(2, 3)._repr_html_()
    True
    >>> naru.set_printoptions(html=False)
    """
    _C.set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)
    if html:
        # Front ends check for the method, so it exists only if it is enabled.
        _C.Tensor._repr_html_ = _as_html  # type: ignore[attr-defined]
    elif html is not None and "_repr_html_" in vars(_C.Tensor):
        del _C.Tensor._repr_html_  # type: ignore[attr-defined]
