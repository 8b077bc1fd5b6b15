"""The names by which PyTorch's graphs print functions: `torch.relu`, `operator.add`, `torch.nn.functional.dropout`."""

from __future__ import annotations

import builtins
import functools
import inspect
import operator
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import _C, _missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Functions of torch.nn.functional that PyTorch has in C++: a node has their arguments as they were written, and not each by its name.
_OF_NN = frozenset("avg_pool2d avg_pool3d gelu linear log_sigmoid logsigmoid one_hot scaled_dot_product_attention softplus softshrink".split())
_WRITTEN = _OF_NN | frozenset(
    "adaptive_avg_pool1d avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
    "cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu".split()
)
# Functions that PyTorch has in Python and naru in C++: how many arguments they need (-1: all that are given), and the others in order.
_DEFAULTS: dict[str, tuple[int, dict[str, Any]]] = {
    "split": (2, {"dim": 0}),
    "cdist": (2, {"p": 2.0, "compute_mode": "use_mm_for_euclid_dist_if_necessary"}),
    "norm": (1, {"p": "fro", "dim": None, "keepdim": False, "out": None, "dtype": None}),
    "meshgrid": (-1, {"indexing": None}),
    "unique": (1, {"sorted": True, "return_inverse": False, "return_counts": False, "dim": None}),
    "unique_consecutive": (1, {"return_inverse": False, "return_counts": False, "dim": None}),
}


def _functions(module: str) -> Iterator[tuple[str, Any]]:
    """The public functions of a module of naru, by name; placeholders are not among them."""
    found = import_module("naru" + (module and "." + module))
    for name in sorted({*_missing.names().get(module, ()), *(("_assert",) if not module else ())}):
        if f"{module}.{name}".lstrip(".") in _missing.names():
            continue  # a module, which need not be imported for this
        value = getattr(found, name, None)
        if (inspect.isfunction(value) or type(value) is type(_C.relu)) and not hasattr(value, "__naru_lacks__"):
            yield name, value


@functools.cache
def _known() -> dict[int, str]:
    """PyTorch's names of naru's functions, by id: the functions live as long as naru."""
    known: dict[int, str] = {}
    in_python = _missing.names()["functional"] - {"istft", "pca_lowrank", "svd_lowrank"}
    for module in ("nn.functional", "", "linalg", "fft", "special"):
        for name, function in _functions(module):
            if module == "":
                place = "torch.functional." if name in in_python else "torch."
            elif module == "nn.functional":
                place = "torch._C._nn." if name in _OF_NN else "torch." if name in _WRITTEN else "torch.nn.functional."
            else:
                place = f"torch._C._{module}.{module}_"
            if inspect.isfunction(function) or place != "torch.nn.functional.":
                known.setdefault(id(function), place + ("log_sigmoid" if name == "logsigmoid" else name))
    return known


def qualified_name(function: Callable[..., Any]) -> str:
    """PyTorch's name of a function with its module; a lambda has the name of the variable that it was assigned to."""
    name = getattr(function, "__name__", None) or str(function)
    if id(function) in _known():
        return _known()[id(function)]
    if type(function).__name__ == "OpOverloadPacket":
        return f"torch.ops.{function}"
    if getattr(builtins, name, None) is function:
        return name
    if getattr(operator, name, None) is function:
        return f"_operator.{name}"
    if getattr(_C.Tensor, name, None) is function:
        return f"torch.Tensor.{name}"
    module = getattr(function, "__module__", None) or "torch"
    if name == "<lambda>":
        name = next((key for key, value in vars(sys.modules.get(module, builtins)).items() if value is function), "_lambda_")
    return ("torch" + module[4:] if module.split(".")[0] == "naru" else module) + "." + name


def is_known(function: Callable[..., Any], name: str) -> bool:
    """Whether a function of naru is the one that PyTorch has under this name."""
    return _known().get(id(function)) == name


def node_name(target: Any) -> str:
    """What the nodes of a target are named after."""
    if not callable(target):
        return target
    return _known()[id(target)].rpartition(".")[2] if id(target) in _known() else getattr(target, "__name__", str(target))


def printed_name(target: Any) -> str:
    """The text of a node's target."""
    if isinstance(target, str):
        return target
    name = qualified_name(target) if callable(target) else str(target)
    return name.replace("_operator.", "operator.") if "." in name else f"builtins.{name}"


@functools.cache
def library_functions() -> dict[tuple[str, str], Callable[..., Any]]:
    """naru's functions that are written in Python, by module and name: a tracer records their calls before they look at their arguments."""
    found: dict[tuple[str, str], Callable[..., Any]] = {}
    _known()  # before a tracer puts others in the functions' places
    for module in ("", "nn.functional", "functional", "linalg", "fft", "special"):
        for name, function in _functions(module):
            if inspect.isfunction(function):
                found["naru" + (module and "." + module), name] = function
    return found


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[int, list[tuple[str, Any]]] | None:
    """How many arguments a function needs, and its other parameters with their defaults; None if its calls are recorded as they are written."""
    name = getattr(function, "__name__", "")
    if type(function) is type(_C.relu):
        needed, others = _DEFAULTS.get(name, (0, None))
        return None if others is None else (needed, list(others.items()))
    if not qualified_name(function).startswith(("torch.nn.functional.", "torch.functional.")) or name in _WRITTEN:
        return None
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    needed = sum(p.default is p.empty for p in parameters)
    return needed, [(p.name, p.default) for p in parameters[needed:]]


def as_recorded(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call as PyTorch's graphs have them: those that are needed by position, all others by name with their defaults."""
    known = _parameters(function)
    if known is None or len(args) > known[0] + len(known[1]) >= len(known[1]):
        return args, kwargs
    needed, others = known if known[0] >= 0 else (len(args), known[1])
    if len(args) < needed:  # some are given by name
        names = list(inspect.signature(function).parameters)[len(args) : needed] if inspect.isfunction(function) else []
        if not names or any(name not in kwargs for name in names):
            return args, kwargs
        args, kwargs = (*args, *(kwargs[name] for name in names)), {k: v for k, v in kwargs.items() if k not in names}
    given = dict(zip((name for name, _ in others), args[needed:]))
    named = {name: given[name] if name in given else kwargs.get(name, default) for name, default in others}
    return args[:needed], {**named, **{k: v for k, v in kwargs.items() if k not in named}}
