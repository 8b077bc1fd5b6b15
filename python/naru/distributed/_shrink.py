"""Groups that go on without some of their ranks."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import _C
from . import _groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._groups import ProcessGroup
    from ._stores import Store

SHRINK_DEFAULT, SHRINK_ABORT = 0, 1

_PATIENCE = timedelta(seconds=20)  # with a store whose process may be gone


def _checked(ranks_to_exclude: Any, shrink_flags: Any, of: ProcessGroup) -> list[int]:
    if not isinstance(ranks_to_exclude, list):
        raise TypeError(f"shrink_group: ranks_to_exclude must be a list of ranks, such as [1, 3], got {type(ranks_to_exclude).__name__}")
    if not ranks_to_exclude:
        raise ValueError("shrink_group: ranks_to_exclude is empty; it must name at least one rank")
    if not isinstance(shrink_flags, int) or shrink_flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise ValueError(f"shrink_group: shrink_flags must be SHRINK_DEFAULT ({SHRINK_DEFAULT}) or SHRINK_ABORT ({SHRINK_ABORT}), got {shrink_flags}")
    if of.size() <= 1:
        raise ValueError(f"shrink_group: a group of {of.size()} can't be shrunk; it must have at least 2 ranks")
    for i, rank in enumerate(ranks_to_exclude):
        if not isinstance(rank, int):
            raise TypeError(f"shrink_group: ranks_to_exclude must hold integers, got {type(rank).__name__} at {i}")
        if not 0 <= rank < of.size():
            raise ValueError(f"shrink_group: rank {rank} in ranks_to_exclude is not a rank of the group, 0 to {of.size() - 1}")
        if rank in ranks_to_exclude[:i]:
            raise ValueError(f"shrink_group: rank {rank} is twice in ranks_to_exclude")
    if len(ranks_to_exclude) == of.size():
        raise ValueError(f"shrink_group: ranks_to_exclude has all {of.size()} ranks; at least one must remain")
    if of.rank() in ranks_to_exclude:
        raise RuntimeError(f"shrink_group: this is rank {of.rank()}, which is to be excluded: only those that remain call this")
    return sorted(ranks_to_exclude)


@contextlib.contextmanager
def _impatient(store: Store) -> Iterator[None]:
    """The ranks do not wait as long as usual for a store that may have ended with its rank."""
    while (below := getattr(store, "underlying_store", None)) is not None:
        store = below
    before = store.timeout
    store.set_timeout(min(before, _PATIENCE))
    try:
        yield
    finally:
        store.set_timeout(before)


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = SHRINK_DEFAULT, pg_options: Any = None) -> Any:
    """Makes a group of the ranks that remain, in place of `group`, which is destroyed. They all call this, with the same ranks; the others do not.

    So ranks go on after one has died, on one host. Ranks joined by MPI can't (NotImplementedError). Rank 0 of the program has the store through which they
    meet, unless it is a file: without it they can't.

    Args:
        ranks_to_exclude: ranks of `group`.
        group: None: the default one. All other groups are destroyed with it, and ranks are renumbered.
        shrink_flags: SHRINK_ABORT: operations in progress are ended with an error first. SHRINK_DEFAULT: they are waited for.
        pg_options: ignored.

    >>> naru.distributed.init_process_group("fake", rank=0, world_size=4)
    >>> naru.distributed.shrink_group([1, 3]).size(), naru.distributed.get_world_size()
    (2, 2)
    >>> naru.distributed.destroy_process_group()
    """
    of = _groups.world() if group is None else group
    if not isinstance(of, _groups.ProcessGroup):
        raise ValueError("shrink_group: this process is not a member of the group")
    excluded = _checked(ranks_to_exclude, shrink_flags, of)
    if of._engine.transport() not in ("shared memory", "threads", "fake"):
        raise NotImplementedError(
            f"shrink_group: ranks joined by {of._engine.transport()} can't go on without others, because it can't be used after a death; "
            "start the job anew (torchrun --max_restarts), or use shared memory, on one host"
        )
    is_default, store = of is _groups.world(), _groups._World.store
    assert store is not None
    if shrink_flags == SHRINK_ABORT:
        of.abort()
    remaining = [rank for rank in range(of.size()) if rank not in excluded]
    # The global ranks of the default group are its own.
    ranks = list(range(len(remaining))) if is_default else [of.ranks[rank] for rank in remaining]
    own, backend, timeout = remaining.index(of.rank()), of.backend, timedelta(milliseconds=of._engine.timeout())
    name = f"{of.group_name}/without_{'_'.join(map(str, excluded))}"
    desc = "default:shrunken" if is_default else f"{of.group_name}:shrunk"
    _groups.destroy_process_group(of)
    try:
        with _impatient(store):
            made = _groups._made(store, own, ranks, backend, timeout, desc, name)
    except _C._DistNetworkError as error:
        raise _C._DistNetworkError(f"shrink_group: the ranks that remain can't meet, because the store has ended with its rank: {error}") from None
    if is_default:
        _groups._World.default, _groups._World.store = made, store
    return made
