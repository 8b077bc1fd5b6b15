"""`set_printoptions`: the core's, and whether notebooks show tensors as HTML."""

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
    """Sets how tensors are printed; what is None stays.

    Args:
        precision: digits behind the point (4).
        threshold: elements of a tensor that is not summarised (1000).
        edgeitems: elements shown at each end of a summarised dimension (3).
        linewidth: characters of a line (80).
        profile: "default", "short" or "full", which the others override.
        sci_mode: whether in scientific notation; None: the values decide.
        html: whether notebooks show a tensor's shape, dtype and device, and a small picture of a matrix or an image, in place of the text alone;
            off unless asked for, as in PyTorch. `print` always prints text.

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
        # Front ends look for the method: a tensor has none unless it is wanted.
        _C.Tensor._repr_html_ = _as_html  # type: ignore[attr-defined]
    elif html is not None and "_repr_html_" in vars(_C.Tensor):
        del _C.Tensor._repr_html_  # type: ignore[attr-defined]
