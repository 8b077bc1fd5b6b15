"""uint16, uint32 and uint64: they work where PyTorch supports them, and raise PyTorch's errors elsewhere."""
import copy
import io
import pickle

import numpy as np
import pytest

import naru as torch
import naru.safetensors

TYPES = ["uint16", "uint32", "uint64"]
BIG = 2**64 - 1


def numbers(name, *values):
    return torch.tensor(list(values), dtype=getattr(torch, name))


@pytest.fixture(params=TYPES)
def x(request, device):
    bits = int(request.param[4:])
    return numbers(request.param, 3, 1, 2, 2**bits - 1).to(device)


def test_numbers_are_printed_read_and_limited_as_the_type_has_them(x):
    most = torch.iinfo(x.dtype).max
    assert most == 2 ** (8 * x.element_size()) - 1 and torch.iinfo(x.dtype).min == 0
    assert x.tolist() == [3, 1, 2, most] and x[3].item() == most and int(x[0]) == 3 and float(x[3]) == float(most)
    assert str(x.cpu()[:2]) == f"tensor([3, 1], dtype={x.dtype})" and str(most) in str(x)
    assert not x.dtype.is_signed and not x.is_floating_point() and x.dtype.itemsize == x.element_size()


def test_numbers_that_do_not_fit_are_refused_and_negative_ones_wrap_around(x):
    most = torch.iinfo(x.dtype).max
    assert torch.full((2,), -1, dtype=x.dtype, device=x.device).tolist() == [most, most]
    assert x.clone().fill_(-2)[0].item() == most - 1
    for far in (most + 1, -most - 1):
        with pytest.raises((RuntimeError, OverflowError)):
            torch.full((1,), far, dtype=x.dtype)
        with pytest.raises((RuntimeError, OverflowError, ValueError)):
            torch.tensor([far], dtype=x.dtype)


@pytest.mark.parametrize("name", TYPES)
def test_promotion_knows_floating_point_only(name, device):
    x, own = numbers(name, 1, 2).to(device), getattr(torch, name)
    for other in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert torch.promote_types(own, other) == torch.promote_types(other, own) == other
    for other in (torch.bool, torch.uint8, torch.int8, torch.int64, torch.complex64, *(getattr(torch, t) for t in TYPES if t != name)):
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported, attempted to promote"):
            torch.promote_types(own, other)
    with pytest.raises(RuntimeError, match=f"attempted to promote U{name[1].upper()}nt{name[4:]} and Char"):
        x * torch.tensor([1], dtype=torch.int8, device=device)
    assert (x * 2).dtype == own and (x + 1.5).dtype == torch.float32 and (x / 2).dtype == torch.float32
    assert (x * torch.tensor([0.5, 2.0], device=device)).tolist() == [0.5, 4.0]


WORDS = {
    "add_stub": (lambda x: x + x, lambda x: x - 1), "lt_cpu": (lambda x: x < 1,), "abs_cpu": (abs,), "neg_cpu": (lambda x: -x,),
    "remainder_cpu": (lambda x: x % 2,), "div_floor_cpu": (lambda x: x // 2,), "pow": (lambda x: x**2,), "lshift_cpu": (lambda x: x << 1,),
    "bitwise_not_cpu": (lambda x: ~x,), "logical_not_cpu": (torch.logical_not,), "max_values_cpu": (lambda x: x.amax(),),
    "argmax_cpu": (lambda x: x.argmax(),), "sum_cpu": (lambda x: x.sum(dtype=x.dtype),), "cumsum_out_cpu": (lambda x: x.cumsum(0, dtype=x.dtype),),
    "addmm_impl_cpu_": (lambda x: x.view(2, 2) @ x.view(2, 2),), "cummax_helper_cpu": (), "sign_cpu": (torch.sign,),
}  # fmt: skip


@pytest.mark.parametrize("kernel", WORDS)
def test_what_pytorch_lacks_is_refused_in_its_words(x, kernel):
    name = str(x.dtype).removeprefix("torch.uint")
    for f in WORDS[kernel]:
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'UInt{name}'"):
            f(x)


def test_memory_is_shared_with_numpy_and_by_dlpack(x):
    x = x.cpu()
    array = x.numpy()
    assert array.dtype == np.dtype(str(x.dtype).removeprefix("torch.")) and torch.from_numpy(array).data_ptr() == x.data_ptr()
    assert torch.from_dlpack(x).tolist() == x.tolist() and np.from_dlpack(x).dtype == array.dtype
    assert torch.tensor(array[3]).dtype == torch.tensor(array).dtype == x.dtype


def test_files_and_copies_keep_the_type(x, tmp_path):
    held = io.BytesIO()
    torch.save({"x": x, "part": x[1:]}, held)
    held.seek(0)
    read = torch.load(held)
    naru.safetensors.save_file({"x": x.cpu()}, tmp_path / "x.safetensors")
    copies = (read["x"], copy.deepcopy(x), pickle.loads(pickle.dumps(x)), naru.safetensors.load_file(tmp_path / "x.safetensors")["x"])
    for made in copies:
        assert made.dtype == x.dtype and made.tolist() == x.tolist()
    assert read["part"].untyped_storage().data_ptr() == read["x"].untyped_storage().data_ptr()


def test_conversions_are_those_of_the_language_c(device):
    for name in TYPES:
        own = getattr(torch, name)
        assert torch.tensor([-1, 5], dtype=torch.int8, device=device).to(own).tolist() == [2 ** int(name[4:]) - 1, 5]
        assert torch.tensor([-1.5, 2.9, 0.0], device=device).to(own).tolist() == [2 ** int(name[4:]) - 1, 2, 0]
        assert torch.tensor([True, False], device=device).to(own).tolist() == [1, 0]
        assert numbers(name, 0, 7).to(device).bool().tolist() == [False, True]
    assert numbers("uint16", 65535).to(device).to(torch.uint64).tolist() == [65535]
    assert numbers("uint64", BIG, 1).to(device).to(torch.uint16).tolist() == [65535, 1]
    assert numbers("uint64", BIG).to(device).long().tolist() == [-1]
    # Rounded once: through another type this would be a tie.
    exact = [2**63 + 2**39 + 1, 2**63 + 2**39, 2**63 - 1, 2**53 + 1]
    assert numbers("uint64", *exact).to(device).float().tolist() == [float(v) for v in np.array(exact, np.uint64).astype(np.float32)]
    assert torch.tensor([2.0**63, 1.5 * 2.0**63], device=device).to(torch.uint64).tolist() == [2**63, 3 * 2**62]


def test_a_number_beyond_int64_meets_uint64_and_floating_point(device):
    x = numbers("uint64", BIG, 1).to(device)
    assert (x == BIG).tolist() == [True, False] and (x * BIG).tolist() == [1, BIG] and (x & BIG).tolist() == [BIG, 1]
    assert x.clamp(max=BIG - 1).tolist() == [BIG - 1, 1] and torch.full((1,), BIG, dtype=torch.uint64).tolist() == [BIG]
    assert (torch.ones(1, device=device) + BIG).tolist() == [2.0**64]
    with pytest.raises(OverflowError):
        x == 2**64
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        torch.full((1,), BIG)


def test_no_index_is_of_these_types(x):
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        torch.arange(20, device=x.device)[x[:3]]
    with pytest.raises(RuntimeError):
        torch.arange(20, device=x.device).gather(0, x[:3])


def test_random_numbers_and_limits(device):
    for name in TYPES:
        drawn = torch.randint(3, 9, (100,), dtype=getattr(torch, name), device=device).tolist()
        assert min(drawn) >= 3 and max(drawn) < 9
