"""`torch.distributed.fsdp.wrap`: which submodules are gathered on their own."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from ... import _missing
from ...nn import Module, ModuleDict, ModuleList, MultiheadAttention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """The policy that takes each submodule.

    >>> naru.distributed.fsdp.wrap.always_wrap_policy()
    True
    """
    return True


class ModuleWrapPolicy:
    """The policy that takes submodules of some classes.

    Args:
        module_classes: the classes.

    >>> policy = naru.distributed.fsdp.wrap.ModuleWrapPolicy({naru.nn.Linear})
    >>> policy(naru.nn.Linear(1, 1), recurse=False), policy(naru.nn.ReLU(), recurse=False)
    (True, False)
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._module_classes)})"


class CustomPolicy:
    """The policy that asks a function.

    Args:
        lambda_fn: from a submodule to whether it is taken, or a dict of options for it.

    >>> policy = naru.distributed.fsdp.wrap.CustomPolicy(lambda module: isinstance(module, naru.nn.Linear))
    >>> policy(naru.nn.Linear(1, 1), recurse=False)
    True
    """

    def __init__(self, lambda_fn: Callable[[Any], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> Any:
        return True if recurse else self._lambda_fn(module)


def lambda_auto_wrap_policy(module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]) -> bool:
    """The policy that asks `lambda_fn` about a `module`. `recurse`: whether it is asked about its children; `nonwrapped_numel`: ignored.

    >>> naru.distributed.fsdp.wrap.lambda_auto_wrap_policy(naru.nn.ReLU(), False, 0, lambda_fn=lambda module: False)
    False
    """
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type]) -> bool:
    """The policy that takes a `module` of the classes `transformer_layer_cls`. `recurse` and `nonwrapped_numel` as in lambda_auto_wrap_policy.

    >>> naru.distributed.fsdp.wrap.transformer_auto_wrap_policy(naru.nn.Linear(1, 1), False, 0, {naru.nn.Linear})
    True
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type] | None = None,
    exclude_wrap_modules: set[type] | None = None,
) -> bool:
    """The policy that takes a `module` with at least `min_num_params` elements that no submodule's was taken with.

    `recurse`: whether it is asked about its children; `nonwrapped_numel`: the elements; `force_leaf_modules`: classes whose children are not asked about;
    `exclude_wrap_modules`: classes that are not taken.

    >>> naru.distributed.fsdp.wrap.size_based_auto_wrap_policy(naru.nn.Linear(9, 9), False, 90, min_num_params=50)
    True
    """
    leaves = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = (ModuleList, ModuleDict) if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    return nonwrapped_numel >= min_num_params and not isinstance(module, leaves if recurse else excluded)


def chosen(module: Module, policy: Any, ignored: set[int]) -> list[tuple[Module, dict[str, Any]]]:
    """The submodules that a policy takes, inner ones first, with options for each.

    Args:
        module: the module, which is not taken itself.
        policy: the policy.
        ignored: ids of modules that are left alone.

    >>> net = naru.nn.Sequential(naru.nn.Linear(1, 1), naru.nn.ReLU())
    >>> naru.distributed.fsdp.wrap.chosen(net, naru.distributed.fsdp.wrap.ModuleWrapPolicy({naru.nn.Linear}), set())
    [(Linear(in_features=1, out_features=1, bias=True), {})]
    """
    found: list[tuple[Module, dict[str, Any]]] = []

    def visit(at: Module, is_root: bool) -> int:
        """The elements that were taken."""
        numel = sum(p.numel() for p in at.parameters())
        if not policy(module=at, recurse=True, nonwrapped_numel=numel):
            return 0
        taken = sum(visit(child, False) for child in at.children() if id(child) not in ignored)
        options = False if is_root else policy(module=at, recurse=False, nonwrapped_numel=numel - taken)
        if options is False or options is None or any(at is other for other, _ in found):
            return taken
        found.append((at, options if isinstance(options, dict) else {}))
        return numel

    visit(module, True)
    return found


_wrapping: list[tuple[Any, dict[str, Any]]] = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Within it, `wrap` makes `wrapper_cls` of a module, with the options `wrapper_kwargs`.

    >>> with naru.distributed.fsdp.wrap.enable_wrap(wrapper_cls=naru.nn.Sequential):
    ...     naru.distributed.fsdp.wrap.wrap(naru.nn.ReLU())
    Sequential(
      (0): ReLU()
    )
    """
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """A `module` as `enable_wrap` says, the module itself outside of it. `wrap_overrides`: options that take precedence.

    >>> naru.distributed.fsdp.wrap.wrap(naru.nn.ReLU())
    ReLU()
    """
    if not _wrapping:
        return module
    kind, options = _wrapping[-1]
    return functools.partial(kind, module, **{**options, **wrap_overrides})()


__getattr__ = _missing.module_getattr(__name__)
