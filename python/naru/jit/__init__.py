"""`torch.jit`: accepted without effect. Functions and modules run as they are: naru compiles kernels, and fuses consecutive operators,
by itself.

`script`, `trace` and the like return their argument, with one warning per process. `save` writes a pickle of the module (which PyTorch
cannot read), `load` reads such a file, as data unless `weights_only` is False.
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
    """Raised by TorchScript's compiler in PyTorch; never raised in naru.

    >>> issubclass(naru.jit.Error, Exception)
    True
    """


class TracerWarning(Warning):
    """Emitted by PyTorch's tracer; never emitted in naru.

    >>> naru.jit.TracerWarning.ignore_lib_warnings()
    >>> issubclass(naru.jit.TracerWarning, Warning)
    True
    """

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing."""


class ScriptModule(Module):
    """`nn.Module` under another name.

    >>> class Twice(naru.jit.ScriptModule):
    ...     @naru.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(naru.ones(2))
    tensor([2., 2.])
    """


class ScriptFunction:
    """For compatibility with PyTorch. Scripted functions are plain functions.

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
    """Replacement for a module's TorchScript source."""


def _returned(obj: Any) -> Any:
    """`obj`, with the attributes of a scripted module or function: a `save` method, and as its code the Python source."""
    _warn_once()
    if not (_is_instance(obj, (Module, FunctionType)) and not hasattr(obj, "save")):
        return obj
    try:
        code = _Code(textwrap.dedent(inspect.getsource(type(obj).forward if _is_instance(obj, Module) else obj)))
    except (OSError, TypeError):  # source not available: typed at a prompt, or generated
        code = _Code(repr(obj))
    for name, value in {"save": functools.partial(save, obj), "code": code, "graph": code, "inlined_graph": code}.items():
        if not hasattr(obj, name):
            object.__setattr__(obj, name, value)
    return obj


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None, **options: Any) -> T:
    """Returns `obj` (a function, module or class) itself; a module or function gets a method `save(file)`, and `code` and `graph`, which are its
    Python source.

    Args:
        optimize, example_inputs: ignored.

    >>> import naru, warnings
    >>> warnings.simplefilter("ignore")
    >>> script(naru.nn.ReLU())(naru.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    return _returned(obj)


def trace(func: T, example_inputs: Any = None, *args: Any, example_kwarg_inputs: dict[str, Any] | None = None, **options: Any) -> T:
    """Returns `func` itself, after one call with the example inputs, so that its errors are raised here.

    Args:
        func: a function or a module.
        example_inputs: a tensor, or a tuple of arguments. example_kwarg_inputs: arguments by name. RuntimeError for neither.
        args, options: PyTorch's other arguments; ignored.

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
    """Returns `mod` itself, after one call of each of the methods named in `inputs`.

    Args:
        mod: a module.
        inputs: a dict from method name to its argument, or a tuple of arguments.
        args, options: PyTorch's other arguments; ignored.

    >>> naru.jit.trace_module(naru.nn.ReLU(), {"forward": naru.ones(2)})
    ReLU()
    """
    with _C.no_grad():
        for name, given in inputs.items():
            getattr(mod, name)(*(given if _is_instance(given, tuple) else (given,)))
    return _returned(mod)


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a module to a file (a path, or an object with write). Its class must be importable when it is read.

    _extra_files: text or bytes by name, returned by `load`.

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
    """Reads a file written by `save`. RuntimeError for another file, such as PyTorch's own TorchScript.

    Args:
        f: a path, or a file open for reading. ValueError if the file does not exist.
        map_location: where tensors go, as in `torch.load`.
        _extra_files: a dict whose keys are looked up in the file; the values are replaced with their bytes or text.
        weights_only: True reads data, and modules whose classes the program has already imported, without calling anything that the file names; allow
            other names with `torch.serialization.add_safe_globals`. False runs any code in the file, so use it only for files you trust.

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
    """Returns the function itself; usable with or without parentheses.

    Args:
        drop: the function, or a flag that is ignored.

    >>> @naru.jit.ignore
    ... def log(x):
    ...     print(x.sum())
    >>> log(naru.ones(2))
    tensor(2.)
    """
    return drop if callable(drop) else lambda fn: fn


def _overload(fn: Any) -> Any:
    """The function itself: its type annotations were for a compiler."""
    return fn


_overload_method = _overload


def unused(fn: Any) -> Any:
    """Returns the function itself.

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
    """Returns the module itself. RuntimeError if it is in training mode, as in PyTorch.

    Args:
        mod: a module in evaluation mode.
        preserved_attrs, optimize_numerics: ignored.

    >>> naru.jit.freeze(naru.nn.ReLU().eval())
    ReLU()
    """
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return _returned(mod)


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """Returns the module itself.

    Args:
        mod: a module. other_methods: ignored.

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
    """Returns the value itself.

    Args:
        the_type: ignored. the_value: the value to return.

    >>> from typing import List
    >>> naru.jit.annotate(List[int], [])
    []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Python's isinstance; for List[int] and the like only the container type is checked.

    Args:
        obj: any object.
        target_type: a type, including those of typing, or a tuple of types.

    >>> from typing import List
    >>> naru.jit.isinstance([1, 2], List[int]), naru.jit.isinstance(3, (str, float))
    (True, False)
    """
    from typing import get_origin

    kinds = target_type if _is_instance(target_type, tuple) else (target_type,)
    return _is_instance(obj, tuple(get_origin(kind) or kind for kind in kinds))


def Attribute(value: T, type: Any = None) -> T:  # noqa: A002
    """Returns the value itself.

    Args:
        value: the value to return. type: ignored.

    >>> naru.jit.Attribute(3, int)
    3
    """
    return value


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls the function immediately; `wait` returns its result.

    Args:
        func: a function; args and kwargs are its arguments.

    >>> future = naru.jit.fork(naru.add, naru.ones(2), 1)
    >>> naru.jit.wait(future)
    tensor([2., 2.])
    """
    return func(*args, **kwargs)


def wait(future: T) -> T:
    """Returns the result of `fork`.

    Args:
        future: the value returned by `fork`.

    >>> naru.jit.wait(naru.jit.fork(sum, [1, 2, 3]))
    6
    """
    return future


def set_fusion_strategy(strategy: Any) -> Any:
    """Accepted without effect.

    Args:
        strategy: a list of pairs, which is returned.

    >>> naru.jit.set_fusion_strategy([("STATIC", 2)])
    [('STATIC', 2)]
    """
    return strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted without effect.

    Args:
        enabled: ignored.

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
    """A context manager that does nothing."""

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
