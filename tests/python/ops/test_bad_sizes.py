"""Sizes that overflow, negative sizes and sizes beyond any memory raise PyTorch 2.15's errors, and never give a tensor whose element count has
wrapped around. A × B is 2^64 + 1, which wraps to 1."""

import pickle

import numpy as np
import pytest

import naru as torch
import naru.nn.functional as F

A, B, P = 274177, 67280421310721, 2**62
NUMEL = "numel: integer multiplication overflow"
STORAGE = "Storage size calculation overflowed with sizes="


def one(*sizes):
    return torch.ones(1).expand(*sizes)


WRONG = {
    # views
    "reshape of nothing": (lambda: torch.ones(0).reshape(2**32, 2**32), RuntimeError, NUMEL),
    "reshape": (lambda: torch.ones(1).reshape(A, B), RuntimeError, NUMEL),
    "view": (lambda: torch.ones(1).view(A, B), RuntimeError, NUMEL),
    "view of nothing": (lambda: torch.ones(0).view(2**32, 2**32), RuntimeError, NUMEL),
    "view to a negative size": (lambda: torch.ones(4).view(-3, 2), RuntimeError, r"invalid shape dimension -3 at index 0 of shape \[-3, 2\]"),
    "flatten": (lambda: torch.ones(0, 1, 1).expand(0, 2**32, 2**32).flatten(1), RuntimeError, NUMEL),
    "unflatten": (lambda: torch.ones(1).unflatten(0, (A, B)), RuntimeError, NUMEL),
    "expand": (lambda: one(A, B), RuntimeError, NUMEL),
    "expand to 2^64": (lambda: one(2**32, 2**32), RuntimeError, NUMEL),
    "broadcast_to": (lambda: torch.broadcast_to(torch.ones(1), (A, B)), RuntimeError, NUMEL),
    "as_strided": (lambda: torch.ones(10).as_strided((A, B), (0, 0)), RuntimeError, NUMEL),
    "as_strided before the start": (lambda: torch.ones(3).as_strided((2,), (1,), -1), RuntimeError, "Tensor: invalid storage offset -1"),
    "as_strided past the end": (lambda: torch.ones(3).as_strided((2,), (P,)), RuntimeError, "out of bounds for storage"),
    "narrow": (lambda: torch.ones(3).narrow(0, 1, 2**63 - 1), RuntimeError, r"start \(1\) \+ length \(9223372036854775807\) exceeds dimension size \(3\)"),
    "narrow at the end": (lambda: torch.ones(3).narrow(0, 3, 2**63 - 3), RuntimeError, "exceeds dimension size"),
    "unfold of a negative size": (lambda: torch.ones(3).unfold(0, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    "meshgrid of 70 vectors": (lambda: torch.meshgrid(*[torch.ones(2)] * 70, indexing="ij"), RuntimeError, NUMEL),
    "meshgrid of wide vectors": (lambda: torch.meshgrid(one(A), one(B), indexing="ij"), RuntimeError, NUMEL),
    # new tensors
    "zeros": (lambda: torch.zeros(A, B), RuntimeError, STORAGE),
    "zeros with a size of 0": (lambda: torch.zeros(0, 2**40, 2**40), RuntimeError, "Stride calculation overflowed"),
    "zeros of a negative size": (lambda: torch.zeros(2, -3), RuntimeError, "negative dimension -3"),
    "bytes": (lambda: torch.empty(2**61 + 1), RuntimeError, STORAGE),
    "bytes of float16": (lambda: torch.empty(2**63 - 1, dtype=torch.float16), RuntimeError, STORAGE),
    "full": (lambda: torch.full((2**40, 2**40), 1.0), RuntimeError, STORAGE),
    "eye": (lambda: torch.eye(A, B), RuntimeError, STORAGE),
    "eye of a negative size": (lambda: torch.eye(3, -1), RuntimeError, "m must be greater or equal to 0, got -1"),
    "rand": (lambda: torch.rand(A, B), RuntimeError, STORAGE),
    "randint": (lambda: torch.randint(0, 5, (A, B)), RuntimeError, STORAGE),
    "randperm": (lambda: torch.randperm(P), RuntimeError, STORAGE),
    "new_zeros": (lambda: torch.ones(1).new_zeros((A, B)), RuntimeError, STORAGE),
    "Tensor": (lambda: torch.Tensor(A, B), RuntimeError, STORAGE),
    "empty_like": (lambda: torch.empty_like(one(2**61 + 1)), RuntimeError, STORAGE),
    "empty_strided": (lambda: torch.empty_strided((2, 2), (P, P)), RuntimeError, "overflow"),
    "arange": (lambda: torch.arange(0, 2**63 - 1, 1), RuntimeError, STORAGE),
    "arange of floats": (lambda: torch.arange(0.0, 1e300, 1.0), RuntimeError, r"invalid size, possible overflow\?"),
    "arange beyond int64": (lambda: torch.arange(-(2**63), 2**63 - 1, 1), RuntimeError, r"invalid size, possible overflow\?"),
    "range": (lambda: torch.range(0, 1e300, 1e-300), RuntimeError, "unsupported range|invalid size"),
    "linspace": (lambda: torch.linspace(0, 1, P), RuntimeError, STORAGE),
    "logspace": (lambda: torch.logspace(0, 1, P), RuntimeError, STORAGE),
    "tril_indices": (lambda: torch.tril_indices(P, 1), RuntimeError, "overflow|too many"),
    "triu_indices of a negative size": (lambda: torch.triu_indices(2**63 - 1, -1), RuntimeError, "col must be non-negative, got ?-1"),
    "triu_indices beyond int64": (lambda: torch.triu_indices(P, P), RuntimeError, "overflow|too many"),
    # of others
    "clone": (lambda: one(2**61 + 1).clone(), RuntimeError, STORAGE),
    "to float64": (lambda: one(2**60 + 1).to(torch.float64), RuntimeError, STORAGE),
    "add": (lambda: one(A, 1) + one(1, B), RuntimeError, STORAGE),
    "outer": (lambda: torch.outer(one(A), one(B)), RuntimeError, STORAGE),
    "matmul": (lambda: one(A, 1) @ one(1, B), RuntimeError, STORAGE),
    "kron": (lambda: torch.kron(one(A), one(B)), RuntimeError, "overflow"),
    "diag": (lambda: torch.diag(one(2**32)), RuntimeError, "overflow"),
    "diag beside the middle": (lambda: torch.diag(torch.ones(1), 2**32 - 1), RuntimeError, "overflow"),
    "diag far beside the middle": (lambda: torch.diag(torch.ones(3), 2**63 - 1), RuntimeError, "overflow"),
    "cat": (lambda: torch.cat([one(P)] * 4 + [torch.ones(3)]), RuntimeError, "overflow"),
    "stack": (lambda: torch.stack([one(P)] * 4), RuntimeError, STORAGE),
    "repeat": (lambda: torch.ones(1).repeat(A, B), RuntimeError, "overflow"),
    "repeat beyond int64": (lambda: torch.ones(3).repeat(P, P), RuntimeError, "overflow"),
    "repeat a negative number of times": (lambda: torch.ones(3).repeat(-1), RuntimeError, "Trying to create tensor with negative dimension"),
    "tile": (lambda: torch.ones(1).tile((A, B)), RuntimeError, "overflow"),
    "repeat_interleave": (lambda: torch.ones(3).repeat_interleave(P), RuntimeError, NUMEL),
    "repeat_interleave a negative number of times": (lambda: torch.repeat_interleave(torch.ones(3), -1), RuntimeError, "(?i)repeats.*non-negative"),
    "repeat_interleave by a tensor": (lambda: torch.repeat_interleave(torch.ones(5), torch.tensor([P, P, P, P, 3])), (RuntimeError, MemoryError), "repeat_interleave|overflow"),
    "pad": (lambda: F.pad(torch.ones(1, 1), (0, B - 1, 0, A - 1)), RuntimeError, "overflow|not enough memory"),
    "one_hot": (lambda: F.one_hot(torch.tensor([1]), P), RuntimeError, STORAGE),
    "gather": (lambda: torch.gather(one(3, P), 0, torch.zeros(1, dtype=torch.long).expand(1, P)), RuntimeError, "overflow"),
    "embedding": (lambda: F.embedding(torch.zeros(1, dtype=torch.long).expand(A), one(1, B)), RuntimeError, "overflow"),
    "bincount": (lambda: torch.bincount(torch.tensor([P])), RuntimeError, STORAGE),
    "bincount of the greatest number": (lambda: torch.bincount(torch.tensor([2**63 - 1])), RuntimeError, "overflow"),
    "bincount of a least length": (lambda: torch.bincount(torch.tensor([1]), minlength=P), RuntimeError, STORAGE),
    "histc": (lambda: torch.histc(torch.ones(3), P), RuntimeError, STORAGE),
    "split": (lambda: torch.split(torch.ones(3), [P, P, P, P, 3]), RuntimeError, "split_with_sizes|overflow"),
    "tensor_split": (lambda: torch.tensor_split(torch.ones(3), 2**40), RuntimeError, "tensor_split"),
    "chunk of nothing": (lambda: torch.chunk(torch.ones(0), 2**40), RuntimeError, "chunk"),
    "unbind": (lambda: torch.unbind(one(P)), RuntimeError, "unbind"),
    "multinomial": (lambda: torch.multinomial(torch.ones(3), P, True), RuntimeError, STORAGE),
    "topk": (lambda: torch.topk(torch.ones(3), P), RuntimeError, "selected index k out of range"),
    "Size.numel": (lambda: torch.Size([2**40, 2**40]).numel(), RuntimeError, NUMEL),
    "frombuffer": (lambda: torch.frombuffer(bytearray(8), dtype=torch.float32, count=P), ValueError, "must not be greater than actual buffer length"),
    "frombuffer past the end": (lambda: torch.frombuffer(bytearray(8), dtype=torch.float32, offset=P), ValueError, "must be non-negative and no greater than buffer length"),
    "frombuffer before the start": (lambda: torch.frombuffer(bytearray(8), dtype=torch.float32, offset=-4), ValueError, "must be non-negative"),
    "frombuffer of nothing": (lambda: torch.frombuffer(bytearray(8), dtype=torch.float32, count=0), ValueError, r"both buffer length \(8\) and count \(0\) must not be 0"),
    "frombuffer of a part of an element": (lambda: torch.frombuffer(bytearray(7), dtype=torch.float32), ValueError, "must be a multiple of element size"),
    # dimensions
    "sum over a far dimension": (lambda: torch.sum(torch.ones(3), (0, 64)), IndexError, r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 64\)"),
    "sum of more than 64 dimensions": (lambda: torch.ones([1] * 70).sum((0, 69)), RuntimeError, "only tensors with up to 64 dims are supported"),
    "an array of more than 64 dimensions": (lambda: torch.ones([1] * 70).numpy(), ValueError, "64"),
    "diff a negative number of times": (lambda: torch.diff(torch.ones(5), n=-1), RuntimeError, "order must be non-negative but got -1"),
    # resizing
    "resize_ to a negative size": (lambda: torch.ones(3).resize_(-1), RuntimeError, NUMEL),
    "resize_ to negative sizes": (lambda: torch.ones(3).resize_(-2, -3), RuntimeError, NUMEL),
    "resize_": (lambda: torch.ones(1).resize_(A, B), RuntimeError, NUMEL),
    "resize_ in bytes": (lambda: torch.ones(1).resize_(2**62), RuntimeError, STORAGE),
    "resize_ with a gradient": (lambda: torch.ones(3, requires_grad=True).resize_(5), RuntimeError, "cannot resize variables that require grad"),
    "resize_ of a result": (lambda: (torch.ones(3, requires_grad=True) * 2).resize_(5), RuntimeError, "cannot resize variables that require grad"),
    "resize_ of an array's memory": (lambda: torch.from_numpy(np.ones(3)).resize_(5), RuntimeError, "Trying to resize storage that is not resizable"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_size_that_cannot_be_raises_pytorchs_error(name):
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


def test_memory_that_numpy_sees_is_not_resized_under_it():
    x = torch.ones(3)
    x.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(1000)
    assert x.resize_(2).tolist() == [1, 1]


RIGHT = {
    "a size of 0 makes nothing of the others": (lambda: torch.eye(0, P).shape, (0, P)),
    "repeat of nothing": (lambda: torch.ones(0).repeat(P, 4).shape, (P, 0)),
    "repeat_interleave of nothing": (lambda: torch.ones(0).repeat_interleave(P).shape, (0,)),
    "arange by far steps": (lambda: torch.arange(-(2**63), 2**63 - 1, P).tolist(), [-(2**63), -P, 0, P]),
    "tril_indices of a far diagonal": (lambda: torch.tril_indices(2, 2, P).tolist(), [[0, 0, 1, 1], [0, 1, 0, 1]]),
    "tril_indices of nothing": (lambda: tuple(torch.tril_indices(3, 3, -(2**63)).shape), (2, 0)),
    "tril_indices of a corner": (lambda: torch.tril_indices(2**31, 2**31, 3 - 2**31).tolist(), [[2**31 - 3, 2**31 - 2, 2**31 - 2, 2**31 - 1, 2**31 - 1, 2**31 - 1], [0, 0, 1, 0, 1, 2]]),
    "triu_indices of a column": (lambda: torch.triu_indices(2**40, 1).tolist(), [[0], [0]]),
    "triu_indices": (lambda: torch.triu_indices(3, 4, -1).tolist(), [[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2], [0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3]]),
    "tril_indices": (lambda: torch.tril_indices(4, 3, 1).tolist(), [[0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2]]),
    "diff more often than there are elements": (lambda: torch.diff(torch.ones(5), n=P).tolist(), []),
    "split into more than there is": (lambda: [t.tolist() for t in torch.split(torch.ones(3), 2**63 - 1)], [[1, 1, 1]]),
    "slices beyond 64 bits": (lambda: torch.arange(3)[-(2**100) : 2**100].tolist(), [0, 1, 2]),
    "slices of far steps": (lambda: torch.arange(3)[::P].tolist(), [0]),
    "windows of far steps": (lambda: torch.ones(3).unfold(0, 1, P).tolist(), [[1]]),
    "far diagonals": (lambda: torch.ones(3, 3).diagonal(2**63 - 1).tolist(), []),
    "the farthest diagonal": (lambda: torch.ones(3, 3).diagonal(-(2**63)).tolist(), []),
    "tril of a far diagonal": (lambda: torch.ones(2, 2).tril(P).tolist(), [[1, 1], [1, 1]]),
    "triu of the farthest diagonal": (lambda: torch.ones(2, 2).triu(2**63 - 1).tolist(), [[0, 0], [0, 0]]),
    "tril of the least diagonal": (lambda: torch.ones(2, 2).tril(-(2**63)).tolist(), [[0, 0], [0, 0]]),
    "as_strided of nothing": (lambda: torch.ones(3).as_strided((0,), (P,), P).tolist(), []),
    "any stride for a size of 1": (lambda: torch.ones(3).as_strided((1,), (2**63 - 1,), 0).tolist(), [1]),
    "roll far": (lambda: torch.arange(3).roll(P).tolist(), [2, 0, 1]),
    "an expanded tensor has all its elements": (lambda: torch.ones(1).expand(2**31 + 5)[-1].item(), 1),
    "meshgrid of 60 vectors": (lambda: torch.meshgrid(*[torch.ones(2)] * 60, indexing="ij")[0].numel(), 2**60),
}


@pytest.mark.parametrize("name", RIGHT)
def test_sizes_that_only_look_too_large_work(name):
    call, expected = RIGHT[name]
    got = call()
    if expected is not None:
        assert (tuple(got) if isinstance(got, torch.Size) else got) == expected


def test_resize_keeps_the_storages_elements():
    x = torch.arange(6.0).reshape(2, 3).t()
    x.resize_(8)
    assert x[:6].tolist() == [0, 1, 2, 3, 4, 5]
    y = torch.arange(6.0)[2:]
    y.resize_(4, 2)
    assert y.flatten()[:4].tolist() == [2, 3, 4, 5] and y.storage_offset() == 2
    z = torch.ones(2, 3).t()
    assert z.resize_(3, 2).stride() == (1, 3)  # it has that shape already
    assert torch.ones(3).resize_as_(torch.ones(2, 2)).shape == (2, 2)


def test_backward_sees_that_a_factor_was_resized():
    x, b = torch.ones(1000, requires_grad=True), torch.ones(1000)
    z = (x * b).sum()
    b.resize_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_nothing_changes_where_a_resize_fails():
    x = torch.arange(4.0)
    for sizes in ((-1,), (2**62, 2**62), (2**61,)):
        with pytest.raises(RuntimeError):
            x.resize_(*sizes)
    assert x.shape == (4,) and x.tolist() == [0, 1, 2, 3]


def test_a_pickled_shape_is_checked_like_any_other():
    data = pickle.dumps(torch.ones(2, 2))
    assert pickle.loads(data).shape == (2, 2)
    with pytest.raises(OverflowError):
        torch.Size([2**100])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16])
@pytest.mark.parametrize(
    "product",
    [
        lambda n, m, t: F.linear(n, n),
        lambda n, m, t: F.linear(m, m),
        lambda n, m, t: torch.dot(n, n),
        lambda n, m, t: torch.mv(m, m[0]),
        lambda n, m, t: torch.mm(m, m.t()),
        lambda n, m, t: torch.addmm(t, m, m.t()),
        lambda n, m, t: torch.bmm(m[None], m.t()[None]),
        lambda n, m, t: F.conv1d(m[None], m[None]),
    ],
    ids=["linear of vectors", "linear", "dot", "mv", "mm", "addmm", "bmm", "conv1d"],
)
def test_products_of_expanded_operands_beyond_any_memory_are_errors(product, dtype):
    t = torch.ones(1, dtype=dtype)
    with pytest.raises((MemoryError, RuntimeError)):
        product(t.expand(2**62), t.expand(2, 2**61), t)
