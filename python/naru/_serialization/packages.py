"""User-defined storage locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# By priority.
_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]) -> None:
    """Registers a kind of storage location, which is tried before the built-in ones.

    Args:
        priority: smaller ones are tried first.
        tagger: returns the name of a storage's location, which is written to the file, or None.
        deserializer: given a storage and a location name, returns the storage at that location, or None.

    >>> naru.serialization.register_package(30, lambda storage: None, lambda storage, location: storage if location == "cellar" else None)
    >>> naru.serialization.default_restore_location(naru.ones(1).untyped_storage(), "cellar").nbytes()
    4
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def tag_by_packages(storage: Any) -> str | None:
    """The location name that a registered package gives to a storage."""
    return next((tag for _, tagger, _ in _packages if (tag := tagger(storage)) is not None), None) if _packages else None


def restored_by_packages(storage: Any, location: str) -> Any:
    """The storage that a registered package returns for a location; None if no package handles it."""
    return next((found for _, _, restore in _packages if (found := restore(storage, location)) is not None), None) if _packages else None
