"""Iteration over the parameters, buffers and submodules of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from ..parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .module import Module

Tensor = _C.Tensor


class MemberMethods:
    """The methods of `Module` that iterate over its members."""

    if TYPE_CHECKING:
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        _modules: dict[str, Any]

    def _named_members(
        self, members: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (path + "." if path else "") + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Pairs of dotted name and parameter; a shared parameter appears once.

        Args:
            prefix: prepended to all names.
            recurse: whether to include those of submodules.
            remove_duplicate: whether a shared parameter appears only once.

        >>> [(name, tuple(p.shape)) for name, p in naru.nn.Sequential(naru.nn.Linear(3, 2)).named_parameters()]
        [('0.weight', (2, 3)), ('0.bias', (2,))]
        """
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with recurse, of its submodules.

        >>> sum(p.numel() for p in naru.nn.Linear(3, 2).parameters())
        8
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Pairs of dotted name and buffer.

        Args:
            prefix: prepended to all names.
            recurse: whether to include those of submodules.
            remove_duplicate: whether a shared buffer appears only once.

        >>> [name for name, _ in naru.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with recurse, of its submodules.

        >>> [b.shape for b in naru.nn.BatchNorm1d(2).buffers()]
        [torch.Size([2]), torch.Size([2]), torch.Size([])]
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Pairs of name and direct submodule; a shared one appears once.

        >>> list(naru.nn.Sequential(naru.nn.ReLU(), naru.nn.Tanh()).named_children())
        [('0', ReLU()), ('1', Tanh())]
        """
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules.

        >>> list(naru.nn.Sequential(naru.nn.ReLU(), naru.nn.Tanh()).children())
        [ReLU(), Tanh()]
        """
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Pairs of dotted name and module, starting with this module; a shared module appears once.

        Args:
            memo: the set of modules to skip; modules are added to it as they are visited.
            prefix: prepended to all names.
            remove_duplicate: whether a shared module appears only once.

        >>> [name for name, _ in naru.nn.Sequential(naru.nn.Sequential(naru.nn.ReLU())).named_modules()]
        ['', '0', '0.0']
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                path = (prefix + "." if prefix else "") + name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all of its submodules, recursively.

        >>> [type(m).__name__ for m in naru.nn.Sequential(naru.nn.ReLU()).modules()]
        ['Sequential', 'ReLU']
        """
        for _, module in self.named_modules():
            yield module
