"""DistributedDataParallel's gradient reduction: averages buckets of gradients over the ranks during backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from ..._buckets import GradBucket, views_of
from ...autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ... import Tensor


class _Bucket:
    def __init__(self, index: int, parameters: list[Tensor]) -> None:
        self.index = index
        self.parameters = parameters
        self.pending = 0
        self.flat: Tensor | None = None  # gradients are views of it; or of the hook's result
        self.grads: list[Tensor] = []
        self.wait: Callable[[], Any] | None = None


def buckets_of(parameters: Sequence[Tensor], first: int, cap: int) -> list[list[Tensor]]:
    """Splits the parameters into buckets of one dtype and device each, in reverse order, as in backward. The first has about `first` bytes, others `cap`."""
    found: list[list[Tensor]] = []
    room, kind = 0, None
    for p in reversed(parameters):
        size = p.numel() * p.element_size()
        if not found or room <= 0 or kind != (p.dtype, p.device):
            room = first if not found else cap
            kind = (p.dtype, p.device)
            found.append([])
        found[-1].append(p)
        room -= size
    return found


class Reducer:
    """Counts the gradients that are ready, and averages the buckets in order as soon as they are complete."""

    def __init__(self, parameters: Sequence[Tensor], names: dict[int, str], group: Any, first: int, cap: int, as_views: bool) -> None:
        self.parameters = list(parameters)
        self._names = names
        self._group = group
        self._as_views = as_views
        self.buckets = [_Bucket(i, ps) for i, ps in enumerate(buckets_of(self.parameters, first, cap))]
        self._bucket_of = {id(p): b for b in self.buckets for p in b.parameters}
        self._expecting = False
        self._ready: set[int] = set()
        self._next = 0
        self._used: dict[int, bool] | None = None  # on this rank, if unused parameters are detected
        self.hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self.divisor: int | None = None  # instead of the number of ranks
        for p in self.parameters:
            p.register_post_accumulate_grad_hook(self._accumulated)

    def prepare(self, outputs: Iterable[Tensor] | None) -> None:
        """Call before a backward whose gradients are to be averaged. outputs: forward's outputs, if unused parameters are to be detected."""
        if self._ready and self._next < len(self.buckets):
            unused = [self._names[id(p)] for p in self.parameters if id(p) not in self._ready]
            self.reset()
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module "
                "has parameters that were not used in producing loss: "
                f"{', '.join(unused)}. Pass find_unused_parameters=True to DistributedDataParallel, or let the loss depend on them"
            )
        self.reset()
        self._expecting = True
        if outputs is None:
            return
        reached = parameters_behind(outputs)
        self._used = {id(p): id(p) in reached for p in self.parameters}
        for p in self.parameters:
            if id(p) not in reached:
                self._mark(p)
        # Nothing is sent before backward: buckets with only unused parameters are sent together with later ones.

    def reset(self) -> None:
        """Resets all counts."""
        self._expecting, self._next, self._used = False, 0, None
        self._ready.clear()
        for b in self.buckets:
            b.pending, b.grads, b.wait = len(b.parameters), [], None

    def stop(self) -> None:
        """Stops averaging of gradients until `prepare`."""
        self._expecting = False

    def _mark(self, parameter: Tensor) -> None:
        self._ready.add(id(parameter))
        self._bucket_of[id(parameter)].pending -= 1

    def _accumulated(self, parameter: Tensor) -> None:
        if not self._expecting:
            return
        if id(parameter) in self._ready:
            raise RuntimeError(
                "Expected to mark a variable ready only once: the gradient of "
                f"{self._names[id(parameter)]} came a second time in one backward (through a checkpoint, or a module that is used outside of forward)"
            )
        self._mark(parameter)
        while self._next < len(self.buckets) and self.buckets[self._next].pending == 0:
            self._launch(self.buckets[self._next])
            self._next += 1
        if self._next == len(self.buckets):
            self._finish()

    @no_grad()
    def _launch(self, b: _Bucket) -> None:
        for p in b.parameters:
            if p.grad is not None and p.grad.is_sparse:
                raise RuntimeError(f"DistributedDataParallel: the gradient of {self._names[id(p)]} is sparse, which is not averaged; use sparse=False")
        b.grads = [_C.zeros_like(p) if p.grad is None else p.grad for p in b.parameters]
        if self._as_views or self.hook is not None:
            self._flatten(b)
        if self.hook is None:
            self._average(b, [b.flat] if self._as_views and b.flat is not None else b.grads)
            return
        assert b.flat is not None
        state, hook = self.hook
        future = hook(state, GradBucket(b.index, b.flat, b.parameters, b.index + 1 == len(self.buckets)))

        def take() -> None:
            result = future.wait()
            result = result[0] if isinstance(result, (list, tuple)) else result
            if result is not b.flat:
                b.flat.copy_(result)  # type: ignore[union-attr]

        b.wait = take

    def _flatten(self, b: _Bucket) -> None:
        if b.flat is None:
            b.flat = _C.cat([g.reshape(-1) for g in b.grads])
        for grad, view in zip(b.grads, views_of(b.flat, b.parameters), strict=True):
            if _C._address(grad) != _C._address(view) or grad.shape != view.shape:
                view.copy_(grad)

    def _average(self, b: _Bucket, tensors: list[Tensor]) -> None:
        from ...distributed import ReduceOp

        op = ReduceOp.AVG if self.divisor is None else ReduceOp.SUM
        # For the last bucket, no work is left to overlap: reduce on this thread.
        work = self._group._engine.all_reduce(tensors, op.value, b.index + 1 < len(self.buckets))

        def done() -> None:
            work.wait(-1)
            if self.divisor is not None:
                for t in tensors:
                    t.div_(self.divisor)

        b.wait = done

    @no_grad()
    def _finish(self) -> None:
        used = self._used_anywhere()
        for b in self.buckets:
            if b.wait is not None:
                b.wait()
            views = views_of(b.flat, b.parameters) if b.flat is not None else b.grads
            for p, grad, view in zip(b.parameters, b.grads, views, strict=True):
                if used is not None and not used[id(p)]:
                    continue  # unused on all ranks: keep the old gradient
                if p.grad is None or self._as_views:
                    p.grad = view
                elif view is not grad:
                    p.grad.copy_(view)
            if not self._as_views:
                b.flat = None
        self.reset()

    def _used_anywhere(self) -> dict[int, bool] | None:
        if self._used is None:
            return None
        from ...distributed import ReduceOp

        bits = _C.tensor([self._used[id(p)] for p in self.parameters], dtype=_C.uint8, device="cpu")
        self._group._engine.all_reduce([bits], ReduceOp.MAX.value, False)
        return {id(p): bool(bit) for p, bit in zip(self.parameters, bits.tolist(), strict=True)}

    @no_grad()
    def shadow(self) -> None:
        """Takes part in the averaging with zeros, on a rank without inputs."""
        for b in self.buckets:
            b.grads = [_C.zeros_like(p) for p in b.parameters]
            if self._as_views:
                flat = _C.cat([g.reshape(-1) for g in b.grads])
                b.grads = views_of(flat, b.parameters)
            self._average(b, [flat] if self._as_views else b.grads)
        for b in self.buckets:
            if b.wait is not None:
                b.wait()
            if self._as_views:  # for an optimizer that is joined, too
                for p, grad in zip(b.parameters, b.grads):
                    p.grad = grad
        self.reset()


def parameters_behind(outputs: Iterable[Tensor]) -> set[int]:
    """The ids of the leaves in the history of the outputs."""
    found: set[int] = set()
    seen: set[Any] = set()
    waiting = []
    for t in outputs:
        if t.grad_fn is not None:
            waiting.append(t.grad_fn)
        elif t.requires_grad:
            found.add(id(t))
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        waiting += [following for following, _ in node.next_functions if following is not None]
    return found
