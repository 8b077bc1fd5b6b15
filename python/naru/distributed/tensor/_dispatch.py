"""How an operator on distributed tensors is done: its rule labels the operands' dimensions, one way for each dimension of the mesh is chosen by what it
costs to lay the operands so, and the operator is called with local tensors."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ... import _C
from ...overrides import DisableTorchFunctionSubclass
from ._dtensor import DTensor, local_of, wrapped
from ._layout import Spec, moved, with_summed_gradient
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..device_mesh import DeviceMesh

Tensor = _C.Tensor

# Done with the object itself: they read or change what belongs to the local tensor.
_DIRECT = frozenset(
    """requires_grad_ register_post_accumulate_grad_hook retain_grad element_size get_device is_floating_point is_complex is_signed as_subclass __get__
    __set__ is_contiguous storage_offset is_shared is_same_size detach_ type data_ptr untyped_storage storage is_inference is_pinned _drop_gradients _queue_callback __hash__
    __delete__ _mark_memory _multiply_each
    _with_gradients _count_steps _adadelta_step _adagrad_step _adam_step _adam_step_on_device _adamax_step _nadam_step _asgd_step _radam_step _rmsprop_step
    _rprop_step _sgd_step""".split()
)


class Plan:
    """What a rule says of one call.

    Args:
        tensors: the operands.
        labels: for each operand a label for each dimension; None: the dimension is broadcast.
        outs: for each result its labels.
        run: from the local operands and the results' specs to the local result, or results.
        free: the labels along which shards can be computed alone; None: all that results have.
        sums: labels that are reduced, with the reduction.
        linear: the operands that may be pending sums while others are whole.
        jointly: whether all operands may be pending sums together.
        sizes: of labels that no operand has.
    """

    def __init__(
        self,
        tensors: Sequence[DTensor],
        labels: Sequence[tuple],
        outs: Sequence[tuple],
        run: Callable[[list[Tensor], list[Spec]], Any],
        free: set | None = None,
        sums: dict[Any, str] | None = None,
        linear: tuple[int, ...] = (),
        jointly: bool = False,
        sizes: dict[Any, int] | None = None,
    ) -> None:
        self.tensors, self.labels, self.outs, self.run = list(tensors), [tuple(given) for given in labels], [tuple(given) for given in outs], run
        self.free = {label for out in self.outs for label in out} if free is None else free
        self.sums, self.linear, self.jointly = sums or {}, linear, jointly
        self.sizes: dict[Any, int] = {None: 1}
        for t, given in zip(self.tensors, self.labels):
            self.sizes.update((label, n) for label, n in zip(given, t.shape) if label is not None)
        self.sizes.update(sizes or {})

    def placed(self, way: tuple) -> list[Placement]:
        """How each operand lies along a dimension of the mesh in this way."""
        kind = way[0]
        if kind == "shard":
            _, label, factor = way
            return [_shard(labels.index(label), factor) if label in labels else Replicate() for labels in self.labels]
        if kind == "partial":
            return [Partial(way[2]) if way[1] in (i, None) else Replicate() for i in range(len(self.tensors))]
        return [Replicate()] * len(self.tensors)

    def ways(self, now: list[Placement], count: int) -> list[tuple]:
        """The ways along a dimension of the mesh of `count` ranks, for operands that lie so."""
        found: list[tuple] = [("whole",)]
        for i, p in enumerate(now):
            if isinstance(p, Shard):
                label = self.labels[i][p.dim]
                fits = label in self.sums and (self.sums[label] != "avg" or self.sizes[label] % count == 0)
                if label is not None and (label in self.free or fits):
                    found.append(("shard", label, p.split_factor if isinstance(p, _StridedShard) else None))
            elif isinstance(p, Partial) and p.reduce_op in ("sum", "avg"):
                if i in self.linear:
                    found.append(("partial", i, p.reduce_op))
                if self.jointly and all(q in (p, Replicate()) for q in now):
                    found.append(("partial", None, p.reduce_op))
        return found

    def result(self, way: tuple, out: tuple) -> Placement:
        """How a result lies along a dimension of the mesh in this way."""
        if way[0] == "shard":
            return _shard(out.index(way[1]), way[2]) if way[1] in out else Partial(self.sums[way[1]])
        return Partial(way[2]) if way[0] == "partial" else Replicate()


def _shard(dim: int, factor: int | None) -> Shard:
    return Shard(dim) if factor is None else _StridedShard(dim, factor)


def _cost(t: DTensor, old: Placement, new: Placement, count: int) -> float:
    """About how many bytes are sent to lay an operand differently along one dimension of the mesh."""
    if old == new:
        return 0
    if isinstance(old, Replicate):
        return 1e-3  # nothing is sent; but what lies right is left so
    return 2e-3 + t.nbytes * (count - 1) / count * (2 if isinstance(old, Partial) and not isinstance(new, Shard) else 1)


def _chosen(plan: Plan, mesh: DeviceMesh, fixed: Sequence[Placement] | None) -> list[tuple]:
    """The way along each dimension of the mesh; `fixed`: how the first operand must lie."""
    made = []
    for m in range(mesh.ndim):
        now = [t.placements[m] for t in plan.tensors]
        ways = plan.ways(now, mesh.shape[m])
        if fixed is not None:
            if isinstance(fixed[m], Partial) and plan.jointly:
                ways.append(("partial", None, fixed[m].reduce_op))  # type: ignore[attr-defined]
            ways = [way for way in ways if plan.placed(way)[0] == fixed[m] and plan.result(way, plan.outs[0]) == fixed[m]]
            if not ways:
                raise NotImplementedError(f"in place on a DTensor that is {fixed[m]!r}: it would have to be laid differently; redistribute it before")
        as_it_is = next((way for way in ways if plan.placed(way) == now), None)
        made.append(as_it_is or min(ways, key=lambda way: sum(_cost(t, old, new, mesh.shape[m]) for t, old, new in zip(plan.tensors, now, plan.placed(way)))))
    return made


def _not_in_place(name: str) -> Exception:
    return NotImplementedError(f"{name}: a DTensor can't be changed to another shape or order in place; use the result of the operator without `_`")


def carry_out(plan: Plan, in_place: bool = False) -> Any:
    """Does what a plan says: the result, or a tuple of results."""
    tensors = plan.tensors
    mesh = tensors[0].device_mesh
    for t in tensors:
        if t.device_mesh != mesh:
            raise RuntimeError(f"DTensors on different meshes can't be computed with: {mesh} and {t.device_mesh}; use full_tensor or to_local")
    if in_place and plan.outs[0] != plan.labels[0]:
        raise _not_in_place("this operator")
    ways = _chosen(plan, mesh, tensors[0].placements if in_place else None)
    locals_ = []
    for i, t in enumerate(tensors):
        placements = tuple(plan.placed(way)[i] for way in ways)
        local = moved(local_of(t), t._spec, placements)
        summed = tuple(m for m, way in enumerate(ways) if way[0] != "whole" and isinstance(placements[m], Replicate))
        locals_.append(with_summed_gradient(local, mesh, summed))
    specs = [Spec(mesh, tuple(plan.result(way, out) for way in ways), tuple(plan.sizes[label] for label in out)) for out in plan.outs]
    made = plan.run(locals_, specs)
    if in_place:
        return tensors[0]
    if len(specs) == 1 and isinstance(made, Tensor):
        return wrapped(made, specs[0])
    results = [wrapped(local, spec) for local, spec in zip(made, specs, strict=True)]
    return type(made)(results)


_replicating = [0]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Within it, plain tensors beside DTensors are taken for replicated ones.

    >>> with naru.distributed.tensor.experimental.implicit_replication():
    ...     pass
    """
    _replicating[0] += 1
    try:
        yield
    finally:
        _replicating[0] -= 1


def _each(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _each(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _each(v)


def substituted(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """The value with its tensors changed, in lists, tuples and dicts, too."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        made = [substituted(v, change) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if type(value) is dict:
        return {k: substituted(v, change) for k, v in value.items()}
    return value


def _with_plain_ones(name: str, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments, in which plain tensors that are numbers are replicated DTensors."""
    plain = [t for t in _each((args, kwargs)) if not isinstance(t, DTensor)]
    if not plain:
        return args, kwargs
    mesh = next(t for t in _each((args, kwargs)) if isinstance(t, DTensor)).device_mesh
    for t in plain:
        if t.dim() and not _replicating[0]:
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators! "
                f"To do so, use distribute_tensor or DTensor.from_local for the tensor of shape {list(t.shape)}"
            )

    def change(t: Tensor) -> Any:
        return t if isinstance(t, DTensor) else wrapped(t, Spec(mesh, (Replicate(),) * mesh.ndim, tuple(t.shape)))

    return substituted(args, change), substituted(kwargs, change)


def _all_whole(func: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An operator without a rule: done where all operands are whole on each rank."""
    tensors = [t for t in _each((args, kwargs)) if isinstance(t, DTensor)]
    mesh = tensors[0].device_mesh
    for t in tensors:
        if any(not isinstance(p, Replicate) for p in t.placements):
            raise NotImplementedError(
                f"{name}: no rule for a DTensor with placements {t.placements}; redistribute it first: "
                f"x.redistribute(placements=[{', '.join(['Replicate()'] * mesh.ndim)}]), or compute with x.to_local()"
            )
    before = tuple(args[0].shape) if args and isinstance(args[0], DTensor) else None
    made = func(*substituted(args, local_of), **substituted(kwargs, local_of))
    if name.endswith("_") and isinstance(made, Tensor) and tuple(made.shape) != before:
        raise _not_in_place(name)
    if name.endswith("_") and not name.startswith("_") and isinstance(args[0], DTensor):
        return args[0]
    return substituted(made, lambda t: wrapped(t, Spec(mesh, (Replicate(),) * mesh.ndim, tuple(t.shape))))


# Rules by operators' names: from the operator and its arguments to a Plan or the result.
RULES: dict[str, Callable[..., Any]] = {}
INPLACE = {f"__i{name}__": name for name in ("add", "sub", "mul", "pow", "and", "or", "xor")} | {"__itruediv__": "div"}


def rule(names: str) -> Callable[[Any], Any]:
    """Registers a rule for the operators of these names, separated by spaces."""

    def registered(made: Any) -> Any:
        RULES.update(dict.fromkeys(names.split(), made))
        return made

    return registered


def call(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What `DTensor.__torch_function__` does."""
    name = getattr(func, "__name__", str(func))
    if name in _DIRECT:
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}: out= is not there for DTensors; use the result")
    args, kwargs = _with_plain_ones(name, args, kwargs)
    if name in RULES:
        made = RULES[name](func, *args, **kwargs)
        return carry_out(made) if isinstance(made, Plan) else made
    base = INPLACE.get(name, name[:-1] if name.endswith("_") and not name.startswith("__") else None)
    if base is not None and base in RULES:
        made = RULES[base](func, *args, **kwargs)
        if isinstance(made, Plan):
            return carry_out(made, in_place=True)
        if RULES[base] is RULES["add"]:
            return args[0]
        raise _not_in_place(name)
    return _all_whole(func, name, args, kwargs)


DTensor._call = staticmethod(call)
