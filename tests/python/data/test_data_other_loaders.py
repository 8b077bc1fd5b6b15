"""PyTorch's iterators over loaders that are not DataLoaders, and the private names that loaders of packages use."""
import pytest

import naru as torch
from naru.utils.data import DataLoader, IterableDataset
from naru.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter


class Samples:
    """Counts, by iteration; it is not an IterableDataset."""

    def __iter__(self):
        return iter(range(5))


class Squares:
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return i * i


class Other:
    """A loader that has the attributes that PyTorch's has."""

    drop_last, timeout, generator, pin_memory, persistent_workers, prefetch_factor = False, 0, None, False, False, None

    def __init__(self, dataset, kind, together, indices, num_workers=0):
        self.dataset, self._dataset_kind, self._auto_collation, self._index_sampler, self.num_workers = dataset, kind, together, indices, num_workers

    def collate_fn(self, samples):
        return samples


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("dataset", "kind", "together", "indices", "wanted"),
    [
        (Samples(), _DatasetKind.Iterable, False, range(40), [0, 1, 2, 3, 4]),
        (Samples(), _DatasetKind.Iterable, True, [[0, 0]] * 9, [[0, 1], [2, 3], [4]]),
        (Squares(), _DatasetKind.Map, True, [[4, 0], [1]], [[16, 0], [1]]),
        (Squares(), _DatasetKind.Map, False, [3, 2], [9, 4]),
    ],
)
def test_iterators_take_loaders_of_others(workers, dataset, kind, together, indices, wanted):
    make = _MultiProcessingDataLoaderIter if workers else _SingleProcessDataLoaderIter
    found = list(make(Other(dataset, kind, together, indices, workers)))
    if workers and kind == _DatasetKind.Iterable:  # each worker goes through all samples
        assert sorted(found) == sorted(2 * wanted)
    else:
        assert found == wanted


def test_an_object_without_the_attributes_is_refused():
    said = r"wanted a DataLoader, or an object with its attributes, got list without dataset, collate_fn.*iterate over torch.utils.data.DataLoader"
    with pytest.raises(TypeError, match=said):
        _SingleProcessDataLoaderIter([1, 2])


def test_iterators_of_the_two_kinds_are_told_apart():
    one, several = DataLoader(Squares())._get_iterator(), DataLoader(Squares(), num_workers=1)._get_iterator()
    assert isinstance(one, _SingleProcessDataLoaderIter) and not isinstance(one, _MultiProcessingDataLoaderIter)
    assert isinstance(several, _MultiProcessingDataLoaderIter) and not isinstance(several, _SingleProcessDataLoaderIter)
    assert isinstance(one, _BaseDataLoaderIter) and isinstance(several, _BaseDataLoaderIter)
    assert not hasattr(one, "_workers") and len(several._workers) == 1
    worker = several._workers[0]
    assert worker.is_alive()
    several._shutdown_workers()
    assert not worker.is_alive()
    several._shutdown_workers()  # again has no effect


def test_loaders_say_how_samples_are_taken():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    assert (DataLoader(Squares())._dataset_kind, DataLoader(Stream())._dataset_kind) == (_DatasetKind.Map, _DatasetKind.Iterable)
    assert DataLoader(Squares())._auto_collation and not DataLoader(Squares(), batch_size=None)._auto_collation


def test_a_loader_replaces_how_passes_begin():
    class Endless(DataLoader):
        def _get_iterator(self):
            return iter(["mine"])

    assert list(Endless(Squares())) == ["mine"]
    assert torch.stack(list(DataLoader(Squares(), batch_size=None, collate_fn=torch.tensor))).tolist() == [0, 1, 4, 9, 16]
