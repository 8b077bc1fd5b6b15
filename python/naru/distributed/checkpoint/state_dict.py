"""`torch.distributed.checkpoint.state_dict`: state dicts of models and optimizers by the parameters' own names, whatever wraps the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import _C, _missing
from ...autograd.grad_mode import no_grad
from .. import _groups, _messages
from .._collectives import broadcast
from ..tensor._dtensor import DTensor
from ..tensor._factories import distribute_tensor

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict",
    "set_state_dict",
]  # fmt: skip

Tensor = _C.Tensor
# Children that wrap a module, whose names are no part of a parameter's.
_WRAPPERS = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))


@dataclass
class StateDictOptions:
    """How state dicts are got and set.

    Args:
        full_state_dict: whether tensors are whole, instead of DTensors.
        cpu_offload: whether tensors are on the cpu; with full_state_dict only rank 0 gets them.
        ignore_frozen_params: whether parameters that need no gradient are left out.
        keep_submodule_prefixes: whether names of submodules' parameters begin with the submodules'.
        strict: whether names that are missing or unknown are errors.
        broadcast_from_rank0: whether only rank 0's state dict is taken; it must be whole.
        flatten_optimizer_state_dict: whether the optimizer's is one dict, of names with dots.
        dsd_fqn_modifiers: ignored.

    >>> naru.distributed.checkpoint.state_dict.StateDictOptions(full_state_dict=True).strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


class _Incompatible(NamedTuple):
    missing_keys: Any
    unexpected_keys: Any


def _options(given: StateDictOptions | None) -> StateDictOptions:
    options = given or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _own_name(model: Any, name: str) -> str:
    """A parameter's name without those of wrappers."""
    from ...nn.parallel import DataParallel, DistributedDataParallel

    made, at = [], model
    for part in name.split("."):
        if part not in _WRAPPERS and not (part == "module" and isinstance(at, (DistributedDataParallel, DataParallel))):
            made.append(part)
        at = getattr(at, part, None)
    return ".".join(made)


def _whole(value: Any, options: StateDictOptions) -> Any:
    """A state dict's values as the options say."""
    if isinstance(value, dict):
        return {k: _whole(v, options) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_whole(v, options) for v in value)
    if not isinstance(value, Tensor):
        return value
    if options.full_state_dict and isinstance(value, DTensor):
        value = value.full_tensor()
    if options.cpu_offload:
        value = value.to("cpu")
    return value.detach() if options.full_state_dict or options.cpu_offload else value


def _given_to(value: Any, options: StateDictOptions) -> Any:
    """The state dict of this rank: of a whole one on the cpu, only rank 0 keeps it."""
    made = _whole(value, options)
    only_first = options.full_state_dict and options.cpu_offload and _groups.is_initialized()
    return {} if only_first and _groups.world().rank() else made


def _within(model: Any, submodules: Any) -> set[str] | None:
    if not submodules:
        return None
    wanted = set(submodules)
    return {_own_name(model, name) + "." for name, module in model.named_modules() if module in wanted}


@no_grad()
def get_model_state_dict(model: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None) -> dict[str, Any]:
    """The state dict of a model, by the parameters' own names: without those of DistributedDataParallel and other wrappers. All ranks call it.

    Args:
        model: the model.
        submodules: only of these submodules.
        options: how.

    >>> list(naru.distributed.checkpoint.state_dict.get_model_state_dict(naru.nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    chosen = _options(options)
    made = {_own_name(model, name): value for name, value in model.state_dict().items()}
    prefixes = _within(model, submodules)
    if prefixes is not None:
        found = {}
        for name, value in made.items():
            for prefix in prefixes:
                if name.startswith(prefix):
                    found[name if chosen.keep_submodule_prefixes else name[len(prefix) :]] = value
        made = found
    if chosen.ignore_frozen_params:
        for name, param in model.named_parameters():
            if not param.requires_grad:
                made.pop(_own_name(model, name), None)
    return _given_to(made, chosen)


def _fitted(value: Any, like: Any, first: bool) -> Any:
    """A whole tensor, of rank 0 or of each rank, as the tensor that it is loaded into lies."""
    if not isinstance(like, Tensor):
        if first:
            told = [value]
            _messages.broadcast_object_list(told, src=0)
            return told[0]
        return value
    if isinstance(value, DTensor):
        return value
    if first:
        whole = _C.empty(tuple(like.shape), dtype=like.dtype, device="cpu")
        if _groups.world().rank() == 0:
            whole.copy_(value)
        broadcast(whole, src=0)
        value = whole
    if isinstance(like, DTensor) and isinstance(value, Tensor):
        return distribute_tensor(value.detach().to(like.dtype), like.device_mesh, like.placements, src_data_rank=None)
    return value


@no_grad()
def set_model_state_dict(model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Loads a state dict of `get_model_state_dict` into a model; returns missing_keys and unexpected_keys. All ranks call it.

    Args:
        model: the model.
        model_state_dict: the state dict; whole tensors with full_state_dict, which each rank takes its parts of.
        options: how.

    >>> layer = naru.nn.Linear(2, 1)
    >>> helper = naru.distributed.checkpoint.state_dict
    >>> helper.set_model_state_dict(layer, helper.get_model_state_dict(layer)).missing_keys
    []
    """
    chosen = _options(options)
    current = model.state_dict()
    first = chosen.broadcast_from_rank0 and _groups.is_initialized()
    if not model_state_dict and not first:
        return _Incompatible({}, {})
    made = {}
    known = set()
    for name, like in current.items():
        own = _own_name(model, name)
        known.add(own)
        there = own in model_state_dict
        if first:
            told = [there]
            _messages.broadcast_object_list(told, src=0)
            there = told[0]
        if not there:
            continue
        value = model_state_dict.get(own)
        made[name] = _fitted(value, like, first) if chosen.full_state_dict else value
    made.update({name: value for name, value in model_state_dict.items() if name not in known})
    return model.load_state_dict(made, strict=chosen.strict, assign=any(isinstance(v, Tensor) and v.is_meta for v in current.values()))


# --- optimizers


def _init_state(optimizer: Any) -> None:
    """Makes an optimizer's state by a step that changes nothing."""
    if optimizer.state or any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad:
                p.grad = _C.zeros_like(p)
        if "lr" in group:
            group["lr"] = _C.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _names(model: Any) -> dict[int, str]:
    """The parameters' own names, by the objects."""
    return {id(p): _own_name(model, name) for name, p in model.named_parameters()}


def _listed(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def _flat_state(value: dict[Any, Any], prefix: str) -> dict[str, Any]:
    made = {}
    for key, v in value.items():
        made.update(_flat_state(v, f"{prefix}.{key}") if isinstance(v, dict) else {f"{prefix}.{key}": v})
    return made


@no_grad()
def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model's optimizers, by the parameters' own names instead of numbers. All ranks call it.

    Args:
        model: the model.
        optimizers: the optimizer, or several.
        submodules: only of these submodules.
        options: how.

    An optimizer without state gets its first one, by a step that changes nothing.

    >>> layer = naru.nn.Linear(2, 1)
    >>> adam = naru.optim.Adam(layer.parameters())
    >>> found = naru.distributed.checkpoint.state_dict.get_optimizer_state_dict(layer, adam)
    >>> list(found["state"]), found["param_groups"][0]["params"]
    (['weight', 'bias'], ['weight', 'bias'])
    """
    chosen = _options(options)
    names = _names(model)
    prefixes = _within(model, submodules)
    state: dict[str, Any] = {}
    groups = []
    for optimizer in _listed(optimizers):
        _init_state(optimizer)
        found = optimizer.state_dict()
        for group, packed in zip(optimizer.param_groups, found["param_groups"]):
            own = []
            for p, number in zip(group["params"], packed["params"]):
                if id(p) not in names:
                    raise RuntimeError("get_optimizer_state_dict: the optimizer has a parameter that the model lacks")
                name = names[id(p)]
                if prefixes is not None and not any(name.startswith(prefix) for prefix in prefixes):
                    continue
                own.append(name)
                if number in found["state"]:
                    state[name] = found["state"][number]
            groups.append({**packed, "params": own})
    made: dict[str, Any] = {"state": state, "param_groups": groups}
    if chosen.flatten_optimizer_state_dict:
        made = {f"{k}": v for name, s in state.items() for k, v in _flat_state(s, f"state.{name}").items()}
        made |= {f"param_groups.{name}.{k}": v for group in groups for name in group["params"] for k, v in group.items() if k != "params"}
    return _given_to(made, chosen)


def _unflattened(optimizer: Any, names: dict[int, str], flat: dict[str, Any]) -> dict[str, Any]:
    """A state dict by names with dots as two, for the parameters of an optimizer."""
    state, groups = {}, []
    for group in optimizer.param_groups:
        packed: dict[str, Any] = {"params": [names[id(p)] for p in group["params"]]}
        for p in group["params"]:
            name = names[id(p)]
            found = {key: flat[f"state.{name}.{key}"] for key in optimizer.state.get(p, {}) if f"state.{name}.{key}" in flat}
            if found:
                state[name] = found
            packed |= {key: flat[f"param_groups.{name}.{key}"] for key in group if f"param_groups.{name}.{key}" in flat}
        groups.append(packed)
    return {"state": state, "param_groups": groups}


@no_grad()
def set_optimizer_state_dict(model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None) -> None:
    """Loads a state dict of `get_optimizer_state_dict` into a model's optimizers. All ranks call it.

    Args:
        model: the model.
        optimizers: the optimizer, or several.
        optim_state_dict: the state dict; whole tensors with full_state_dict, which each rank takes its parts of.
        options: how.

    >>> layer = naru.nn.Linear(2, 1)
    >>> adam, helper = naru.optim.Adam(layer.parameters()), naru.distributed.checkpoint.state_dict
    >>> helper.set_optimizer_state_dict(layer, adam, helper.get_optimizer_state_dict(layer, adam))
    """
    chosen = _options(options)
    names = _names(model)
    first = chosen.broadcast_from_rank0 and _groups.is_initialized()
    for optimizer in _listed(optimizers):
        _init_state(optimizer)
        given = optim_state_dict
        flat = [given and "state" not in given and any(key.startswith(("state.", "param_groups.")) for key in given)]
        if first:
            _messages.broadcast_object_list(flat, src=0)
        if flat[0]:
            given = _unflattened(optimizer, names, given)
        current = optimizer.state_dict()
        if first:
            told = [given.get("param_groups")]
            _messages.broadcast_object_list(told, src=0)
            given = {"state": given.get("state", {}), "param_groups": told[0]}
        current["state"] = dict(current["state"])
        for group, packed in zip(optimizer.param_groups, current["param_groups"]):
            own = [names[id(p)] for p in group["params"]]
            theirs = next((g for g in given["param_groups"] if set(own) & set(g["params"])), None)
            if theirs is not None:
                packed.update({k: v for k, v in theirs.items() if k != "params"})
            for p, number, name in zip(group["params"], packed["params"], own):
                like = current["state"].get(number)
                if like is None or (not first and name not in given["state"]):
                    if p.requires_grad and optimizer.state and chosen.strict and not first:
                        raise RuntimeError(f"set_optimizer_state_dict: the state dict has no state of {name}")
                    continue
                new = given["state"].get(name, {})
                keys = like if first else new
                current["state"][number] = {
                    key: _fitted(new.get(key), like.get(key), first) if chosen.full_state_dict and key in like else new.get(key) for key in keys
                }
        optimizer.load_state_dict(current)


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state dicts of a model and its optimizers.

    Args:
        model, optimizers, submodules, options: as for `get_model_state_dict` and `get_optimizer_state_dict`.

    >>> layer = naru.nn.Linear(2, 1)
    >>> model, optim = naru.distributed.checkpoint.state_dict.get_state_dict(layer, naru.optim.SGD(layer.parameters(), lr=0.1))
    >>> optim["param_groups"][0]["lr"]
    0.1
    """
    made = get_model_state_dict(model, submodules=submodules, options=options)
    return made, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options) if _listed(optimizers) else {}


def set_state_dict(
    model: Any, optimizers: Any, *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any], options: StateDictOptions | None = None
) -> Any:
    """Loads the state dicts of a model and its optimizers; returns missing_keys and unexpected_keys.

    Args:
        model, optimizers, model_state_dict, optim_state_dict, options: as for `set_model_state_dict` and `set_optimizer_state_dict`.

    >>> layer = naru.nn.Linear(2, 1)
    >>> sgd, helper = naru.optim.SGD(layer.parameters(), lr=0.1), naru.distributed.checkpoint.state_dict
    >>> model, optim = helper.get_state_dict(layer, sgd)
    >>> helper.set_state_dict(layer, sgd, model_state_dict=model, optim_state_dict=optim).unexpected_keys
    []
    """
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


__getattr__ = _missing.module_getattr(__name__)
