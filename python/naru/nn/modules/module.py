"""`Module`, the base class of layers and models: a tree of named parameters, buffers and submodules."""

from __future__ import annotations

import inspect
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NoReturn

from ... import _C
from ..._missing import fail
from ..parameter import Buffer, Parameter
from . import _global_hooks
from ._module_convert import ConvertMethods
from ._global_hooks import (
    _registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from ._module_hooks import HookMethods
from ._module_members import MemberMethods
from ._module_state import StateMethods, _IncompatibleKeys as _IncompatibleKeys, _WrappedHook as _WrappedHook

Tensor = _C.Tensor
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_global_parameter_registration_hooks, _global_buffer_registration_hooks, _global_module_registration_hooks = (
    _registration_hooks[kind] for kind in ("parameter", "buffer", "module")
)

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip


def _addindent(text: str, spaces: int) -> str:
    return text.replace("\n", "\n" + " " * spaces)


_MOST_LAYERS = 100_000  # more layers would exhaust memory


def check_layer_count(count: int) -> None:
    """ValueError if the number of layers exceeds the limit."""
    if count > _MOST_LAYERS:
        raise ValueError(f"num_layers: wanted at most {_MOST_LAYERS}, got {count}")


def type_name(value: object) -> str:
    """The name of a value's type as in PyTorch's messages."""
    if isinstance(value, Tensor) and type(value) is Tensor:
        return value.type()
    kind = type(value)
    module = kind.__module__
    if module.split(".")[0] == "naru":
        module = "torch" + module[4:]
    return kind.__qualname__ if module in ("builtins", None) else f"{module}.{kind.__qualname__}"


class Module(ConvertMethods, HookMethods, MemberMethods, StateMethods):
    """The base class of all layers and models.

    Parameters, buffers and modules that are assigned as attributes are registered under the attribute's name.
    A subclass calls `super().__init__()` first and defines `forward`.

    >>> import naru
    >>> from naru import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = nn.Linear(3, 2)
    ...     def forward(self, x):
    ...         return self.fc(x).relu()
    >>> net = Net()
    >>> net
    Net(
      (fc): Linear(in_features=3, out_features=2, bias=True)
    )
    >>> net(naru.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    dump_patches: bool = False
    training: bool
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Bypasses __setattr__, which checks each value.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        for name in self._HOOK_DICTS:
            state[name] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    _HOOK_DICTS = (
        "_backward_pre_hooks",
        "_backward_hooks",
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's computation; every subclass defines it. Call the module, not this method, so that hooks run.

        >>> class Twice(naru.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Twice()(naru.ones(2))
        tensor([2., 2.])
        """
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # --- calling -----------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

        def __getattr__(self, name: str) -> Any: ...

    else:  # in C++, as every layer of every call goes through them
        __call__ = _C._module_call
        __getattr__ = _C._module_getattr

    # Names that subclasses written for PyTorch override or call.
    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Module.__call__(self, *args, **kwargs)

    _wrapped_call_impl = _call_impl

    # --- attributes --------------------------------------------------------------------------------------------

    def _missing_attribute(self, name: str) -> NoReturn:
        fail("nn.Module", name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = state.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            modules[name] = registered("module", self, name, value) if _registration_hooks["module"] else value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = value
            return
        buffers = state.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer) and buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if isinstance(value, Buffer):
                if "persistent" in inspect.signature(self.register_buffer).parameters:
                    self.register_buffer(name, value, value.persistent)
                else:  # a subclass whose register_buffer has no such argument
                    self.register_buffer(name, value)
            else:
                buffers[name] = value
            return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _forget(self, name: str, keep: str) -> None:
        """Removes attribute `name` from __dict__ and all registries except `keep`."""
        state = self.__dict__
        state.pop(name, None)
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry != keep and registry in state:
                state[registry].pop(name, None)
        if keep != "_buffers" and "_non_persistent_buffers_set" in state:
            state["_non_persistent_buffers_set"].discard(name)

    def _check_name(self, kind: str, name: Any, registry: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registry:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under `name`; None registers the name without a parameter (such as for Linear's bias=False).

        Args:
            param: the parameter (TypeError for other objects, KeyError for a name that exists or contains a dot).

        >>> module = naru.nn.Module()
        >>> module.register_parameter("scale", naru.nn.Parameter(naru.ones(2)))
        >>> [name for name, _ in module.named_parameters()]
        ['scale']
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
        elif not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        elif param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        else:
            self._parameters[name] = registered("parameter", self, name, param) if _registration_hooks["parameter"] else param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but not a parameter: it moves with `to` and, if persistent, is in the state_dict.

        Args:
            name: a name without a dot (KeyError).
            tensor: the tensor; None registers the name without a tensor.

        >>> module = naru.nn.Module()
        >>> module.register_buffer("mean", naru.zeros(2))
        >>> module.mean, list(module.state_dict())
        (tensor([0., 0.]), ['mean'])
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor) if _registration_hooks["buffer"] else tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under `name`.

        Args:
            module: the child, which becomes an attribute; None registers the name without a module.

        >>> module = naru.nn.Module()
        >>> module.add_module("act", naru.nn.ReLU())
        >>> module.act
        ReLU()
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = registered("module", self, name, module) if _registration_hooks["module"] else module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`.

        Args:
            name, module: as in `add_module`.

        >>> module = naru.nn.Module()
        >>> module.register_module("act", naru.nn.ReLU())
        >>> module.act
        ReLU()
        """
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Module:
        """The submodule at a dotted path, e.g. "encoder.0"; AttributeError if there is none.

        Args:
            target: the path; "" for this module.

        >>> model = naru.nn.Sequential(naru.nn.Sequential(naru.nn.ReLU()))
        >>> model.get_submodule("0.0")
        ReLU()
        """
        module = self
        for part in target.split(".") if target else []:
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Sets the module at a dotted path, whose last part may be new unless strict. ValueError or AttributeError for an invalid path or object.

        Args:
            target: the path. module: the module to set.
            strict: whether its last part must exist already.

        >>> model = naru.nn.Sequential(naru.nn.ReLU())
        >>> model.set_submodule("0", naru.nn.Tanh())
        >>> model[0]
        Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if not hasattr(parent, name):
            if strict:
                raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        elif not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.

        Args:
            target: the path. AttributeError if there is none.

        >>> naru.nn.Sequential(naru.nn.Linear(3, 2)).get_parameter("0.bias").shape
        torch.Size([2])
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path.

        Args:
            target: the path. AttributeError if there is none.

        >>> naru.nn.Sequential(naru.nn.BatchNorm1d(2)).get_buffer("0.running_mean")
        tensor([0., 0.])
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    # --- iteration over the tree --------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in self._HOOK_DICTS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        if any(self.__dict__[name] for name in self._HOOK_DICTS[:7]):
            self._hooked = True

    # --- text --------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of repr; subclasses define it.

        >>> class Scale(naru.nn.Module):
        ...     def extra_repr(self):
        ...         return "by=2"
        >>> Scale()
        Scale(by=2)
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return self._get_name() + "()"
        return self._get_name() + "(\n  " + "\n  ".join(lines + children) + "\n)"


sys.modules[__name__].__class__ = _global_hooks.WithGlobalHooks
