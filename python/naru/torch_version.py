"""`torch.torch_version`: the version of naru, with PyTorch's comparison rules.

The public part is the PyTorch version whose semantics naru follows, the local part is naru's own version.
"""

from __future__ import annotations

from ._C import _version

__all__ = ["TorchVersion", "__version__"]

NARU_VERSION = _version
TORCHVISION_VERSION = "0.25.0+naru"  # of torchvision, in whose place naru.vision may be

_PRE_ORDER = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "rc": 3, "c": 3, "": 4, "post": 5}


def _parse(text: str) -> tuple | None:
    """Parses the version `text` into a key that sorts as in PEP 440; None if it is not a version."""
    import re

    match = re.fullmatch(
        r"\s*v?(\d+(?:\.\d+)*)[._-]?(?:(dev|alpha|beta|a|b|rc|c|post)[._-]?(\d*))?[\w.]*?(?:\+([a-z0-9]+(?:[._-][a-z0-9]+)*))?\s*",
        text.lower(),
    )
    if match is None:
        return None
    release = [int(part) for part in match[1].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    local = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[._-]", match[4] or "") if p)
    return tuple(release), _PRE_ORDER[match[2] or ""], int(match[3] or 0), local


class TorchVersion(str):
    """A `str` that compares as a version, with strings, tuples and other versions.

    >>> v = TorchVersion("2.15.0+naru0.1.0")
    >>> v >= "1.8", v >= (2, 0), v < "2.9", v.startswith("2.15")
    (True, True, False, True)
    """

    __slots__ = ()

    def _keys(self, other: object) -> tuple:
        if isinstance(other, (tuple, list)):
            other = ".".join(str(part) for part in other)
        else:
            other = str(other)
        mine, theirs = _parse(str.__str__(self)), _parse(other)
        if mine is None or theirs is None:
            return str.__str__(self), other
        return mine, theirs

    def __lt__(self, other: object) -> bool:
        a, b = self._keys(other)
        return a < b

    def __le__(self, other: object) -> bool:
        a, b = self._keys(other)
        return a <= b

    def __gt__(self, other: object) -> bool:
        a, b = self._keys(other)
        return a > b

    def __ge__(self, other: object) -> bool:
        a, b = self._keys(other)
        return a >= b

    def __eq__(self, other: object) -> bool:
        a, b = self._keys(other)
        return a == b

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)


__version__ = TorchVersion("2.15.0+naru" + NARU_VERSION)
