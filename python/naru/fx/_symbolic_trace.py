"""The tracer: runs a module's `forward` with proxies for its inputs, and records what is done with them."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import sys
import threading
from collections import OrderedDict
from types import FunctionType as FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _C
from .._compat import placeholders
from .._compat.checks import _assert
from ..nn import Module, Parameter, Sequential
from ..utils._pytree import tree_leaves
from ._compatibility import compatibility as compatibility
from ._names import as_recorded, library_functions
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument
from .proxy import Attribute as Attribute, Proxy as Proxy, TracerBase, _proxies

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

T = TypeVar("T")
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # (id of a module's names, name) -> these names
_tracing = [0]
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__


def is_fx_tracing() -> bool:
    """Whether a trace is going on."""
    return _tracing[0] > 0


is_fx_symbolic_tracing = is_fx_tracing  # PyTorch distinguishes traces of other kinds, which naru has not

ScriptObject = type("ScriptObject", (), {"__doc__": "The class of TorchScript's objects, of which naru has none."})


class PHBase:
    """An argument of `concrete_args` that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


def wrap(fn_or_name: T) -> T:
    """Makes tracers record calls of a function of the calling module (or of a built-in one, by name) and not enter it. Called at the top of a module,
    also as a decorator; returns `fn_or_name`. RuntimeError for anything else.

    >>> naru.fx.wrap("len")
    'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(f"Unsupported type for global function! Must be either a callable or string name, got {type(fn_or_name)}")
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", "")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(f"wrap must be called at the top level of a module; it was called in {frame.f_code.co_name}")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _recording(original: Callable[..., Any], is_wrapped: bool = True) -> Callable[..., Any]:
    """A function that records a call if a proxy is among the arguments, and else makes it."""

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        proxies = _proxies((args, kwargs))
        if not proxies:
            return original(*args, **kwargs)
        if not is_wrapped:
            args, kwargs = as_recorded(original, args, kwargs)
        made = proxies[0].tracer.create_proxy("call_function", original, args, kwargs)
        if is_wrapped:
            made.node.meta["is_wrapped"] = True
        return made

    return recorded


class _Patcher:
    """Changes of modules and classes that last as long as a trace."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., Any], Any, str, Any]] = []
        self.visited: set[int] = set()

    def patch(self, names: dict[str, Any], name: str, new: Any) -> None:
        """Changes a module's name, until the end of `with`."""
        self._undo.append((dict.__setitem__ if name in names else dict.pop, names, name, names.get(name)))
        names[name] = new

    def patch_method(self, cls: type, name: str, new: Any, deduplicate: bool = True) -> None:
        """Changes a method of a class, until the end of `with`."""
        self._undo.append((setattr if name in vars(cls) else lambda cls, name, _: delattr(cls, name), cls, name, getattr(cls, name)))
        setattr(cls, name, new)

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *exc: object) -> None:
        for undo, place, name, old in reversed(self._undo):
            undo(place, name, old)


def _autowrap_check(patcher: _Patcher, names: dict[str, Any], function_ids: set[int]) -> None:
    """Puts recording functions in the place of naru's, and of those with these ids, among a module's names."""
    if id(names) in patcher.visited:
        return
    patcher.visited.add(id(names))
    library = {id(function): function for function in library_functions().values()}
    for name, value in list(names.items()):
        if id(value) in function_ids and not name.startswith("_") and callable(value):
            patcher.patch(names, name, _recording(value))
        elif id(value) in library and value is library[id(value)]:
            patcher.patch(names, name, _recording(value, is_wrapped=False))


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Puts recording functions in the place of naru's and of those that `wrap` was called for."""
    for (place, name), function in library_functions().items():
        patcher.patch(vars(sys.modules[place]), name, _recording(function, is_wrapped=False))
    for (_, name), names in list(_wrapped.items()):
        patcher.patch(names, name, _recording(names[name] if name in names else getattr(builtins, name)))


class Tracer(TracerBase):
    """Makes a graph of a module or a function. Subclasses change `is_leaf_module` and the other methods.

    autowrap_modules: modules such as `math` whose functions are recorded; autowrap_functions: further such functions.
    param_shapes_constant: accepted, without effect.

    >>> class All(naru.fx.Tracer):
    ...     def is_leaf_module(self, m, qualified_name):
    ...         return False
    >>> [node.op for node in All().trace(naru.nn.Softsign()).nodes]
    ['placeholder', 'call_function', 'output']
    """

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,), autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        self._autowrap_search = list(autowrap_modules)
        found = [value for module in autowrap_modules for name, value in vars(module).items() if not name.startswith("_") and callable(value)]
        self._autowrap_function_ids = {id(value) for value in (*found, *autowrap_functions)}
        self.param_shapes_constant = param_shapes_constant
        self.tensor_attrs: dict[_C.Tensor, str] = {}
        self.submodule_paths: dict[Module, str] | None = None
        self.module_stack: OrderedDict[str, Any] = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.root: Module

    # --- what subclasses change ---

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of `m` is one node; by default that of all modules of torch.nn but Sequential."""
        place = type(m).__module__.split(".")
        return place[:2] in (["torch", "nn"], [_C.__name__.partition(".")[0], "nn"]) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of a submodule of the root, with dots. NameError if it is none."""
        if self.submodule_paths and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        found = next((name for name, other in self.root.named_modules(remove_duplicate=False) if other is mod), None)
        if found is None:
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Called for each call of a module, with its `forward`."""
        name = self.path_of_module(m)
        self.num_calls[name] = calls = self.num_calls.get(name, -1) + 1
        key = f"{name}@{calls}" if calls else name
        self.module_stack[key] = (name, type(m))
        try:
            return forward(*args, **kwargs) if not self.is_leaf_module(m, name) else self.create_proxy("call_module", name, args, kwargs)
        finally:
            self.module_stack.pop(key)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called for each attribute of a module: a proxy for a parameter (and for a buffer, if `proxy_buffer_attributes`), the value otherwise."""
        if isinstance(attr_val, Parameter) or (self.proxy_buffer_attributes and isinstance(attr_val, _C.Tensor)):
            named = self.root.named_parameters if isinstance(attr_val, Parameter) else self.root.named_buffers
            for name, value in named():
                if value is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root does not have: `prefix` with a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_node(self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any], name: str | None = None, type_expr: Any = None) -> Any:
        """Adds a node, which knows the modules that are being called."""
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = OrderedDict(self.module_stack)
        return node

    def create_arg(self, a: Any) -> Argument:
        """As in TracerBase; a parameter, tensor or module is a node that takes it from the root, where a tensor that is new gets a name."""
        if isinstance(a, Parameter):
            for name, value in self.root.named_parameters():
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, _C.Tensor):
            name_of = self.tensor_attrs.get(a) or next((name for name, value in self.root.named_buffers() if value is a), None)
            if name_of is None:
                name_of = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, name_of, a)
            self.tensor_attrs[a] = name_of
            return self.create_node("get_attr", name_of, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    # --- tracing ---

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None) -> tuple[Callable[..., Any], list[Any]]:
        """The function to run, and its arguments: proxies, except those that `concrete_args` has a value for."""
        function = inspect.unwrap(root_fn)
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[is_module:count]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(names):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments")
            concrete_args = dict(zip(names, concrete_args))
        parameters = inspect.signature(function).parameters
        args = [self.root] * is_module + [self._placeholder(name, parameters, function, concrete_args or {}) for name in names]
        starred = [star for flag, star in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")) if code.co_flags & flag]
        args += [self.create_proxy("placeholder", star + code.co_varnames[count + i], (), {}) for i, star in enumerate(starred)]
        if not starred and not code.co_kwonlyargcount:
            return root_fn, args
        # A starred parameter is bound to one proxy, which no call does: a copy of the function has all as parameters without stars.
        flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        plain = code.replace(co_flags=flags, co_argcount=len(args), co_kwonlyargcount=0, co_posonlyargcount=0)
        return FunctionType(plain, function.__globals__, function.__name__, None, function.__closure__), args

    def _placeholder(self, name: str, parameters: Any, function: Any, concrete: dict[str, Any]) -> Any:
        default = () if parameters[name].default is inspect.Parameter.empty else (parameters[name].default,)
        if name in concrete and not isinstance(concrete[name], PHBase):
            value = concrete[name]
            if any(isinstance(v, PHBase) for v in tree_leaves(value)):
                got = f"got a {type(value).__name__} with fx.PH in it; give its items as arguments"
                raise NotImplementedError(f"concrete_args: wanted a value or fx.PH for {name}, {got}")
            given = self.create_proxy("placeholder", f"{name}_1", default, {})
            if value is None or isinstance(value, (bool, int, float, str)):
                said = f"{name} has been specialized to have value {value} but got another value"
                same = self.create_proxy("call_function", operator.is_, (given, None), {}) if value is None else given == value
                self.create_proxy("call_function", _assert, (same, said), {})
            return value
        kind = getattr(function, "__annotations__", {}).get(name)
        if isinstance(kind, str) and function.__globals__.get("_C") is _C:  # naru's own annotations are texts
            kind = _C.Tensor if kind == "Tensor" else None
        return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """The graph of a module or function. concrete_args: values of parameters, by name, that are part of the program and not inputs."""
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            function = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {module: name for name, module in reversed(list(root.named_modules(remove_duplicate=False)))}
        else:
            if not inspect.isfunction(inspect.unwrap(root)):
                raise TypeError(f"fx.Tracer.trace: wanted a Module or a function written in Python, got {root!r}; call it in a function of your own")
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self) if type(self).__qualname__.find("<locals>") < 0 else None)
        self.tensor_attrs = {}
        self._collect(self.root, "")
        _tracing[0] += 1
        try:
            run, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            with _Patcher() as patcher:
                self._patch(patcher, getattr(inspect.unwrap(function), "__globals__", {}))
                result = run(*args)
            kind = getattr(run, "__annotations__", {}).get("return")
            kind = None if isinstance(kind, str) and run.__globals__.get("_C") is _C else kind
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        finally:
            _tracing[0] -= 1
            self.submodule_paths = None
        return self.graph

    def _collect(self, module: Module, prefix: str) -> None:
        """Notes the names of tensors that are plain attributes."""
        for name, value in vars(module).items():
            if isinstance(value, _C.Tensor):
                self.tensor_attrs[value] = prefix + name
        for name, child in module.named_children():
            self._collect(child, f"{prefix}{name}.")

    def _patch(self, patcher: _Patcher, names: dict[str, Any]) -> None:
        """Puts recording functions where modules are called, and where the program finds naru's and its own wrapped functions."""
        cache: dict[str, Any] = {}
        thread = threading.get_ident()
        call, get = Module.__call__, Module.__getattr__  # those of a trace around this one, if there is one

        def module_call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return call(mod, *args, **kwargs)
            _autowrap_check(patcher, getattr(inspect.unwrap(type(mod).forward), "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(mod, lambda *args, **kwargs: call(mod, *args, **kwargs), args, kwargs)

        patcher.patch_method(Module, "__call__", module_call)
        def module_getattr(mod: Module, attr: str) -> Any:
            value = get(mod, attr)
            return self.getattr(attr, value, cache) if threading.get_ident() == thread else value

        patcher.patch_method(Module, "__getattr__", module_getattr)
        _patch_wrapped_functions(patcher)
        for place in (names, *map(vars, self._autowrap_search)):
            _autowrap_check(patcher, place, self._autowrap_function_ids)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A GraphModule of what `root`, a module or function, does with its inputs. `concrete_args` are values of parameters that are no inputs.
    TraceError if the program's course depends on a value that is not known while tracing.

    >>> print(naru.fx.symbolic_trace(naru.nn.Sequential(naru.nn.Linear(2, 2), naru.nn.ReLU())).code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        _1 = getattr(self, "1")(_0);  _0 = None
        return _1
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, type(root).__name__ if isinstance(root, Module) else root.__name__)


__getattr__ = placeholders.module_getattr(__name__)
