"""Creating tensors from data and from sizes."""
import numpy as np
import pytest

import naru as torch


@pytest.mark.parametrize(
    "data, dtype",
    [
        (1, "int64"), (1.0, "float32"), (True, "bool"), ([1, 2], "int64"), ([1, 2.0], "float32"), ([True, False], "bool"),
        ([True, 2], "int64"), ([True, 2.5], "float32"), ([], "float32"), ([[], []], "float32"), ((1, 2), "int64"), (range(3), "int64"),
        (np.float64(1), "float64"), (np.int32(1), "int32"), ([np.float32(1)], "float32"), ([np.int16(3), np.int16(4)], "int16"),
        (np.ones(2), "float64"), (np.ones(2, np.float32), "float32"), ([np.ones(2), np.ones(2)], "float64"), (np.bool_(True), "bool"),
    ],
)  # fmt: skip
def test_the_dtype_is_found_from_the_data(data, dtype):
    t = torch.tensor(data)
    assert str(t.dtype) == "torch." + dtype
    assert t.tolist() == (np.asarray(data, dtype=dtype)).tolist()


def test_the_default_dtype_is_that_of_floats():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype == torch.zeros(1).dtype == torch.float64 == torch.get_default_dtype()
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        torch.set_default_dtype(torch.int32)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_a_named_dtype_converts(dtype, device):
    t = torch.tensor([[0, 1], [2, 3]], dtype=getattr(torch, dtype), device=device)
    assert str(t.dtype) == "torch." + dtype and str(t.device) == device
    assert t.tolist() == ([[False, True], [True, True]] if dtype == "bool" else [[0, 1], [2, 3]])
    assert torch.tensor([1.75, 2.5], dtype=torch.int32).tolist() == [1, 2]


def test_data_is_copied_by_tensor_and_shared_by_as_tensor():
    a = np.zeros(2)
    copied, shared = torch.tensor(a), torch.as_tensor(a)
    a[0] = 5
    assert copied[0].item() == 0.0 and shared[0].item() == 5.0
    assert torch.as_tensor(shared) is shared and torch.as_tensor([1, 2]).tolist() == [1, 2]


def test_tensors_in_lists():
    assert torch.tensor([torch.tensor(1), torch.tensor(2.5)]).tolist() == [1.0, 2.5]
    assert torch.tensor([torch.tensor([1.5]), 2]).tolist() == [1.5, 2.0]


def test_a_tensor_of_a_tensor_warns_and_has_no_history():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = torch.tensor(x * 2)
    assert not y.requires_grad and y.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "data, kind, text",
    [
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1], [2, 3]], ValueError, r"expected sequence of length 1 at dim 1 \(got 2\)"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ("abc", TypeError, r"new\(\): invalid data type 'str'"),
        ([None], RuntimeError, "Could not infer dtype of NoneType"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([1, [2]], TypeError, "'list' object cannot be interpreted as an integer"),
        ({}, RuntimeError, "Could not infer dtype of dict"),
        ([2**63], (ValueError, OverflowError), "Overflow when unpacking long"),
    ],
)
def test_bad_data_is_a_typed_error(data, kind, text):
    with pytest.raises(kind, match=text):
        torch.tensor(data)


def test_arrays_that_no_tensor_can_hold():
    for array, kind, text in (
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (np.ones(2, dtype=object), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (np.ones(2, dtype=np.clongdouble), TypeError, "can't convert np.ndarray of type numpy.clongdouble|can't convert np.ndarray of type numpy.complex256"),
        (np.arange(3)[::-1], ValueError, "At least one stride in the given numpy array is negative"),
        (np.arange(3, dtype=">i4"), ValueError, "byte order"),
    ):
        with pytest.raises(kind, match=text):
            torch.from_numpy(array)
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        torch.from_numpy([1])


def test_a_read_only_array_warns():
    a = np.arange(3)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        assert torch.from_numpy(a).tolist() == [0, 1, 2]


def test_sizes_come_one_by_one_or_together():
    for make in (torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn):
        assert make(2, 3).shape == make((2, 3)).shape == make([2, 3]).shape == make(torch.Size([2, 3])).shape == make(size=(2, 3)).shape == (2, 3)
        assert make(()).shape == () and make(0).shape == (0,) and make(np.int64(2), torch.tensor(3)).shape == (2, 3)
    assert torch.full((2,), 7).tolist() == [7, 7] and torch.full((2,), 7).dtype == torch.int64 and torch.full([1], True).dtype == torch.bool
    assert torch.full((), 2.5).item() == 2.5


def test_options_are_kept(device):
    x = torch.zeros(2, dtype=torch.float64, device=device, requires_grad=True)
    assert x.dtype == torch.float64 and str(x.device) == device and x.requires_grad and x.is_leaf
    like = torch.ones_like(x)
    assert like.dtype == torch.float64 and str(like.device) == device and not like.requires_grad
    assert torch.full_like(x, 3).tolist() == [3.0, 3.0] and torch.zeros_like(x, dtype=torch.int8).dtype == torch.int8
    for made in (x.new_zeros(2), x.new_ones((2,)), x.new_full((2,), 1), x.new_tensor([1, 2]), x.new_empty(2)):
        assert made.dtype == torch.float64 and str(made.device) == device
    assert torch.rand_like(x).shape == (2,) and torch.randn_like(x, dtype=torch.float32).dtype == torch.float32


def test_numbers_between_complex_ones_are_complex(device):
    x = torch.linspace(1j, 2 - 1j, 3, device=device)
    assert x.dtype == torch.complex64 and x.tolist() == [1j, 1, 2 - 1j] and str(x.device) == device
    assert torch.linspace(0, 1, 3, dtype=torch.complex128).tolist() == [0, 0.5, 1] and torch.linspace(1j, 0, 1).tolist() == [1j]
    assert torch.linspace(0, 1j, 0).dtype == torch.complex64 and torch.linspace(0.0, 1j, 2, requires_grad=True).requires_grad
    assert abs(torch.logspace(0j, 1, 3) - torch.tensor([1, 10**0.5, 10])).max().item() < 1e-5
    for name in ("linspace", "logspace"):
        with pytest.raises(RuntimeError, match=rf"torch\.{name}\(\): inferred dtype c10::complex<float> can't be safely cast to passed dtype Long"):
            getattr(torch, name)(0, 1j, 3, dtype=torch.int64)


def test_sequences_of_numbers():
    assert torch.arange(3).tolist() == [0, 1, 2] and torch.arange(3).dtype == torch.int64
    assert torch.arange(3.0).dtype == torch.float32 and torch.arange(1, 2, 0.5).tolist() == [1.0, 1.5]
    assert torch.arange(5, 1, -2).tolist() == [5, 3] and torch.arange(0, end=3, step=2).tolist() == [0, 2] and torch.arange(end=2).tolist() == [0, 1]
    assert torch.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0] and torch.linspace(0, 1, steps=1).tolist() == [0.0]
    assert torch.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]] and torch.eye(2, 3).shape == (2, 3)
    assert torch.logspace(0, 2, 3).tolist() == [1.0, 10.0, 100.0]
    with pytest.raises(RuntimeError):
        torch.arange(0, 3, -1)
    with pytest.raises(RuntimeError):
        torch.arange(0, 3, 0)


def test_random_numbers_follow_the_seed(device):
    def draw(**kw):
        return [f(**kw).tolist() for f in (lambda **k: torch.rand(3, **k), lambda **k: torch.randn(2, 2, **k), lambda **k: torch.randperm(5, **k))]

    torch.manual_seed(7)
    a = draw(device=device)
    torch.manual_seed(7)
    assert draw(device=device) == a
    g = torch.Generator().manual_seed(7)
    assert draw(device=device, generator=g) == a
    state = g.get_state()
    b = draw(generator=g)
    g.set_state(state)
    assert draw(generator=g) == b and g.initial_seed() == 7


def test_random_integers_lie_in_their_range():
    x = torch.randint(3, (1000,))
    assert x.dtype == torch.int64 and set(x.tolist()) == {0, 1, 2}
    assert set(torch.randint(-2, 0, (200,)).tolist()) == {-2, -1} and torch.randint(0, 2, size=(4,), dtype=torch.uint8).dtype == torch.uint8
    assert sorted(torch.randperm(6).tolist()) == list(range(6))
    for bad in (lambda: torch.randint(0, (2,)), lambda: torch.randint(3, 3, (2,))):
        with pytest.raises(RuntimeError):
            bad()


def test_distributions_fill_in_place():
    x = torch.empty(4000)
    assert x.uniform_(-1, 1) is x and -1 <= x.min().item() < x.max().item() < 1
    assert abs(x.normal_(2, 0.5).mean().item() - 2) < 0.05
    assert set(x.bernoulli_(0.3).tolist()) == {0.0, 1.0} and abs(x.mean().item() - 0.3) < 0.05
    assert set(torch.empty(100, dtype=torch.int64).random_(3).tolist()) == {0, 1, 2}
    assert torch.normal(0.0, 1.0, size=(2, 3)).shape == (2, 3) and torch.normal(torch.zeros(3), 0.0).tolist() == [0.0, 0.0, 0.0]
    assert torch.normal(torch.zeros(2), torch.ones(2)).shape == (2,) and torch.bernoulli(torch.ones(2)).tolist() == [1.0, 1.0]


def test_the_old_constructor():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([1, 2]).tolist() == [1.0, 2.0] and torch.Tensor().shape == (0,)
    assert torch.FloatTensor([1, 2]).dtype == torch.float32 and torch.LongTensor([1, 2]).dtype == torch.int64 and torch.Tensor(np.ones(2)).dtype == torch.float32
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.Tensor(2.5)


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda: torch.zeros(2, -1), RuntimeError),
        (lambda: torch.zeros("a"), TypeError),
        (lambda: torch.zeros(2.5), TypeError),
        (lambda: torch.zeros(2, dtype="float"), TypeError),
        (lambda: torch.zeros(2, device="gpu"), RuntimeError),
        (lambda: torch.zeros(2, device="cuda:7"), RuntimeError),
        (lambda: torch.zeros(2, device="xpu"), RuntimeError),
        (lambda: torch.ones(2, dtype=torch.int64, requires_grad=True), RuntimeError),
        (lambda: torch.zeros(), TypeError),
        (lambda: torch.full((2,), "a"), TypeError),
        (lambda: torch.eye(-1), RuntimeError),
        (lambda: torch.linspace(0, 1, -1), RuntimeError),
    ],
)
def test_bad_options_are_typed_errors(call, kind):
    with pytest.raises(kind):
        call()
