"""`torch.fx.traceback`: what is put into the `meta` of the nodes that are recorded within a block."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from .. import _missing

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["annotate", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta"]


class _Here(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserved = False


_here = _Here()


def has_preserved_node_meta() -> bool:
    """Whether `preserve_node_meta` is active.

    >>> naru.fx.traceback.has_preserved_node_meta()
    False
    """
    return _here.preserved


def get_current_meta() -> dict[str, Any]:
    """What new nodes get in their `meta`.

    >>> naru.fx.traceback.get_current_meta()
    {}
    """
    return _here.meta


@contextlib.contextmanager
def _with(meta: dict[str, Any], preserved: bool) -> Iterator[None]:
    before = _here.meta, _here.preserved
    _here.meta, _here.preserved = meta, preserved
    try:
        yield
    finally:
        _here.meta, _here.preserved = before


def preserve_node_meta(enable: bool = True) -> Any:
    """Within `with`, nodes that an Interpreter records anew keep the `meta` of those it runs (if `enable`).

    >>> with naru.fx.traceback.preserve_node_meta():
    ...     naru.fx.traceback.has_preserved_node_meta()
    True
    """
    return _with(dict(_here.meta) if enable else _here.meta, enable)


def set_current_meta(node: Any, pass_name: str = "") -> Any:
    """Within `with`, new nodes get the `meta` of `node`, if `preserve_node_meta` is active.

    >>> node = naru.fx.Graph().placeholder("x")
    >>> node.meta["place"] = 1
    >>> with naru.fx.traceback.preserve_node_meta(), naru.fx.traceback.set_current_meta(node):
    ...     naru.fx.traceback.get_current_meta()
    {'place': 1}
    """
    return _with(dict(node.meta), True) if _here.preserved and node.meta else contextlib.nullcontext()


def annotate(annotation_dict: dict[str, Any]) -> Any:
    """Within `with`, new nodes get the entries of `annotation_dict` in `meta["custom"]`.

    >>> with naru.fx.traceback.annotate({"stage": 1}):
    ...     naru.fx.traceback.get_current_meta()
    {'custom': {'stage': 1}}
    """
    return _with({**_here.meta, "custom": {**_here.meta.get("custom", {}), **annotation_dict}}, _here.preserved)


__getattr__ = _missing.module_getattr(__name__)
