"""Storages: how they are made, read and written, what they are called, and how they are saved."""

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
