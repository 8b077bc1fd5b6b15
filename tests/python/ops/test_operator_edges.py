"""Edge cases of operators: no elements, one element, mixed dtypes, legacy signatures; compared with PyTorch."""

import pytest

import naru as torch

NAN = float("nan")


def test_scaling_by_a_power_of_two_overflows_only_where_the_result_does():
    assert torch.ldexp(torch.tensor([1e-30]), torch.tensor([200])).item() == pytest.approx(1.6069380442589903e30, rel=1e-6)
    wide = torch.ldexp(torch.ones(1, dtype=torch.float64), torch.tensor([128, -1000]))
    assert wide.dtype == torch.float64 and wide.tolist() == [2.0**128, 2.0**-1000]
    assert torch.ldexp(torch.tensor([3]), torch.tensor([-1])).tolist() == [1.5] and torch.ldexp(torch.ones(1), torch.tensor([0.5])).item() == pytest.approx(2**0.5)


def test_a_vector_of_one_place_is_no_number_of_pieces():
    a = torch.arange(4)
    assert [p.tolist() for p in torch.tensor_split(a, torch.tensor([0]))] == [[], [0, 1, 2, 3]]
    assert [p.tolist() for p in torch.tensor_split(a, torch.tensor(2))] == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="expected at least a 1-dimensional tensor"):
        torch.tensor_split(torch.ones(()), (1,))


def test_distinct_values_of_shapes_without_elements():
    values, places, counts = torch.unique_consecutive(torch.ones(0, 2, 3), return_inverse=True, return_counts=True)
    assert (values.shape, places.shape, counts.shape) == ((0,), (0, 2, 3), (0,))
    for call in (torch.unique, torch.unique_consecutive):
        assert call(torch.ones(0, 2, 3), dim=0).shape == (0, 2, 3)
        with pytest.raises(RuntimeError, match="There are 0 sized dimensions, and they aren't selected"):
            call(torch.ones(0, 2, 3), dim=1)
        with pytest.raises(RuntimeError, match="Number of zero sized dimensions is more than one"):
            call(torch.ones(0, 0, 3), dim=1)


def test_old_signatures_of_products_take_factors_first():
    a, b = torch.ones(2, 2), torch.ones(1, 2, 2)
    with pytest.warns(UserWarning, match="deprecated"):
        assert a.addbmm(1, 2, b, b).tolist() == a.addmm(1, 2, a, a).tolist() == [[5, 5], [5, 5]]
        assert a.clone().addbmm_(2, b, b).tolist() == [[4, 4], [4, 4]] and b.clone().baddbmm_(2, b, b).tolist() == [[[4, 4], [4, 4]]]
        assert torch.addbmm(2, a, b, b).tolist() == [[4, 4], [4, 4]] and torch.ones(2).addmv_(3, a, torch.ones(2)).tolist() == [5, 5]


def test_results_have_the_type_of_both_operands():
    x = torch.ones(2)
    assert torch.special.chebyshev_polynomial_t(x, x.double()).dtype == torch.special.hermite_polynomial_h(x.int(), x.double()).dtype == torch.float64
    assert torch.special.chebyshev_polynomial_t(x.int(), 2.0).dtype == torch.float32
    exact = torch.special.xlog1py(x * 3, torch.tensor([700.0, 701.0]).half())
    assert exact.dtype == torch.float32 and torch.equal(exact, torch.special.xlog1py(x * 3, torch.tensor([700.0, 701.0])))
    assert torch.add(x.bool(), x.bool(), alpha=0).dtype == torch.bool and (torch.zeros(2) > 0).add_(x.bool(), alpha=2).tolist() == [True, True]
    for call in (torch.baddbmm, torch.addmv):
        shape = (1, 2, 2) if call is torch.baddbmm else (2, 2)
        with pytest.raises(RuntimeError, match="same"):
            call(torch.ones(shape[:2] if len(shape) == 2 else shape)[0].double() if call is torch.addmv else torch.ones(shape).double(), torch.ones(shape), torch.ones(shape[:1] if len(shape) == 2 else shape))


def test_products_of_bytes_are_int32():
    a = torch.full((3, 8), 127, dtype=torch.int8)
    assert torch._int_mm(a, a.t()).tolist() == [[127 * 127 * 8] * 3] * 3 and torch._int_mm(a, a.t()).dtype == torch.int32
    with pytest.raises(RuntimeError, match="Expected self dtype to be int8 or uint8 but got float"):
        torch._int_mm(a.float(), a.t())


def test_running_extremes_and_modes_are_written_into_given_tensors():
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.cummax(torch.tensor([1.0, 3.0, 2.0]), 0, out=(values, places))
    assert values.tolist() == [1, 3, 3] and places.tolist() == [0, 1, 1]
    torch.mode(torch.tensor([[1.0, 2.0, 2.0]]), 1, out=(values.resize_(0), places.resize_(0)))
    assert values.tolist() == [2] and places.tolist() == [2]


def test_segments_without_elements_have_a_history_and_nan_is_an_extreme():
    empty = torch.ones(0, requires_grad=True)
    torch.segment_reduce(empty, "max", lengths=torch.tensor([0])).sum().backward()
    assert empty.grad.shape == (0,)
    x = torch.tensor([1.0, NAN, 3.0, 5.0, 5.0], requires_grad=True)
    torch._segment_reduce(x, "max", lengths=torch.tensor([1, 2, 2])).sum().backward()
    assert x.grad.tolist() == [1, 1, 0, 0.5, 0.5]
    y = torch.tensor([2.0, NAN, 3.0, 0.0, 5.0], requires_grad=True)
    torch.segment_reduce(y, "prod", lengths=torch.tensor([1, 2, 2])).sum().backward()
    assert str(y.grad.tolist()) == "[1.0, 3.0, nan, 5.0, 0.0]"
    assert torch.segment_reduce(torch.arange(5.0), "sum", offsets=torch.tensor([1, 3])).tolist() == [3]


def test_the_gradient_of_a_product_is_of_its_own_place_alone():
    x = torch.tensor([2.0, NAN, 3.0, 4.0, 0.0, 5.0], requires_grad=True)
    torch.ones(3).scatter_reduce(0, torch.tensor([0, 1, 1, 2, 2, 2]), x, "prod").sum().backward()
    assert str(x.grad.tolist()) == "[1.0, 3.0, nan, 0.0, 20.0, 0.0]"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_an_element_of_a_wider_type_is_not_rounded_to_16_bits_first(dtype):
    x, tiny, great = torch.full((4,), 1000.0, dtype=dtype), torch.tensor(2.0**-25), torch.tensor(100000.0)
    for result in (x * tiny, x.clone().mul_(tiny)):
        assert result.dtype == dtype and torch.equal(result, torch.full((4,), 1000 * 2.0**-25).to(dtype))
    assert torch.equal(x / great, torch.full((4,), 0.01).to(dtype)) and torch.equal(torch.where(x > 0, tiny, x), tiny.to(dtype).expand(4))
    x.requires_grad_(), tiny.requires_grad_()
    (x * tiny).sum().backward()
    assert tiny.grad.dtype == torch.float32 and x.grad.dtype == dtype


def test_exponential_numbers_are_above_0(device):
    """Of seed 176 one of 2**18 words is 0: half a step, as the logarithm of such numbers is to be finite."""
    torch.manual_seed(176)
    x = torch.empty(1 << 18, device=device).exponential_(2.0)
    assert x.min().item() == 2.0**-26 and bool(x.log().isfinite().all())
