"""Storages: construction, access, names, and saving."""

import io
import pickle
import weakref

import pytest

import naru as torch


def test_storages_are_made_of_sizes_sequences_and_other_storages():
    assert torch.UntypedStorage(3).size() == 3 and torch.UntypedStorage([1, 2, 3]).tolist() == [1, 2, 3] and torch.UntypedStorage().nbytes() == 0
    s = torch.FloatStorage([1, 2.5])
    assert s.tolist() == [1, 2.5] and s.type() == "torch.FloatStorage" and s.int().tolist() == [1, 2] and s.dtype == torch.float32
    assert isinstance(s, torch.FloatStorage) and isinstance(s, torch.TypedStorage) and not isinstance(s, torch.IntStorage)
    over = torch.TypedStorage(wrap_storage=s.untyped(), dtype=torch.int32)
    over[0] = 0
    assert s[0] == 0 and torch.ones(2).half().storage_type() is torch.HalfStorage
    meta = torch.TypedStorage([1, 2], device="meta", dtype=torch.int16)
    assert (meta.size(), meta.nbytes(), meta.data_ptr()) == (2, 4, 0)
    for call, error, words in (
        (lambda: torch.UntypedStorage("a"), RuntimeError, "one of the items was of type str instead of int"),
        (lambda: torch.UntypedStorage(torch.ones(1)), RuntimeError, "Expected a sequence type, but got Tensor"),
        (lambda: torch.UntypedStorage(-1), RuntimeError, "wanted a size of at least 0, got -1"),
        (lambda: torch.TypedStorage(wrap_storage=s.untyped()), RuntimeError, "wanted the torch.dtype"),
        (lambda: meta[0], NotImplementedError, "Not available for 'meta'"),
        (lambda: s.copy_(meta.float()), NotImplementedError, "Cannot copy out of meta"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_storages_are_read_and_written_by_slices():
    u = torch.UntypedStorage(range(6))
    u[2:4] = 9
    assert u.tolist() == [0, 1, 9, 9, 4, 5] and u[4:].tolist() == [4, 5] and u.fill_(1)[0] == 1
    u[4:][0] = 7  # a copy
    assert u[4] == 1
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        torch.ones(2).storage()[:1]
    b = torch.UntypedStorage([0, 1, 2, 3])
    b.byteswap(torch.int16)
    assert b.tolist() == [1, 0, 3, 2]


def test_tensors_are_made_over_storages():
    x = torch.arange(3.0)
    y = torch.tensor(x.storage())
    y[0] = 5
    assert x[0] == 5 and torch.tensor(x.untyped_storage(), dtype=torch.float32).tolist() == [5, 1, 2]
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        torch.tensor(x.storage(), dtype=torch.int32)


def test_storages_are_saved_with_the_tensors_that_share_them():
    x = torch.arange(3.0)
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        file = io.BytesIO()
        torch.save([x, x.storage()], file, **options)
        file.seek(0)
        tensor, storage = torch.load(file)
        tensor.fill_(9)
        assert storage.tolist() == [9, 9, 9] and isinstance(storage, torch.FloatStorage)
    assert pickle.loads(pickle.dumps(x.storage())).tolist() == [0, 1, 2]


def test_storages_take_attributes_subclasses_and_weak_references():
    class Mine(torch.UntypedStorage):
        pass

    s = Mine(2)
    s.note, r = "here", weakref.ref(s)
    assert (s.size(), s.note, r()) == (2, "here", s)
    del s
    assert r() is None


def test_a_storage_grows_for_all_tensors_over_it():
    t = torch.arange(3.0)
    s = t.untyped_storage()
    assert s.resize_(20) is s and s.nbytes() == len(s) == 20 == t.untyped_storage().nbytes() and t.tolist() == [0, 1, 2]
    assert t.storage().resize_(7).size() == 7 and torch.ones(2, device="meta").untyped_storage().resize_(4).nbytes() == 4
    with pytest.raises(NotImplementedError, match="does not become smaller"):
        s.resize_(4)


def test_storages_are_copies_of_buffers_in_either_order_of_bytes():
    data = bytearray([1, 2, 3, 4])
    assert torch.ByteStorage.from_buffer(data).tolist() == [1, 2, 3, 4]
    assert torch.ShortStorage.from_buffer(data, "big").tolist() == [258, 772]
    assert torch.ShortStorage.from_buffer(data, "little", 1, 1).tolist() == [770]
    assert torch.BoolStorage.from_buffer(bytearray([0, 2]), "big").tolist() == [False, True]
    assert torch.UntypedStorage.from_buffer(data, "big", dtype=torch.int32).tolist() == [4, 3, 2, 1]
    made = torch.ByteStorage.from_buffer(data)
    made[0] = 9
    assert data[0] == 1 and made.resizable() and torch.IntStorage.from_buffer(b"", "native").size() == 0
    for call, error, words in (
        (lambda: torch.IntStorage.from_buffer(data), RuntimeError, "missing required argument 'byte_order'"),
        (lambda: torch.IntStorage.from_buffer(data, "middle"), ValueError, "invalid byte_order 'middle'"),
        (lambda: torch.IntStorage.from_buffer(bytes(6), "big"), ValueError, "must be a multiple of element size"),
        (lambda: torch.IntStorage.from_buffer(data, "big", 2), ValueError, "buffer has only 1 elements after offset 0"),
        (lambda: torch.IntStorage.from_buffer(data, "big", offset=5), ValueError, "no greater than buffer length"),
        (lambda: torch.ByteStorage.from_buffer("text"), TypeError, "a bytes-like object is required"),
        (lambda: torch.cuda.ByteStorage.from_buffer(data), RuntimeError, "Not available for CUDA storage"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_storages_over_files_write_to_them_where_they_are_shared(tmp_path):
    path = str(tmp_path / "numbers")
    shared = torch.FloatStorage.from_file(path, True, 3)
    shared.fill_(2)
    assert shared.filename == path and not shared.resizable()
    own = torch.UntypedStorage.from_file(path, False, 4)
    own.fill_(0)
    assert own.filename is None and torch.FloatStorage.from_file(path, size=3).tolist() == [2, 2, 2]
    for call, words in (
        (lambda: torch.FloatStorage.from_file(path, size=4), "is smaller than the required mapping size"),
        (lambda: torch.FloatStorage.from_file(path + "_", size=4), "unable to open file"),
        (lambda: torch.TypedStorage.from_file(path), "derived classes"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_old_constructors_share_the_memory_of_a_storage():
    x = torch.arange(3.0)
    for made in (x.new(x[1:].storage()), x.new(storage=x.untyped_storage()), torch.FloatTensor(x.storage()), torch.Tensor(x.storage())):
        assert made.data_ptr() == x.data_ptr() and made.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="Expected a Storage of type Int or an UntypedStorage, but got type Float"):
        torch.IntTensor(x.storage())
    for call in (lambda: torch.LongTensor((6, 0), 1), lambda: x.new([1], [2]), lambda: torch.LongTensor(foo=1), lambda: torch.Tensor((1,), 2)):
        with pytest.raises(TypeError, match="received an invalid combination of arguments"):
            call()
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta was passed"):
        x.new(2, device="meta")


def test_a_storage_that_numpy_sees_does_not_grow():
    x = torch.ones(2)
    assert x.storage().resizable() and x.untyped_storage().resizable()
    array = x.numpy()
    assert not x.storage().resizable() and not torch.from_numpy(array).storage().resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(9)
