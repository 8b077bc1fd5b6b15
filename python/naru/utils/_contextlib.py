"""Base classes of blocks that are decorators, too: packages derive their own from these."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import _decorate


class _DecoratorContextManager:
    """A block that, used as a decorator, is entered for every call. Subclasses with parameters define `clone`."""

    def __call__(self, orig_func: Any) -> Any:
        return _decorate(orig_func, self.clone)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another one of the same parameters: there are none here."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A block without parameters, which is a decorator without parentheses, too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
