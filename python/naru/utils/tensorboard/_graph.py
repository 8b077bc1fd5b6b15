"""The graph of a module for TensorBoard's GRAPHS tab: the calls in one run, nested by module."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ... import _C
from ...nn import Module
from ...overrides import TorchFunctionMode
from . import _records

Tensor = _C.Tensor


def _tensors(values: Any) -> Iterator[Tensor]:
    """All tensors of nested tuples, lists and dicts."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))


class _Recorder(TorchFunctionMode):
    """Nodes (name, operation, names of inputs, sizes), in the order of the calls."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.nodes: list[tuple[str, str, list[str], list[tuple[int, ...]]]] = []
        self.scopes = [type(model).__name__]
        self._taken: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._alive: list[Tensor] = []  # keeps ids unique
        self._states = {id(t): ("buffer" if named is buffers else "parameter", name)
                        for buffers in [list(model.named_buffers())] for named in (list(model.named_parameters()), buffers)
                        for name, t in named}  # fmt: skip

    def free(self, name: str) -> str:
        """`name`, with a number appended if it is already used."""
        count = self._taken[name] = self._taken.get(name, 0) + 1
        return name if count == 1 else self.free(f"{name}_{count - 1}")

    def add(self, name: str, operation: str, inputs: Any, outputs: Any) -> None:
        name = self.free(name)
        sources = [self.source(t) for t in _tensors(inputs)]
        made = list(_tensors(outputs))
        for t in made:
            self._names[id(t)] = name
        self._alive += made
        self.nodes.append((name, operation, sources, [tuple(t.shape) for t in made]))

    def source(self, tensor: Tensor) -> str:
        """The node that produced a tensor; a node without inputs for a tensor that existed before."""
        if id(tensor) not in self._names:
            kind, name = self._states.get(id(tensor), ("constant", "constant"))
            self.add("/".join([*self.scopes, name.rpartition(".")[2]]), kind, (), tensor)
        return self._names[id(tensor)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if next(_tensors(out), None) is not None:
            name = getattr(func, "__name__", str(func))
            self.add("/".join([*self.scopes, name.strip("_")]), "aten::" + name.strip("_"), (args, kwargs or {}), out)
        return out


@contextmanager
def _watched(model: Module, recorder: _Recorder) -> Iterator[None]:
    """Puts the model in eval mode, with hooks that tell the recorder which module runs."""
    hooks, modes = [], [(m, m.training) for m in model.modules()]

    def watch(module: Module, scope: str) -> None:
        hooks.append(module.register_forward_pre_hook(lambda *_: recorder.scopes.append(scope)))
        hooks.append(module.register_forward_hook(lambda *_: recorder.scopes.pop() and None))

    for name, module in model.named_modules():
        if name:
            watch(module, f"{type(module).__name__}[{name.rpartition('.')[2]}]")
    model.eval()
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes:
            module.training = mode


def _shape(sizes: tuple[int, ...]) -> bytes:
    return b"".join(_records.data(2, _records.number(1, size)) for size in sizes)


def _node(name: str, operation: str, inputs: list[str], shapes: list[tuple[int, ...]]) -> bytes:
    """A NodeDef."""
    out = _records.data(1, name) + _records.data(2, operation) + b"".join(_records.data(3, source) for source in inputs)
    if shapes:
        several = _records.data(1, b"".join(_records.data(7, _shape(sizes)) for sizes in shapes))
        out += _records.data(5, _records.data(1, "_output_shapes") + _records.data(2, several))
    return out


def graph_of(model: Module, inputs: Any, verbose: bool) -> bytes:
    """A GraphDef of what `model` does with `inputs`, a tensor or a tuple of arguments."""
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    recorder = _Recorder(model)
    names = [name for name, p in inspect.signature(model.forward).parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for i, argument in enumerate(arguments):
        recorder.add(f"input/{names[i] if i < len(names) else i}", "IO Node", (), argument)
    with _watched(model, recorder), _C.no_grad(), recorder:
        out = model(*arguments)
    for i, tensor in enumerate(_tensors(out)):
        recorder.add(f"output/output.{i + 1}", "IO Node", tensor, tensor)
    if verbose:
        for name, operation, sources, shapes in recorder.nodes:
            print(f"{name} = {operation}({', '.join(sources)}) {' '.join(map(str, shapes))}".rstrip())
    producer = 22  # the version of the format
    return b"".join(_records.data(1, _node(*node)) for node in recorder.nodes) + _records.data(4, _records.number(1, producer))
