"""The loader's worker processes: what they know, how long they live, iterable datasets, pinned memory, misuse."""
import multiprocessing
import os
import random
import subprocess
import sys
import textwrap
import warnings

import naru
import naru as torch
from naru.utils import data as D
import numpy as np
import pytest
from worker_cases import Call, gone, HOME, killed, loader, Mixed, until, with_cuda

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def test_workers_know_themselves():
    assert D.get_worker_info() is None

    def sample(i):
        info = D.get_worker_info()
        return info.id, info.num_workers, info.seed, info.dataset.size, os.getpid()

    generator = torch.Generator()
    generator.manual_seed(3)
    rows = list(loader(sample, batch_size=None, generator=generator))
    assert [r[0] for r in rows] == [0, 1] * 4 and {r[1] for r in rows} == {2} and {r[3] for r in rows} == {8}
    assert rows[1][2] == rows[0][2] + 1
    assert len({r[4] for r in rows}) == 2 and os.getpid() not in {r[4] for r in rows}
    generator.manual_seed(3)
    assert next(iter(loader(sample, batch_size=None, generator=generator)))[2] == rows[0][2]


def test_each_worker_has_random_numbers_of_its_own_that_the_seed_decides():
    def sample(i):
        return torch.rand(1).item(), random.random(), float(np.random.rand())

    def drawn():
        torch.manual_seed(11)
        return list(loader(sample, batch_size=None))

    first = drawn()
    assert first == drawn()
    assert len({x for row in first for x in row}) == 3 * len(first)
    assert first != list(loader(sample, batch_size=None))


def test_worker_init_fn_is_called_in_each_worker():
    def init(worker):
        D.get_worker_info().dataset.size = 100 + worker

    assert [b.item() for b in loader(lambda i: D.get_worker_info().dataset.size, 4, worker_init_fn=init)] == [100, 101, 100, 101]


def test_persistent_workers_live_through_passes_and_others_do_not():
    def pids(data):
        return {pid for b in data for pid in b.tolist()}

    data = loader(lambda i: os.getpid(), persistent_workers=True)
    first = pids(data)
    assert len(first) == 2 and pids(data) == first
    it = iter(data)
    next(it)
    assert pids(data) == first  # leftovers of the previous pass are not delivered
    del data, it
    until(lambda: all(gone(pid) for pid in first))
    data = loader(lambda i: os.getpid())
    assert not pids(data) & pids(data)


def test_a_persistent_pass_gives_all_samples_after_one_that_was_left_early():
    data = loader(int, 20, persistent_workers=True, batch_size=3, shuffle=True)
    for _ in range(3):
        next(iter(data))
        assert sorted(x for b in data for x in b.tolist()) == list(range(20))


def test_workers_end_with_the_iterator():
    it = iter(loader(lambda i: os.getpid(), 1000, batch_size=None))
    pids = {next(it), next(it)}
    del it
    until(lambda: all(gone(pid) for pid in pids))


def test_without_in_order_a_slow_batch_does_not_hold_up_the_others():
    release = multiprocessing.get_context("fork").Event()

    def sample(i):
        if i == 0:
            release.wait()
        return i

    it = iter(loader(sample, 6, in_order=False))
    early = [next(it).item() for _ in range(4)]
    assert 0 not in early
    release.set()
    assert sorted(early + [b.item() for b in it]) == list(range(6))


class Stream(D.IterableDataset):
    def __init__(self, size, shared_out=False, told=None):
        self.size, self.shared_out, self.told = size, shared_out, told

    def __iter__(self):
        info = D.get_worker_info()
        if self.shared_out and info:
            return iter(range(info.id, self.size, info.num_workers))
        return iter(range(self.size))

    def __len__(self):
        return self.told or self.size


def test_each_worker_has_its_own_copy_of_an_iterable_data_set():
    def batches(data, **options):
        return [b.tolist() for b in D.DataLoader(data, num_workers=2, multiprocessing_context="fork", **options)]

    assert batches(Stream(3)) == [[0], [0], [1], [1], [2], [2]]
    assert batches(Stream(7, True), batch_size=2) == [[0, 2], [1, 3], [4, 6], [5]]
    assert batches(Stream(7, True), batch_size=2, drop_last=True) == [[0, 2], [1, 3], [4, 6]]
    assert list(D.DataLoader(Stream(3, True), batch_size=None, num_workers=2, multiprocessing_context="fork")) == [0, 1, 2]
    data = D.DataLoader(Stream(5, True), num_workers=3, persistent_workers=True, multiprocessing_context="fork")
    for _ in range(3):
        assert sorted(b.item() for b in data) == list(range(5))


def test_workers_that_end_at_different_times_leave_nothing_out():
    class Uneven(D.IterableDataset):
        def __iter__(self):
            worker = D.get_worker_info().id
            return iter([worker * 100 + i for i in (range(1), range(9), range(4), range(0))[worker]])

    data = D.DataLoader(Uneven(), num_workers=4, multiprocessing_context="fork")
    wanted = [0, *range(100, 109), *range(200, 204)]
    runs = [[b.item() for b in data] for _ in range(5)]
    assert all(run == runs[0] for run in runs) and sorted(runs[0]) == wanted


def test_a_length_that_was_told_wrong_is_warned_of():
    data = D.DataLoader(Stream(4, told=2))
    assert len(data) == 2
    with pytest.warns(UserWarning, match=r"was reported to be 2\(when accessing len\(dataloader\)\), but 3 samples have been fetched"):
        assert len(list(data)) == 4
    data = D.DataLoader(Stream(4), num_workers=2, multiprocessing_context="fork")
    assert len(data) == 4
    with pytest.warns(UserWarning, match="not properly configuring the IterableDataset replica"):
        assert len(list(data)) == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        assert len(list(D.DataLoader(Stream(4, told=2)))) == 4  # not requested


class Own:
    def __init__(self, samples):
        self.x = torch.stack([s for s in samples])
        self.pinned = False

    def pin_memory(self):
        self.x, self.pinned = self.x.pin_memory(), True
        return self


@with_cuda
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_any_structure_are_pinned(workers):
    options = {"pin_memory": True, "num_workers": workers}
    for batch in D.DataLoader(Mixed(), batch_size=2, **options):
        assert batch["large"].is_pinned() and batch["small"].is_pinned() and batch["array"].is_pinned()
        assert batch["point"].x.is_pinned() and batch["point"].y[1][0].startswith("text")
    batch = next(iter(D.DataLoader(Call(torch.tensor), collate_fn=Own, **options)))
    assert batch.pinned and batch.x.is_pinned() and batch.x.tolist() == [0]
    assert [b.tolist() for b in D.DataLoader(D.TensorDataset(torch.arange(3)), **options) for b in b] == [[0], [1], [2]]


@with_cuda
def test_an_error_while_pinning_is_raised():
    with pytest.raises(ValueError, match="Caught ValueError in pin memory thread(.|\n)*cannot"):
        next(iter(loader(int, collate_fn=lambda samples: Broken(), pin_memory=True)))


class Broken:
    def pin_memory(self):
        raise ValueError("cannot")


def test_a_dead_worker_is_an_error_when_batches_are_pinned():
    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 3"):
        list(loader(killed(lambda: os._exit(3)), pin_memory=True))


def test_without_a_device_pinning_is_warned_of():
    code = """
    import naru, warnings
    from naru.utils.data import DataLoader
    warnings.simplefilter("error")
    try:
        next(iter(DataLoader([1], pin_memory=True)))
    except UserWarning as w:
        print(w)
    """
    env = {**os.environ, "PYTHONPATH": HOME, "NARU_VIRTUAL": "", "CUDA_VISIBLE_DEVICES": ""}
    if naru._C.is_available("cuda") and "NARU_VIRTUAL" not in os.environ:
        pytest.skip("this machine has a device")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True)
    assert "no accelerator is found, then device pinned memory won't be used" in done.stdout, done.stderr
