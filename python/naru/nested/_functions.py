"""`autograd.Function` with nested tensors: the user's methods get nested tensors, the graph their values."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..autograd.function import Function
from ._tensor import NestedTensor, is_nested

_NONE = _C.empty(0, device="cpu")  # replaces the values where only the structure is kept


def _plain(values: Any) -> tuple:
    return tuple(v._values if is_nested(v) else v for v in values)


def _like(values: Any, models: Any) -> tuple:
    """Nests the values with the structures of the models."""
    return tuple(NestedTensor(v, m._ragged, m._ragged_idx, m.layout) if is_nested(m) and v is not None else v for v, m in zip(values, models))


class _Seen:
    """Wraps the ctx for the user's methods, so that saved tensors are nested again."""

    def __init__(self, ctx: Any) -> None:
        self.__dict__["_ctx"] = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)

    def save_for_backward(self, *tensors: Any) -> None:
        """As FunctionCtx.save_for_backward."""
        # For a nested tensor, keep only the structure here; the node saves the values.
        self._ctx._models = tuple(NestedTensor(_NONE, t._ragged, t._ragged_idx, t.layout) if is_nested(t) else None for t in tensors)
        self._ctx.save_for_backward(*_plain(tensors))

    @property
    def saved_tensors(self) -> tuple:
        """As FunctionCtx.saved_tensors."""
        return _like(self._ctx.saved_tensors, self._ctx._models)

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """As FunctionCtx.mark_non_differentiable."""
        self._ctx.mark_non_differentiable(*_plain(outputs))

    def mark_dirty(self, *inputs: Any) -> None:
        """As FunctionCtx.mark_dirty."""
        self._ctx.mark_dirty(*_plain(inputs))


def apply(cls: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`cls.apply` with nested arguments."""
    models: list[Any] = []
    single = [False]

    class OfValues(Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            given, seen = _like(values, args), _Seen(ctx)
            if cls.setup_context is not Function.setup_context:
                result = cls.forward(*given, **kwargs)
                cls.setup_context(seen, given, result)
            else:
                result = cls.forward(seen, *given, **kwargs)
            single[0] = not isinstance(result, (tuple, list))
            results = [result] if single[0] else list(result)
            models[:] = [NestedTensor(_NONE, r._ragged, r._ragged_idx, r.layout) if is_nested(r) else r for r in results]
            return _plain(results)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            result = cls.backward(_Seen(ctx), *_like(grads, models))
            return _plain(result if isinstance(result, (tuple, list)) else (result,))

    OfValues.__name__ = cls.__name__
    results = _like(OfValues.apply(*_plain(args)), models)
    return results[0] if single[0] else results
