"""Small rules that programs written for PyTorch rely on: which dtypes there are, what is refused and in which words."""

import copy
import pickle

import pytest

import naru
import naru as torch


def test_dtypes_without_tensors_are_dtypes_and_are_refused():
    for name in ("quint8", "qint32", "quint4x2", "int4", "uint7", "bits16", "bcomplex32", "float8_e5m2"):
        dtype = getattr(torch, name)
        assert isinstance(dtype, torch.dtype) and repr(dtype) == "torch." + name
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
        with pytest.raises(TypeError):
            torch.zeros(2, dtype=dtype)
    assert torch.bit is torch.uint1
    assert (torch.bits16.itemsize, torch.qint32.itemsize, torch.bcomplex32.itemsize) == (2, 4, 4)
    assert torch.bcomplex32.is_complex and not torch.uint3.is_signed and not torch.float8_e8m0fnu.is_signed


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
def test_small_integers_of_no_dimension_are_indices(dtype):
    x = torch.arange(6).reshape(2, 3)
    assert x[torch.tensor(1, dtype=dtype)].tolist() == [3, 4, 5]
    assert x[0, torch.tensor(-1, dtype=dtype)].item() == 2
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        x[torch.tensor([1], dtype=dtype)]


def test_nothing_but_empty_vectors_are_joined_along_any_dimension():
    assert torch.cat([torch.empty(0), torch.empty(0)], 1).shape == (0,)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.flipud(torch.tensor(1.0)), RuntimeError, "Input must be >= 1-d."),
        (lambda: torch.fliplr(torch.ones(2)), RuntimeError, "Input must be >= 2-d."),
        (lambda: torch.rot90(torch.ones(2)), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
        (lambda: torch.movedim(torch.ones(2, 3), (0, 0), (0, 1)), RuntimeError, "movedim: repeated dim in `source`"),
        (lambda: torch.movedim(torch.ones(2, 3), (0, 1), (1, 1)), RuntimeError, "movedim: repeated dim in `destination`"),
        (lambda: torch.take_along_dim(torch.ones(2), torch.zeros(2), 0), RuntimeError, "dtype of indices should be Long but got Float"),
        (lambda: torch.broadcast_shapes((1, -1), (2,)), ValueError, "negative length"),
        (lambda: "a" in torch.ones(2), RuntimeError, "you passed in a <class 'str'>."),
        (lambda: torch._assert_async(torch.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
    ],
)
def test_bad_calls_are_refused_in_words_that_programs_match(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_pytorchs_uniform_numbers_of_16_bits_stay_below_the_upper_end(dtype):
    previous = naru.random.algorithm()
    naru.random.set_algorithm("pytorch")
    try:
        torch.manual_seed(3)
        wide = torch.empty(50000).uniform_()
        torch.manual_seed(3)
        drawn = torch.empty(50000, dtype=dtype).uniform_()
    finally:
        naru.random.set_algorithm(previous)
    rounded = wide.to(dtype)
    assert (rounded == 1).any() and (drawn[rounded == 1] == 0).all()  # PyTorch gives the lower end there
    assert torch.equal(drawn[rounded != 1], rounded[rounded != 1])
