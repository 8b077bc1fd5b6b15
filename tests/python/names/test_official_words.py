"""Details that PyTorch programs rely on: supported dtypes, rejected arguments, and the texts of errors."""

import copy
import pickle

import pytest

import naru
import naru as torch


def test_dtypes_without_tensors_are_dtypes_and_are_refused():
    for name in ("quint8", "qint32", "quint4x2", "int4", "uint7", "bits16", "bcomplex32", "float4_e2m1fn_x2"):
        dtype = getattr(torch, name)
        assert isinstance(dtype, torch.dtype) and repr(dtype) == "torch." + name
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
        with pytest.raises(TypeError):
            torch.zeros(2, dtype=dtype)
    assert torch.bit is torch.uint1
    assert (torch.bits16.itemsize, torch.qint32.itemsize, torch.bcomplex32.itemsize) == (2, 4, 4)
    assert torch.bcomplex32.is_complex and not torch.uint3.is_signed


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
    assert (rounded == 1).any() and (drawn[rounded == 1] == 0).all()  # PyTorch returns the lower end there
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


def test_elements_are_mapped_through_python_in_the_words_of_its_conversions():
    x = torch.arange(3)
    assert x.clone().apply_(lambda a: a + 1.5).tolist() == [1, 2, 3] and x.bool().apply_(lambda a: 3).tolist() == [True] * 3
    assert torch.ones(2, device="meta").apply_(None).is_meta
    y = torch.ones(3)
    assert y.clone().map2_(y, torch.tensor(2.0), lambda a, b, c: a + b * c).tolist() == [3, 3, 3]
    leaf = torch.ones(3, requires_grad=True)
    for call, error, words in (
        (lambda: x.apply_(lambda a: "a"), TypeError, "'str' object cannot be interpreted as an integer"),
        (lambda: y.apply_(lambda a: []), TypeError, "must be real number, not list"),
        (lambda: leaf.apply_(abs), RuntimeError, r"Can't call apply_\(\) on Variable that requires grad"),
        (lambda: y.map_(leaf, max), RuntimeError, r"Can't call map_\(\) on Variable that requires grad"),
        (lambda: y.map2_(y, leaf, max), RuntimeError, r"Can't call map2_\(\) on Variable that requires grad"),
        (lambda: y.map_(x, max), TypeError, "expected tensors of dtype torch.float32"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_tensor_that_requires_grad_is_no_number():
    x, number = torch.ones(2), torch.tensor(1.0, requires_grad=True)
    assert torch.isclose(x, x, torch.tensor(1), number.detach()).all()
    for call in (lambda: torch.isclose(x, x, 1.0, number), lambda: torch.add(x, x, alpha=number), lambda: torch.full((2,), number)):
        with pytest.raises(TypeError, match="must be (float|Number), not"):
            call()
    assert torch.linspace(number, 3, 3).tolist() == [1, 2, 3] and not torch.logspace(0, number, 2).requires_grad
    with pytest.raises(RuntimeError, match="only supports 0-dimensional start and end tensors"):
        torch.linspace(x[:1], 3, 3)


@pytest.mark.parametrize("hard", [False, True])
def test_the_temperature_of_gumbel_softmax_has_a_gradient(hard):
    logits, tau = torch.tensor([[0.1, 0.5, -1.0]]), torch.tensor(0.5, requires_grad=True)
    sample = torch.nn.functional.gumbel_softmax(logits, tau, hard)
    naru.manual_seed(0)
    assert torch.equal(sample, torch.nn.functional.gumbel_softmax(logits, 0.5, hard))
    (sample * torch.arange(3.0)).sum().backward()
    assert tau.grad != 0


def test_the_order_of_dimensions_is_ambiguous_where_memory_formats_say_the_same():
    both = [torch.contiguous_format, torch.channels_last]
    x = torch.empty(2, 2, 1, 2)
    assert x.dim_order() == x.dim_order(ambiguity_check=both) == (0, 1, 2, 3)
    assert x.to(memory_format=torch.channels_last).dim_order(ambiguity_check=both) == (0, 2, 3, 1)
    for made, check in ((x, True), (x, []), (torch.empty(1, 1, 1, 1), both), (torch.ones(1).expand(3, 4), True)):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            made.dim_order(ambiguity_check=check)
    for check in ("contiguous", ["contiguous"], None):
        with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
            x.dim_order(ambiguity_check=check)
    with pytest.raises(AttributeError, match="sparse"):
        torch.eye(2).to_sparse().dim_order()


def test_switches_take_bools_and_say_so():
    with pytest.raises(TypeError, match=r"_set_deterministic_algorithms\(\): argument 'mode' \(position 1\) must be bool, not int"):
        torch.use_deterministic_algorithms(1)
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(False, warn_only=1)
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        torch.utils.deterministic.fill_uninitialized_memory = 1


def test_set_default_tensor_type_warns_once_or_always():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=r"please use torch.set_default_dtype\(\)"):
            torch.set_default_tensor_type(torch.FloatTensor)
    finally:
        torch.set_warn_always(False)
        torch.set_default_device(None)


def test_upsampling_beneath_the_functional_writes_into_out():
    x, upsample = torch.ones(1, 2, 2, 2), torch._C._nn.upsample_nearest2d
    out = torch.empty(1, 2, 4, 4).to(memory_format=torch.channels_last)
    assert upsample(x, (4, 4), out=out) is out and out.is_contiguous(memory_format=torch.channels_last)
    new = upsample(x.to(memory_format=torch.channels_last), (4, 4), out=torch.empty(0))
    assert new.is_contiguous(memory_format=torch.channels_last) and new.sum() == 32
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype torch.float32 but got torch.float64 instead"):
        upsample(x, (4, 4), out=out.double())
    with pytest.raises(RuntimeError, match="cross-device copies are not allowed"):
        upsample(x, (4, 4), out=out.to("meta"))


def test_differences_and_sizes_that_can_not_be_compared_are_refused():
    with pytest.raises(RuntimeError, match="diff expects input to be at least one-dimensional"):
        torch.diff(torch.tensor(3.0), n=0)
    nest, dense = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.ones(2)
    for a, b in ((nest, dense), (dense, nest)):
        with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors"):
            a.is_same_size(b)


def test_generators_are_pickled_and_copied_with_their_state():
    generator = torch.Generator().manual_seed(7)
    torch.rand(3, generator=generator)
    for made in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator), copy.copy(generator)):
        assert made is not generator and made.initial_seed() == 7 and torch.equal(made.get_state(), generator.get_state())
    assert torch.equal(torch.rand(3, generator=made), torch.rand(3, generator=generator))
