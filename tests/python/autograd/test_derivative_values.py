"""First derivatives at singular points equal PyTorch 2.15's (derivative_values.py has the calls, derivative_values.json its results), except for
those listed here: where PyTorch returns nan or 0 although the limit is another number, naru returns the limit."""
import json
import math

import naru
import naru.nn.functional as F
import pytest
from derivative_values import FILE, derivatives, operands

WANTED = json.loads(FILE.read_text())
CASES = dict(operands())
LIMIT = "PyTorch has nan or 0 where there is a limit: naru has it"
NAN = "at nan PyTorch's vectors give another answer than its loop for single elements, which is naru's"
TIES = "which of equal elements a sort finds is open; naru's is stable"
DIFFERENT = {
    "t.digamma(x)": (1, "at -inf, which all poles lead to"), "t.special.log_ndtr(x)": (1, LIMIT), "t.sinc(x)": (2, LIMIT), "F.softsign(x)": (2, LIMIT),
    "t.logaddexp(x, y)": (4, LIMIT), "x.logcumsumexp(0)": (7, LIMIT), "x.logcumsumexp(0)[-1]": (4, LIMIT),
    "F.hardsigmoid(x)": (11, "PyTorch's sixth is one of float32"), "x ** 1.5": (1, "C's power of -inf is inf"),
    "x.norm(0)": (18, "zeros, where PyTorch has a gradient of no memory"), "x.quantile(0.25)": (5, TIES), "x.prod()": (13, LIMIT), "x.prod(0)": (13, LIMIT),
    **dict.fromkeys(["F.relu6(x)", "F.elu(x)", "F.selu(x)", "F.celu(x)", "F.hardtanh(x)", "F.hardswish(x)", "F.hardshrink(x)", "F.softshrink(x)", "F.elu(x, 2.0)"], (1, NAN)),
    "t.logit(x, 0.1)": (1, "at nan, which is in no range"),
}  # fmt: skip


def close(got, want):
    if got == want:
        return True
    if "none" in (got, want):
        return False
    a, b = float(got), float(want)
    return a == b or a != a and b != b or abs(a - b) <= 1e-9 * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 1e-290


def differences(call):
    got, want = derivatives(naru, F, call, CASES[call]).split(" "), WANTED[call].split(" ")
    return [(i, a, b) for i, (a, b) in enumerate(zip(got, want)) if not close(a, b)] if len(got) == len(want) else [(0, got, want)]


@pytest.mark.parametrize("call", sorted({call.split(" #")[0] for call in CASES}))
def test_a_derivative_at_a_pole_is_pytorchs_or_the_limit(call):
    found = [(c, *d) for c in CASES if c.split(" #")[0] == call for d in differences(c)]
    expected = DIFFERENT.get(call, (0, ""))[0]
    assert len(found) == expected, found


@pytest.mark.parametrize("dtype", [naru.float32, naru.float64])
def test_a_function_of_one_that_is_nothing_passes_no_infinity_on(dtype):
    """Where the incoming gradient is 0, or the operand does not count, nothing times infinity must not come out."""
    inf = math.inf

    def gradients(f, *values):
        xs = [naru.tensor(v, dtype=dtype, requires_grad=True) for v in values]
        f(*xs).sum().backward()
        return [x.grad.tolist() for x in xs]

    lae = naru.logaddexp
    assert gradients(lambda a, b, c: lae(lae(a, b), c), -inf, -inf, 2.0) == [0, 0, 1]
    assert gradients(lambda a, b: lae(a, b), -inf, -inf) == [0.5, 0.5]  # by symmetry
    assert gradients(lambda x: x.logcumsumexp(0)[2:], [-inf, -inf, 1.0]) == [[0, 0, 1]]
    assert gradients(naru.xlogy, 0.0, 0.0)[0] == 0 and gradients(naru.xlogy, 0.0, -1.0) == [0, 0]
    assert gradients(naru.special.xlog1py, 0.0, math.e - 1) == [pytest.approx(1.0), 0]  # log1p(y), x / (1 + y)
    assert gradients(F.prelu, [1.0, -2.0], [inf])[0] == [1, inf]
    assert gradients(naru.logit, [0.0, 0.5, 1.0, 2.0])[0][:3] == [inf, 4, inf]
    assert math.isnan(gradients(naru.logit, [2.0])[0][0])
    assert gradients(lambda x: x.norm(-1.0), [inf, 1.0]) == [[0, 1]]
    assert gradients(lambda x: x.norm(-1.0), [0.0, 1.0]) == [[0, 0]]


def second(f, value):
    x = naru.tensor(value, dtype=naru.float64, requires_grad=True)
    (first,) = naru.autograd.grad(f(x), x, create_graph=True)
    return naru.autograd.grad(first, x)[0].item()


def test_second_derivatives_at_poles_are_the_limits():
    for x in (0.0, 1e-30, 5e-3):
        # sinc'' (x) = -pi^2 / 3 + pi^4 x^2 / 10 - ...
        assert second(naru.sinc, x) == pytest.approx(-math.pi**2 / 3 + math.pi**4 * x**2 / 10, abs=1e-6)
    for f in (F.elu, F.selu, F.celu):
        assert second(f, math.inf) == 0
    assert second(lambda x: x**0, 0.0) == 0
    assert second(lambda x: F.huber_loss(x, naru.zeros_like(x)), 0.0) == 1  # x^2 / 2
    assert second(lambda x: naru.fmod(naru.tensor(3.0, dtype=naru.float64), x), 2.0) == 0  # 3 - trunc(3 / x) x


def test_a_complex_derivative_on_the_cut_is_that_of_its_side():
    """acosh' (z) = 1 / (sqrt(z + 1) sqrt(z - 1)), whose square roots are i and i sqrt(3) above the negative axis."""
    for side, sign in ((0.0, 1), (-0.0, 1)):
        z = naru.complex(naru.tensor(-2.0, dtype=naru.float64), naru.tensor(side, dtype=naru.float64)).requires_grad_()
        naru.acosh(z).real.backward()
        assert z.grad.real.item() == pytest.approx(-sign / math.sqrt(3))
