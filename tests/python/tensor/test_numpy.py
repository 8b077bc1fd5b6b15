"""Tensors and NumPy arrays: shared memory, and functions of one library applied to objects of the other."""
import gc

import numpy as np
import pytest

import naru as torch


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_arrays_and_tensors_share_memory_both_ways(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    t = torch.from_numpy(a)
    assert str(t.dtype) == "torch." + dtype and t.shape == (2, 3)
    a[0, 0] = 1
    assert t[0, 0].item() == 1
    t[1, 2] = 0
    assert a[1, 2] == 0
    back = t.numpy()
    assert back.dtype == np.dtype(dtype) and np.shares_memory(back, a) and (back == a).all()


def test_arrays_of_views_keep_strides_and_memory_alive():
    t = torch.arange(12).reshape(3, 4)
    a = t.t()[1:, ::2].numpy()
    assert a.strides == (8, 64) and a.tolist() == [[1, 9], [2, 10], [3, 11]]
    del t
    gc.collect()
    assert a.tolist() == [[1, 9], [2, 10], [3, 11]]
    b = torch.from_numpy(np.arange(6.0)[::2])
    assert b.stride() == (2,) and b.tolist() == [0.0, 2.0, 4.0]


def test_the_memory_of_an_array_outlives_its_name():
    t = torch.from_numpy(np.full(1000, 7.0))
    gc.collect()
    junk = [np.zeros(1000) for _ in range(50)]
    assert t.sum().item() == 7000.0 and len(junk) == 50


def test_numpy_functions_take_tensors():
    x = torch.tensor([1.0, 4.0])
    assert np.asarray(x).dtype == np.float32 and np.array(x, dtype=np.float64).dtype == np.float64
    assert isinstance(np.sqrt(x), torch.Tensor) and np.sqrt(x).tolist() == [1.0, 2.0]
    assert isinstance(x + np.ones(2), torch.Tensor) and isinstance(np.ones(2) + x, torch.Tensor)
    copied = np.array(x)
    copied[0] = 9
    assert x[0].item() == 1.0


def test_numpy_refuses_what_it_cannot_share():
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\) to copy the tensor to host memory first."):
        torch.ones(2, device="cuda").numpy()
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."):
        torch.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    assert torch.ones(2, device="cuda", requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_tolist_reads_views_and_devices(device):
    x = torch.arange(6, device=device).reshape(2, 3)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.t().tolist() == [[0, 3], [1, 4], [2, 5]] and x[1, 1].tolist() == 4
    assert torch.zeros(0, 3, device=device).tolist() == [] and torch.zeros(2, 0, device=device).tolist() == [[], []]
    assert torch.tensor([1.5, -2.0], dtype=torch.bfloat16, device=device).tolist() == [1.5, -2.0]


# --- memory shared with NumPy is always up to date, however large the tensor: its operators are not deferred -----------------------------------------

LARGE = 1 << 20


def test_a_large_copy_is_made_before_the_array_changes():
    a = np.zeros(LARGE)
    copied, read = torch.tensor(a), torch.from_numpy(a) + 1
    a[:] = 5
    assert copied.sum().item() == 0.0 and read.sum().item() == LARGE


def test_a_large_array_sees_writes_to_its_tensor():
    t = torch.zeros(LARGE)
    a = t.numpy()
    t.add_(1).mul_(3)
    assert a[0] == a[-1] == 3.0
    shared = np.zeros(LARGE, np.float32)
    torch.from_numpy(shared).fill_(2)
    assert shared.min() == 2.0


def test_what_was_read_before_an_array_was_made_stays_read():
    t = torch.zeros(LARGE)
    y = t + 1
    t.numpy()[:] = 5
    assert y.max().item() == 1.0


def test_an_address_stays_good():
    import ctypes

    t = torch.zeros(LARGE)
    p = ctypes.cast(t.data_ptr(), ctypes.POINTER(ctypes.c_float))
    t.add_(4)
    assert p[LARGE - 1] == 4.0


def instructions(call):
    """The names of the instructions that a call submits."""
    torch._C._begin_instruction_log()
    call()
    return [name for _, _, name, *_ in torch._C._end_instruction_log()]


IMAGES = (4, 8, 64, 64)  # from 65,536 elements on, a call's parts are deferred
FORMULAS = {  # of x (IMAGES) and weights of its channels
    "batch_norm": lambda x, w: torch.nn.functional.batch_norm(x, None, None, w, w, training=True),
    "group_norm": lambda x, w: torch.nn.functional.group_norm(x, 4, w, w),
    "layer_norm": lambda x, w: torch.nn.functional.layer_norm(x, (64, 64)),
    "std": lambda x, w: x.std(dim=(0, 2)),
    "logsumexp": lambda x, w: x.logsumexp(1),
    "smooth_l1": lambda x, w: torch.nn.functional.smooth_l1_loss(x, x.detach().roll(1), beta=0.5),
    "var_mean": lambda x, w: torch.var_mean(x)[0],
}  # fmt: skip


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_of_an_arrays_memory_is_fused_as_one_of_own_memory(name, gradient):
    """And its result has been computed when the call returns: the array may be written then."""
    rng = np.random.default_rng(5)
    array, weight = rng.standard_normal(IMAGES).astype("float32"), rng.standard_normal(8).astype("float32")
    own, lent = ([made(a).requires_grad_(gradient) for a in (array, weight)] for made in (torch.tensor, torch.from_numpy))
    formula, results = FORMULAS[name], {}

    def run(key, x, w):
        y = formula(x, w)
        results[key] = [y.detach()]
        if gradient:
            results[key] += [g for g in torch.autograd.grad(y, [x, w], torch.full_like(y, 0.5), allow_unused=True) if g is not None]

    used = [instructions(lambda: run(*which)) for which in (("own", *own), ("lent", *lent))]
    assert gradient or used[0] == used[1]
    array[:], weight[:] = np.nan, np.nan
    for a, b in zip(results["own"], results["lent"], strict=True):
        assert not a.isnan().any() and torch.equal(a, b)


def test_writes_to_an_arrays_memory_are_there_when_the_call_returns():
    array = np.ones(IMAGES, dtype="float32")
    t = torch.from_numpy(array)
    torch.nn.functional.dropout(t, 1.0, inplace=True)
    assert (array == 0).all()
    with torch.no_grad():
        torch.nn.functional.elu_(t.add_(1).mul_(-1), alpha=2.0)
    assert np.allclose(array, 2 * np.expm1(-1.0))
    with pytest.raises(RuntimeError):
        torch.nn.functional.batch_norm(t, None, None, torch.ones(3), None, training=True)
    t.add_(1)
    assert np.allclose(array, 1 + 2 * np.expm1(-1.0))


def test_an_array_may_be_written_between_the_calls_of_a_backward_in_python():
    array = np.ones(IMAGES, dtype="float32")
    lent = torch.from_numpy(array)

    class Written(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            twice = lent * 2 + g
            array[:] = np.nan
            return twice

    x = torch.zeros(IMAGES, requires_grad=True)
    Written.apply(x).backward(torch.ones(IMAGES))
    assert (x.grad == 3).all()
