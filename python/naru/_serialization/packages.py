"""Kinds of places for storages that a program has registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# By priority.
_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]) -> None:
    """Registers a kind of place for storages, which is asked before those that naru knows.

    Args:
        priority: smaller ones are asked first.
        tagger: gives the name of a storage's place, which a file then has, or None.
        deserializer: gives, for a storage and the name of its place, the storage there, or None.

    >>> naru.serialization.register_package(30, lambda storage: None, lambda storage, location: storage if location == "cellar" else None)
    >>> naru.serialization.default_restore_location(naru.ones(1).untyped_storage(), "cellar").nbytes()
    4
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def tag_by_packages(storage: Any) -> str | None:
    """The name that a registered package gives a storage's place."""
    return next((tag for _, tagger, _ in _packages if (tag := tagger(storage)) is not None), None) if _packages else None


def restored_by_packages(storage: Any, location: str) -> Any:
    """What a registered package makes of a storage; None where there is none for it."""
    return next((found for _, _, restore in _packages if (found := restore(storage, location)) is not None), None) if _packages else None
