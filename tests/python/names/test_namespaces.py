"""The namespaces of devices and random numbers, legacy types, dtype limits, and comparison in tests."""
import subprocess
import sys

import naru as torch
import numpy as np
import pytest


def test_cuda_counts_and_chooses_devices():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert str(torch.ones(1, device="cuda").device) == "cuda:1"
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    try:
        assert str(torch.ones(1).cuda().device) == "cuda:1"
    finally:
        torch.cuda.set_device(0)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.set_device("cpu")
    with pytest.raises(RuntimeError):
        torch.cuda.set_device(7)
    assert isinstance(torch.cuda.get_device_name(0), str) and torch.cuda.get_device_properties(0).total_memory > 0
    torch.cuda.synchronize()


def test_memory_statistics_follow_the_tensors():
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    assert torch.cuda.max_memory_allocated() >= before + (4 << 20)
    del x
    assert torch.cuda.memory_allocated() == before
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    torch.cuda.empty_cache()


def test_the_accelerator_is_the_first_kind_found():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.accelerator.device_count() == 2
    assert torch.backends.mps.is_available()
    torch.mps.synchronize()
    assert torch.backends.cudnn.is_available() is False
    with torch.backends.cudnn.flags(benchmark=True):
        assert torch.backends.cudnn.benchmark is True
    assert torch.backends.cudnn.benchmark is False


def test_the_seed_decides_the_numbers():
    torch.manual_seed(7)
    assert torch.initial_seed() == 7
    a = torch.rand(5).tolist()
    state = torch.get_rng_state()
    b = torch.rand(5).tolist()
    torch.set_rng_state(state)
    assert torch.rand(5).tolist() == b
    torch.manual_seed(7)
    assert torch.rand(5).tolist() == a
    with torch.random.fork_rng():
        inside = torch.rand(5).tolist()
    assert torch.rand(5).tolist() == inside
    assert torch.seed() == torch.initial_seed()
    with pytest.raises(RuntimeError, match="Overflow"):
        torch.manual_seed(2**64)


def test_old_tensor_types():
    assert torch.FloatTensor([1, 2]).dtype == torch.float32
    assert torch.LongTensor([1.7]).dtype == torch.int64
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.ByteTensor().numel() == 0
    assert str(torch.cuda.FloatTensor([1.0]).device) == "cuda:0"
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
    assert not isinstance(torch.ones(1, device="cuda"), torch.FloatTensor)
    assert torch.arange(2).type(torch.FloatTensor).dtype == torch.float32
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        torch.FloatTensor("x")
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"


def test_limits_of_dtypes():
    info = torch.finfo(torch.float32)
    assert (info.bits, info.eps, info.max) == (32, 2.0**-23, 3.4028234663852886e38)
    assert repr(torch.finfo(torch.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert torch.iinfo(torch.int64).max == 2**63 - 1 and torch.iinfo(torch.uint8).min == 0
    with pytest.raises(TypeError, match="requires a floating point input type"):
        torch.finfo(torch.int32)


@pytest.mark.parametrize(
    "a, b, words",
    [
        (torch.tensor([1 + 2j, 1]), torch.tensor([1 + 3j, 1]), "1 / 2 .*difference: 1.0 at index"),
        (torch.tensor([1.25 + 2j]), torch.tensor([1.75 + 2j]), "difference: 0.5 at index"),
        (torch.tensor([complex("nan"), 1]), torch.tensor([complex("nan"), 1]), "1 / 2"),
        (1 + 2j, 1 + 2.000001j, r"up to 1e-07"),
        (torch.tensor([2**53 + 1]), torch.tensor([2**53]), "difference: 1 at index"),
        (torch.tensor([True]), torch.tensor([False]), "not equal"),
    ],
)
def test_assert_close_looks_at_all_of_a_number(a, b, words):
    with pytest.raises(AssertionError, match="(?s)" + words):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(a, a, equal_nan=True)


def test_assert_close_pairs_objects_of_one_kind_only():
    one, two = torch.ones(1), torch.ones(2)
    close = torch.testing.assert_close
    for a, b in ((None, None), ((1, None), [1, None]), (1, np.int64(1)), (1.0, np.float32(1)), (True, np.bool_(True)), (two, torch.nn.Parameter(two)),
                 (np.ones(2), np.ones(2)), ({"a": [two]}, {"a": (two,)}), ([], ()), (b"ab", b"ab")):  # fmt: skip
        close(a, b)
    close(1, 1.0, check_dtype=False)
    for a, b, text in ((1, 1.0, r"The \(d\)types do not match: <class 'int'> != <class 'float'>."), (None, 1, "None mismatch: None is not 1"),
                       ([1, None], [1, two], r"(?s)None mismatch: .*The failure occurred for item \[1\]"),
                       (True, False, "Booleans mismatch: True is not False"), ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
                       ({1: 1}, {2: 1}, "The keys of the mappings do not match"), (1 + 0j, 1.0, "types do not match"),
                       ([1, 2], [1, 3], r"Scalars are not equal!\n\nExpected 3 but got 2.\nAbsolute difference: 1\nRelative difference: 0.333")):  # fmt: skip
        with pytest.raises(AssertionError, match=text):
            close(a, b)
    for a, b in ((two, [1.0, 1.0]), ([one], [[one]]), (torch.tensor(1.0), 1.0), (two, np.ones(2, np.float32)), (1, True), ("a", "a"), ({1}, {1}), ([1, [2]], [1, 2]),
                 (np.array(1.0), 1.0), ([3, "a"], [4, "a"])):  # fmt: skip
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            close(a, b)
    with pytest.raises(TypeError, match="No comparison pair"):
        close(two, torch.nn.Parameter(two), allow_subclasses=False)


def test_assert_close_says_what_differs():
    torch.testing.assert_close(torch.ones(3), torch.ones(3) + 1e-7)
    torch.testing.assert_close({"a": [torch.ones(1), 2.0]}, {"a": [torch.ones(1), 2.0]})
    with pytest.raises(AssertionError) as error:
        torch.testing.assert_close(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.5, 3.0]))
    assert str(error.value).startswith(
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\nGreatest absolute difference: 0.5 at index (1,)"
    )
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        torch.testing.assert_close(torch.ones(1), torch.ones(1, dtype=torch.float64))
    with pytest.raises(AssertionError, match="'shape' do not match"):
        torch.testing.assert_close(torch.ones(1), torch.ones(2))
    with pytest.raises(AssertionError, match="'device' do not match"):
        torch.testing.assert_close(torch.ones(1), torch.ones(1, device="cuda"))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(torch.tensor(float("nan")), torch.tensor(float("nan")))
    torch.testing.assert_close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)


def test_small_things_of_the_top_level():
    assert torch.is_tensor(torch.ones(1)) and not torch.is_tensor(1)
    assert torch.pi == 3.141592653589793 and torch.inf == float("inf")
    assert torch.compile(abs) is abs
    assert torch.broadcast_shapes((2, 1), (3,)) == (2, 3)
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'no_such_name'"):
        torch.no_such_name


def test_the_processor_is_a_device_like_others():
    x = torch.ones(3) + 1
    with torch.cpu.stream(torch.cpu.Stream()):
        torch.cpu.synchronize()
    torch.cpu.current_stream().wait_stream(torch.cpu.current_stream())
    torch.cpu.set_device("cpu")
    assert (torch.cpu.is_available(), torch.cpu.device_count(), torch.cpu.current_device()) == (True, 1, "cpu")
    assert x.tolist() == [2, 2, 2]
    with pytest.warns(FutureWarning, match=r"torch.amp.autocast\('cpu', args...\)"), torch.cpu.amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16


def test_torch_functional_is_there_without_being_imported():
    done = subprocess.run([sys.executable, "-c", "import naru; print(naru.functional.norm is naru.norm)"], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
