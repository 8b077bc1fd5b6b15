"""Exchanging tensors with PyTorch in both directions without a copy."""
import os

import pytest

if os.environ.get("NARU_ORACLE") != "torch":
    pytest.skip("PyTorch is compared with by ./run test --torch only", allow_module_level=True)

import gc

import torch

import naru

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_memory_is_seen_from_both_sides(dtype):
    ours = naru.arange(6).reshape(2, 3).to(getattr(naru, dtype))
    theirs = torch.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr() and theirs.tolist() == ours.tolist() and str(theirs.dtype) == f"torch.{dtype}"
    theirs[0, 0] = 1
    assert ours[0, 0].item() == 1
    given = torch.arange(6).reshape(3, 2).t().to(getattr(torch, dtype))
    taken = naru.from_dlpack(given)
    assert taken.data_ptr() == given.data_ptr() and taken.stride() == given.stride() and taken.tolist() == given.tolist()
    taken[1, 2] = 0
    assert given[1, 2].item() == 0


def test_each_side_keeps_the_other_alive():
    theirs = torch.from_dlpack(naru.arange(1000.0))
    ours = naru.from_dlpack(torch.arange(1000.0))
    gc.collect()
    junk = [naru.full((1000,), 3.0) for _ in range(20)] + [torch.full((1000,), 3.0) for _ in range(20)]
    assert theirs[999].item() == 999 and ours[999].item() == 999 and len(junk) == 40


def test_capsules_of_both_kinds_pass():
    assert torch.utils.dlpack.from_dlpack(naru.to_dlpack(naru.ones(3))).tolist() == [1, 1, 1]
    assert naru.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(3))).tolist() == [1, 1, 1]
