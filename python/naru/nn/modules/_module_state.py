"""The state of modules: `state_dict` and `load_state_dict`."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C, __future__ as _future
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Tensor = _C.Tensor


class _IncompatibleKeys(NamedTuple("IncompatibleKeys", [("missing_keys", list), ("unexpected_keys", list)])):
    """The result of `load_state_dict`: keys missing in the state, and keys that the module does not have."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A load_state_dict pre-hook, and the module to call it with, if any. Keeps PyTorch's name, which files of whole modules contain."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook, self.with_module = hook, module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "with_module": self.with_module, **({"module": self.module()} if self.with_module else {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class StateMethods:
    """The methods of `Module` that save and load its state."""

    if TYPE_CHECKING:
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        _modules: dict[str, Any]
        _non_persistent_buffers_set: set[str]
        _state_dict_hooks: OrderedDict[int, Any]
        _state_dict_pre_hooks: OrderedDict[int, Any]
        _load_state_dict_pre_hooks: OrderedDict[int, Any]
        _load_state_dict_post_hooks: OrderedDict[int, Any]

    _version: int = 1

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` at the start of `state_dict`.

        >>> layer = naru.nn.ReLU()
        >>> handle = layer.register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("collecting"))
        >>> _ = layer.state_dict()
        collecting
        """
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` at the end of `state_dict`.

        >>> layer = naru.nn.Linear(1, 1)
        >>> def drop_bias(module, state_dict, prefix, local_metadata):
        ...     del state_dict[prefix + "bias"]
        >>> handle = layer.register_state_dict_post_hook(drop_bias)
        >>> list(layer.state_dict())
        ['weight']
        """
        handle = RemovableHandle(self._state_dict_hooks)
        if not hasattr(hook, "__dict__") or hasattr(hook, "__self__"):
            hook = functools.partial(hook)  # a partial accepts attributes
        hook._from_public_api = True  # type: ignore[attr-defined]  # its result must be None
        self._state_dict_hooks[handle.id] = hook
        return handle

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via register_state_dict_post_hook"
            )
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before its parameters are loaded.

        >>> layer = naru.nn.Linear(1, 1)
        >>> def rename(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        ...     state_dict["weight"] = state_dict.pop("w")
        >>> handle = layer.register_load_state_dict_pre_hook(rename)
        >>> layer.load_state_dict({"w": naru.ones(1, 1), "bias": naru.zeros(1)})
        <All keys matched successfully>
        """
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _WrappedHook(hook, self)
        return handle

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _WrappedHook(hook, self if with_module else None)
        return handle

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after loading; it may change the lists of keys.

        >>> layer = naru.nn.Linear(1, 1)
        >>> handle = layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
        >>> layer.load_state_dict({"weight": naru.ones(1, 1)})
        <All keys matched successfully>
        """
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    def get_extra_state(self) -> Any:
        """Additional state beyond parameters and buffers; a subclass defines it together with `set_extra_state`.

        >>> class Counter(naru.nn.Module):
        ...     count = 3
        ...     def get_extra_state(self):
        ...         return self.count
        ...     def set_extra_state(self, state):
        ...         self.count = state
        >>> Counter().state_dict()
        OrderedDict([('_extra_state', 3)])
        """
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. A subclass that defines "
            "set_extra_state() must define get_extra_state() too."
        )

    def set_extra_state(self, state: Any) -> None:
        """Restores the state that `get_extra_state` returned.

        Args:
            state: the result of `get_extra_state`.

        >>> class Counter(naru.nn.Module):
        ...     count = 3
        ...     def get_extra_state(self):
        ...         return self.count
        ...     def set_extra_state(self, state):
        ...         self.count = state
        >>> counter = Counter()
        >>> _ = counter.load_state_dict({"_extra_state": 5})
        >>> counter.count
        5
        """
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. A subclass that defines "
            "get_extra_state() must define set_extra_state() too."
        )

    def _has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateMethods, method)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: dict | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """A dict of all parameters and persistent buffers by dotted name, detached but sharing memory with the module.

        >>> from naru import nn
        >>> list(nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args):
            if name == "destination":
                destination = value
            elif name == "prefix":
                prefix = value
            else:
                keep_vars = value
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination  # type: ignore[return-value]

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        mine = {**self._parameters, **{k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}}
        for name, target in mine.items():
            if target is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            self._load_one(name, key, target, state_dict[key], assign, error_msgs, local_metadata.get("naru.tied", {}))
        extra_key = prefix + "_extra_state"
        if self._has_extra_state("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    head, *rest = key[len(prefix) :].split(".", 1)
                    if (rest and head not in self._modules) or (not rest and head not in mine):
                        unexpected_keys.append(key)

    @staticmethod
    def _same_elements(tied: dict[int, tuple[Tensor, Tensor]], target: Tensor, value: Tensor) -> bool:
        """Whether a tied parameter is loaded for the first time, or again with equal values: then the modules keep sharing one parameter."""
        if id(target) not in tied:
            return True
        first = tied[id(target)][1]
        same = _C._address(first) == _C._address(value) and first.stride() == value.stride()
        return same or (first.device == value.device and first.dtype == value.dtype and bool(_C.equal(first, value)))

    def _load_one(
        self, name: str, key: str, target: Tensor, value: Any, assign: bool, error_msgs: list[str], tied: dict[int, tuple[Tensor, Tensor]]
    ) -> None:
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        if target.dim() == 0 and value.dim() == 1 and value.numel() == 1:
            value = value[0]  # scalars were saved with one dimension before PyTorch 0.4
        if value.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {target.shape}."
            )
            return
        if target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
                "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
                "module instead of copying them in place?)",
                stacklevel=5,
            )
        swap = _future.get_swap_module_params_on_conversion()
        try:
            if swap:
                self._swap_in(name, target, value, assign)
            elif assign:
                if isinstance(target, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=target.requires_grad)
                    else:
                        value.requires_grad_(target.requires_grad)
                    value = tied.setdefault(id(target), (target, value))[1] if self._same_elements(tied, target, value) else value
                setattr(self, name, value)
            else:
                with _C.no_grad():
                    target.copy_(value)
        except Exception as error:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the '
                f"model are {target.size()} and whose dimensions in the checkpoint are {value.size()}, "
                f"an exception occurred : {error.args}."
            )

    def _swap_in(self, name: str, target: Tensor, value: Tensor, assign: bool) -> None:
        """Swaps the result of `module_load` into the target's object."""
        from ...utils import swap_tensors

        with _C.no_grad():
            made = target.module_load(value, assign=assign)
        if made is value or made is target:
            raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load")
        if isinstance(target, Parameter):
            if not isinstance(made, Parameter):
                made = Parameter(made, requires_grad=target.requires_grad)
            else:
                made.requires_grad_(target.requires_grad)
        swap_tensors(target, made)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the values of `state_dict` into parameters and buffers.

        Args:
            state_dict: what `state_dict()` returned; tensors may be on any device.
            strict: whether missing or unexpected keys raise RuntimeError.
            assign: whether to use the tensors themselves instead of copying their values.

        Returns:
            a named tuple of the lists missing_keys and unexpected_keys.

        >>> layer = naru.nn.Linear(2, 1, bias=False)
        >>> layer.load_state_dict({"weight": naru.tensor([[1.0, 2.0]])})
        <All keys matched successfully>
        >>> layer.weight.data
        tensor([[1., 2.]])
        """
        from collections.abc import Mapping as MappingType

        if not isinstance(state_dict, MappingType):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]

        tied: dict[int, tuple[Tensor, Tensor]] = {}  # by the id of the old parameter: the parameter, kept so that its id stays valid, and its replacement

        def load(module: Any, local: Mapping[str, Any], prefix: str) -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata = {**local_metadata, "assign_to_params_buffers": True, "naru.tied": tied}
            module._load_from_state_dict(local, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    path = prefix + name + "."
                    load(child, {k: v for k, v in local.items() if k.startswith(path)}, path)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                        "if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            if unexpected:
                errors.insert(0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in unexpected)))
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in missing)))
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
            )
        return _IncompatibleKeys(missing, unexpected)
