"""`torch.fx.graph_module`: a module whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import weakref
from typing import TYPE_CHECKING, Any

from .. import _C
from .._compat import placeholders
from ..nn import Module, Parameter
from .graph import Graph

if TYPE_CHECKING:
    from ._codegen import PythonCode

__all__ = ["GraphModule", "reduce_graph_module"]

_number = itertools.count()


def _compiled(code: PythonCode) -> Any:
    """The function `forward` of a graph; its lines are shown in tracebacks."""
    name = f"<eval_with_key>.{next(_number)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(True), name)
    space = dict(code.globals)
    exec(compile(code.src, name, "exec"), space)
    weakref.finalize(space["forward"], linecache.cache.pop, name, None)
    return space["forward"]


def _assign(root: Module, target: str, value: Any) -> None:
    """Sets an attribute with dots; modules on the way that are not there are made."""
    *path, last = target.split(".")
    for part in path:
        if getattr(root, part, None) is None:
            setattr(root, part, Module())
        root = getattr(root, part)
    if isinstance(value, _C.Tensor) and not isinstance(value, Parameter):
        root.register_buffer(last, value)
    else:
        setattr(root, last, value)


class GraphModule(Module):
    """A module with a `graph`, and a `forward` of that program. After changes of the graph call `recompile`.

    `root` is the module that has what the graph's nodes ask for, or a dictionary of these by name; only what is asked for is taken.

    >>> traced = naru.fx.symbolic_trace(lambda x: x + 1)
    >>> next(n for n in traced.graph.nodes if n.op == "call_function").target = naru.mul
    >>> traced.recompile(); traced(naru.tensor([3.0])), traced.code.strip().splitlines()[1]
    (tensor([3.]), '    add = torch.mul(x, 1);  x = None')
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of a class of its own, which has its own `forward`."""
        base = next(c for c in cls.__mro__ if "_of_one" not in vars(c))
        made = type(base.__name__, (base,), {"_of_one": True, "__module__": base.__module__, "__doc__": base.__doc__})
        return super().__new__(made)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        wanted = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for target in dict.fromkeys(wanted):
                value: Any = root
                for part in target.split("."):
                    value = getattr(value, part)
                _assign(self, target, value)
            self.__dict__.update({key: value for key, value in root.__dict__.items() if key in ("_in_spec", "_out_spec")})
        elif isinstance(root, dict):
            for target in wanted:
                if target not in root:
                    node = next(n for n in graph.nodes if n.target == target)
                    raise RuntimeError(f"Node {node} referenced target {target} but that target was not provided in ``root``!")
            for target in sorted(dict.fromkeys(wanted), key=lambda name: name.count(".")):
                _assign(self, target, root[target])
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root! Wanted a Module or a dict of what the graph's nodes ask for, by name")
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {})) if isinstance(root, GraphModule) else {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The program; assigning one writes a new `forward`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "graph":
            type(self).graph.fset(self, value)  # type: ignore[attr-defined]
        else:
            super().__setattr__(name, value)

    @property
    def code(self) -> str:
        """The text of `forward`."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> Any:
        """Writes `forward` from the graph as it is now."""
        code = self._graph.python_code("self")
        self.__dict__["_code"] = code.src
        type(self).forward = _compiled(code)
        return None

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds the module `m` under a name with dots; False if something else is in the way."""
        place: Any = self
        for part in target.split(".")[:-1]:
            place = getattr(place, part, None) if hasattr(place, part) else place.add_module(part, Module()) or getattr(place, part)
            if not isinstance(place, Module):
                return False
        place.add_module(target.rpartition(".")[2], m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the submodule of that name; False if there is none."""
        path, _, last = target.rpartition(".")
        try:
            place = self.get_submodule(path)
        except AttributeError:
            return False
        return place._modules.pop(last, None) is not None

    def delete_all_unused_submodules(self) -> None:
        """Removes the submodules that no node calls or takes something of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    used.update(name for name, _ in self.get_submodule(str(node.target)).named_modules(prefix=str(node.target)))
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **settings: Any) -> str:
        """Prints the text of the module and of those GraphModules in it; returns it."""
        lines = self._graph.python_code("self", verbose=True).src.strip("\n").splitlines()
        text = f"class {self._get_name()}(torch.nn.Module):\n" + "\n".join(f"    {line}".rstrip() for line in lines)
        for child in self.children():
            if isinstance(child, GraphModule):
                text += "\n" + "\n".join(f"    {line}".rstrip() for line in child.print_readable(print_output=False).splitlines())
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Not there: NotImplementedError."""
        raise NotImplementedError("GraphModule.to_folder: naru does not write packages; use torch.save(module, file), or write module.code yourself")

    def _get_name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return "\n".join([super().__repr__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"])

    __repr__ = __str__

    def _state(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_graph", "_code")}

    def __reduce__(self) -> Any:
        return reduce_graph_module, ({**self._state(), "_class": (type(self).__mro__[1], type(self).__name__)}, self._graph)

    def __deepcopy__(self, memo: Any) -> Any:
        memo[id(self)] = made = _restored({"_class": (type(self).__mro__[1], type(self).__name__)}, Graph())
        made.__dict__.update(copy.deepcopy(self._state(), memo))
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __copy__(self) -> Any:
        return reduce_graph_module({**self._state(), "_class": (type(self).__mro__[1], type(self).__name__)}, copy.deepcopy(self._graph))


def _restored(state: dict[str, Any], graph: Graph) -> GraphModule:
    base, name = state.pop("_class")
    made = base.__new__(base)
    Module.__init__(made)
    type(made).__name__ = name
    made.__dict__.update(state)
    made.graph = graph
    return made


def reduce_graph_module(body: dict[str, Any], graph: Graph) -> GraphModule:
    """The GraphModule of a file: `body` is what was in it, with its class, and `graph` its program.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(naru.fx.symbolic_trace(naru.nn.ReLU())))(naru.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if not isinstance(graph, Graph):
        raise NotImplementedError("reduce_graph_module: wanted a GraphModule that naru stored, got PyTorch's; store its state_dict, and trace the model here")
    return _restored(dict(body), graph)


__getattr__ = placeholders.module_getattr(__name__)
