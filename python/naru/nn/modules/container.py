"""Containers of modules and parameters: sequences and dicts."""

from __future__ import annotations

import collections
import collections.abc
import itertools
import operator
from typing import TYPE_CHECKING, Any

from ... import _C
from ..parameter import Parameter
from ._dict_methods import DictMethods
from .module import Module, _addindent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

Tensor = _C.Tensor

__all__ = ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def _position(index: Any, length: int) -> int:
    """`index` normalised to 0 ... length - 1; IndexError if out of range."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _ModuleSequence(Module):
    """Base of Sequential and ModuleList: modules registered under the names "0", "1", ..."""

    def _name_at(self, index: int) -> str:
        return next(itertools.islice(self._modules, _position(index, len(self._modules)), None))

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        for i, module in enumerate(modules):
            self._modules[str(i)] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            del self._modules[name]
        self._renumber(self._modules.values())

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Inserts a module before position `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice) -> Module:
        """Removes and returns the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise NotImplementedError
        return self._modules[self._name_at(index)]


class Sequential(_ModuleSequence):
    """Calls modules one after another, each with the output of the previous one.

    Accepts the modules, or one OrderedDict of names and modules. TypeError for anything else.

    >>> from naru import nn
    >>> nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], collections.OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(collections.OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        for module in list(self * times)[len(self) :]:
            self.append(module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(_ModuleSequence):
    """A list of modules, whose parameters are registered with the module that has the list as an attribute.

    >>> from naru import nn
    >>> nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        # Consecutive modules with the same repr are shown once, with their range and number.
        texts = [repr(module) for module in self]
        if not texts:
            return self._get_name() + "()"
        lines = []
        start = 0
        for end in range(1, len(texts) + 1):
            if end == len(texts) or texts[end] != texts[start]:
                count = end - start
                head = f"({start}): " if count == 1 else f"({start}-{end - 1}): {count} x "
                lines.append(_addindent(head + texts[start], 2))
                start = end
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules, in order of insertion.

    >>> layers = naru.nn.ModuleDict({"act": naru.nn.ReLU()})
    >>> layers["act"](naru.tensor([-1.0, 2.0])), list(layers)
    (tensor([0., 2.]), ['act'])
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes and returns the module under `key`."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names of the modules."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of (name, module)."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a dict or from pairs; existing names are replaced.

        >>> acts = naru.nn.ModuleDict({"a": naru.nn.ReLU()})
        >>> acts.update({"a": naru.nn.Tanh(), "b": naru.nn.ReLU()})
        >>> list(acts.items())
        [('a', Tanh()), ('b', ReLU())]
        """
        if not hasattr(modules, "__iter__"):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}"
            )
        if hasattr(modules, "items"):
            modules = modules.items()
        for i, pair in enumerate(modules):
            if not hasattr(pair, "__iter__"):
                raise TypeError(f"ModuleDict update sequence element #{i} should be Iterable; is{type(pair).__name__}")
            if len(pair) != 2:
                raise ValueError(f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required")
            self[pair[0]] = pair[1]


def _describe(value: Any, by_dtype: bool) -> str:
    """One line of ParameterList's (`by_dtype`) or ParameterDict's repr."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    place = f" (GPU {value.device.index})" if value.device.type == "cuda" else ""
    return f"{kind} containing: [{value.dtype if by_dtype else value.type()} of size {size}{place}]"


class ParameterList(Module):
    """A list of parameters; tensors become parameters when added; other objects are stored unchanged.

    Args:
        values: tensors and other objects.

    >>> len(naru.nn.ParameterList([naru.ones(2), naru.ones(3)]))
    2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        name = str(_position(index, self._size))
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds values at the end."""
        if not hasattr(values, "__iter__") or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(v, True)}" for i, v in enumerate(self))


class ParameterDict(DictMethods, Module):
    """A dict of parameters; tensors become parameters when added; other objects are stored unchanged.

    >>> list(naru.nn.ParameterDict({'w': naru.ones(2)}))
    ['w']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _of(self, pairs: Iterable[tuple[str, Any]]) -> ParameterDict:
        return ParameterDict(collections.OrderedDict(pairs))

    def _attribute(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}').")
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attribute(key)
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names of the values."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of (name, value)."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`, else `default`."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Removes and returns the value under `key`."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Removes all values."""
        for key in list(self._keys):
            del self[key]

    def update(self, parameters: Mapping[str, Any] | Iterable[Any]) -> None:
        """Adds values from a dict or from pairs.

        Args:
            parameters: tensors and other objects by name; those of a plain dict are added sorted by name.

        >>> values = naru.nn.ParameterDict()
        >>> values.update({"scale": naru.ones(2)})
        >>> type(values["scale"]).__name__
        'Parameter'
        """
        if not hasattr(parameters, "__iter__"):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        if isinstance(parameters, collections.abc.Mapping) and not isinstance(parameters, collections.OrderedDict):
            pairs = sorted(pairs)
        for key, value in pairs:
            self[key] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(f"  ({k}): {_describe(v, False)}" for k, v in self.items())
