"""Small rules that programs written for PyTorch rely on: which dtypes there are, what is refused and in which words."""

import copy
import pickle

import pytest

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


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.broadcast_shapes((1, -1), (2,)), ValueError, "negative length"),
        (lambda: torch._assert_async(torch.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
    ],
)
def test_bad_calls_are_refused_in_words_that_programs_match(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
