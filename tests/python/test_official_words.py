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


def test_dropout_multiplies_so_that_what_is_not_a_number_stays():
    x = torch.tensor([float("nan")] * 64, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.5)
    y.sum().backward()
    assert y.isnan().all() and set(x.grad.tolist()) == {0.0, 2.0}
    strided = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert torch.nn.functional.dropout(strided, 0.3).stride() == strided.stride()
    q = torch.full((1, 1, 8, 4), float("nan"))
    assert torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5).isnan().all()


def test_gradients_are_no_views_so_that_detach_in_place_takes_them():
    x = torch.ones(2, 3, requires_grad=True)
    for _ in range(2):
        x.flatten().backward(torch.ones(6))
        x.grad.zero_()
        x.grad.detach_()
    assert not torch.empty_strided((2, 3), (1, 2))._is_view()
    assert torch.empty_strided((2,), (1,), requires_grad=True).is_leaf


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.diff(torch.ones(3), prepend=torch.ones(1, 1)), RuntimeError, "diff expects prepend or append to be the same dimension"),
        (lambda: torch.diff(torch.ones(3, 3), append=torch.ones(1, 1)), RuntimeError, "except along the differencing dimension"),
        (lambda: torch.ones(2, 2).index_fill_(0, torch.tensor([0]), 1j), RuntimeError, "Converting complex Scalar to non-complex type"),
        (lambda: torch.tensor_split(torch.ones(2), torch.tensor(1.5)), RuntimeError, "to have dtype of long, but got Float"),
        (lambda: torch.ones(4).narrow(0, torch.tensor([0]), 1), RuntimeError, "start must be an 0-dim integral Tensor"),
        (lambda: torch.ones(10, 0)[:, [0, 1]], IndexError, "for dimension with size 0"),
        (lambda: torch.zeros(2).uniform_(-3e38, 3e38), RuntimeError, "to exceed the limit"),
        (lambda: torch.frombuffer(bytearray(40), dtype=torch.int64, offset=7), ValueError, "buffer length (33 bytes) after offset (7 bytes)"),
        (lambda: torch.device("not a device"), RuntimeError, "Invalid device string: 'not a device'"),
        (lambda: torch.cummax(torch.ones(2), 0, out=(torch.ones(2).short(), torch.ones(2).long())), RuntimeError, "Float but found Short"),
        (lambda: torch.rand([]).index_put([], torch.ones(1), True), RuntimeError, "doesn't match the broadcast shape"),
        (lambda: torch.ones(2).set_(torch.ones(2).byte().storage()), RuntimeError, "Expected a Storage of type"),
        (lambda: torch._foreach_maximum_([torch.ones(2).long()], 0.5), RuntimeError, "can't be cast to the desired output type Long"),
        (lambda: torch.nn.functional.batch_norm(torch.ones(2, 3), None, None, training=True, eps=0), ValueError, "eps must be positive"),
        (lambda: torch.nn.functional.nll_loss(torch.tensor(0.0), torch.tensor(0)), ValueError, "Expected 1 or more dimensions"),
        (lambda: torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 0, 4, 4), 2), RuntimeError, "Expected input to have non-zero size"),
        (lambda: torch.nn.UninitializedParameter().share_memory_(), RuntimeError, "share memory on an uninitialized"),
    ],
)
def test_more_bad_calls_are_refused_in_words_that_programs_match(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_the_functions_beneath_take_reductions_by_number():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0])
    f = torch._C._nn
    assert f.mse_loss(x, y, 2).item() == 5 and f.mse_loss(x, y).item() == 2.5
    assert f.upsample_nearest1d(x.view(1, 1, 2), None, [2.0]).tolist() == [[[1, 1, 2, 2]]]
    assert f.replication_pad1d(x.view(1, 2), (1, 0)).tolist() == [[1, 1, 2]]
    out = torch.empty(2)
    assert torch.nn.functional.softplus(x, out=out) is out and torch.equal(out, torch.nn.functional.softplus(x))


def test_pooling_of_nothing_and_of_last_channels():
    f = torch.nn.functional
    x = torch.zeros(0, 2, 4, 4, requires_grad=True)
    values, places = f.max_pool2d(x, 2, return_indices=True)
    assert f.max_unpool2d(values, places, 2).requires_grad
    assert f.fractional_max_pool2d(torch.ones(1, 2, 4, 4), 2, output_size=(0, 1)).shape == (1, 2, 0, 1)
    last = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    values, places = f.max_pool2d(last, 2, return_indices=True)
    assert f.max_unpool2d(values, places, 2).stride() == last.stride()
    assert f.adaptive_avg_pool2d(last, 1).stride() == (3, 1, 3, 3)
