"""The Python Tensor object: identity, attributes, numeric protocols, conversions."""
import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import naru as torch


# --- one tensor, one object ------------------------------------------------------------------------------------------------------------------


def test_what_changes_nothing_returns_the_same_object():
    x = torch.ones(2, 3)
    for same in (x.cpu(), x.to("cpu"), x.to(torch.float32), x.float(), x.contiguous(), x.to(x), torch.as_tensor(x), x.type_as(x)):
        assert same is x
    assert x.to("cpu", copy=True) is not x


def test_a_gradient_is_the_same_object_each_time():
    p = torch.ones(2, requires_grad=True)
    (p * 3).sum().backward()
    assert p.grad is p.grad
    assert p.grad.tolist() == [3.0, 3.0]


def test_attributes_of_their_own_live_as_long_as_the_object():
    x = torch.ones(2)
    x.note = {"from": "here"}
    assert x.note == {"from": "here"} and vars(x) == {"note": {"from": "here"}}
    del x.note
    with pytest.raises(AttributeError):
        x.note


def test_a_tensor_in_a_cycle_is_collected():
    x = torch.ones(2)
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_a_subclass_keeps_its_class_and_gives_plain_tensors():
    class Mine(torch.Tensor):
        def double_sum(self):
            return self.sum().item() * 2

    m = torch.ones(3).as_subclass(Mine)
    assert type(m) is Mine and m.double_sum() == 6.0
    m.tag = 1
    m.add_(1)
    assert type(m) is Mine and m.tag == 1 and m.double_sum() == 12.0
    assert type(Mine([1, 2])) is Mine and isinstance(Mine([1, 2]), torch.Tensor)


def test_equal_tensors_are_two_keys():
    a, b = torch.ones(1), torch.ones(1)
    assert len({a: 1, b: 2}) == 2 and hash(a) == id(a)


def test_objects_go_when_the_last_name_goes():
    x = torch.ones(3)
    ref = weakref.ref(x)
    before = sys.getrefcount(x)
    y = x
    assert sys.getrefcount(x) == before + 1
    del x, y
    assert ref() is None


# --- attributes --------------------------------------------------------------------------------------------------------------------------------


def test_geometry_attributes():
    x = torch.zeros(2, 3, 4)
    assert x.shape == (2, 3, 4) and isinstance(x.shape, torch.Size) and repr(x.shape) == "torch.Size([2, 3, 4])"
    assert x.size() == x.shape and x.size(-1) == 4 and x.size(dim=0) == 2
    assert x.stride() == (12, 4, 1) and x.stride(1) == 4
    assert (x.ndim, x.dim(), x.numel(), x.nelement(), len(x)) == (3, 3, 24, 24, 2)
    assert (x.itemsize, x.element_size(), x.nbytes) == (4, 4, 96)
    assert x[1].storage_offset() == 12 and x[1].is_contiguous() and not x.permute(2, 0, 1).is_contiguous()
    assert x.T.shape == (4, 3, 2) and x.mT.shape == (2, 4, 3) and torch.ones(2, 3).H.shape == (3, 2)


def test_size_is_a_tuple():
    s = torch.Size([2, 3])
    assert s == (2, 3) and s.numel() == 6 and type(s + (4,)) is torch.Size and type(s[:1]) is torch.Size and s[-1] == 3
    assert pickle.loads(pickle.dumps(s)) == s and type(copy.deepcopy(s)) is torch.Size
    a, b = s
    assert (a, b) == (2, 3)
    with pytest.raises(TypeError):
        torch.Size(["a"])


def test_dtypes_are_singletons_with_pytorchs_names():
    assert torch.float is torch.float32 and torch.long is torch.int64 and torch.half is torch.float16
    assert repr(torch.bfloat16) == "torch.bfloat16" and torch.float64.itemsize == 8
    assert torch.float16.is_floating_point and not torch.int8.is_floating_point and torch.int8.is_signed and not torch.uint8.is_signed
    for t in (torch.bool, torch.int64, torch.float32):
        assert pickle.loads(pickle.dumps(t)) is t and copy.deepcopy(t) is t


def test_devices_compare_hash_and_print():
    d = torch.device("cuda:1")
    assert d == torch.device("cuda", 1) and hash(d) == hash(torch.device("cuda", 1)) and d != torch.device("cuda:0")
    assert (d.type, d.index, str(d), repr(d)) == ("cuda", 1, "cuda:1", "device(type='cuda', index=1)")
    assert torch.device("cuda").index is None and repr(torch.device("cpu")) == "device(type='cpu')"
    assert torch.device(d) == d and torch.device(1) == d and d != "cuda:1"
    assert pickle.loads(pickle.dumps(d)) == d and copy.deepcopy(d) == d


def test_a_device_as_a_context_is_the_default_within():
    with torch.device("cuda:1"):
        assert str(torch.ones(2).device) == "cuda:1"
        with torch.device("cpu"):
            assert str(torch.zeros(1).device) == "cpu"
        assert str(torch.tensor([1.0]).device) == "cuda:1"
    assert str(torch.ones(2).device) == "cpu"


def test_data_takes_over_elements_and_keeps_the_object():
    p = torch.ones(2, requires_grad=True)
    p.data = torch.tensor([5.0, 6.0, 7.0], dtype=torch.float64)
    assert p.tolist() == [5.0, 6.0, 7.0] and p.dtype == torch.float64 and p.requires_grad and p.is_leaf
    p.data += 1
    assert p.tolist() == [6.0, 7.0, 8.0]
    (p * 2).sum().backward()
    assert p.grad.shape == (3,)


# --- numbers -----------------------------------------------------------------------------------------------------------------------------------


def test_one_element_is_a_number():
    assert float(torch.tensor([2.5])) == 2.5 and int(torch.tensor(2.9)) == 2 and bool(torch.tensor(0.0)) is False
    assert list(range(5))[torch.tensor(3)] == 3 and torch.tensor(3).__index__() == 3
    assert isinstance(torch.tensor(3).item(), int) and isinstance(torch.tensor(True).item(), bool) and isinstance(torch.tensor(3.0).item(), float)
    assert f"{torch.tensor(1.5):.3f}" == "1.500" and "%d" % torch.tensor(7) == "7"


@pytest.mark.parametrize("read", [bool, float, int, lambda t: t.item(), lambda t: range(9)[t]])
def test_more_elements_are_no_number(read):
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        read(torch.ones(2))


def test_operators_take_numbers_on_both_sides():
    x = torch.tensor([1.0, 2.0])
    assert (2 - x).tolist() == [1.0, 0.0] and (2 / x).tolist() == [2.0, 1.0] and (2**x).tolist() == [2.0, 4.0]
    assert (5 // x).tolist() == [5.0, 2.0] and (5 % torch.tensor([3, 4])).tolist() == [2, 1]
    assert (x - 1).tolist() == [0.0, 1.0] and (-x).tolist() == [-1.0, -2.0] and abs(-x).tolist() == [1.0, 2.0] and (+x).tolist() == [1.0, 2.0]
    assert (3 > x).tolist() == [True, True] and (x == 2).tolist() == [False, True] and (x != x).tolist() == [False, False]
    assert (torch.tensor([1, 2]) << 2).tolist() == [4, 8] and (torch.tensor([6]) & 3).tolist() == [2] and (~torch.tensor([True])).tolist() == [False]
    assert (torch.tensor([True, False]) | True).tolist() == [True, True] and (x * True).tolist() == [1.0, 2.0]


def test_in_place_operators_write_into_the_object():
    x = y = torch.tensor([4.0, 9.0])
    x += 1
    x -= torch.tensor([1.0, 1.0])
    x *= 2
    x /= 4
    x **= 2
    x //= 1
    x %= 3
    assert x is y and y.tolist() == [4.0 % 3, 20.0 % 3]


def test_a_number_does_not_change_the_dtype_but_by_its_category():
    half, ints = torch.ones(1, dtype=torch.float16), torch.ones(1, dtype=torch.int32)
    assert (half + 1.5).dtype == torch.float16 and (ints + 1).dtype == torch.int32 and (ints + 1.5).dtype == torch.float32
    assert (half * np.float64(2)).dtype == torch.float16 and (np.float64(2) * half).dtype == torch.float16
    assert (torch.ones(1, dtype=torch.bool) + 1).dtype == torch.int64


def test_plus_is_the_tensor_itself():
    x = torch.tensor([1, -2])
    assert +x is x and torch.positive(x) is x and x.positive() is x
    with pytest.raises(NotImplementedError, match="on a bool tensor is not supported"):
        +(x > 0)


def test_medians_and_quantiles_are_nan_where_an_element_is():
    nan = float("nan")
    x = torch.tensor([[3.0, nan, 1.0, nan], [3.0, 1.0, 2.0, 4.0]])
    values, places = x.median(1)
    assert values[0].isnan() and values[1] == 2 and places.tolist() == [1, 2] and x.median().isnan()
    assert x.median(1, keepdim=True).values.shape == (2, 1) and torch.tensor([5, 1, 2]).median() == 2
    assert torch.quantile(x, 0.5, 1).isnan().tolist() == [True, False] and torch.quantile(x[1], 0.5) == 2.5


def test_what_is_not_a_number_or_not_there_is_taken_as_pytorch_takes_it():
    nan, edges = float("nan"), torch.tensor([1.0, 2.0, 3.0])
    assert torch.searchsorted(edges, torch.tensor([nan, 2.0])).tolist() == [3, 1]
    assert torch.bucketize(torch.tensor([nan, 2.0]), edges, right=True).tolist() == [3, 2]
    assert torch.nn.functional.kl_div(torch.zeros(2), torch.tensor([0.0, -1.0]), reduction="none").isnan().tolist() == [False, True]
    assert torch.tensor([]).median().isnan()
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        torch.ones(2, 0).median(-1)
    assert torch.diag(torch.tensor([True, False])).dtype == torch.bool
    assert torch.hstack([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]


def test_addcmul_rounds_once_to_the_type_of_its_result():
    a, b = torch.tensor([-0.7]), torch.tensor([-0.7], dtype=torch.float16)
    wanted = a + b.float() * b.float()
    assert torch.addcmul(a, b, b).item() == a.clone().addcmul_(b, b).item() == wanted.item()


def test_what_is_no_operand_is_left_to_the_other_side():
    class Right:
        def __radd__(self, other):
            return "right"

        def __eq__(self, other):
            return "equal"

        __hash__ = None

    x = torch.ones(1)
    assert x + Right() == "right" and (x == Right()) == "equal"
    assert (x == None) is False and (x != None) is True  # noqa: E711
    for bad in ("a", None, [1], {}):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + bad


def test_membership_iteration_and_length():
    x = torch.tensor([[1, 2], [3, 4]])
    assert 3 in x and 5 not in x and torch.tensor(4) in x
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]] and [r.tolist() for r in reversed(x)] == [[3, 4], [1, 2]]
    a, b = x
    assert a.tolist() == [1, 2] and len(x) == 2
    for call in (len, iter):
        with pytest.raises(TypeError, match="0-d tensor"):
            call(torch.tensor(1))


# --- moving, converting, out= -------------------------------------------------------------------------------------------------------------------


def test_to_takes_what_pytorchs_takes(device):
    x = torch.ones(2)
    other = torch.zeros(1, dtype=torch.float64, device=device)
    for y in (
        x.to(device), x.to(torch.device(device)), x.to(device=device), x.to(device, non_blocking=True),
    ):  # fmt: skip
        assert str(y.device) == device and y.dtype == torch.float32
    for y in (x.to(device, torch.float64), x.to(device=device, dtype=torch.float64), x.to(other), x.type_as(other), x.to(other, True)):
        assert str(y.device) == device and y.dtype == torch.float64
    assert x.to(torch.int8).dtype == torch.int8 and x.to(dtype=torch.int8).dtype == torch.int8
    assert x.half().dtype == torch.float16 and x.long().dtype == torch.int64 and x.bool().dtype == torch.bool
    assert torch.ones(2, device=device).cpu().tolist() == [1.0, 1.0]


def test_cuda_and_its_index():
    assert str(torch.ones(1).cuda().device) == "cuda:0" and str(torch.ones(1).cuda(1).device) == "cuda:1"
    assert torch.ones(1).cuda().is_cuda and not torch.ones(1).is_cuda and torch.ones(1).get_device() == -1


def test_out_is_written_and_returned():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    out = torch.empty(2)
    assert torch.add(a, b, out=out) is out and out.tolist() == [4.0, 6.0]
    grown = torch.empty(0)
    assert torch.matmul(torch.ones(2, 3), torch.ones(3, 2), out=grown) is grown and grown.shape == (2, 2)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), 1, out=(values, indices))
    assert values.tolist() == [5.0, 7.0] and indices.tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="out="):
        torch.add(torch.ones(2, requires_grad=True), b, out=out)


def test_pairs_have_names():
    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]])
    result = torch.max(x, 1)
    assert result.values.tolist() == [3.0, 4.0] and result.indices.tolist() == [1, 0] and result[0] is result.values
    values, indices = x.sort(descending=True)
    assert values.tolist() == [[3.0, 1.0], [4.0, 2.0]] and indices.tolist() == [[1, 0], [0, 1]]
    assert repr(torch.min(x, dim=1)) == "torch.return_types.min(\nvalues=tensor([1., 2.]),\nindices=tensor([0, 1]))"
    assert torch.topk(x, 1).values.tolist() == [[3.0], [4.0]]


def test_overloads_of_max_and_min():
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([2.0, 3.0])
    assert torch.max(a).item() == 5.0 and torch.max(a, b).tolist() == [2.0, 5.0] and a.min(b).tolist() == [1.0, 3.0]
    assert a.max(0).indices.item() == 1 and a.max(dim=0, keepdim=True).values.shape == (1,)


def test_synonyms_of_parameters():
    x = torch.ones(2, 3)
    assert x.sum(axis=0).shape == (3,) and x.mean(axis=1, keepdims=True).shape == (2, 1) and torch.sum(input=x).item() == 6.0
    assert torch.cat((x, x), axis=1).shape == (2, 6)


def test_other_names_of_functions_do_the_same():
    x, y = torch.tensor([0.5, 0.25]), torch.tensor([0.5, 2.0])
    for a, b in (("multiply", "mul"), ("divide", "div"), ("true_divide", "div"), ("subtract", "sub"), ("greater", "gt"), ("arctan2", "atan2")):
        assert getattr(torch, a)(x, y).tolist() == getattr(torch, b)(x, y).tolist() == getattr(x, a)(y).tolist()
    for a, b in (("absolute", "abs"), ("negative", "neg"), ("arccos", "acos"), ("fix", "trunc")):
        assert getattr(torch, a)(x).tolist() == getattr(torch, b)(x).tolist()


def test_functions_are_picklable_and_have_a_docstring():
    assert pickle.loads(pickle.dumps(torch.relu)) is torch.relu and copy.deepcopy(torch.relu) is torch.relu
    assert "dim" in torch.sum.__doc__ and torch.sum.__name__ == "sum"

    class Net:
        activation = torch.relu

    assert Net().activation(torch.tensor([-1.0])).tolist() == [0.0]


def test_tensors_pickle_and_copy(device):
    x = torch.arange(6, dtype=torch.float32, device=device).reshape(2, 3)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert y.tolist() == x.tolist() and str(y.device) == device and y.dtype == x.dtype
    twins = copy.deepcopy([x, x])
    assert twins[0] is twins[1]


def test_apply_map_and_storage():
    x = torch.tensor([1.0, 2.0])
    assert x.apply_(lambda v: v * 10) is x and x.tolist() == [10.0, 20.0]
    assert x.map_(torch.tensor([1.0, 2.0]), lambda a, b: a + b).tolist() == [11.0, 22.0]
    y = torch.arange(4)
    assert y[2:].untyped_storage().data_ptr() == y.data_ptr() and y[2:].data_ptr() == y.data_ptr() + 16
    assert x.share_memory_() is x


# --- functions composed of others --------------------------------------------------------------------------------------------------------------


def test_compositions_agree_with_numpy():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    x, y = torch.from_numpy(a), torch.from_numpy(b)

    def close(t, wanted):
        assert np.allclose(t.numpy(), wanted, rtol=1e-12, atol=1e-12)

    close(torch.cdist(x, y), np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)))
    close(torch.cross(x, x.flip(0), dim=1), np.cross(a, a[::-1]))
    close(torch.kron(x, y), np.kron(a, b))
    close(torch.diff(x, dim=0), np.diff(a, axis=0))
    close(torch.diff(x, n=2, dim=0), np.diff(a, n=2, axis=0))
    close(torch.trapezoid(x), np.trapezoid(a) if hasattr(np, "trapezoid") else np.trapz(a))
    close(torch.quantile(x, 0.3), np.quantile(a, 0.3))
    close(torch.quantile(x, torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64), dim=1), np.quantile(a, [0.0, 0.5, 1.0], axis=1))
    close(torch.column_stack((x[:, 0], x)), np.column_stack((a[:, 0], a)))
    close(torch.dist(x, x.flip(0)), np.linalg.norm(a - a[::-1]))
    close(torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 2.0, 9.0])), [0, 1, 3])
    close(torch.bucketize(torch.tensor([[1, 5], [2, 3]]), torch.tensor([2, 4]), right=True), [[0, 2], [1, 1]])
    close(torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5])), [False, True, False])
    close(torch.histc(torch.tensor([0.0, 1.0, 1.5, 4.0]), bins=4, min=0, max=4), [1.0, 2.0, 0.0, 1.0])
    close(torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5])), [0.0, 0.5, 1.0])
    close(torch.nanmean(torch.tensor([1.0, float("nan"), 3.0])), 2.0)


def test_a_bool_is_no_dimension():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.std(x, False).shape == () and torch.std(x, unbiased=False).item() == torch.std(x, False).item()
    with pytest.raises(TypeError):
        x.sum(True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32], ids=str)
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_small_whole_powers_are_products_however_they_are_asked_for(dtype, exponent):
    x = (torch.randn(20_000) * 3).to(dtype)
    want = [x, x * x, x * x * x][exponent - 1]
    pieces = torch.cat([part**exponent for part in x.split(1000)])
    for got in (x**exponent, pieces, torch.pow(x, torch.full_like(x, exponent)), x.clone().pow_(exponent)):
        assert torch.equal(got, want)
    if not dtype.is_floating_point:
        return
    slope = exponent * [torch.ones_like(x), x, x * x][exponent - 1]

    def gradient(x, exponent):
        x = x.detach().clone().requires_grad_()
        (x**exponent).sum().backward()
        return x.grad

    for got in (gradient(x, exponent), torch.cat([gradient(part, exponent) for part in x.split(1000)]), gradient(x, torch.full_like(x, exponent))):
        assert torch.equal(got, slope)


def test_divisions_of_integers_are_exact_on_both_sides_of_what_doubles_hold(device):
    rng, most = np.random.default_rng(2), 1 << 51
    b = np.concatenate([rng.integers(1, 100, 500), rng.integers(1 << 20, most, 500), [most - 1, most, most + 1, -1, 1]]) * rng.choice([-1, 1], 1005)
    a = np.concatenate([b[:500] * rng.integers(1, most // 100, 500) - rng.integers(0, 2, 500), rng.integers(-most, most, 500), [most, -most, 1 - most, -(2**63), -(2**63)]])
    x, y = torch.tensor(a, device=device), torch.tensor(b, device=device)
    assert (x // y).tolist() == [int(p) // int(q) if (p, q) != (-(2**63), -1) else -(2**63) for p, q in zip(a.tolist(), b.tolist())]
    assert torch.fmod(x, y).tolist() == [int(np.fmod(p, q)) if q != -1 else 0 for p, q in zip(a, b)]
    assert torch.equal(torch.div(x, y, rounding_mode="trunc") * y + torch.fmod(x, y), x)


def test_distances_by_products_are_those_of_differences_and_so_are_their_gradients(device):
    a, b = (torch.tensor(np.random.default_rng(s).uniform(-1, 1, (2, 30, 5)), device=device, requires_grad=True) for s in (0, 1))
    modes = {m: torch.cdist(a, b, compute_mode=m) for m in ("use_mm_for_euclid_dist_if_necessary", "donot_use_mm_for_euclid_dist")}
    near, exact = modes.values()
    assert torch.allclose(near, exact)
    for g, h in zip(torch.autograd.grad(near.sin().sum(), (a, b)), torch.autograd.grad(exact.sin().sum(), (a, b))):
        assert torch.allclose(g, h)
    same = torch.cdist(a[0].float(), a[0].float().detach())
    (g,) = torch.autograd.grad(same.diagonal().sum(), a)
    assert g.isfinite().all(), "a distance of 0 has no direction"
    with pytest.raises(ValueError, match="foo is not a valid value for compute_mode"):
        torch.cdist(a, b, compute_mode="foo")
    rows = torch.pdist(b[0].detach().repeat(3, 1) + torch.arange(90.0, dtype=torch.float64, device=device)[:, None])
    whole = torch.cdist(*[b[0].detach().repeat(3, 1) + torch.arange(90.0, dtype=torch.float64, device=device)[:, None]] * 2)
    assert torch.allclose(rows, whole[tuple(torch.triu_indices(90, 90, 1).to(device))])
