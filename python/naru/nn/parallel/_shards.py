"""DistributedDataParallel(shards=S): a step over S fixed shards of the batch, with the same bits for any number of ranks.

Each shard has its own forward and backward, random numbers and buffers. Gradients are added by one binary tree over the shards: a rank adds the
subtrees that are complete in its range while it goes on, and all_reduce_shards (src/distributed/ordered.h) does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from ..._buckets import views_of
from ..._shards import shards_of
from ...autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ... import Tensor

_GOLDEN = 0x9E3779B97F4A7C15  # odd, so that no two shards of a step have one seed


class TreeSum:
    """Adds what this rank's shards have, in the tree's order; keeps at most one sum for each level of the tree."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self.nodes: list[tuple[int, int, list[Tensor]]] = []  # the first shard, how many, their sums

    @no_grad()
    def add(self, shard: int, values: list[Tensor]) -> None:
        """Adds a shard's values; shards come in order. The tensors are written to."""
        first, count = shard, 1
        while self.nodes:
            before, size, sums = self.nodes[-1]
            if not _C._is_tree_node(before, size + count, self._shards):  # then its halves are these two nodes
                break
            for total, value in zip(sums, values, strict=True):
                total.add_(value)
            first, count, values = before, size + count, sums
            self.nodes.pop()
        self.nodes.append((first, count, values))

    def mean(self, engine: Any) -> list[Tensor]:
        """The means over all shards, on all ranks."""
        from ...distributed import ReduceOp

        for each in zip(*(values for _, _, values in self.nodes), strict=True):
            engine.all_reduce_shards(list(each), self._shards, ReduceOp.AVG.value, False)
        return self.nodes[0][2]


def part_of(value: Any, index: int, count: int) -> Any:
    """Every count-th row of the tensors in a value, from `index` on: what DistributedSampler gives to one shard."""
    if isinstance(value, _C.Tensor):
        if value.dim() == 0 or value.size(0) % count:
            raise ValueError(
                f"each_shard: the rows of a tensor of shape {list(value.shape)} do not divide among this process's {count} shards. Let batches have "
                f"samples_per_shard * len(model.local_shards) rows"
            )
        return value if count == 1 else value[index::count].contiguous()
    if isinstance(value, dict):
        return type(value)((key, part_of(each, index, count)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, (str, bytes)) for each in value):
            return value[index::count]
        parts = [part_of(each, index, count) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class _Flat:
    """Tensors as one vector for each dtype and device."""

    def __init__(self, models: Sequence[Tensor]) -> None:
        self._groups: dict[Any, list[int]] = {}
        for i, t in enumerate(models):
            self._groups.setdefault((t.dtype, t.device), []).append(i)
        self._models = list(models)

    def join(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [_C.cat([tensors[i].detach().reshape(-1) for i in of]) for of in self._groups.values()]

    def views(self, flats: Sequence[Tensor]) -> list[Tensor]:
        found: list[Any] = [None] * len(self._models)
        for flat, of in zip(flats, self._groups.values(), strict=True):
            for i, view in zip(of, views_of(flat, [self._models[i] for i in of]), strict=True):
                found[i] = view
        return found


class _Buffers:
    """A module's buffers during a step: each shard begins with the same, and the step ends with their means over the shards.

    Only buffers that a shard has written to are changed. Means are for numbers with a fraction; of others, counts as a rule, the first shard's are
    taken.
    """

    def __init__(self, named: list[tuple[str, Tensor]], shards: int) -> None:
        self._shards = shards
        self._buffers = [b for _, b in named]
        self._before = [b.detach().clone() for b in self._buffers]
        self._versions = [b._version for b in self._buffers]
        self._changed = [False] * len(self._buffers)
        self._after: list[tuple[int, list[Tensor]]] = []

    @no_grad()
    def end_shard(self, shard: int, current: list[Tensor]) -> None:
        """Keeps what the shard has made of the buffers, and restores them."""
        self._after.append((shard, [b.detach().clone() for b in current]))
        for i, (b, before) in enumerate(zip(current, self._before, strict=True)):
            if b is not self._buffers[i] or b._version != self._versions[i]:
                self._changed[i] = True
                b.copy_(before)
            self._versions[i] = b._version
        self._buffers = current

    @no_grad()
    def finish(self, engine: Any) -> None:
        """Writes what the step has made of the buffers, on all ranks."""
        from ...distributed import ReduceOp

        if not self._buffers:
            return
        bits = _C.tensor(self._changed, dtype=_C.uint8, device="cpu")
        engine.all_reduce([bits], ReduceOp.MAX.value, False)
        changed = [i for i, bit in enumerate(bits.tolist()) if bit]
        averaged = [i for i in changed if self._buffers[i].is_floating_point() or self._buffers[i].is_complex()]
        if averaged:
            flat, total = _Flat([self._buffers[i] for i in averaged]), TreeSum(self._shards)
            for shard, values in self._after:
                total.add(shard, flat.join([values[i] for i in averaged]))
            for i, mean in zip(averaged, flat.views(total.mean(engine)), strict=True):
                self._buffers[i].copy_(mean)
        taken = [i for i in changed if i not in averaged]
        for i in taken:
            self._buffers[i].copy_(self._after[0][1][i])
        if taken:
            engine.broadcast([self._buffers[i].detach() for i in taken], 0, False)


class ShardedSteps:
    """The steps of a DistributedDataParallel with shards."""

    def __init__(self, parameters: Sequence[Tensor], names: dict[int, str], group: Any, shards: int, find_unused: bool) -> None:
        self.parameters, self._names, self._engine = list(parameters), names, group._engine
        self.shards = shards
        self.local = shards_of(group.rank(), group.size(), shards)
        self.inside = False
        self._find_unused = find_unused
        self._flat = _Flat(self.parameters)

    def each(self, values: tuple[Any, ...], buffers: Callable[[], list[tuple[str, Tensor]]]) -> Iterator[Any]:
        """Yields each local shard's part of the values (without values: its number); then reduces what the backward passes have left."""
        if self.inside:
            raise RuntimeError("each_shard: a step over the shards is in progress; end its loop first")
        parts = [tuple(part_of(v, i, len(self.local)) for v in values) for i in range(len(self.local))]
        seed = self._seed()
        before = [p.grad for p in self.parameters]
        kept, total, used = _Buffers(buffers(), self.shards), TreeSum(self.shards), [False] * len(self.parameters)
        self.inside = True
        try:
            for shard, part in zip(self.local, parts, strict=True):
                for p in self.parameters:
                    p.grad = None
                state = _C.default_generator.get_state()
                _C.default_generator.manual_seed((seed + (shard + 1) * _GOLDEN) % 2**64)
                try:
                    yield shard if not part else part[0] if len(part) == 1 else part
                finally:
                    _C.default_generator.set_state(state)
                total.add(shard, self._flat.join(self._taken(used)))
                kept.end_shard(shard, [b for _, b in buffers()])
        finally:
            self.inside = False
            for p, grad in zip(self.parameters, before, strict=True):
                p.grad = grad
        kept.finish(self._engine)
        self._give(total, used)

    def _seed(self) -> int:
        """The step's seed: a number of rank 0's generator. All ranks draw one, so that their generators stay in step."""
        number = _C.randint(0, 2**62, (1,), dtype=_C.int64, device="cpu")
        self._engine.broadcast([number], 0, False)
        return int(number)

    def _taken(self, used: list[bool]) -> list[Tensor]:
        """The shard's gradients; zeros for parameters without one."""
        found = []
        for i, p in enumerate(self.parameters):
            if p.grad is not None and p.grad.is_sparse:
                raise RuntimeError(f"DistributedDataParallel: the gradient of {self._names[id(p)]} is sparse, which is not averaged; use sparse=False")
            used[i] |= p.grad is not None
            found.append(_C.zeros_like(p) if p.grad is None else p.grad)
        return found

    @no_grad()
    def _give(self, total: TreeSum, used: list[bool]) -> None:
        if self._find_unused:
            from ...distributed import ReduceOp

            bits = _C.tensor(used, dtype=_C.uint8, device="cpu")
            self._engine.all_reduce([bits], ReduceOp.MAX.value, False)
            used = [bool(bit) for bit in bits.tolist()]
        elif not all(used):
            unused = ", ".join(self._names[id(p)] for p, here in zip(self.parameters, used, strict=True) if not here)
            raise RuntimeError(
                f"each_shard: no gradient has come for {unused}. Call backward() in the loop over the shards; for parameters that the loss does not "
                "depend on pass find_unused_parameters=True to DistributedDataParallel"
            )
        for p, here, mean in zip(self.parameters, used, self._flat.views(total.mean(self._engine)), strict=True):
            if here:
                if p.grad is None:
                    p.grad = mean
                else:
                    p.grad.add_(mean)

    @no_grad()
    def mean(self, values: Sequence[Tensor]) -> Tensor:
        """The mean over all shards of one tensor for each local shard."""
        if len(values) != len(self.local):
            raise ValueError(f"mean_over_shards: wanted one tensor for each of this process's {len(self.local)} shards, got {len(values)}")
        total = TreeSum(self.shards)
        for shard, value in zip(self.local, values, strict=True):
            total.add(shard, [value.detach().clone()])
        return total.mean(self._engine)[0]
