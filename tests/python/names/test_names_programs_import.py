"""Older and private PyTorch names that programs import."""

import pytest

import naru
from naru._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from naru.autograd.function import InplaceFunction
from naru.nn._reduction import get_enum
from naru.nn.functional import _in_projection_packed
from naru.nn.init import _no_grad_trunc_normal_


def test_switches_of_cudnn_hold_within_a_decorated_function_that_calls_itself():
    @naru.backends.cudnn.flags(benchmark=True)
    def depth(n):
        assert naru.backends.cudnn.benchmark
        return 0 if n == 0 else 1 + depth(n - 1)

    assert not naru.backends.cudnn.benchmark
    assert depth(2) == 2
    assert not naru.backends.cudnn.benchmark


def test_functions_derived_from_inplace_function_have_gradients():
    class Doubled(InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x = naru.ones(2, requires_grad=True)
    Doubled.apply(x.clone()).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_flattened_tensors_come_back_as_views_of_their_sizes():
    tensors = [naru.arange(6.0).view(2, 3), naru.tensor(7.0), naru.zeros(0, 2)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0]
    parts = _unflatten_dense_tensors(flat, tensors)
    assert [tuple(p.shape) for p in parts] == [(2, 3), (), (0, 2)]
    parts[0][0, 1] = 9
    assert flat[1] == 9
    assert _flatten_dense_tensors(tensors[:1]).data_ptr() == tensors[0].data_ptr()


def test_packed_projection_is_a_linear_layer_each():
    w, b = naru.arange(24.0).view(12, 2)[:6], naru.arange(6.0)
    q, k, v = (naru.full((1, 2), float(i)) for i in (1, 2, 3))
    found = _in_projection_packed(q, k, v, w, b)
    for x, part, i in zip((q, k, v), found, range(3)):
        assert naru.equal(part, naru.nn.functional.linear(x, w[2 * i : 2 * i + 2], b[2 * i : 2 * i + 2]))
    assert naru.equal(_in_projection_packed(q, k, v, w)[1], naru.nn.functional.linear(k, w[2:4]))


def test_private_truncated_normal_stays_within_its_limits():
    w = _no_grad_trunc_normal_(naru.empty(100), 0.0, 1.0, -0.5, 0.5)
    assert w.abs().max() <= 0.5


def test_reductions_have_the_numbers_of_pytorch():
    assert [get_enum(word) for word in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="max is not a valid value for reduction"):
        get_enum("max")
