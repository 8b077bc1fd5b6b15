"""Communication hooks: plain averages, and averages in 16-bit types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import _C, _missing
from ... import _collectives, _groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from .... import Tensor
    from ....futures import Future

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]


def _average(group: Any, tensor: Tensor) -> Future[Tensor]:
    found = _groups.world() if group is None else group
    work = _collectives.all_reduce(tensor, _groups.ReduceOp.AVG, found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """Averages the buffer of `bucket` over `process_group`: the default without a hook.

    >>> model.register_comm_hook(None, allreduce_hook)  # doctest: +SKIP
    """
    return _average(process_group, bucket.buffer())


def _compressed(hook: Callable[[Any, Any], Future[Tensor]], dtype: Any) -> Callable[[Any, Any], Future[Tensor]]:
    def around(state: Any, bucket: Any) -> Future[Tensor]:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))
        return hook(state, bucket).then(lambda future: whole.copy_(future.value()))

    return around


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """allreduce_hook of `process_group` and `bucket`, communicating in float16.

    >>> model.register_comm_hook(None, fp16_compress_hook)  # doctest: +SKIP
    """
    return _compressed(allreduce_hook, _C.float16)(process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """allreduce_hook of `process_group` and `bucket`, communicating in bfloat16.

    >>> model.register_comm_hook(None, bf16_compress_hook)  # doctest: +SKIP
    """
    return _compressed(allreduce_hook, _C.bfloat16)(process_group, bucket)


def fp16_compress_wrapper(hook: Callable[[Any, Any], Future[Tensor]]) -> Callable[[Any, Any], Future[Tensor]]:
    """Wraps `hook` to receive its bucket in float16.

    >>> model.register_comm_hook(None, fp16_compress_wrapper(allreduce_hook))  # doctest: +SKIP
    """
    return _compressed(hook, _C.float16)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Future[Tensor]]) -> Callable[[Any, Any], Future[Tensor]]:
    """Wraps `hook` to receive its bucket in bfloat16.

    >>> model.register_comm_hook(None, bf16_compress_wrapper(allreduce_hook))  # doctest: +SKIP
    """
    return _compressed(hook, _C.bfloat16)


__getattr__ = _missing.module_getattr(__name__)
