"""Proxy objects for tensors: nested tensors (`naru.nested`).

They are not tensors: the core passes every call with one among its arguments to `__torch_function__`, so that no operator can treat the held
tensor as an ordinary one. This module has Python's operators as functions, operators by families, a base class, and functions over arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Tensor = _C.Tensor

# --- operators by families: unary elementwise ones, and elementwise ones of several operands that broadcast. The elementwise table's are theirs by
# the number of their operands; those listed are made of others.

_ARITY = {row[0]: row[1] for row in _C._elementwise_table() if hasattr(_C, row[0])}
UNARY = """
absolute angle arccos arccosh arcsin arcsinh arctan arctanh conj conj_physical deg2rad fix frexp i0 isreal logit mvlgamma nan_to_num negative
polygamma rad2deg real imag sgn sinc celu elu hardshrink hardtanh leaky_relu selu softplus softshrink tanhshrink threshold special_digamma
special_entr special_erfcx special_expit special_gammaln special_i0 special_i0e special_i1 special_i1e special_log_ndtr special_ndtr special_ndtri
special_psi special_sinc special_log1p special_expm1 special_exp2 __abs__ __neg__ __invert__ expit special_airy_ai special_bessel_j0
special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0
""".split()
BROADCAST = """
addcdiv addcmul arctan2 clip divide float_power gcd greater greater_equal heaviside igamma igammac isclose lcm ldexp less less_equal logaddexp2
masked_fill multiply nextafter not_equal rsub subtract true_divide prelu special_xlog1py special_xlogy special_gammainc special_gammaincc
special_zeta polar complex special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l
special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
special_shifted_chebyshev_polynomial_w __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__
__mod__ __rmod__ __pow__ __rpow__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rshift__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__
""".split()
BROADCAST += [name for name, arity in _ARITY.items() if arity > 1 and name not in UNARY]
UNARY += [name for name, arity in _ARITY.items() if arity == 1]
IN_PLACE = [*(n + "_" for n in (*UNARY, *BROADCAST) if not n.startswith("__")), "copy_", "__iadd__", "__isub__", "__imul__", "__itruediv__", "zero_",
            "fill_"]  # fmt: skip

# In-place methods that change the shape, not the elements.
RESHAPING_IN_PLACE = "t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_".split()

# --- operators along dimensions: the position of `dim` among the arguments after the tensor, and its default

ALL = object()
DIMS: dict[str, tuple[int, Any]] = {
    **dict.fromkeys("sum mean prod amax amin all any nansum nanmean count_nonzero argmax argmin median nanmedian std var std_mean var_mean aminmax".split(), (0, ALL)),
    **dict.fromkeys("norm nanquantile quantile".split(), (1, ALL)),
    **dict.fromkeys("max min".split(), (0, ALL)),
    **dict.fromkeys("logsumexp softmax log_softmax special_softmax special_log_softmax cumsum cumprod cummax cummin logcumsumexp flip "
                    "glu special_logsumexp softmin".split(), (0, None)),
    **dict.fromkeys("sort argsort mode".split(), (0, -1)),
    **dict.fromkeys("topk kthvalue".split(), (1, -1)),
    **dict.fromkeys("split split_with_sizes chunk tensor_split unsafe_chunk unsafe_split".split(), (1, 0)),
    "repeat_interleave": (1, None),
    "unbind": (0, 0), "diff": (1, -1), "linalg_vector_norm": (1, ALL), "linalg_norm": (1, ALL), "normalize": (1, 1), "trapezoid": (1, -1),
    "trapz": (1, -1), "roll": (1, ALL),
}  # fmt: skip


def broadcast_shape(*shapes: Any) -> Any:
    """The shape that operands of these shapes broadcast to."""
    return _C.broadcast_tensors(*(_C.empty(tuple(s), device="meta") for s in shapes))[0].shape


def out_of_place(name: str) -> Any:
    """The function that computes what the in-place method `name` writes."""
    return getattr(Tensor, name[:-1], None) or getattr(_C, name[:-1])


def is_in_place(name: str) -> bool:
    """Whether a function of this name writes to its first argument."""
    return name.endswith("_") and not name.endswith("__")


def sizes_of(given: tuple) -> tuple:
    """Sizes or dimensions given as separate arguments, or as one list or tuple."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else tuple(given)


# --- arguments


def leaves(values: Any) -> Iterator[Any]:
    """The arguments, including those nested in lists, tuples and dicts."""
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from leaves(v)
        elif type(v) is dict:
            yield from leaves(v.values())
        else:
            yield v


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    """Applies f to each leaf."""
    if type(value) in (list, tuple):
        return type(value)(mapped(f, v) for v in value)
    if type(value) is dict:
        return {k: mapped(f, v) for k, v in value.items()}
    return f(value)


def wrapped(f: Callable[[Tensor], Any], value: Any) -> Any:
    """Applies f to each tensor in a result; named tuples keep their type."""
    if isinstance(value, Tensor):
        return f(value)
    if not isinstance(value, (tuple, list)):
        return value
    items = [wrapped(f, v) for v in value]
    try:
        return type(value)(items)
    except TypeError:
        return type(value)(*items)


def _operators() -> dict[str, Any]:
    """Python's operators by method name: Tensor's own slots accept only tensors."""
    import operator

    found: dict[str, Any] = {}
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        f = getattr(operator, f"__{name}__")
        found[f"__{name}__"] = lambda a, b, f=f: f(a, b)
        found[f"__r{name}__"] = lambda a, b, f=f: f(b, a)
    for name in "neg abs invert lt le gt ge eq ne getitem setitem iadd isub imul itruediv".split():
        found[f"__{name}__"] = lambda *args, f=getattr(operator, f"__{name}__"): f(*args)
    for name, call in found.items():
        call.__name__ = name
    return found


OPERATORS = _operators()


class StandIn:
    """Base of tensor proxies: Tensor's methods and operators go to `__torch_function__`, which subclasses define; other attributes are those of the
    held tensor (`_held`)."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        """Tensor, so that isinstance(x, torch.Tensor) is true."""
        return Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        raise NotImplementedError

    def _held(self) -> Tensor:
        raise NotImplementedError

    dtype = property(lambda self: self._held().dtype)
    device = property(lambda self: self._held().device)
    requires_grad = property(lambda self: self._held().requires_grad)
    grad_fn = property(lambda self: self._held().grad_fn)
    is_leaf = property(lambda self: self._held().is_leaf)
    is_cuda = property(lambda self: self._held().is_cuda)
    itemsize = property(lambda self: self._held().dtype.itemsize)
    ndim = property(lambda self: self.dim())
    T = property(lambda self: self.permute(*range(self.ndim - 1, -1, -1)))
    mT = property(lambda self: self.transpose(-2, -1))
    H = property(lambda self: self.transpose(0, 1).conj())
    mH = property(lambda self: self.transpose(-2, -1).conj())

    def ndimension(self) -> int:
        """As Tensor.dim."""
        return self.dim()

    def nelement(self) -> int:
        """As Tensor.numel."""
        return self.numel()

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Any:
        method = getattr(Tensor, name)  # AttributeError if there is none
        if not callable(method):
            return getattr(self._held(), name)
        kind = type(self)
        return lambda *args, **kwargs: kind.__torch_function__(method, (kind,), (self, *args), kwargs)


def _as_tensor_method(name: str) -> Any:
    method = OPERATORS[name]

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(self)
        return kind.__torch_function__(method, (kind,), (self, *args), kwargs)

    return call


for _name in OPERATORS:
    setattr(StandIn, _name, _as_tensor_method(_name))
