"""Every reduction of every dtype, with every dtype= and out=: elements are converted before they are reduced, as in PyTorch; or PyTorch's error."""

import itertools

import naru
import pytest

REAL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
TYPES = [*REAL, "complex64", "complex128"]
FLOATING = {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}
MASK = [True, False, True]


def values(name):
    if name == "bool":
        return [True, False, True]
    if name == "uint8":
        return [1, 2, 3]
    if name.startswith("int"):
        return [1, -2, 3]
    return [1 + 1j, 2 - 1j, 0.5 + 3j] if name.startswith("complex") else [1.5, -2.25, 3.5]


def converted(value, name):
    """A number as `.to(dtype)` makes it: the imaginary part goes, fractions are cut off, uint8 wraps around."""
    if name == "bool":
        return bool(value)
    if name.startswith("complex"):
        return complex(value)
    real = value.real if isinstance(value, complex) else value
    if name.startswith("int"):
        return int(real)
    return int(real) % 256 if name == "uint8" else float(real)


def product(numbers):
    out = 1
    for x in numbers:
        out = out * x
    return out


def running(numbers, step):
    out = []
    for x in numbers:
        out.append(x if not out else step(out[-1], x))
    return out


def add(a, b):
    return a + b


def times(a, b):
    return a * b


# The result for the converted numbers; "mean" needs floating point.
REDUCTIONS = {
    "sum": (naru.sum, sum), "sum over a dimension": (lambda x, **k: naru.sum(x, 0, **k), sum),
    "mean": (naru.mean, lambda v: sum(v) / len(v)), "mean over a dimension": (lambda x, **k: naru.mean(x, 0, **k), lambda v: sum(v) / len(v)),
    "prod": (naru.prod, product), "prod over a dimension": (lambda x, **k: naru.prod(x, 0, **k), product),
    "cumsum": (lambda x, **k: naru.cumsum(x, 0, **k), lambda v: running(v, add)), "cumprod": (lambda x, **k: naru.cumprod(x, 0, **k), lambda v: running(v, times)),
    "masked sum": (lambda x, **k: naru.masked.sum(x, mask=naru.tensor(MASK), **k), lambda v: v[0] + v[2]),
    "masked mean": (lambda x, **k: naru.masked.mean(x, mask=naru.tensor(MASK), **k), lambda v: (v[0] + v[2]) / 2),
    "masked prod": (lambda x, **k: naru.masked.prod(x, mask=naru.tensor(MASK), **k), lambda v: v[0] * v[2]),
}


def expected(value, name):
    """What a reduction of converted numbers is worth in its type (only sums of uint8 wrap around here; the mean of float16 is rounded)."""
    if isinstance(value, list):
        return [expected(v, name) for v in value]
    return converted(value, name)


def close(got, want):
    if isinstance(want, list):
        return len(got) == len(want) and all(close(a, b) for a, b in zip(got, want))
    return abs(got - want) <= 8e-3 * abs(want)  # half an ulp of bfloat16, for two roundings


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("given", TYPES)
def test_a_reduction_converts_its_elements_first(name, given):
    f, want = REDUCTIONS[name]
    x = naru.tensor(values(given), dtype=getattr(naru, given))
    for dtype in TYPES:
        if "mean" in name and dtype not in FLOATING:
            with pytest.raises((NotImplementedError, ValueError), match="dtype"):
                f(x, dtype=getattr(naru, dtype))
            continue
        if name.startswith("cum") and dtype == "bool":
            continue  # naru supports it for bool (a running or); PyTorch has no such kernel
        numbers = [converted(v, dtype) for v in values(given)]
        # torch.masked.prod reduces one dimension after another, and integers become int64 there.
        result = "int64" if name == "masked prod" and dtype not in FLOATING else dtype
        got = f(x, dtype=getattr(naru, dtype))
        assert got.dtype is getattr(naru, result), (dtype, got.dtype)
        assert close(got.tolist(), expected(want(numbers), result)), (dtype, got, numbers)


@pytest.mark.parametrize("name", ["sum over a dimension", "prod over a dimension", "cumsum", "cumprod"])
@pytest.mark.parametrize(("given", "out"), itertools.product(TYPES, TYPES))
def test_the_type_of_out_is_that_of_the_sum(name, given, out):
    if name.startswith("cum") and out == "bool":
        pytest.skip("PyTorch has no such kernel")
    f, want = REDUCTIONS[name]
    target = naru.full((3,), 7).to(getattr(naru, out)) if name.startswith("cum") else naru.full((), 7).to(getattr(naru, out))
    f(naru.tensor(values(given), dtype=getattr(naru, given)), out=target)
    assert close(target.tolist(), expected(want([converted(v, out) for v in values(given)]), out)), target


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int64", "float16", "float32"])
def test_a_sum_of_complex_numbers_as_real_ones_has_a_gradient(dtype):
    x = naru.tensor([1 + 1j, 2 - 1j], requires_grad=True)
    y = naru.sum(x, dtype=getattr(naru, dtype))
    assert y.requires_grad == y.dtype.is_floating_point
    if y.requires_grad:
        y.backward()
        assert x.grad.tolist() == [1, 1]


def test_masked_statistics_are_of_the_type_asked_for():
    x, mask = naru.tensor([1.5, -2.25, 3.5]), naru.tensor(MASK)
    assert naru.masked.var(x, mask=mask, unbiased=False, dtype=naru.int32).dtype is naru.int32
    assert naru.masked.std(x, mask=mask, unbiased=False, dtype=naru.int32).dtype is naru.float32
    assert naru.masked.median(x, 0, mask=mask, dtype=naru.float16).dtype is naru.float32  # dtype= affects integers only
    # For int8, masked elements count as -128 instead of -inf.
    rows = naru.masked.softmax(naru.tensor([1, -2, 3], dtype=naru.int8), 0, mask=mask, dtype=naru.float32)
    assert close(rows.tolist(), [0.11920292, 0.0, 0.88079708])  # exp(1), exp(3) over their sum
