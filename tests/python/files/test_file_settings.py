"""torch.serialization's settings: alignment, byte order, files without data, user-registered locations."""
import gzip
import io
import mmap
import pickle

import naru as torch
import pytest

S = torch.serialization
X = {"a": torch.arange(1000.0).reshape(10, 100), "b": torch.ones(3, dtype=torch.bool), "c": torch.arange(6).reshape(2, 3).t()}


def same(x, y):
    return all(torch.equal(x[k], y[k]) and x[k].stride() == y[k].stride() for k in X)


@pytest.fixture
def path(tmp_path):
    torch.save(X, tmp_path / "x.pt")
    return tmp_path / "x.pt"


def test_a_file_is_seen_where_it_lies(path):
    x = torch.load(path, mmap=True)
    assert same(x, X)
    x["a"].add_(1)
    assert same(torch.load(path), X)
    with S.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["a"].add_(1)
    assert S.get_default_mmap_options() == mmap.MAP_PRIVATE and torch.equal(torch.load(path, mmap=True)["a"], X["a"] + 1)
    assert torch.load(path, mmap=True, map_location="cuda")["a"].device.type == "cuda"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RuntimeError, match="PytorchStreamReader"):
        torch.load(path, mmap=True)


def test_what_can_not_be_seen_is_refused(path):
    for call, error, words in [
        (lambda: torch.load(io.BytesIO(path.read_bytes()), mmap=True), ValueError, "f must be a file path"),
        (lambda: torch.load(path, pickle_module=pickle, weights_only=True), RuntimeError, "explicit pickle_module"),
        (lambda: S.set_default_mmap_options(77), ValueError, "expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"),
        (lambda: S.set_default_load_endianness("big"), TypeError, "Invalid argument type"),
        (lambda: S.default_restore_location(torch.ones(1).untyped_storage(), "cuda:7"), RuntimeError, "CUDA device 7"),
        (lambda: S.default_restore_location(torch.ones(1).untyped_storage(), "attic"), RuntimeError, "don't know how to restore .*tagged with attic"),
    ]:
        with pytest.raises(error, match=words):
            call()
    torch.save(X, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)


def test_bytes_without_a_mark_have_the_order_that_is_set(path):
    torch.save(X, path, _disable_byteorder_record=True)
    try:
        for order, swapped in ((S.LoadEndianness.BIG, True), (S.LoadEndianness.LITTLE, False), (None, False)):
            S.set_default_load_endianness(order)
            for seen in (False, True):
                found = torch.load(path, mmap=seen)["c"]
                assert torch.equal(found, torch.tensor(X["c"].numpy().byteswap()) if swapped else X["c"])
        S.set_default_load_endianness(S.LoadEndianness.BIG)
        torch.save(X, path)  # with a byte order mark
        assert same(torch.load(path), X)
    finally:
        S.set_default_load_endianness(None)


def test_room_may_be_left_for_elements(path):
    whole = path.stat().st_size
    with S.skip_data():
        torch.save(X, path)
        with pytest.raises(RuntimeError, match="torch.load outside the skip_data"):
            torch.load(path)
    found = torch.load(path)
    assert abs(path.stat().st_size - whole) < 100 and found["a"].shape == X["a"].shape and not found["a"].any()


def test_a_program_may_register_places(path, monkeypatch):
    from naru._serialization import packages

    monkeypatch.setattr(packages, "_packages", [])
    S.register_package(5, lambda storage: "attic" if storage.nbytes() == 24 else None, lambda storage, place: storage.cpu() if place == "attic" else None)
    file = io.BytesIO()
    torch.save([torch.ones(6), torch.ones(7)], file)
    places = []
    file.seek(0)
    torch.load(file, map_location=lambda storage, place: places.append(place))
    assert places == ["attic", "cpu"]
    file.seek(0)
    assert [len(t) for t in torch.load(file)] == [6, 7]
    found = torch.load(path, map_location=lambda storage, place: S.default_restore_location(storage, "cpu"))
    assert same(found, X) and S.location_tag(torch.ones(1).untyped_storage()) == "cpu"


@pytest.mark.parametrize("newer", [True, False])
def test_what_was_written_to_an_open_file_is_there_by_its_name(tmp_path, newer):
    with open(tmp_path / "x.pt", "wb") as file:
        torch.save(X, file, _use_new_zipfile_serialization=newer)
        assert same(torch.load(tmp_path / "x.pt"), X)


def test_a_compressed_file_is_read(tmp_path):
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        torch.save(X, file)
    with gzip.open(tmp_path / "x.gz") as file:
        assert same(torch.load(file), X)


class OwnPickle:
    """A pickle module that keeps functions by their code, as dill does."""

    class Pickler(pickle._Pickler):
        dispatch = pickle._Pickler.dispatch.copy()

        def save_code(self, function):
            self.save_reduce(eval, (f"lambda: {function()!r}",), obj=function)

        dispatch[type(lambda: 0)] = save_code

    Unpickler = pickle.Unpickler


@pytest.mark.parametrize("new", [True, False])
def test_a_pickle_module_of_the_programs_own_writes_and_reads(new):
    file = io.BytesIO()
    what = {"w": torch.ones(2), "f": eval("lambda: 7")}
    torch.save(what, file, pickle_module=OwnPickle, _use_new_zipfile_serialization=new)
    for args in (dict(pickle_module=OwnPickle), dict(pickle_module=OwnPickle, weights_only=False), dict(weights_only=False)):
        file.seek(0)
        found = torch.load(file, **args)
        assert found["f"]() == 7 and torch.equal(found["w"], what["w"])
    file.seek(0)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(file, pickle_module=OwnPickle, weights_only=True)
    with pytest.raises(TypeError, match="must be a subclass of pickle._Pickler"):
        torch.save(what, file, pickle_module=type("Module", (), {"Pickler": pickle.Pickler}))


def test_the_environment_says_whether_files_are_trusted(monkeypatch):
    file = io.BytesIO()
    torch.save(torch.nn.Linear(1, 1), file)

    def load(**args):
        file.seek(0)
        return torch.load(file, **args)

    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    for args in ({}, {"weights_only": None}, {"weights_only": False}):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            load(**args)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="should be set, but both were set"):
        load()
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(load(), torch.nn.Linear)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(weights_only=True)
