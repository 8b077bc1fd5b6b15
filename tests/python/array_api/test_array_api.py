"""naru.array_api implements the Python array API standard: each function is compared with NumPy's of the same name, which follows the standard,
too."""
import inspect
import itertools
import math
import warnings

import naru
import numpy as np
import pytest
from naru import array_api as xp

INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
NUMBERS = INTEGERS + REAL + COMPLEX
EVERY = ("bool", *NUMBERS)
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 3.0, -3.0, 2.5, 1e30, -1e-30, math.inf, -math.inf, math.nan)
COMPLEX_EDGES = tuple(complex(a, b) for a in (0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan) for b in (0.0, -0.0, -1.0, 2.0, math.inf, math.nan))


def numbers(name, count, seed=0):
    """Numbers of a dtype, the same ones each time; among the first are the edges of the type."""
    drawn = np.random.default_rng(seed + count)
    kind = np.dtype(name).kind
    if kind == "b":
        return drawn.integers(0, 2, count).astype(bool)
    if kind in "iu":
        info = np.iinfo(name)
        return np.concatenate([np.array([info.max, info.min, 0, 1, 5], dtype=name), drawn.integers(-4 if kind == "i" else 0, 9, count).astype(name)])[:count] if count > 8 else drawn.integers(1, 9, count).astype(name)
    values = drawn.normal(size=count) * 3
    return (values + 1j * drawn.normal(size=count) if kind == "c" else values).astype(name)


def array(name, shape, seed=0):
    return numbers(name, math.prod(shape), seed).reshape(shape)


def given(a, device="cpu"):
    return xp.asarray(a, device=device) if isinstance(a, (np.ndarray, np.generic)) else type(a)(given(x, device) for x in a) if type(a) in (tuple, list) and a and isinstance(a[0], np.ndarray) else a


def dtype_of(t):
    return str(t.dtype).removeprefix("torch.")


def same(got, wanted, where="", edges=False):
    """Whether a result has the oracle's dtype, shape and values: integers alike, others to some roundings of their type."""
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted), where
        for g, w in zip(got, wanted):
            same(g, w, where, edges)
        return
    wanted = np.asarray(wanted)
    assert isinstance(got, naru.Tensor), where
    assert tuple(got.shape) == wanted.shape, f"{where}: shape {tuple(got.shape)}, wanted {wanted.shape}"
    names = {"uint64": "int64"} if dtype_of(got) == "int64" else {}
    assert dtype_of(got) == names.get(wanted.dtype.name, wanted.dtype.name), f"{where}: {got.dtype}, wanted {wanted.dtype}"
    host = got.cpu().resolve_conj().numpy() if hasattr(got, "resolve_conj") else got.cpu().numpy()
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(host, wanted, err_msg=where)
    else:
        tolerance = 64 * np.finfo(wanted.dtype).eps
        np.testing.assert_allclose(host, wanted, rtol=tolerance, atol=tolerance * 16, err_msg=where)
        if edges:
            zero = (host == 0) & (wanted == 0)
            np.testing.assert_array_equal(np.signbit(host[zero]), np.signbit(wanted[zero]), err_msg=f"{where}: signs of zeros")


def beside(name, *args, oracle=None, edges=False, **options):
    """The function with these arrays, and the oracle's."""
    function, other = xp, np
    for part in name.split("."):
        function, other = getattr(function, part), getattr(other, part, None)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = (oracle or other)(*args, **options)
    same(function(*map(given, args), **options), wanted, f"{name}{[(getattr(a, 'dtype', a), getattr(a, 'shape', '')) for a in args]} {options}", edges)


UNARY = {
    "abs": NUMBERS, "acos": REAL, "acosh": REAL, "asin": REAL, "asinh": REAL, "atan": REAL, "atanh": REAL, "bitwise_invert": ("bool", *INTEGERS),
    "ceil": INTEGERS + REAL, "conj": COMPLEX, "cos": REAL + COMPLEX, "cosh": REAL + COMPLEX, "exp": REAL + COMPLEX, "expm1": REAL,
    "floor": INTEGERS + REAL, "imag": COMPLEX, "isfinite": NUMBERS, "isinf": NUMBERS, "isnan": NUMBERS, "log": REAL + COMPLEX, "log10": REAL,
    "log1p": REAL, "log2": REAL, "logical_not": ("bool",), "negative": NUMBERS, "positive": NUMBERS, "real": COMPLEX, "reciprocal": REAL,
    "round": NUMBERS, "sign": NUMBERS, "signbit": REAL, "sin": REAL + COMPLEX, "sinh": REAL + COMPLEX, "sqrt": REAL + COMPLEX, "square": NUMBERS,
    "tan": REAL + COMPLEX, "tanh": REAL + COMPLEX, "trunc": INTEGERS + REAL,
}  # fmt: skip
BINARY = {
    "add": NUMBERS, "atan2": REAL, "bitwise_and": ("bool", *INTEGERS), "bitwise_or": ("bool", *INTEGERS), "bitwise_xor": ("bool", *INTEGERS),
    "copysign": REAL, "divide": REAL + COMPLEX, "equal": EVERY, "floor_divide": INTEGERS + REAL, "greater": INTEGERS + REAL,
    "greater_equal": INTEGERS + REAL, "hypot": REAL, "less": INTEGERS + REAL, "less_equal": INTEGERS + REAL, "logaddexp": REAL,
    "logical_and": ("bool",), "logical_or": ("bool",), "logical_xor": ("bool",), "maximum": INTEGERS + REAL, "minimum": INTEGERS + REAL,
    "multiply": NUMBERS, "nextafter": REAL, "not_equal": EVERY, "remainder": INTEGERS + REAL, "subtract": NUMBERS,
    "bitwise_left_shift": INTEGERS, "bitwise_right_shift": INTEGERS, "pow": INTEGERS + REAL,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array_are_numpys_with_dtypes_and_edges(name):
    for dtype in UNARY[name]:
        for shape in ((), (0, 2), (3, 4)):
            beside(name, array(dtype, shape))
    if "float32" in UNARY[name]:
        for dtype in REAL:
            beside(name, np.array(EDGES, dtype=dtype), edges=True)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays_are_numpys_with_broadcasting_promotion_and_numbers(name):
    kinds = BINARY[name]
    small = name in ("bitwise_left_shift", "bitwise_right_shift", "pow")
    for a, b in itertools.product(kinds, repeat=2):
        if (np.dtype(a).kind in "iu") != (np.dtype(b).kind in "iu") or (a == "bool") != (b == "bool") or np.dtype(a).kind != np.dtype(b).kind and "c" in (np.dtype(a).kind, np.dtype(b).kind):
            continue
        for shapes in (((3, 1), (4,)), ((), (2, 2)), ((4, 3), ()), ((), ()), ((0,), (1,))):
            beside(name, array(a, shapes[0]) % 7 if small and np.dtype(a).kind in "iu" else array(a, shapes[0]), array(b, shapes[1], 1) % 6 if small and np.dtype(b).kind in "iu" else array(b, shapes[1], 1))
    for dtype in kinds:
        number = {"b": True, "i": 3, "u": 3, "f": 2.5, "c": 1.5 - 2j}[np.dtype(dtype).kind]
        beside(name, array(dtype, (5,)), number)
        beside(name, number, array(dtype, (5,)))


@pytest.mark.parametrize("name", [name for name in BINARY if "float32" in BINARY[name]])
def test_functions_of_two_arrays_have_numpys_values_at_every_pair_of_edges(name):
    first, second = np.meshgrid(np.array(EDGES), np.array(EDGES))
    for dtype in REAL:
        a, b = first.astype(dtype), second.astype(dtype)
        if name in ("remainder", "floor_divide"):  # the standard leaves infinities open; for 1e30 the quotient's rounding decides
            keep = np.isfinite(a) & np.isfinite(b) & (b != 0) & (np.abs(a) < 1e20) & (np.abs(b) > 1e-20) & (np.abs(b) < 1e20)
            a, b = a[keep], b[keep]
        beside(name, a, b, edges=True)


def test_complex_numbers_with_infinite_and_missing_parts_are_as_c_has_them():
    z = np.array(COMPLEX_EDGES)
    for name in ("abs", "exp", "sqrt", "log", "sinh", "cosh", "tanh", "conj", "negative", "isnan", "isfinite", "isinf"):
        a, b = getattr(xp, name)(xp.asarray(z)).numpy(), getattr(np, name)(z) if name not in ("exp", "sqrt", "log", "sinh", "cosh", "tanh") else None
        if b is not None:
            np.testing.assert_array_equal(a, b, err_msg=name)


def test_an_array_without_dimensions_promotes_as_any_other():
    x, scalar = xp.asarray([1, 2], dtype=xp.int8), xp.asarray(3, dtype=xp.int64)
    assert xp.add(x, scalar).dtype == xp.int64 and (x + scalar).dtype == xp.int8  # the operator is PyTorch's
    assert xp.where(xp.asarray(True), xp.asarray(1.0, dtype=xp.float64), xp.ones(2, dtype=xp.float32)).dtype == xp.float64
    assert xp.result_type(xp.int8, scalar) == xp.int64 and xp.result_type(xp.uint16, xp.int8, 1) == xp.int32
    assert xp.result_type(xp.float32, 1j) == xp.complex64 and xp.result_type(xp.int32, xp.uint32) == xp.int64
    with pytest.raises(TypeError, match="no integer type has all values"):
        xp.result_type(xp.uint64, xp.int8)
    with pytest.raises(ValueError, match="at least one array or dtype"):
        xp.result_type(1, 2.0)


REDUCED = {
    "sum": NUMBERS, "prod": NUMBERS, "max": INTEGERS + REAL, "min": INTEGERS + REAL, "mean": REAL + COMPLEX, "std": REAL, "var": REAL, "any": EVERY,
    "all": EVERY, "count_nonzero": EVERY,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_take_one_axis_several_none_and_all(name):
    options = [{"correction": c} for c in (0, 1, 0.5)] if name in ("std", "var") else [{}]
    for dtype in REDUCED[name]:
        a = array(dtype, (2, 3, 4))
        if name == "prod" and dtype in INTEGERS:
            a = a % 3 + 1
        for axis in (None, 0, -1, (0, 2), (1, -1), (), (0, 1, 2)):
            for keepdims in (False, True):
                for more in options:
                    if dtype in COMPLEX and axis == () and name == "mean":
                        continue
                    oracle = (lambda x, **k: np.asarray(np.count_nonzero(x, **k), dtype=np.int64)) if name == "count_nonzero" else None
                    beside(name, a.astype(dtype), axis=axis, keepdims=keepdims, oracle=oracle, **more)
    if name in ("sum", "prod"):
        beside(name, array("int8", (3,)), dtype=None)
        assert getattr(xp, name)(given(array("int8", (3,))), dtype=xp.float64).dtype == xp.float64
        assert getattr(xp, name)(xp.ones((0, 2))).shape == () and getattr(xp, name)(xp.ones(3, dtype=xp.uint64)).dtype == xp.uint64


def test_cumulative_functions_and_differences_are_numpys():
    for name, dtype in itertools.product(("cumulative_sum", "cumulative_prod"), NUMBERS):
        a = array(dtype, (2, 3))
        for axis, first in itertools.product((0, 1, -1), (False, True)):
            beside(name, a, axis=axis, include_initial=first)
        beside(name, a[0])
    for n in (0, 1, 2):
        beside("diff", array("float64", (3, 4)), n=n)
        beside("diff", array("int32", (3, 4)), n=n, axis=0)
    assert xp.diff(xp.asarray([1, 4]), prepend=xp.asarray([0]), append=xp.asarray([9])).tolist() == [1, 3, 5]
    with pytest.raises(ValueError, match="an axis must be named"):
        xp.cumulative_sum(xp.ones((2, 2)))


SHAPED = [
    ("broadcast_to", ((3, 2, 4),), {}), ("expand_dims", (), {"axis": 1}), ("expand_dims", (), {"axis": -1}), ("expand_dims", (), {"axis": (0, -1)}),
    ("flip", (), {}), ("flip", (), {"axis": 1}), ("flip", (), {"axis": (0, -1)}), ("moveaxis", (0, 1), {}), ("moveaxis", ((0, 1), (1, 0)), {}),
    ("permute_dims", ((1, 0),), {}), ("matrix_transpose", (), {}), ("repeat", (2,), {}), ("repeat", (3,), {"axis": 1}), ("reshape", ((8,),), {}),
    ("reshape", ((-1, 2),), {"copy": True}), ("roll", (1,), {}), ("roll", ((1, 2),), {"axis": (0, 1)}), ("roll", (2,), {"axis": (0, 1)}),
    ("tile", ((2, 1, 3),), {}), ("tile", ((2,),), {}), ("unstack", (), {}), ("unstack", (), {"axis": -1}), ("tril", (), {"k": 1}), ("triu", (), {"k": -1}),
    ("sort", (), {}), ("sort", (), {"axis": 0, "descending": True}), ("argsort", (), {}), ("argsort", (), {"axis": 0}), ("argmax", (), {}),
    ("argmin", (), {"axis": 1, "keepdims": True}), ("argmax", (), {"keepdims": True}), ("nonzero", (), {}), ("unique_values", (), {}),
    ("unique_counts", (), {}), ("unique_inverse", (), {}), ("unique_all", (), {}), ("zeros_like", (), {}), ("ones_like", (), {}), ("full_like", (1,), {}),
]  # fmt: skip
ORDERED = ("sort", "argsort", "argmax", "argmin")


def _oracle(name):
    if name in ("sort", "argsort"):
        plain = getattr(np, name)

        def call(x, axis=-1, descending=False):
            made = plain(x, axis=axis, kind="stable")
            return np.flip(made, axis) if descending else made

        return call
    if name == "unique_values":
        return lambda x: np.unique_all(x).values
    return None


@pytest.mark.parametrize("dtype", EVERY)
def test_shapes_order_and_sets_are_numpys_for_every_dtype(dtype):
    a = array(dtype, (2, 4))
    for name, args, options in SHAPED:
        if name in ORDERED and dtype in (*COMPLEX, "bool"):
            continue
        beside(name, a, *args, oracle=_oracle(name), **options)


def test_sets_count_each_nan_and_name_the_first_of_equal_elements():
    x = xp.asarray([2.0, math.nan, 1.0, math.nan, 2.0, -0.0, 0.0])
    values, indices, inverse, counts = xp.unique_all(x)
    assert values[:3].tolist() == [0.0, 1.0, 2.0] and xp.all(xp.isnan(values[3:])) and values.shape == (5,)
    assert indices.tolist() == [5, 2, 0, 1, 3] and counts.tolist() == [2, 1, 2, 1, 1] and inverse.tolist() == [2, 3, 1, 4, 2, 0, 0]
    z = xp.asarray([[1j, 1.0], [1.0, 1j]])
    assert xp.unique_counts(z).counts.tolist() == [2, 2] and xp.unique_inverse(z).inverse_indices.shape == (2, 2)
    assert xp.unique_values(xp.ones((0,))).shape == (0,)


def test_arrays_are_joined_taken_and_found():
    a, b = array("int16", (2, 3)), array("float64", (1, 3))
    same(xp.concat([given(a), given(a)]), np.concat([a, a]))
    same(xp.concat((given(a), given(a.astype("int64"))), axis=None), np.concat((a, a.astype("int64")), axis=None))
    same(xp.stack([given(a), given(a.astype("int32"))], axis=-1), np.stack([a, a.astype("int32")], axis=-1))
    same(xp.broadcast_arrays(given(a), given(b)), tuple(np.broadcast_arrays(a, b)))
    assert xp.broadcast_shapes((3, 1), (1, 4), ()) == (3, 4)
    with pytest.raises(ValueError):
        xp.broadcast_shapes((3,), (4,))
    beside("take", b[0], np.array([2, -1, 0]))
    beside("take", a, np.array([1, -1]), axis=1)
    beside("take_along_axis", a, np.array([[-1, 0], [2, 2]]), axis=1)
    edges = np.array([1.0, 2.0, 2.0, 5.0])
    for side in ("left", "right"):
        beside("searchsorted", edges, np.array([[2.0, 0.0], [9.0, 3.0]]), side=side)
    backwards, order = edges[::-1].copy(), np.array([3, 1, 2, 0])
    same(xp.searchsorted(given(backwards), given(edges), sorter=given(order)), np.searchsorted(backwards, edges, sorter=order))
    assert xp.searchsorted(given(edges), 4.0).item() == 3
    holes = np.array([1.0, 2.0, math.nan, math.nan])
    for side in ("left", "right"):
        beside("searchsorted", holes, np.array([math.nan, 2.0, 7.0]), side=side)
    assert xp.searchsorted(given(holes), math.nan).item() == 2
    beside("isin", np.array([1, 5, 2]), np.array([2, 1]))
    assert xp.isin(xp.asarray([1, 2]), 2, invert=True).tolist() == [True, False]
    beside("where", np.array([True, False]), array("int8", (2,)), array("int32", (3, 2)))
    assert xp.where(xp.asarray([True, False]), 1.5, 2).tolist() == [1.5, 2.0] and xp.where(xp.asarray([True]), xp.asarray([1.0]), 0).dtype == xp.float32
    assert xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 1], dtype=xp.int8)).tolist() == [1, 1, 2]
    assert xp.squeeze(xp.ones((1, 2, 1)), (0, 2)).shape == (2,)
    for wrong in (lambda: xp.squeeze(xp.ones((1, 2)), 1), lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), lambda: xp.nonzero(xp.asarray(1)),
                  lambda: xp.expand_dims(xp.ones(2), (0, 0)), lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False), lambda: xp.matrix_transpose(xp.ones(3))):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


def test_bounds_are_numbers_arrays_or_none_and_the_dtype_is_the_arrays():
    x = xp.asarray([-5, 0, 7], dtype=xp.int8)
    assert xp.clip(x, -1000, 3).tolist() == [-5, 0, 3] and xp.clip(x, max=1000).tolist() == [-5, 0, 7] and xp.clip(x).tolist() == x.tolist()
    assert xp.clip(x, xp.asarray([-1, 1, 1], dtype=xp.int8), 5).tolist() == [-1, 1, 5] and xp.clip(x, 0).dtype == xp.int8
    assert xp.all(xp.isnan(xp.clip(xp.zeros(2), math.nan, 1.0)))
    assert xp.clip(xp.zeros((2, 1)), xp.ones((3,)), None).shape == (2, 3)


def test_arrays_are_made_as_the_standard_names_the_arguments():
    assert xp.zeros(3).shape == xp.ones(shape=3).shape == xp.full((3,), 1).shape == xp.empty(shape=(3,)).shape == (3,)
    assert xp.arange(3, 0).shape == (0,) and xp.arange(0, 5, -1, dtype=xp.int8).dtype == xp.int8 and xp.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert xp.arange(3.0).dtype == xp.float32 and xp.arange(0.0, 1.0, 0.25, dtype=xp.float64).tolist() == [0.0, 0.25, 0.5, 0.75]
    for rows, columns, k in itertools.product((3,), (None, 2, 5), (-9, -1, 0, 2, 9)):
        same(xp.eye(rows, columns, k=k, dtype=xp.float64), np.eye(rows, columns, k=k))
    for endpoint, count in itertools.product((True, False), (0, 1, 5)):
        same(xp.linspace(-1.0, 2.0, count, dtype=xp.float64, endpoint=endpoint), np.linspace(-1.0, 2.0, count, endpoint=endpoint))
    same(xp.linspace(0, 2 - 4j, 5, dtype=xp.complex128), np.linspace(0, 2 - 4j, 5))
    for indexing in ("xy", "ij"):
        same(xp.meshgrid(xp.arange(2), xp.arange(3), xp.arange(4), indexing=indexing), tuple(np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing=indexing)))
    assert xp.meshgrid() == () and xp.asarray([1, 2.5]).dtype == xp.float32 and xp.asarray(1).dtype == xp.int64 and xp.asarray([True]).dtype == xp.bool
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x or xp.asarray(x).data_ptr() == x.data_ptr()
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr() and xp.asarray(x, copy=False).data_ptr() == x.data_ptr()
    for wrong in (lambda: xp.asarray(x, dtype=xp.int8, copy=False), lambda: xp.asarray([1], copy=False)):
        with pytest.raises(ValueError, match="copy=False forbids"):
            wrong()
    assert xp.asarray([xp.asarray(1), xp.asarray(2)]).tolist() == [1, 2]
    assert naru.Tensor.__array_namespace__(x, api_version="2023.12") is xp
    with pytest.raises(ValueError, match="api_version among"):
        x.__array_namespace__(api_version="2020.01")


def test_dtypes_have_kinds_limits_and_conversions():
    for name in EVERY:
        for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric", ("bool", "integral")):
            assert xp.isdtype(getattr(xp, name), kind) == np.isdtype(np.dtype(name), kind), (name, kind)
    assert xp.isdtype(xp.int8, (xp.int16, xp.int8)) and not xp.isdtype(xp.int8, xp.int16)
    with pytest.raises(ValueError, match="wanted a kind among"):
        xp.isdtype(xp.int8, "integer")
    for name in REAL:
        info, wanted = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert [info.bits, info.eps, info.max, info.min, info.smallest_normal] == [wanted.bits, wanted.eps, wanted.max, wanted.min, wanted.smallest_normal]
        assert info.dtype == getattr(xp, name) and all(type(v) in (int, float) for k, v in vars(info).items() if k != "dtype")
    assert xp.finfo(xp.complex64).dtype == xp.float32 and xp.finfo(xp.ones(1)).bits == 32
    assert [(xp.iinfo(getattr(xp, t)).min, xp.iinfo(getattr(xp, t)).max, xp.iinfo(getattr(xp, t)).bits) for t in INTEGERS] == [(np.iinfo(t).min, np.iinfo(t).max, np.iinfo(t).bits) for t in INTEGERS]
    for a, b in itertools.product(EVERY, repeat=2):
        if np.dtype(a).kind == np.dtype(b).kind:
            assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == np.can_cast(a, b), (a, b)
        if not (np.dtype(a).kind == "c" and np.dtype(b).kind in "iuf"):
            x = np.abs(array(a, (3,))).astype(a)
            same(xp.astype(given(x), getattr(xp, b)), x.astype(b), f"astype {a} {b}")
    with pytest.raises(TypeError, match="drop the imaginary part"):
        xp.astype(xp.ones(1, dtype=xp.complex64), xp.float32)
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32) is not x


def _positive(dtype):
    a = array(dtype, (2, 3, 3))
    return a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(3, dtype=dtype)


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_products_and_norms_are_numpys(dtype):
    a, b = array(dtype, (2, 3, 3)), array(dtype, (2, 3, 2))
    for name, *args in [("matrix_power", a, 2), ("outer", a[0, 0], b[0, :, 0]), ("diagonal", b), ("trace", b), ("matmul", a, b), ("matmul", a, b[0, :, 0]),
                        ("vecdot", a, a[0, 0]), ("vecdot", a, a[0]), ("matrix_transpose", b)]:  # fmt: skip
        beside(f"linalg.{name}", *args)
    same(xp.linalg.cross(given(a), given(a[0, 0])), np.cross(a, a[0, 0]))
    for ord in ("fro", 1, -1, math.inf, -math.inf, *(("nuc", 2, -2) if dtype in REAL else ())):
        beside("linalg.matrix_norm", b, ord=ord, keepdims=True)
    for ord, axis in itertools.product((2, 1, 0, 3, math.inf, -math.inf), (None, 1, (0, 2))):
        beside("linalg.vector_norm", b, ord=ord, axis=axis)
    same(xp.linalg.vector_norm(given(b), axis=()), np.abs(b))
    for axes in (0, 1, ((2,), (1,)), ((0, 2), (0, 1))):
        beside("tensordot", a, np.swapaxes(a, 0, 1) if axes == 1 else a, axes=axes)
    for wrong in (lambda: xp.vecdot(xp.ones(3), xp.ones(1)), lambda: xp.vecdot(xp.ones((3, 3)), xp.ones((3, 3)), axis=0), lambda: xp.linalg.cross(xp.ones(2), xp.ones(2))):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("dtype", REAL)
def test_factors_and_solutions_are_numpys(dtype):
    a, b, p = array(dtype, (2, 3, 3)) + 4 * np.eye(3, dtype=dtype), array(dtype, (2, 3, 2)), _positive(dtype)
    for name, *args in [("det", a), ("inv", a), ("solve", a, b), ("solve", a, b[0, :, 0]), ("matrix_power", a, -2), ("slogdet", a), ("svdvals", b), ("eigvalsh", p), ("pinv", b), ("matrix_rank", b)]:
        beside(f"linalg.{name}", *args)
    for upper in (False, True):
        beside("linalg.cholesky", p, upper=upper)
    q, r = xp.linalg.qr(given(b), mode="complete")
    same(q @ r, b)
    u, s, vh = xp.linalg.svd(given(b), full_matrices=False)
    same((u * s[:, None, :]) @ vh, b)
    values, vectors = xp.linalg.eigh(given(p))
    same(vectors * values[:, None, :], p @ vectors.numpy())
    assert xp.linalg.eigh(given(p)).eigenvalues.shape == (2, 3) and xp.linalg.slogdet(given(a)).logabsdet.shape == (2,)
    values, vectors = xp.linalg.eig(given(a))
    same(vectors * values[:, None, :], a.astype(values.numpy().dtype) @ vectors.numpy())
    assert xp.linalg.solve(xp.ones((2, 2, 2)) + xp.eye(2), xp.ones((2, 2))).shape == (2, 2, 2)


def test_integer_matrices_are_multiplied_in_the_promoted_dtype():
    for a, b in itertools.product(INTEGERS, repeat=2):
        beside("matmul", array(a, (2, 3)), array(b, (3, 2)))
        beside("vecdot", array(a, (2, 3)), array(b, (3,)))
        beside("tensordot", array(a, (2, 3)), array(b, (3, 2)), axes=1)
    beside("linalg.trace", array("int8", (3, 3)), offset=1)
    beside("linalg.matrix_power", array("float64", (3, 3)), 3)


def test_fourier_transforms_are_numpys():
    real, whole = array("float64", (3, 6)), array("complex128", (3, 6))
    for name, x in [("fft", whole), ("ifft", whole), ("rfft", real), ("irfft", whole), ("hfft", whole), ("ihfft", real)]:
        for options in ({}, {"n": 4, "axis": 0, "norm": "ortho"}, {"axis": 1, "norm": "forward"}):
            beside(f"fft.{name}", x, **options)
    for name, x in [("fftn", whole), ("ifftn", whole), ("rfftn", real), ("irfftn", whole)]:
        for options in ({}, {"s": (4, 4), "axes": (0, 1)}, {"axes": (1,), "norm": "ortho"}):
            beside(f"fft.{name}", x, **options)
    same(xp.fft.fftfreq(7, d=0.5, dtype=xp.float64), np.fft.fftfreq(7, 0.5))
    same(xp.fft.rfftfreq(6, d=2.0, dtype=xp.float64), np.fft.rfftfreq(6, 2.0))
    beside("fft.fftshift", real, axes=1)
    beside("fft.ifftshift", real)


def test_the_namespace_says_what_it_can_do(device):
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True and info.default_device() in info.devices() and xp.__array_api_version__ == "2025.12"
    assert set(info.dtypes()) == set(EVERY) and set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert info.default_dtypes(device=device)["real floating"] == xp.float32
    assert naru.ones(1, device=device).device in info.devices()
    with pytest.raises(ValueError, match="wanted kinds among"):
        info.dtypes(kind="integer")
    assert set(xp.__all__) == {n for n in dir(xp)} and not [n for n in xp.__all__ if not hasattr(xp, n)]


def test_arguments_that_may_be_named_have_the_standards_names():
    wanted = {
        "sum": "(x, /, *, axis=None, dtype=None, keepdims=False)", "std": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
        "squeeze": "(x, /, axis)", "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
        "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)", "searchsorted": "(x1, x2, /, *, side='left', sorter=None)",
        "cumulative_sum": "(x, /, *, axis=None, dtype=None, include_initial=False)", "clip": "(x, /, min=None, max=None)",
        "linalg.vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)", "fft.irfftn": "(x, /, *, s=None, axes=None, norm='backward')",
        "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None)", "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
        "linalg.matrix_norm": "(x, /, *, keepdims=False, ord='fro')", "from_dlpack": "(x, /, *, device=None, copy=None)",
    }  # fmt: skip
    for name, signature in wanted.items():
        function = xp
        for part in name.split("."):
            function = getattr(function, part)
        found = inspect.signature(function)
        assert str(found.replace(parameters=[p.replace(annotation=p.empty) for p in found.parameters.values()], return_annotation=found.empty)) == signature, name


def test_functions_stay_on_the_device_of_their_arrays(device):
    x = xp.asarray([[3.0, 1.0], [2.0, 2.0]], device=device)
    for made in (xp.add(x, 1.5), xp.add(1.5, x), xp.where(x > 1, 1.0, x), xp.clip(x, 1, xp.ones(2, device=device)), *xp.unique_all(x), xp.cumulative_sum(x, axis=0, include_initial=True),
                 xp.take(x, xp.asarray([-1], device=device), axis=1), xp.sum(x, axis=()), xp.asarray(x), xp.astype(x, xp.int8), xp.linalg.solve(x, x), x.to_device(device), xp.from_dlpack(x)):  # fmt: skip
        assert made.device == x.device
    assert xp.zeros(2, device=device).device == x.device and x.to_device("cpu").device.type == "cpu"
    assert xp.astype(x, xp.float64, device="cpu").device.type == "cpu"


def test_gradients_flow_through_the_namespace():
    x = xp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    y = xp.sum(xp.multiply(xp.clip(x, 1.5, None), xp.asarray(2.0, dtype=xp.float64))) + xp.max(x)
    y.backward()
    assert x.grad.tolist() == [0.0, 2.0, 3.0]
