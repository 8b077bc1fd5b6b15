"""`torch.testing.make_tensor`, and foreach functions, which write lists of tensors in place."""

import math

import pytest

import naru

make_tensor = naru.testing.make_tensor


@pytest.mark.parametrize("low, high", [(1, 0), (math.nan, 1), (0, math.nan)])
@pytest.mark.parametrize("dtype", [naru.int32, naru.float32, naru.complex64])
def test_bounds_that_hold_no_value_are_refused(dtype, low, high):
    with pytest.raises(ValueError, match="low"):
        make_tensor(2, dtype=dtype, low=low, high=high)


def test_bounds_are_brought_into_the_range_of_the_dtype():
    x = make_tensor(100, dtype=naru.uint8, low=-1000, high=1)
    assert x.eq(0).all()
    with pytest.raises(ValueError, match="only supports"):
        make_tensor(2, dtype=naru.int8, low=1000, high=2000)
    assert make_tensor(100, dtype=naru.float64, low=-math.inf, high=math.inf).isfinite().all()
    with pytest.warns(FutureWarning, match="deprecated"):
        assert make_tensor(3, dtype=naru.float32, low=2, high=2).eq(2).all()


def test_the_layout_is_the_one_that_was_asked_for():
    assert make_tensor(2, 3, 4, 5, dtype=naru.float32, memory_format=naru.channels_last).stride() == (60, 1, 15, 3)
    x = make_tensor(3, 4, dtype=naru.complex64, noncontiguous=True)
    assert x.shape == (3, 4) and not x.is_contiguous() and x.real.frac().ne(0).any() and x.imag.ne(0).any()
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(3, 4, dtype=naru.float32, noncontiguous=True, memory_format=naru.contiguous_format)
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=naru.int64, requires_grad=True)


def test_lists_that_are_written_in_place_are_returned():
    x = [naru.ones(2), naru.ones(3)]
    for returned in (
        naru._foreach_add_(x, 1),
        naru._foreach_sqrt_(x),
        naru._foreach_addcmul_(x, x, x),
        naru._foreach_lerp_(x, x, 0.5),
        naru._foreach_copy_(x, x),
    ):
        assert returned is x
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        naru._foreach_add_(x, [1.0])
