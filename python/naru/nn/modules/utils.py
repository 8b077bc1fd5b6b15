"""`torch.nn.modules.utils`: arguments as tuples, and state dicts without a prefix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import _missing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (_ntuple(i + 1, name) for i, name in enumerate(("_single", "_pair", "_triple", "_quadruple")))


def _reverse_repeat_tuple(t: Iterable, n: int) -> tuple:
    return tuple(x for x in reversed(list(t)) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix, such as "module.", from the keys of a state dict and of its metadata, in place.

    Args:
        state_dict: the state dict, changed in place.

    >>> import naru
    >>> state = {"module.weight": 1, "bias": 2}
    >>> naru.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for names in (state_dict, getattr(state_dict, "_metadata", {})):
        for key in list(names):
            if key and (key.startswith(prefix) or (names is not state_dict and key == prefix.replace(".", ""))):
                names[key[len(prefix) :]] = names.pop(key)


__getattr__ = _missing.module_getattr(__name__)
