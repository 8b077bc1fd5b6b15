"""DLPack, the buffer protocol and NumPy's protocols: memory shared by both sides, valid as long as either lives."""

import array
import gc
import io
import threading
import warnings
import weakref

import numpy as np
import pytest

import naru as torch
from naru import _C
from naru.utils import dlpack

# NumPy 1 knows DLPack from before 1.0: no versions, no arrays that cannot be written, no devices or copies that are asked for.
of_numpy_2 = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason=f"NumPy {np.__version__} has no DLPack 1.0")

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]


class OldArray:
    """A library from before DLPack 1.0: no keyword arguments."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_sees_the_tensor_s_memory_and_the_tensor_numpy_s(dtype):
    t = torch.arange(6).reshape(2, 3).to(dtype)
    a = np.from_dlpack(t)
    assert a.tolist() == t.tolist() and a.shape == (2, 3) and str(a.dtype) == str(dtype).split(".")[1].replace("bool", "bool")
    assert a.ctypes.data == t.data_ptr()
    b = np.arange(6).reshape(2, 3).astype(a.dtype)
    u = torch.from_dlpack(b)
    assert u.dtype == dtype and u.data_ptr() == b.ctypes.data
    u[0, 1] = 0
    assert not b[0, 1]
    b[1, 2] = 1
    assert u[1, 2].item() == 1


@of_numpy_2
@pytest.mark.parametrize("source", ["contiguous", "transposed", "strided", "offset", "scalar", "empty", "repeated"])
def test_every_layout_passes_both_ways(source):
    base = torch.arange(24.0).reshape(4, 6)
    t = {
        "contiguous": base, "transposed": base.t(), "strided": base[::2, 1::2], "offset": base[2:, 3:], "scalar": base[1, 1],
        "empty": base[:0], "repeated": base[:1].expand(3, 6),
    }[source]  # fmt: skip
    a = np.from_dlpack(t)
    assert np.array_equal(a, t.numpy())
    back = torch.from_dlpack(a) if source != "repeated" else torch.from_dlpack(a.copy())
    assert torch.equal(back, t)
    m = np.asarray(memoryview(t)) if source != "scalar" else np.asarray(t)
    assert np.array_equal(m, t.numpy())


def test_work_held_back_is_done_before_others_look():
    t = torch.ones(100000) * 2 + 1
    a = np.from_dlpack(t)
    assert a[0] == 3
    t.mul_(2).add_(1)
    assert a[99999] == 7
    m = memoryview(t)
    t.sub_(1)
    assert m[5] == 6


def test_bfloat16_passes_by_dlpack_and_not_by_buffer():
    t = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    u = torch.from_dlpack(t)
    assert u.dtype == torch.bfloat16 and u.data_ptr() == t.data_ptr() and u.tolist() == [1.5, -2.0]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(t)


def test_what_cannot_be_handed_over_is_an_error_that_says_why():
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="requires grad"):
        memoryview(torch.ones(2, requires_grad=True))
    there = torch.ones(2, device="cuda")
    for f in (lambda: there.__dlpack__(), lambda: np.from_dlpack(there), lambda: memoryview(there)):
        with pytest.raises(BufferError, match=r"cuda:0.*\.cpu\(\)"):
            f()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        np.asarray(there)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(torch.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="negative strides"):
        torch.from_dlpack(np.arange(4)[::-1])
    with pytest.raises(BufferError, match="can't be handed over"):
        torch.ones(2).__dlpack__(dl_device=(2, 0))
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")


@of_numpy_2
def test_an_array_that_is_not_writable_is_warned_about():
    a = np.arange(3.0)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        assert torch.from_dlpack(a).tolist() == [0, 1, 2]


@of_numpy_2
def test_copies_and_devices_can_be_asked_for():
    a = np.arange(3.0)
    t = torch.from_dlpack(a, copy=True)
    t[0] = 9
    assert a[0] == 0
    assert torch.from_dlpack(a, device="cuda").device == torch.device("cuda:0")
    with pytest.raises(ValueError, match="copy=False forbids"):
        torch.from_dlpack(a, device="cuda", copy=False)
    u = torch.ones(3)
    b = np.from_dlpack(u, copy=True)
    b[0] = 5
    assert u[0].item() == 1


@of_numpy_2
def test_memory_of_a_device_is_handed_over_as_a_copy_where_the_host_is_asked_for():
    there = torch.arange(3, device="cuda:1")
    assert there.__dlpack_device__() == (dlpack.DLDeviceType.kDLExtDev, 1)
    assert np.from_dlpack(there, device="cpu").tolist() == [0, 1, 2]
    assert torch.from_dlpack(there, device="cpu").device.type == "cpu"
    with pytest.raises(BufferError, match="copy=False forbids"):
        there.__dlpack__(dl_device=(1, 0), copy=False)
    again, copied = torch.from_dlpack(there), torch.from_dlpack(there, copy=True)
    again[0], copied[1] = 9, 8
    assert there.tolist() == [9, 1, 2] and again.device == there.device
    with pytest.raises(ValueError, match="copy=False forbids"):
        torch.from_dlpack(there, device="cpu", copy=False)


class Elsewhere(OldArray):
    """An array on a device that naru does not know, which can be copied to the host."""

    def __dlpack_device__(self):
        return 12, 3

    def __dlpack__(self, *, max_version=None, dl_device=None, copy=None):
        assert tuple(dl_device) == (1, 0)
        return self.array.__dlpack__()


def test_an_array_on_an_unknown_device_is_taken_where_a_device_is_named():
    assert torch.from_dlpack(Elsewhere(np.arange(3)), device="cuda").tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="name a device"):
        torch.from_dlpack(Elsewhere(np.arange(3)))


def test_old_consumers_and_producers_are_served():
    t = torch.arange(4)
    assert np.from_dlpack(OldArray(t)).tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(OldArray(np.arange(4))).tolist() == [0, 1, 2, 3]
    capsule = dlpack.to_dlpack(t)
    u = dlpack.from_dlpack(capsule)
    assert u.data_ptr() == t.data_ptr()
    with pytest.raises(RuntimeError, match="consumed once"):
        dlpack.from_dlpack(capsule)
    assert t.__dlpack_device__() == (1, 0)


def test_each_side_keeps_the_other_alive():
    class Array(np.ndarray):  # supports weak references
        pass

    a = np.arange(1000.0).view(Array)
    gone = weakref.ref(a)
    t = torch.from_dlpack(a)
    part = t[10:20]
    del a, t
    gc.collect()
    assert gone() is not None and part.tolist() == [float(i) for i in range(10, 20)]
    del part
    gc.collect()
    assert gone() is None

    t = torch.arange(1000.0)
    b, m = np.from_dlpack(t), memoryview(t)
    del t
    gc.collect()
    junk = [torch.full((1000,), 7.0) for _ in range(20)]
    assert b[999] == 999 and m[998] == 998 and len(junk) == 20


def test_a_capsule_that_nobody_takes_gives_its_tensor_back():
    before = _C.memory_allocated(torch.device("cpu"))
    for _ in range(5):
        capsule = torch.ones(1 << 20).__dlpack__(max_version=(1, 0))
        del capsule
    gc.collect()
    assert _C.memory_allocated(torch.device("cpu")) == before


def test_memory_may_be_given_back_by_any_thread():
    arrays = [np.from_dlpack(torch.ones(1000) * i) for i in range(50)]
    tensors = [torch.from_dlpack(np.ones(1000) * i) for i in range(50)]

    def drop():
        while arrays and tensors:
            try:
                arrays.pop()
                tensors.pop()
            except IndexError:
                return

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.ones(3).sum().item() == 3


def test_the_buffer_protocol_reads_and_writes():
    t = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    m = memoryview(t)
    assert m.shape == (2, 3) and m.strides == (12, 4) and m.format == "i" and not m.readonly and m.tolist() == [[0, 1, 2], [3, 4, 5]]
    m[1, 2] = 50
    assert t[1, 2].item() == 50
    assert bytes(torch.tensor([1, 2, 3], dtype=torch.uint8)) == b"\x01\x02\x03"
    file = io.BytesIO()
    file.write(torch.tensor([1.0]))
    assert file.getvalue() == np.float32(1).tobytes()
    with pytest.raises((BufferError, ValueError)):
        file.write(torch.ones(3, 4).t())
    target = torch.zeros(2, dtype=torch.uint8)
    assert io.BytesIO(b"\x05\x06").readinto(target) == 2 and target.tolist() == [5, 6]


def test_buffers_of_others_become_tensors():
    a = array.array("d", [1.0, 2.0])
    t = torch.frombuffer(a, dtype=torch.float64)
    t[0] = 5
    assert a[0] == 5.0
    assert torch.asarray(np.arange(3)).tolist() == [0, 1, 2]
    assert torch.tensor(array.array("i", [1, 2])).tolist() == [1, 2]
    assert torch.as_tensor(memoryview(b"\x01\x02")).tolist() == [1, 2]


def test_numpy_functions_take_tensors():
    t = torch.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.sum(np.asarray(t)) == 6
        assert np.array(t, dtype=np.int64).tolist() == [0, 1, 2, 3]
        copy = np.array(t, copy=True)
    copy[0] = 9
    assert t[0].item() == 0
    assert np.asarray(t).ctypes.data == t.data_ptr()
