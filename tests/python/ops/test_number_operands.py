"""Which operands may be Python numbers: those for which PyTorch has an overload with Scalar; for all others a number is a TypeError."""

import naru
import pytest

TENSORS = """maximum minimum fmax fmin logical_and logical_or logical_xor atan2 arctan2 ldexp hypot nextafter heaviside gcd lcm logaddexp logaddexp2 igamma
    igammac isclose""".split()
SECOND = "copysign fmod eq ne lt le gt ge greater greater_equal less less_equal not_equal rsub clamp_min clamp_max".split()
ONE = "xlogy pow remainder float_power bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift isin special.zeta special.xlog1py special.hermite_polynomial_h".split()
BOTH = "add sub mul div true_divide divide multiply subtract floor_divide".split()
INTEGERS = ("gcd", "lcm", "bitwise")


def function(name):
    return getattr(naru.special, name[8:]) if name.startswith("special.") else getattr(naru, name)


def accepted(f, *operands):
    try:
        f(*operands)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize(("name", "taken"), [(n, t) for names, t in ((TENSORS, (0, 0, 0)), (SECOND, (1, 0, 0)), (ONE, (1, 1, 0)), (BOTH, (1, 1, 1))) for n in names])
def test_a_number_is_taken_where_there_is_an_overload_for_it(name, taken):
    x = naru.tensor([1, 2, 3]) if name.startswith(INTEGERS) else naru.tensor([1.0, 2.0, 3.0])
    f = function(name)
    assert (accepted(f, x, 2), accepted(f, 2, x), accepted(f, 2, 2)) == tuple(map(bool, taken)), name
    assert accepted(f, x, x)
    method, in_place = getattr(naru.Tensor, name, None), getattr(naru.Tensor, name + "_", None)
    if method:
        assert accepted(method, x, 2) == bool(taken[0])
    if in_place and name != "float_power":
        assert accepted(in_place, x.clone(), 2) == bool(taken[0])


def test_a_number_and_an_operator_of_python():
    x = naru.tensor([1.0, 4.0])
    assert (2**x).tolist() == naru.pow(2, x).tolist() == [2, 16]
    assert (7 % x).tolist() == naru.remainder(7, x).tolist() == [0, 3]
    assert (6 & naru.tensor([3])).item() == naru.bitwise_and(6, naru.tensor([3])).item() == 2
