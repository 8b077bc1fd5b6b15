"""`DistributedDataParallel`: a module replicated in several processes, with the same parameters and different data."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ... import _C, _missing
from ..._buckets import GradBucket
from ..._shards import require_shards
from ...autograd.grad_mode import no_grad
from ...distributed.algorithms.join import Join, JoinableGroup, JoinHook
from ..modules.module import Module
from ._shards import ShardedSteps
from .scatter_gather import scatter_kwargs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ... import Tensor

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET = 1 << 20


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, _C.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors_in(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors_in(getattr(value, name))


class DistributedDataParallel(Module, JoinableGroup):
    """Runs `module` on this process's part of the batch, and averages the gradients over all processes during backward.

    All processes start with rank 0's parameters and buffers. Gradients are averaged in buckets, in the order in which backward computes them, by
    another thread. The wrapped module is `.module`; its state_dict has that prefix.

    Args:
        module: a module, of the same structure in each process.
        device_ids, output_device: a single device, to which inputs are moved; None if the program moves them.
        dim: ignored.
        broadcast_buffers: whether each forward copies rank 0's buffers to the other ranks.
        init_sync: whether all ranks start with rank 0's parameters.
        process_group: the group of processes; all processes if None.
        bucket_cap_mb: the size of buckets in MB, by default 25; the first one has 1 MB.
        find_unused_parameters: whether forward detects parameters that its outputs do not depend on. Otherwise, each parameter must get a gradient.
        check_reduction: ignored.
        gradient_as_bucket_view: whether gradients are views of the buckets, which saves a copy if a communication hook is used.
        static_graph: whether the same parameters are used each time; unused ones are detected.
        delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision, device_mesh, skip_all_reduce_unused_params: must be None or False;
            other values are not supported.
        shards: naru's own: the number of parts of each batch, at least the number of processes. A step then has the same bits for any
            number of processes; it runs in a loop over `each_shard`. By default there is one for each process, and no such loop.

    >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
    >>> model = naru.nn.parallel.DistributedDataParallel(naru.nn.Linear(3, 2))
    >>> model(naru.ones(4, 3)).sum().backward()
    >>> list(model.state_dict()), model.module.weight.grad.shape
    (['module.weight', 'module.bias'], torch.Size([2, 3]))
    >>> naru.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        *,
        shards: int | None = None,
    ) -> None:
        super().__init__()
        from ...distributed import _groups

        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params), ("param_to_hook_all_reduce", param_to_hook_all_reduce),
            ("mixed_precision", mixed_precision), ("device_mesh", device_mesh),
        ):  # fmt: skip
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not in naru; for mixed precision use torch.autocast")
        self.process_group = _groups.world() if process_group is None else process_group
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, p) for name, p in named if name not in ignored]
        if not named:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.module = module
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device
        self.dim = dim
        self.device = named[0][1].device
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._divides_by_all = True  # within join
        self._has_comm_hook = False
        self._ignored = ignored
        parameters = [p for _, p in named]
        self._has_buffers = bool(self._buffers_to_send())
        self._check_the_same(parameters)
        if init_sync:
            self._broadcast([*(p for name, p in module.named_parameters() if name not in ignored), *self._buffers_to_send()])
        cap = 25.0 if bucket_cap_mb is None else bucket_cap_mb
        names = {id(p): name for name, p in named}
        self._sharded: ShardedSteps | None = None
        if shards is not None:
            self._require_no_sync_norm()
            count = require_shards(shards, self.process_group.size(), "DistributedDataParallel")
            self._sharded = ShardedSteps(parameters, names, self.process_group, count, find_unused_parameters or static_graph)
            return
        bytes_ = int(cap * 2**20)
        self._reducer = _C._GradientReducer(
            parameters, [name for name, _ in named], self.process_group._engine, min(_FIRST_BUCKET, bytes_), bytes_, gradient_as_bucket_view
        )

    def _require_no_sync_norm(self) -> None:
        from ..modules.batchnorm import SyncBatchNorm

        for name, module in self.module.named_modules():
            if isinstance(module, SyncBatchNorm):
                raise ValueError(
                    f"DistributedDataParallel: {name or 'the module'} is a SyncBatchNorm, whose statistics depend on the number of processes; with "
                    "shards use BatchNorm, which has statistics for each shard"
                )

    @property
    def local_shards(self) -> range:
        """The shards that this process computes."""
        return self._steps("local_shards").local

    def _steps(self, what: str) -> ShardedSteps:
        if self._sharded is None:
            raise RuntimeError(f"{what}: the model has no shards; give DistributedDataParallel(model, shards=...) their number")
        return self._sharded

    def each_shard(self, *values: Any) -> Iterator[Any]:
        """A step: iterates over this process's parts of the batch, for a forward and a backward each; gradients are there when the loop ends.

        values: this process's part of the batch, as DistributedSampler(shards=...) gives it: row i belongs to local shard i % len(local_shards).
        Yields each shard's rows of all tensors in them (also in lists and dicts); without values the shard's number. Each shard has random numbers
        of its own, and begins with the same buffers; the step ends with the mean of what the shards have made of them. Gradients are the means over
        the shards, and are added to those that are there before.

        >>> naru.distributed.init_process_group(store=naru.distributed.HashStore(), rank=0, world_size=1)
        >>> model = naru.nn.parallel.DistributedDataParallel(naru.nn.Linear(3, 1), shards=2)
        >>> for x in model.each_shard(naru.ones(4, 3)):
        ...     model(x).sum().backward()
        >>> model.module.weight.grad
        tensor([[2., 2., 2.]])
        >>> naru.distributed.destroy_process_group()
        """
        return self._steps("each_shard").each(values, self._named_buffers)

    def mean_over_shards(self, values: Sequence[Tensor]) -> Tensor:
        """The mean over all shards of what each local shard has in `values` (its loss, say), with the same bits for any number of processes."""
        return self._steps("mean_over_shards").mean(values)

    def _check_the_same(self, parameters: list[Tensor]) -> None:
        from ...distributed import all_gather_object

        shapes: list[Any] = [None] * self.process_group.size()
        all_gather_object(shapes, [(tuple(p.shape), str(p.dtype)) for p in parameters], self.process_group)
        for rank, theirs in enumerate(shapes):
            if theirs != shapes[0]:
                at = next((i for i, (a, b) in enumerate(zip(theirs, shapes[0], strict=False)) if a != b), min(len(theirs), len(shapes[0])))
                raise RuntimeError(
                    f"DistributedDataParallel: the modules of ranks 0 and {rank} differ: rank 0 has {len(shapes[0])} parameters and rank {rank} "
                    f"{len(theirs)}, and number {at} is {shapes[0][at] if at < len(shapes[0]) else 'none'} on rank 0 and "
                    f"{theirs[at] if at < len(theirs) else 'none'} on rank {rank}"
                )

    def _named_buffers(self) -> list[tuple[str, Tensor]]:
        return [(name, b) for name, b in self.module.named_buffers() if name not in self._ignored]

    def _buffers_to_send(self) -> list[Tensor]:
        return [b for _, b in self._named_buffers()]

    @no_grad()
    def _broadcast(self, tensors: list[Tensor], source: int = 0) -> None:
        if tensors:
            self.process_group._engine.broadcast([t.detach() for t in tensors], source, False)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Runs the wrapped module's forward."""
        if self._sharded is not None:
            return self._forward_of_shard(inputs, kwargs)
        if (active := Join.notify_join_context(self)) is not None:
            self._reducer.set_divisor(0 if self._divides_by_all else active)
        if self.require_forward_param_sync and self.broadcast_buffers and self._has_buffers:
            self._broadcast(self._buffers_to_send())
        output = self._run(inputs, kwargs)
        if _C.is_grad_enabled() and self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            if self.find_unused_parameters or self.static_graph:
                self._reducer.prepare_for(list(_tensors_in(output)))
            else:
                self._reducer.prepare()
        else:
            self.require_forward_param_sync = False if _C.is_grad_enabled() else self.require_forward_param_sync
            self._reducer.stop()
        return output

    def _run(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.device_ids:
            moved, moved_kwargs = scatter_kwargs(inputs, kwargs, self.device_ids)
            inputs, kwargs = moved[0], moved_kwargs[0]
        return self.module(*inputs, **kwargs)

    def _forward_of_shard(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        assert self._sharded is not None
        if _C.is_grad_enabled() and not self._sharded.inside:
            raise RuntimeError(
                "DistributedDataParallel: with shards, training runs in `for x, y in model.each_shard(x, y)`, where each shard has its forward and "
                "backward; for evaluation use torch.no_grad()"
            )
        return self._run(inputs, kwargs)

    def _refuse_shards(self, what: str) -> None:
        if self._sharded is not None:
            raise RuntimeError(f"DistributedDataParallel: {what} is not for models with shards, whose gradients are reduced when each_shard ends")

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, gradients are only accumulated in this process; they are averaged in the first backward of a forward outside of it."""
        self._refuse_shards("no_sync")
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """The data that Lightning reads at the end; only some of PyTorch's entries."""
        return {
            "world_size": self.process_group.size(), "rank": self.process_group.rank(), "module_name": type(self.module).__name__,
            "find_unused_parameters": int(self.find_unused_parameters), "broadcast_buffers": int(self.broadcast_buffers), "can_set_static_graph": False,
        }  # fmt: skip

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Replaces the averaging of a bucket's gradients by `hook(state, bucket)`, which returns a Future of the vector."""
        self._refuse_shards("register_comm_hook")
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._has_comm_hook:
            raise RuntimeError("register_comm_hook can only be called once.")
        self._has_comm_hook = True

        def exchange(index: int, vector: Tensor, parameters: list[Tensor], last: bool) -> Callable[[], None]:
            future = hook(state, GradBucket(index, vector, parameters, last))

            def take() -> None:
                result = future.wait()
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not vector:
                    vector.copy_(result)

            return take

        self._reducer.set_exchange(exchange)

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False) -> Join:
        """Within it, ranks may have different numbers of batches: ranks that have finished take part in the others' communication.

        divide_by_initial_world_size: whether gradients are divided by the number of all ranks, or of those that still have inputs. enable: False disables
        it. throw_on_early_termination: whether to raise RuntimeError on all ranks when the first one has finished.
        """
        return Join([self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank does within Join that has no more batches. Its option divide_by_initial_world_size as for `join`."""
        self._refuse_shards("join")
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _Shadow(self)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore  # type: ignore[assignment]


class _Shadow(JoinHook):
    """Takes part in the communication of the ranks that go on."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self._model = model

    def main_hook(self) -> None:
        model = self._model
        model._reducer.set_divisor(0 if model._divides_by_all else model._active_ranks)
        if model.broadcast_buffers:
            model._broadcast(model._buffers_to_send())
        model._reducer.join_with_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        # All ranks have the same parameters; those that finished last may have different buffers than rank 0.
        self._model._reducer.set_divisor(0)


__getattr__ = _missing.module_getattr(__name__)
