"""`Optimizer`: parameter groups with their options, and a state for each parameter."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd.grad_mode import enable_grad
from ._packages import (
    _default_to_fused_or_foreach as _default_to_fused_or_foreach,
    _disable_dynamo_if_unsupported as _disable_dynamo_if_unsupported,
    _dispatch_sqrt as _dispatch_sqrt,
    _get_capturable_supported_devices as _get_capturable_supported_devices,
    _get_scalar_dtype as _get_scalar_dtype,
    _get_value as _get_value,
    _stack_if_compiling as _stack_if_compiling,
    _use_grad_for_differentiable as _use_grad_for_differentiable,
    _view_as_real as _view_as_real,
)
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ._optimizer_hooks import OptimizerHooks, register_optimizer_step_post_hook, register_optimizer_step_pre_hook, with_hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    ParamsT: TypeAlias = Iterable[_C.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, _C.Tensor]]
else:
    ParamsT = Any

Tensor = _C.Tensor

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

# State that is kept on the host in float32, whatever the parameter's device and dtype.
_ON_HOST = ("step", "mu_product", "eta", "mu")


class Optimizer(OptimizerHooks):
    """Base of all optimizers.

    Args:
        params: parameters, pairs of name and parameter, or dicts, each a group with "params" and its own options.
        defaults: the default options of groups.

    A subclass defines `step`. Parameters keep their identity when a model moves to another device, so an
    optimizer may be created before or after; its state follows them.

    >>> class Descent(naru.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @naru.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad
    >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([2.0])
    >>> Descent([p], lr=0.25).step()
    >>> p.data
    tensor([0.5000])
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._begin_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got " + params.type()
            )
        if isinstance(params, set):
            import warnings

            warnings.warn(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change between "
                "runs. Please use a list instead. This will be an error in a future release.",
                FutureWarning,
                stacklevel=3,
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group: a dict with "params" and any options that differ from the defaults.

        Args:
            param_group: the dict. ValueError for parameters that already are in a group.

        >>> optimizer = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> optimizer.add_param_group({"params": [naru.nn.Parameter(naru.ones(1))], "lr": 0.5})
        >>> [group["lr"] for group in optimizer.param_groups]
        [1.0, 0.5]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = list(params)
        names = None
        named = [param for param in params if isinstance(param, tuple)]
        if named and len(named) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        if named:
            names = [name for name, _ in params]
            params = [param for _, param in params]
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(param).__name__)
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.grad_fn is None):
                raise ValueError("can't optimize a non-leaf Tensor")
        group = {**param_group, "params": params}
        if names is not None:
            group["param_names"] = names
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if 'param_names' in group else 'without'} names to the optimizer"
            )
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        taken = {id(p) for other in self.param_groups for p in other["params"]}
        if any(id(p) in taken for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of all parameters to None, or zeroes them with set_to_none=False.

        >>> p = naru.nn.Parameter(naru.ones(1)); p.grad = naru.ones(1)
        >>> naru.optim.SGD([p], lr=1.0).zero_grad()
        >>> p.grad is None
        True
        """
        for group in self.param_groups:
            if set_to_none:
                _C._drop_gradients(group["params"])
                continue
            for param in group["params"]:
                if param.grad is not None:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once; `closure`, if given, recomputes the loss and returns it.

        >>> p = naru.nn.Parameter(naru.tensor([1.0])); p.grad = naru.tensor([2.0])
        >>> naru.optim.SGD([p], lr=0.25).step()
        >>> p.data
        tensor([0.5000])
        """
        raise NotImplementedError

    profile_hook_step = staticmethod(with_hooks)

    # False if the host computes numbers that change from step to step, so that a replayed step (`naru.Graph`) would be wrong.
    _may_be_captured = True

    def _stateful(self, group: dict[str, Any]) -> bool:
        """Whether the first step creates state that later steps use."""
        return False

    def _check_capture(self) -> None:
        name = type(self).__name__
        if not self._may_be_captured:
            raise RuntimeError(f"{name}.step() can't be captured in a graph: it counts its steps on the host. Adam(capturable=True), RMSprop and SGD can")
        if not all(group.get("capturable", True) for group in self.param_groups):
            raise RuntimeError(f"Attempting CUDA graph capture of step() for an instance of {name} but param_groups' capturable is False.")
        for group in self.param_groups:
            if self._stateful(group) and any(p.grad is not None and not self.state.get(p) for p in group["params"]):
                raise RuntimeError(f"{name}: the first step makes its state, which each replay would make anew; do one step before the capture")

    def _run_closure(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _state_on_device(self, param: Tensor) -> dict[str, Any]:
        """The state of `param`, moved to the parameter's device if that has changed."""
        state = self.state[param]
        for key, value in state.items():
            if key not in _ON_HOST and isinstance(value, Tensor):
                if value.device != param.device:
                    _move_state(state, param.device)
                break  # all tensors except those on the host are on one device: checking the first is enough
        return state

    # --- state -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": a dict for each parameter index, "param_groups": the options, with the indices as "params"}.

        >>> p = naru.nn.Parameter(naru.ones(1)); p.grad = naru.ones(1)
        >>> optimizer = naru.optim.SGD([p], lr=1.0, momentum=0.5)
        >>> optimizer.step()
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([1.])}}
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        collected = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            new = hook(self, collected)
            collected = collected if new is None else new
        return collected

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that `state_dict` returned. Tensors that already have the parameter's device and dtype are not copied.

        Args:
            state_dict: the state. ValueError if the groups' sizes differ.

        >>> first = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=0.5)
        >>> second = naru.optim.SGD([naru.nn.Parameter(naru.ones(1))], lr=1.0)
        >>> second.load_state_dict(first.state_dict())
        >>> second.param_groups[0]["lr"]
        0.5
        """
        import copy

        state_dict = state_dict.copy()  # hooks may change it
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            new = hook(self, state_dict)
            state_dict = state_dict if new is None else new
        saved = state_dict["param_groups"]
        if len(self.param_groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        params = {
            number: param
            for mine, theirs in zip(self.param_groups, saved)
            for number, param in zip(theirs["params"], mine["params"])
        }

        def adopt(param: Tensor, value: Any, key: Any = None) -> Any:
            if isinstance(value, Tensor):
                if key in _ON_HOST:
                    return value
                return value.to(param.device, param.dtype if param.is_floating_point() else value.dtype)
            if isinstance(value, dict):
                return {k: adopt(param, v, k) for k, v in value.items()}
            if isinstance(value, (list, tuple)):
                return type(value)(adopt(param, v, key) for v in value)
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in params:
                state[params[number]] = adopt(params[number], value)
            else:
                state[number] = value
        groups = []
        for mine, theirs in zip(self.param_groups, copy.deepcopy(saved)):  # one deepcopy, so that groups keep sharing what they shared
            group = {key: value for key, value in theirs.items() if key != "params"}
            if "param_names" in mine and "param_names" not in group:
                group["param_names"] = mine["param_names"]
            groups.append({"params": mine["params"], **group})
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin_hooks()
        for group in self.param_groups:
            for name, default in self.__dict__.get("defaults", {}).items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def _move_state(state: dict[str, Any], device: _C.device) -> None:
    """Moves a parameter's state to the parameter's device."""
    for key, value in state.items():
        if isinstance(value, Tensor) and key not in _ON_HOST:
            state[key] = value.to(device)


def check_option(name: str, value: Any, good: bool) -> None:
    """ValueError with PyTorch's text unless `good`."""
    if not good:
        raise ValueError(f"Invalid {name}: {value}")


def as_real(tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of real numbers, in the same memory and without history; a real tensor itself."""
    return _C.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor


def differentiable_number(value: Any) -> Any:
    """The value of an option: a tensor without dimensions if it requires gradients, else a float."""
    return value.reshape(()) if isinstance(value, Tensor) and value.requires_grad else number(value)


def number(value: Any) -> float:
    """The value of an option that may be a one-element tensor, as a float."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element (got shape {list(value.shape)})")
    return float(value.item()) if isinstance(value, Tensor) else value
