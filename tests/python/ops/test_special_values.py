"""Results for special values equal PyTorch 2.15's (special_values.py has the calls, special_values.json its results), except for those listed here."""
import json
import math
import warnings

import naru
import numpy as np
import pytest
from special_values import FILE, LIMITS, answer, subjects

SUBJECTS = subjects()
CALLS = sorted({subject[0] for subject in SUBJECTS.values()})
STEPS = {"float32": 2.0**-23, "float64": 2.0**-52}

NEARER = "naru is nearer to the true value"
OVERFLOW = "PyTorch's formula overflows on the way; the result itself does not"
PLACE = "PyTorch's own answer depends on the element's place: its vectors and what is left over behind them differ in the sign of 0"
ORDER = "sums of huge numbers overflow in one order and not in another; naru's is the same on every device"
# Intended differences from PyTorch: the call, the number of elements over all its subjects, and the reason.
DIFFERENT = {
    "t.digamma(x)": (4, NEARER), "t.special.ndtr(x)": (2, NEARER), "t.logaddexp2(x, y)": (2, NEARER),
    "F.tanhshrink(x)": (2, "the last bit of tanh, after most others have cancelled"),
    "t.sigmoid(x)": (1, OVERFLOW), "F.silu(x)": (1, OVERFLOW), "F.gelu(x)": (4, f"{OVERFLOW}, twice; of the two others {NEARER}"), "F.hardswish(x)": (2, OVERFLOW),
    "t.special.i0(x)": (2, OVERFLOW), "t.special.i1(x)": (2, OVERFLOW), "t.fmod(x, y)": (12, OVERFLOW), "t.remainder(x, y)": (12, OVERFLOW),
    "t.var(x, 1)": (1, "squares overflow; PyTorch's variance becomes -inf"), "t.std(x, 1)": (1, "squares overflow; PyTorch's becomes nan"),
    "t.add(x, y, alpha=2)": (8, "the product is rounded before it is added: nothing is contracted, on no device"),
    "F.softshrink(x)": (4, PLACE),
    "t.fmax(x, y)": (4, "of 0 and -0 either may be taken"), "t.fmin(x, y)": (4, "of 0 and -0 either may be taken"),
    "t.special.zeta(x, y)": (26, "nan is not lost"),
    "t.gcd(x, y)": (28, "a divisor is positive; PyTorch's takes the sign of the least number, which has no absolute value"),
    "t.sum(x, 1)": (2, ORDER), "t.mean(x, 1)": (2, ORDER), "t.nansum(x, 1)": (2, ORDER), "t.nanmean(x, 1)": (2, ORDER),
    "t.cumsum(x, 1)": (1, "float32 is summed in float32, for devices without float64, too; PyTorch's cpu sums it in float64"),
    "t.logcumsumexp(x, 1)": (2, "the first of the sums is the first element itself, -0"),
    "x.to(t.uint8)": (1, "numbers beyond int32 become 0 in 8 and 16 bits; C leaves it open"),
}  # fmt: skip


def near(got, want, dtype):
    """Whether two elements are the same, or as near as two libraries' mathematics are: each within two steps of the true value."""
    if got == want:
        return True
    if dtype not in STEPS:
        return False
    a, b = float(got), float(want)
    if not math.isfinite(a) or not math.isfinite(b) or (a == 0 and b == 0):
        return False
    return abs(a - b) <= 4 * max(STEPS[dtype] * abs(b), LIMITS[dtype][0])


def differences(ours, theirs):
    """[(position, ours, theirs)]; the whole answers where types, shapes or errors differ. Behind PyTorch's words there may be more."""
    if ": " in theirs.split("[")[0]:
        return [] if ours.startswith(theirs.rstrip(".")) else [("", ours, theirs)]
    mine, other = ours.split(" | "), theirs.split(" | ")
    if len(mine) != len(other):
        return [("", ours, theirs)]
    found = []
    for a, b in zip(mine, other):
        x, y = a.split(" "), b.split(" ")
        if len(x) != len(y) or x[0] != y[0]:
            found.append(("", a, b))
        else:
            found += [(i, p, q) for i, (p, q) in enumerate(zip(x[1:], y[1:])) if not near(p, q, x[0])]
    return found


@pytest.fixture(scope="module")
def facts():
    return json.loads(FILE.read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_special_values_give_what_pytorch_gives(call, facts):
    found = {}
    for key, subject in SUBJECTS.items():
        if subject[0] == call and (d := differences(answer(naru, naru.nn.functional, subject), facts[key])):
            found[key] = d
    count, why = DIFFERENT.get(call, (0, ""))
    assert sum(map(len, found.values())) == count, f"(element, naru's, PyTorch's): {found}\n{f'expected {count}: {why}' if why else ''}"


def test_the_file_has_an_answer_for_each_subject_and_nothing_else(facts):
    assert set(facts) == set(SUBJECTS), "PYTHON-WITH-TORCH tests/python/support/special_values.py makes it again"


def test_every_row_of_the_elementwise_table_has_a_subject():
    from special_values import elementwise

    named = {name.rsplit(".", 1)[-1] for name, *_ in elementwise()}
    assert {row[0] for row in naru._C._elementwise_table()} <= named


def test_what_is_listed_as_different_is_a_call_of_the_list():
    assert set(DIFFERENT) <= set(CALLS)


@pytest.mark.parametrize("there", ["mps:0"])
def test_special_values_are_the_same_on_a_device(there):
    class Moved:
        """naru whose tensors are made on the device."""

        def __getattr__(self, name):
            return getattr(naru, name)

        def tensor(self, data, dtype):
            return naru.tensor(data, dtype=dtype, device=there)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, subject in SUBJECTS.items():
            assert answer(Moved(), naru.nn.functional, subject) == answer(naru, naru.nn.functional, subject), key


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_are_exact_also_where_the_quotient_is_rounded_up(dtype):
    rng = np.random.default_rng(0)
    b = np.ldexp(rng.uniform(0.5, 1, 40000), rng.integers(-20, 20, 40000)).astype(dtype)
    whole = np.ldexp(1.0, rng.integers(0, 55, 40000)).astype(np.int64) + rng.integers(-3, 4, 40000)
    near = np.nextafter((whole * b).astype(dtype), np.where(rng.integers(0, 2, 40000), 0, np.inf).astype(dtype))
    for a in (near, (whole * b).astype(dtype), -near, np.ldexp(rng.uniform(-1, 1, 40000), rng.integers(-60, 100, 40000)).astype(dtype)):
        np.testing.assert_array_equal(naru.fmod(naru.tensor(a), naru.tensor(b)).numpy(), np.fmod(a, b))
