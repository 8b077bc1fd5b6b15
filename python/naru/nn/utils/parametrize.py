"""`torch.nn.utils.parametrize`: tensors of modules that are computed from other tensors each time they are accessed."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _C, _missing
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

Tensor = _C.Tensor

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
    "type_before_parametrizations", "transfer_parametrizations_and_params",
]  # fmt: skip


class _Cache(threading.local):
    """A thread-local cache: blocks of `cached` in other threads neither fill nor clear it."""

    def __init__(self) -> None:
        self.blocks = 0
        self.tensors: dict[tuple[int, str], Tensor | None] = {}


_cache = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within it, each thread computes each parametrized tensor only once, at the first access.

    >>> calls = []
    >>> class Double(naru.nn.Module):
    ...     def forward(self, x):
    ...         calls.append(1)
    ...         return 2 * x
    >>> layer = naru.nn.Linear(2, 2)
    >>> _ = naru.nn.utils.parametrize.register_parametrization(layer, "weight", Double(), unsafe=True)
    >>> calls.clear()
    >>> with naru.nn.utils.parametrize.cached():
    ...     _ = layer.weight, layer.weight
    >>> len(calls)
    1
    """
    _cache.blocks += 1
    try:
        yield
    finally:
        _cache.blocks -= 1
        if not _cache.blocks:
            _cache.tensors.clear()


def _place(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _require_tensor(value: Any) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")


def _require_same(before: Tensor, after: Tensor, first: str, second: str, article: str = "") -> None:
    """ValueError if a parametrization changes dtype or shape."""
    for what in ("dtype", "shape"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless {article}`unsafe` flag is enabled.\n"
                f"{first.format(what)}: {getattr(before, what)}\n{second.format(what)}: {getattr(after, what)}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied, and the original tensors: `original`, or `original0`, `original1` ...

    Made by `register_parametrization`.

    Args:
        modules: the parametrizations; at least one (ValueError).
        original: the parameter or buffer that is parametrized.
        unsafe: whether dtype and shape may change.

    >>> class Double(naru.nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> found = naru.nn.utils.parametrize.ParametrizationList([Double()], naru.nn.Parameter(naru.ones(2)))
    >>> found(), found.original.data
    (tensor([2., 2.], grad_fn=<MulBackward0>), tensor([1., 1.]))
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach()
        new: Any = original
        with _C.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):  # then it counts as the identity
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._begin_with_one(original, new)
        else:
            self._begin_with_several(original, new)
        if not self.unsafe:
            result = self()
            _require_tensor(result)
            _require_same(before, result, "unparametrized {}", "parametrized {}")

    def _begin_with_one(self, original: Tensor, new: Tensor) -> None:
        for what in ("dtype", "device"):
            if getattr(original, what) != getattr(new, what):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}"
                )
        if new is not original:
            original.data = new.detach()
        _place(self, "original", original)

    def _begin_with_several(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor.detach(), original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _place(self, f"original{i}", tensor)

    def right_inverse(self, value: Tensor) -> None:
        """Sets the original tensors such that the parametrized tensor equals `value`, using each right_inverse, the last one first.

        RuntimeError if a parametrization has none, ValueError for invalid values.
        """
        new: Any = value
        with _C.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
                if new.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while `original` has dtype {self.original.dtype}"
                    )
                self.original.data = new.detach()
                return
            if not isinstance(new, Sequence) or isinstance(new, Tensor):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(new).__name__}.")
            if len(new) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(new)}."
                )
            for i, tensor in enumerate(new):
                own = getattr(self, f"original{i}")
                if not isinstance(tensor, Tensor):
                    raise ValueError(f"`right_inverse` must return a sequence of tensors. Got element {i} of type {type(tensor).__name__}")
                if own.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has dtype {own.dtype}"
                    )
                own.data = tensor.detach()

    def forward(self) -> Tensor:
        """Computes the parametrized tensor."""
        originals = [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]
        first, *rest = self
        result = first(*originals)
        for module in rest:
            result = module(result)
        return result


def _give_class(module: Module) -> None:
    """Gives the module its own class, which can have properties."""
    base = type(module)

    def refuse(self: Module) -> None:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deep_copy(self: Module, memo: dict[int, Any]) -> Module:
        twin = self.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__ = copy.deepcopy(self.__dict__, memo)
        return twin

    members: dict[str, Any] = {"__getstate__": refuse}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = deep_copy
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _give_property(module: Module, name: str) -> None:
    def get(self: Module) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _cache.blocks:
            return parametrization()
        key = (id(self), name)
        if key not in _cache.tensors:
            _cache.tensors[key] = parametrization()
        return _cache.tensors[key]  # type: ignore[return-value]

    def put(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def _check_next(module: Module, name: str, parametrization: Module) -> None:
    """ValueError unless one more parametrization keeps dtype and shape, forward and inverse."""
    before = getattr(module, name)
    after = parametrization(before)
    _require_tensor(after)
    _require_same(before, after, f"module.{name}.{{}}", f"parametrization(module.{name}).{{}}", "the ")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        if getattr(back, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless the `unsafe` "
                f"flag is enabled.\nmodule.{name}.{what}: {getattr(before, what)}\nreturned {what}: {getattr(back, what)}"
            )


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Makes module.tensor_name the result of `parametrization` of the original tensor, computed at each access; several ones are composed.

    Args:
        module: the module, which is returned. Its class is replaced by a new one.
        tensor_name: the name of a parameter or buffer (ValueError if there is none).
        parametrization: a module whose forward returns a tensor of the same dtype and shape (ValueError for others, unless unsafe). Its right_inverse, if
            it has one, computes the original tensor and makes assignment to module.tensor_name possible; it may return several tensors for forward.
        unsafe: whether dtype and shape may change; nothing is checked then.

    The original tensors are module.parametrizations[tensor_name].original, or original0, original1 ...

    >>> import naru
    >>> from naru.nn.utils.parametrize import register_parametrization
    >>> class Symmetric(naru.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = register_parametrization(naru.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.mT).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_class(module)
            module.parametrizations = ModuleDict()
        _give_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the named tensor of the module, or any of its tensors, is parametrized.

    Args:
        tensor_name: the tensor's name.

    >>> layer = naru.nn.utils.parametrizations.weight_norm(naru.nn.Linear(2, 2))
    >>> naru.nn.utils.parametrize.is_parametrized(layer), naru.nn.utils.parametrize.is_parametrized(layer, "bias")
    (True, False)
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Removes the parametrizations of a tensor (ValueError if there are none); returns the module.

    Args:
        leave_parametrized: whether the tensor keeps its parametrized value; otherwise it becomes the original one (ValueError if there are several).
        module: the module. tensor_name: the name of its parametrized tensor.

    >>> layer = naru.nn.utils.parametrizations.weight_norm(naru.nn.Linear(2, 2))
    >>> layer = naru.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if found.is_tensor:
        original = found.original
        if leave_parametrized:
            with _C.no_grad():
                original.data = getattr(module, tensor_name).detach()  # keep the same object, which optimizers refer to
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _place(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class before it was parametrized.

    >>> layer = naru.nn.utils.parametrizations.weight_norm(naru.nn.Linear(2, 2))
    >>> type(layer).__name__, naru.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Copies the parametrizations of from_module, and their original tensors, to to_module: those of one tensor, or all. Returns to_module.

    Args:
        from_module, to_module: modules. Tensors that to_module does not have are created; existing ones are replaced, whatever their shape.
        tensor_name: the tensor's name; all parametrized ones if None.

    >>> old = naru.nn.utils.parametrizations.weight_norm(naru.nn.Linear(2, 2))
    >>> new = naru.nn.utils.parametrize.transfer_parametrizations_and_params(old, naru.nn.Linear(2, 2))
    >>> naru.equal(new.weight, old.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module


__getattr__ = _missing.module_getattr(__name__)
