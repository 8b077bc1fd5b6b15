"""`torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook`: gradients sent as products of thin matrices (PowerSGD, arXiv:1905.13727)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from .... import _C, _missing
from ....futures import Future
from ... import _collectives, _groups
from .default_hooks import allreduce_hook

if TYPE_CHECKING:
    from .... import Tensor

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What PowerSGD keeps from step to step.

    Args:
        process_group: the ranks; None: all.
        matrix_approximation_rank: the columns of the thin matrices.
        start_powerSGD_iter: how many first iterations average whole gradients; at least 2 with error feedback or warm start.
        min_compression_rate: a matrix is sent as two thin ones if these have so many times fewer elements.
        use_error_feedback: whether what was not sent is added to the next gradient.
        warm_start: whether an iteration begins with the matrices of the one before.
        orthogonalization_epsilon: added to norms that columns are divided by; 0 for a QR decomposition.
        random_seed: of the first matrices; the same on all ranks.
        compression_stats_logging_frequency, batch_tensors_with_same_shape: ignored.

    >>> naru.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2).iter
    0
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,  # noqa: N803
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be applied after the "
                "first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.use_error_feedback, self.warm_start = min_compression_rate, use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = random.Random(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Counts an iteration, at its last bucket."""
        self.iter += bool(bucket.is_last())

    def compression_stats(self) -> tuple[float, int, int]:
        """(rate, elements before, elements after)."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after


def _orthogonal(matrix: Tensor, epsilon: float) -> Tensor:
    """The matrix with orthonormal columns."""
    if epsilon == 0:
        return _C.linalg_qr(matrix)[0]
    columns: list[Tensor] = []
    for i in range(matrix.shape[1]):
        column = matrix[:, i]
        for other in columns:
            column = column - (column * other).sum() * other
        columns.append(column / (column.norm() + epsilon))
    return _C.stack(columns, 1)


def _averaged(tensors: list[Tensor], group: Any) -> None:
    if tensors:
        _collectives.all_reduce_coalesced(tensors, _groups.ReduceOp.AVG, group)


def _compressed(state: PowerSGDState, index: int, matrices: list[Tensor], group: Any) -> None:
    """Replaces the matrices by approximations of their averages, in place."""
    ranks = [min(*m.shape, state.matrix_approximation_rank) for m in matrices]
    kept = state.q_memory_dict.get(index) if state.warm_start else None
    if kept is None:
        generator = _C.Generator().manual_seed(state.rng.randint(0, 1_000_000_000))
        kept = [_C.randn(m.shape[1], r, generator=generator).to(m.device, m.dtype) for m, r in zip(matrices, ranks)]
    qs = [_orthogonal(q, state.orthogonalization_epsilon) for q in kept]
    ps = [m.matmul(q) for m, q in zip(matrices, qs)]
    _averaged(ps, group)
    ps = [_orthogonal(p, state.orthogonalization_epsilon) for p in ps]
    qs = [m.t().matmul(p) for m, p in zip(matrices, ps)]
    _averaged(qs, group)
    state.q_memory_dict[index] = qs
    for m, p, q in zip(matrices, ps, qs):
        m.copy_(p.matmul(q.t()))


def _done(tensor: Tensor) -> Future:
    made: Future = Future()
    made.set_result(tensor)
    return made


def _with_error_feedback(state: PowerSGDState, bucket: Any, compress: Any) -> Future:
    """Averages a bucket by `compress(buffer)`, and keeps what was lost for the next iteration."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    if state.use_error_feedback and index in state.error_dict:
        buffer.add_(state.error_dict[index])
    before = buffer.clone() if state.use_error_feedback else None
    compress(buffer)
    if before is not None:
        state.error_dict[index] = before.sub_(buffer)
    state.maybe_increase_iter(bucket)
    return _done(buffer)


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:  # noqa: N802
    """Averages the gradients of `bucket`: matrices as products of thin ones, all others whole. `state`: a PowerSGDState.

    >>> model.register_comm_hook(PowerSGDState(None, 2, start_powerSGD_iter=10), powerSGD_hook)  # doctest: +SKIP
    """
    group = _groups.world() if state.process_group is None else state.process_group

    def compress(buffer: Tensor) -> None:
        matrices, whole = [], []
        for gradient in bucket.gradients():
            matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() else gradient.view(1, 1)
            n, m = matrix.shape
            rank = min(n, m, state.matrix_approximation_rank)
            thin = (n + m) * rank
            state.total_numel_before_compression += n * m
            if thin * state.min_compression_rate < n * m:
                state.total_numel_after_compression += thin
                matrices.append(matrix)
            else:
                state.total_numel_after_compression += n * m
                whole.append(gradient)
        _averaged(whole, group)
        _compressed(state, bucket.index(), matrices, group)

    return _with_error_feedback(state, bucket, compress)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:  # noqa: N802
    """Averages all gradients of `bucket` as one square matrix, as a product of two thin ones: coarser than powerSGD_hook. `state`: a PowerSGDState.

    >>> model.register_comm_hook(PowerSGDState(None, 2, start_powerSGD_iter=10), batched_powerSGD_hook)  # doctest: +SKIP
    """
    group = _groups.world() if state.process_group is None else state.process_group

    def compress(buffer: Tensor) -> None:
        side = int((buffer.numel() - 1) ** 0.5) + 1
        square = _C.zeros(side * side, dtype=buffer.dtype, device=buffer.device)
        square[: buffer.numel()].copy_(buffer)
        _compressed(state, bucket.index(), [square.view(side, side)], group)
        buffer.copy_(square[: buffer.numel()])
        state.total_numel_before_compression += buffer.numel()
        state.total_numel_after_compression += 2 * side * min(side, state.matrix_approximation_rank)

    return _with_error_feedback(state, bucket, compress)


__getattr__ = _missing.module_getattr(__name__)
