"""Operators defined by schema: `torch.library.Library`, `define`, `impl`; `infer_schema` and `opcheck`."""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
import typing
from typing import TYPE_CHECKING, Any

from .. import _C
from .operators import OPERATORS, CustomOpDef, known_operator

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor

# Kinds of device by PyTorch's dispatch keys; keys for all devices map to None.
_FOR_ALL = ("", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "BackendSelect")
_TYPES: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", _C.dtype: "ScalarType", _C.device: "Device",
    float | int | bool: "Scalar", typing.Union[int, float, bool]: "Scalar",  # noqa: UP007: another type than the one before it
}  # fmt: skip
_LITERALS = {"None": None, "True": True, "False": False}


def _kind_of(key: str) -> str | None:
    """The kind of device for a dispatch key or a kind's name; None: all."""
    if key in _FOR_ALL:
        return None
    if key.startswith("Autograd") or key in ("Functionalize", "Python"):
        raise NotImplementedError(f"torch.library: naru has no dispatch key {key!r}; register_autograd(op, backward) gives an operator a derivative")
    kind = key.lower()
    try:
        return _C.device(kind).type
    except RuntimeError:
        raise RuntimeError(f"could not parse dispatch key: {key}; wanted CPU, CUDA, XPU, MPS, Meta or CompositeExplicitAutograd") from None


def _default(text: str) -> Any:
    if text in _LITERALS:
        return _LITERALS[text]
    if text.startswith("["):
        return [_default(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text  # a name, such as Mean


def _signature(schema: str) -> inspect.Signature:
    """Parses "(Tensor x, int n=2, *, float y=1.) -> Tensor" into a signature. RuntimeError for an invalid schema."""
    found = re.fullmatch(r"\s*\((.*)\)\s*->\s*(.+)", schema, re.DOTALL)
    if found is None:
        raise RuntimeError(f"torch.library: wanted a schema like '(Tensor x, int n=2) -> Tensor', got {schema!r}")
    parameters, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in re.findall(r"(?:\[[^\]]*\]|\([^)]*\)|\"[^\"]*\"|'[^']*'|[^,\[\]()])+", found[1]):
        if part.strip() == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        one = re.fullmatch(r"\s*(\S.*?)\s+(\w+)(?:\s*=\s*(.+?))?\s*", part, re.DOTALL)
        if one is None:
            raise RuntimeError(f"torch.library: wanted a type, a name and maybe a default, as 'int n=2', got {part.strip()!r} in {schema!r}")
        parameters.append(inspect.Parameter(one[2], kind, default=inspect.Parameter.empty if one[3] is None else _default(one[3])))
    return inspect.Signature(parameters)


def _qualified(qualname: str) -> str:
    if qualname.count("::") != 1:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the torch.library APIs must '
            "consist of a namespace and a name, e.g. aten::sin"
        )
    return qualname


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declares an operator `qualname`, "namespace::name", without an implementation: `impl` adds one for each kind of device. ValueError for a name
    without a namespace, RuntimeError for an invalid schema and for an operator that exists.

    Args:
        schema: the parameters and results, such as "(Tensor x, int n=2) -> Tensor".
        lib, tags: ignored.

    >>> import naru
    >>> naru.library.define("example::shifted", "(Tensor x, float by=1.0) -> Tensor")
    >>> @naru.library.impl("example::shifted", "cpu")
    ... def shifted(x, by=1.0):
    ...     return x + by
    >>> naru.ops.example.shifted(naru.zeros(2), by=3.0)
    tensor([3., 3.])
    """
    if _qualified(qualname) in OPERATORS:
        raise RuntimeError(
            f"Tried to register an operator ({qualname}{schema}) with the same name and overload name multiple times. Each overload's schema should "
            "only be registered with a single call to def()."
        )
    OPERATORS[qualname] = made = CustomOpDef(qualname, None, None, _signature(schema))
    made._schema = schema
    made._mutates = tuple(re.findall(r"\(\w*!\)\S*\s+(\w+)", schema))


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Registers the implementation of an operator for some kinds of device; a decorator without `func`. `impl(library, name, key)` is the older form.
    RuntimeError for an unknown operator.

    Args:
        qualname: "namespace::name", or a Library. types: "cpu", "cuda", a list of them, "default" for all; or the operator's name in the library.
        func: the function; in the older form the dispatch key, such as "CPU".
        lib: ignored.

    >>> import naru
    >>> naru.library.define("example::shrunk", "(Tensor x) -> Tensor")
    >>> naru.library.impl("example::shrunk", "default", lambda x: x / 2)
    >>> naru.ops.example.shrunk(naru.ones(1))
    tensor([0.5000])
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def within(f: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, f, key)
            return f

        return within
    kinds = [types] if isinstance(types, str) else list(types)
    op = known_operator(_qualified(qualname))

    def register(f: Callable[..., Any]) -> None:
        for kind in kinds:
            op.register_kernel(None if kind == "default" else _kind_of(kind), f)

    return register if func is None else register(func)


class Library:
    """A namespace of operators defined by schema.

    Args:
        ns: the namespace.
        kind: "DEF" or "FRAGMENT" to define operators, "IMPL" only to give them functions. ValueError for another word.
        dispatch_key: the kind of device that functions are for, such as "CPU"; all by default.

    >>> import naru
    >>> library = naru.library.Library("example", "FRAGMENT")
    >>> library.define("sum_of(Tensor a, Tensor b) -> Tensor")
    'sum_of'
    >>> library.impl("sum_of", lambda a, b: a + b, "CPU")
    >>> naru.ops.example.sum_of(naru.ones(1), naru.ones(1))
    tensor([2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}; wanted DEF, FRAGMENT or IMPL")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declares an operator by its name and schema, "twice(Tensor x) -> Tensor", and returns its name. RuntimeError if it exists."""
        if self.kind == "IMPL":
            raise RuntimeError("torch.library.Library.define: a library of kind IMPL defines nothing; wanted kind DEF or FRAGMENT")
        name, parenthesis, rest = schema.partition("(")
        if not parenthesis:
            raise RuntimeError(f"Tried to parse a function schema but only the operator name was given: {schema!r}")
        define(f"{self.ns}::{name.strip()}", "(" + rest)
        self._defined.append(f"{self.ns}::{name.strip()}")
        return name.strip()

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = True) -> None:
        """Registers the implementation of an operator, by name, for a kind of device ("CPU"; the library's own by default)."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = str(op_name).rpartition("::")[2].removesuffix(".default")
        known_operator(f"{self.ns}::{name}").register_kernel(_kind_of(dispatch_key or self.dispatch_key), fn)

    def _destroy(self) -> None:
        for name in self._defined:
            OPERATORS.pop(name, None)
        self._defined.clear()


def _type_text(hint: Any) -> str | None:
    """PyTorch's schema type for a parameter's type hint."""
    if hint in _TYPES:
        return _TYPES[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in args:
        rest = tuple(a for a in args if a is not type(None))
        inner = _type_text(typing.Union[rest])  # noqa: UP007: of a tuple
        return None if inner is None else inner + "?"
    if origin in (list, collections.abc.Sequence):
        inner = _type_text(args[0])
        return None if inner is None else inner + "[]"
    return None


def _results_text(hint: Any) -> str | None:
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        parts = [_type_text(a) for a in typing.get_args(hint)]
        return None if None in parts else f"({', '.join(parts)})"  # type: ignore[arg-type]
    return _type_text(hint)


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """Infers a function's schema from its parameter types. ValueError for parameters without a type, or of an unsupported type.

    Args:
        prototype_function: the function. mutates_args: the names of the arguments it writes to, or "unknown".
        op_name: prefix of the schema, if given.

    >>> def scaled(x: naru.Tensor, by: float = 2.0) -> naru.Tensor: ...
    >>> naru.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)

    def refuse(what: str) -> None:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    parts, starred = [], False
    for number, (name, p) in enumerate(signature.parameters.items()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if name not in hints:
            refuse(f"Parameter {name} must have a type annotation.")
        text = _type_text(hints[name])
        if text is None:
            refuse(f"Parameter {name} has unsupported type {hints[name]}.")
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        written = text is not None and text.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args)
        if name in mutates_args and mutates_args != "unknown" and not written:
            refuse(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        text = f"Tensor(a{number}!){(text or '')[6:]}" if written else text
        if p.default is p.empty:
            parts.append(f"{text} {name}")
        elif p.default is None or isinstance(p.default, (int, float, bool)):
            parts.append(f"{text} {name}={p.default}")
        elif isinstance(p.default, str):
            parts.append(f'{text} {name}="{p.default}"')
        elif isinstance(p.default, (_C.dtype, _C.device)):
            parts.append(f'{text} {name}="{str(p.default).removeprefix("torch.")}"')
        else:
            refuse(f"Parameter {name} has an unsupported default value type {type(p.default)}.")
    if mutates_args != "unknown" and (unknown := set(mutates_args) - set(signature.parameters)):
        refuse(f"{sorted(unknown)} in mutates_args were not found in the signature.")
    result = _results_text(hints.get("return", None))
    if result is None:
        refuse(f"Return has unsupported type {hints.get('return')}.")
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


_CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """Raised by `opcheck`."""


def _tensors_of(value: Any) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors_of(v)]
    return [value] if isinstance(value, Tensor) else []


def _check_schema(op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Arguments that are not declared as mutated do not change, and no result is an argument."""
    bound = op._signature.bind(*args, **kwargs).arguments
    before = {name: [t.detach().clone() for t in _tensors_of(value)] for name, value in bound.items()}
    results = _tensors_of(op(*args, **kwargs))
    written = bound if op._mutates == "unknown" else op._mutates
    for name, value in bound.items():
        for old, new in zip(before[name], _tensors_of(value)):
            if name not in written and not _C.equal(old.nan_to_num(), new.detach().nan_to_num()):
                raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
            if any(r._storage_id == new._storage_id for r in results):
                raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")


def _check_shapes(op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """On the meta device the results have the same shapes and dtypes as elsewhere."""
    if "meta" not in op._kernels and None not in op._kernels:
        name = op._name.rpartition("::")[2]
        raise RuntimeError(f"There was no fake impl registered for {op}. Please use `{name}.register_fake` to add an fake impl.")

    def faked(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(faked(v) for v in value)
        return value.detach().to("meta") if isinstance(value, Tensor) else value

    real = _tensors_of(op(*args, **kwargs))
    fake = _tensors_of(op(*faked(args), **{name: faked(value) for name, value in kwargs.items()}))
    said, wanted = ([(tuple(t.shape), t.dtype) for t in ts] for ts in (fake, real))
    if said != wanted:
        raise RuntimeError(f"the results on the device 'meta' are {said}, those of the operator {wanted}")


def _check_gradient(op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Inputs that require grad get a gradient of their shape."""
    from ..autograd import grad

    given = [t for t in _tensors_of([*args, *kwargs.values()]) if t.requires_grad]
    results = [r for r in _tensors_of(op(*args, **kwargs)) if r.requires_grad]
    if not given:
        return
    if not results:
        raise RuntimeError(f"Trying to backward through {op._name} but no autograd formula was registered. Please use register_autograd to add one.")
    grads = grad(results, given, [_C.ones_like(r) for r in results], allow_unused=True)
    for t, g in zip(given, grads):
        if g is not None and g.shape != t.shape:
            raise RuntimeError(f"the gradient of an argument of shape {tuple(t.shape)} is of shape {tuple(g.shape)}")


_RUN: dict[str, Any] = {
    "test_schema": _check_schema, "test_autograd_registration": _check_gradient, "test_faketensor": _check_shapes,
    "test_aot_dispatch_dynamic": _check_gradient,
}  # fmt: skip


def opcheck(
    op: Any, args: Any, kwargs: dict[str, Any] | None = None, *, test_utils: Any = _CHECKS, raise_exception: bool = True, atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Checks a user-defined operator with the given arguments: it writes only the arguments it declares and does not return its arguments, has
    gradients, and returns results of the same shapes on the meta device. OpCheckError, with the check's name, if a check fails.

    Args:
        op: the operator, or one of `torch.ops`. args, kwargs: its arguments.
        test_utils: the checks' names, or one of them. raise_exception: False: errors are returned in the result instead.
        atol, rtol: ignored: no values are compared.

    >>> @naru.library.custom_op("example::negated", mutates_args=())
    ... def negated(x: naru.Tensor) -> naru.Tensor:
    ...     return -x
    >>> naru.library.opcheck(negated, (naru.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if unknown := set(names) - set(_CHECKS):
        raise ValueError(f"opcheck(op, ...): wanted test_utils among {list(_CHECKS)}, got {sorted(unknown)}")
    found = op if isinstance(op, CustomOpDef) else known_operator(getattr(op, "_qualified_op_name", op))
    results: dict[str, Any] = {}
    for name in names:
        try:
            _RUN[name](found, tuple(args), kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)") from error
            results[name] = error
    return results
