"""`torch.jit`: accepted, and nothing is done. Functions and modules run as they are: naru compiles kernels, and fuses operators that follow
one another, without being asked.

`script`, `trace` and kin return what they are given, with one warning in the life of a process. `save` writes a pickle of the module (PyTorch
cannot read it), `load` reads such a file, as data unless it is told to trust it.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
import warnings
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .. import _C, _missing
from ..nn import Module

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

__all__ = [
    "Attribute", "Error", "Final", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "enable_onednn_fusion", "export", "fork",
    "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference",
    "optimized_execution", "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace",
    "trace_module", "unused", "wait",
]  # fmt: skip

_is_instance = isinstance
T = TypeVar("T")


class Error(RuntimeError):
    """What TorchScript's compiler raises in PyTorch; nothing here does.

    >>> issubclass(naru.jit.Error, Exception)
    True
    """


class TracerWarning(Warning):
    """What PyTorch warns with while it traces; nothing here does.

    >>> naru.jit.TracerWarning.ignore_lib_warnings()
    >>> issubclass(naru.jit.TracerWarning, Warning)
    True
    """

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing is to be done."""


class ScriptModule(Module):
    """A module: `nn.Module` by another name.

    >>> class Twice(naru.jit.ScriptModule):
    ...     @naru.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(naru.ones(2))
    tensor([2., 2.])
    """


class ScriptFunction:
    """For PyTorch's sake. Scripted functions are plain functions.

    >>> isinstance(naru.jit.script(naru.relu), naru.jit.ScriptFunction)
    False
    """


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "torch.jit: naru has no TorchScript. Functions and modules are returned as they are, and run as Python; kernels are compiled, and "
        "neighbouring operators fused, without being asked.",
        stacklevel=4,
    )


class _Code(str):
    """What stands for a module's TorchScript."""


def _returned(obj: Any) -> Any:
    """`obj`, with what a program may ask a scripted module or function for: it can be saved, and its code is the Python that runs."""
    _warn_once()
    if not (_is_instance(obj, (Module, FunctionType)) and not hasattr(obj, "save")):
        return obj
    try:
        code = _Code(textwrap.dedent(inspect.getsource(type(obj).forward if _is_instance(obj, Module) else obj)))
    except (OSError, TypeError):  # typed at a prompt, or made by a program
        code = _Code(repr(obj))
    for name, value in {"save": functools.partial(save, obj), "code": code, "graph": code, "inlined_graph": code}.items():
        if not hasattr(obj, name):
            object.__setattr__(obj, name, value)
    return obj


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None, **options: Any) -> T:
    """`obj` (a function, module or class) itself; a module or function gets a method `save(file)`, and `code` and `graph`, which are the text of the
    Python that runs.

    Args:
        optimize, example_inputs: of no account.

    >>> import naru, warnings
    >>> warnings.simplefilter("ignore")
    >>> script(naru.nn.ReLU())(naru.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    return _returned(obj)


def trace(func: T, example_inputs: Any = None, *args: Any, example_kwarg_inputs: dict[str, Any] | None = None, **options: Any) -> T:
    """`func` itself, after one call with the example's inputs, whose errors come here.

    Args:
        func: a function or a module.
        example_inputs: a tensor, or a tuple of arguments. example_kwarg_inputs: arguments by name. RuntimeError for neither.
        args, options: what else PyTorch takes; of no account.

    >>> traced = naru.jit.trace(naru.nn.ReLU(), naru.ones(2))
    >>> traced(naru.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    given = example_inputs if _is_instance(example_inputs, (tuple, list)) else () if example_inputs is None else (example_inputs,)
    with _C.no_grad():
        func(*given, **(example_kwarg_inputs or {}))  # type: ignore[operator]
    return _returned(func)


def trace_module(mod: T, inputs: dict[str, Any], *args: Any, **options: Any) -> T:
    """`mod` itself, after one call of each of the methods named in `inputs`.

    Args:
        mod: a module.
        inputs: by a method's name its argument, or a tuple of them.
        args, options: what else PyTorch takes; of no account.

    >>> naru.jit.trace_module(naru.nn.ReLU(), {"forward": naru.ones(2)})
    ReLU()
    """
    with _C.no_grad():
        for name, given in inputs.items():
            getattr(mod, name)(*(given if _is_instance(given, tuple) else (given,)))
    return _returned(mod)


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a module to a file (a path, or an object with write). Its class must be one that the reader can import.

    _extra_files: text or bytes by name, given back by `load`.

    Args:
        m: the module. f: a path, or a file open for writing.

    >>> import io
    >>> file, extra = io.BytesIO(), {"epoch": ""}
    >>> naru.jit.save(naru.nn.ReLU(), file, _extra_files={"epoch": "3"})
    >>> _ = file.seek(0)
    >>> _ = naru.jit.load(file, _extra_files=extra)
    >>> extra
    {'epoch': '3'}
    """
    from ..serialization import save as write

    attached = {n: v for n, v in getattr(m, "__dict__", {}).items() if _is_instance(v, _Code) or getattr(v, "func", None) is save}
    for name in attached:
        del m.__dict__[name]
    try:
        write({"naru.jit": 1, "module": m, "extra": dict(_extra_files or {})}, f)
    finally:
        for name, value in attached.items():
            object.__setattr__(m, name, value)


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False, *, weights_only: bool = True
) -> Any:
    """Reads what `save` has written. RuntimeError for another file, such as PyTorch's own TorchScript.

    Args:
        f: a path, or a file open for reading. ValueError where there is no such file.
        map_location: where tensors go, as in `torch.load`.
        _extra_files: a dict whose names are looked up in the file; it gets their bytes or texts.
        weights_only: True reads data and modules whose classes the program has imported already, and calls nothing that the file names; what else the
            program trusts, `torch.serialization.add_safe_globals` says. False runs whatever the file says, so only for files you trust.

    >>> import io
    >>> file = io.BytesIO()
    >>> naru.jit.save(naru.nn.ReLU(), file)
    >>> _ = file.seek(0)
    >>> naru.jit.load(file)
    ReLU()
    """
    from ._files import read_marked

    found = read_marked(f, map_location, weights_only)
    for name in _extra_files or {}:
        if name in found["extra"]:
            _extra_files[name] = found["extra"][name]  # type: ignore[index]
    return _returned(found["module"])


def _identity(name: str, doc: str) -> Callable[[Any], Any]:
    def same(fn: Any) -> Any:
        return fn

    same.__name__ = same.__qualname__ = name
    same.__doc__ = doc
    return same


_ITSELF = """The {what} itself.

Args:
    fn: a {what}.

>>> naru.jit.{name}({of}) is {of}
True
"""
script_method = _identity("script_method", _ITSELF.format(what="method", name="script_method", of="naru.nn.ReLU.forward"))
export = _identity("export", _ITSELF.format(what="method", name="export", of="naru.nn.ReLU.forward"))
interface = _identity("interface", _ITSELF.format(what="class", name="interface", of="naru.nn.ReLU"))
script_if_tracing = _identity("script_if_tracing", _ITSELF.format(what="function", name="script_if_tracing", of="naru.relu"))


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; with or without parentheses.

    Args:
        drop: the function, or a flag of no account.

    >>> @naru.jit.ignore
    ... def log(x):
    ...     print(x.sum())
    >>> log(naru.ones(2))
    tensor(2.)
    """
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Any) -> Any:
    """The function itself.

    Args:
        fn: a function.

    >>> @naru.jit.unused
    ... def twice(x):
    ...     return 2 * x
    >>> twice(3)
    6
    """
    return fn


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """The module itself. RuntimeError where it is in training mode, as in PyTorch.

    Args:
        mod: a module in evaluation mode.
        preserved_attrs, optimize_numerics: of no account.

    >>> naru.jit.freeze(naru.nn.ReLU().eval())
    ReLU()
    """
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return _returned(mod)


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """The module itself.

    Args:
        mod: a module. other_methods: of no account.

    >>> naru.jit.optimize_for_inference(naru.nn.ReLU())
    ReLU()
    """
    return _returned(mod)


def is_scripting() -> bool:
    """False: nothing is compiled to TorchScript.

    >>> naru.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """False: nothing is traced.

    >>> naru.jit.is_tracing()
    False
    """
    return False


def annotate(the_type: Any, the_value: T) -> T:
    """The value itself.

    Args:
        the_type: of no account. the_value: what is returned.

    >>> from typing import List
    >>> naru.jit.annotate(List[int], [])
    []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Python's isinstance; of List[int] and kin the container alone is looked at.

    Args:
        obj: any object.
        target_type: a type, also one of typing's, or a tuple of them.

    >>> from typing import List
    >>> naru.jit.isinstance([1, 2], List[int]), naru.jit.isinstance(3, (str, float))
    (True, False)
    """
    from typing import get_origin

    kinds = target_type if _is_instance(target_type, tuple) else (target_type,)
    return _is_instance(obj, tuple(get_origin(kind) or kind for kind in kinds))


def Attribute(value: T, type: Any = None) -> T:  # noqa: A002
    """The value itself.

    Args:
        value: what is returned. type: of no account.

    >>> naru.jit.Attribute(3, int)
    3
    """
    return value


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls the function at once; `wait` gives its result.

    Args:
        func: a function; args and kwargs are its arguments.

    >>> future = naru.jit.fork(naru.add, naru.ones(2), 1)
    >>> naru.jit.wait(future)
    tensor([2., 2.])
    """
    return func(*args, **kwargs)


def wait(future: T) -> T:
    """What `fork` gave.

    Args:
        future: what `fork` returned.

    >>> naru.jit.wait(naru.jit.fork(sum, [1, 2, 3]))
    6
    """
    return future


def set_fusion_strategy(strategy: Any) -> Any:
    """Taken, and not needed.

    Args:
        strategy: a list of pairs; it is returned.

    >>> naru.jit.set_fusion_strategy([("STATIC", 2)])
    [('STATIC', 2)]
    """
    return strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Taken, and not needed.

    Args:
        enabled: of no account.

    >>> naru.jit.enable_onednn_fusion(True)
    >>> naru.jit.onednn_fusion_enabled()
    False
    """


def onednn_fusion_enabled() -> bool:
    """False.

    >>> naru.jit.onednn_fusion_enabled()
    False
    """
    return False


class _Block:
    """A context that does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class strict_fusion(_Block):
    """Does nothing.

    >>> with naru.jit.strict_fusion():
    ...     naru.ones(1)
    tensor([1.])
    """


class optimized_execution(_Block):
    """Does nothing.

    >>> with naru.jit.optimized_execution(True):
    ...     naru.ones(1)
    tensor([1.])
    """


__getattr__ = _missing.module_getattr(__name__)
