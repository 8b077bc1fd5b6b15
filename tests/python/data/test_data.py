"""Datasets, samplers and the loader."""
import collections
import os
import subprocess
import sys
import time

import naru as torch
import numpy as np
import pytest
from naru.utils import data as D

Point = collections.namedtuple("Point", "x y")


class Squares(D.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        if i >= 7:
            raise IndexError(i)
        return torch.tensor([i, i * i]), i


class Count(D.IterableDataset):
    def __iter__(self):
        return iter(range(7))


def numbers(loader):
    return [batch[1].tolist() for batch in loader]


def test_batches_come_in_order():
    assert numbers(D.DataLoader(Squares(), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert numbers(D.DataLoader(Squares(), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert len(D.DataLoader(Squares(), batch_size=3)) == 3
    assert len(D.DataLoader(Squares(), batch_size=3, drop_last=True)) == 2
    batch = next(iter(D.DataLoader(Squares(), batch_size=3)))
    assert isinstance(batch, list) and batch[0].tolist() == [[0, 0], [1, 1], [2, 4]]


def test_shuffling_takes_each_sample_once_and_another_order_each_time():
    loader = D.DataLoader(D.TensorDataset(torch.arange(100)), batch_size=10, shuffle=True)
    first, second = ([n for (batch,) in loader for n in batch.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second and first != list(range(100))


def test_a_generator_decides_the_order():
    orders = []
    for _ in range(2):
        generator = torch.Generator()
        generator.manual_seed(5)
        orders.append(numbers(D.DataLoader(Squares(), batch_size=2, shuffle=True, generator=generator)))
    assert orders[0] == orders[1]


def test_the_seed_decides_the_order():
    orders = []
    for _ in range(2):
        torch.manual_seed(3)
        orders.append(numbers(D.DataLoader(Squares(), shuffle=True)))
    assert orders[0] == orders[1]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 2, "drop_last": True}, {"batch_sampler": [[4, 1], [0]]}, {"shuffle": True, "batch_size": 2}])
def test_gathering_a_whole_batch_gives_what_collating_samples_gives(options, workers):
    whole = D.TensorDataset(torch.arange(7), torch.arange(14.0).reshape(7, 2))
    part = D.Subset(D.Subset(whole, [6, 5, 4, 3, 2, 1, 0]), [0, -5, 4, 6, 1, -4, 5])
    for data in (whole, part):
        plain = D.DataLoader([data[i] for i in range(7)], **options)
        loader = D.DataLoader(data, num_workers=workers, **options)
        for _ in range(3):
            torch.manual_seed(8)
            expected = list(plain)
            torch.manual_seed(8)
            for fast, slow in zip(loader, expected, strict=True):
                assert type(fast) is type(slow) and [t.tolist() for t in fast] == [t.tolist() for t in slow]


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_gathered_ahead_of_time_come_in_order_at_any_pace(workers):
    loader = D.DataLoader(D.TensorDataset(torch.arange(600)), batch_size=4, num_workers=workers)
    pause = iter(np.random.default_rng(1).choice([0, 0, 1e-4, 1e-3, 2e-2], 200))
    seen = []
    for (batch,) in loader:
        seen += batch.tolist()
        time.sleep(next(pause))
    assert seen == list(range(600))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_row_that_is_not_there_is_an_index_error(workers):
    data = D.TensorDataset(torch.arange(7))
    data.tensors = (torch.arange(3),)
    loader = D.DataLoader(D.Subset(data, [0, 1, 5]), batch_size=2, num_workers=workers)
    it = iter(loader)
    assert next(it)[0].tolist() == [0, 1]
    with pytest.raises(IndexError):
        next(it)


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads in /proc")
def test_a_pass_that_is_left_early_ends_its_threads():
    before = set(os.listdir("/proc/self/task"))
    it = iter(D.DataLoader(D.TensorDataset(torch.arange(600)), batch_size=4, num_workers=2))
    next(it)
    threads = set(os.listdir("/proc/self/task")) - before
    assert threads
    del it  # waits for nothing: the threads end by themselves
    for _ in range(3000):
        if threads.isdisjoint(os.listdir("/proc/self/task")):
            return
        time.sleep(0.01)
    raise AssertionError("there are still threads at work")


FORKED = """
import os, sys, naru as torch
from naru.utils import data as D
it = iter(D.DataLoader(D.TensorDataset(torch.arange(40)), batch_size=4, num_workers=2))
first = next(it)[0].tolist()
child = os.fork()
if child == 0:
    try:
        next(it)
    except RuntimeError as error:
        print("child:", error, flush=True)
    del it
    sys.exit(7)
status = os.waitpid(child, 0)[1]
print(os.waitstatus_to_exitcode(status), first + sum((b[0].tolist() for b in it), []) == list(range(40)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_told_that_the_threads_of_a_pass_are_its_parents():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, env=env, timeout=120)
    assert done.stdout == "child: this pass of the DataLoader was stopped; start another one\n7 True\n", done.stderr


def test_an_iterable_data_set_is_cut_into_batches():
    assert [b.tolist() for b in D.DataLoader(Count(), batch_size=3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(D.DataLoader(Count(), batch_size=None)) == list(range(7))


def test_without_batches_samples_come_converted():
    sample = next(iter(D.DataLoader([np.ones(2)], batch_size=None)))
    assert isinstance(sample, torch.Tensor) and sample.dtype == torch.float64


COLLATED = [
    ([1, 2], "tensor([1, 2])"),
    ([1.5, 2.0], "tensor([1.5000, 2.0000], dtype=torch.float64)"),
    ([True, False], "tensor([ True, False])"),
    ([(1, 2.0), (3, 4.0)], "[tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]"),
    ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], "{'a': tensor([1, 2]), 'b': ['x', 'y']}"),
    ([Point(1, 2), Point(3, 4)], "Point(x=tensor([1, 3]), y=tensor([2, 4]))"),
    ([np.zeros(2), np.ones(2)], "tensor([[0., 0.],\n        [1., 1.]], dtype=torch.float64)"),
    ([np.float32(1), np.float32(2)], "tensor([1., 2.])"),
    (["a", "b"], "['a', 'b']"),
]


@pytest.mark.parametrize("samples, text", COLLATED)
def test_samples_are_collated_as_pytorch_collates_them(samples, text):
    assert repr(D.default_collate(samples)) == text


def test_what_cannot_be_collated_is_named():
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, .* found <class 'NoneType'>"):
        next(iter(D.DataLoader([None])))
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        D.default_collate([(1, 2), (1,)])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        D.default_collate([torch.zeros(2), torch.zeros(3)])


def test_random_split_takes_lengths_and_shares():
    parts = D.random_split(range(10), [7, 3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(x for p in parts for x in p) == list(range(10))
    assert [len(p) for p in D.random_split(range(11), [0.5, 0.3, 0.2])] == [6, 3, 2]
    a, b = (D.random_split(range(50), [25, 25], generator=seeded(4))[0].indices for _ in range(2))
    assert a == b


def seeded(seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def test_data_sets_concatenate_and_stack():
    both = Squares() + Squares()
    assert len(both) == 14 and both[8][1] == 1 and both[-1][1] == 6
    stacked = D.StackDataset(a=range(3), b=[5, 6, 7])
    assert stacked[1] == {"a": 1, "b": 6}
    assert list(D.ChainDataset([Count(), Count()])) == [*range(7), *range(7)]


def test_samplers():
    assert list(D.SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(D.RandomSampler(range(5))) == [0, 1, 2, 3, 4]
    drawn = list(D.RandomSampler(range(3), replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) == {0, 1, 2}
    assert sorted(D.SubsetRandomSampler([4, 8, 9])) == [4, 8, 9]
    weighted = list(D.WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert 0 not in weighted and abs(weighted.count(2) / 4000 - 0.75) < 0.05
    assert list(D.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]


def test_workers_and_pinning_are_accepted():
    assert numbers(D.DataLoader(Squares(), batch_size=4, num_workers=2, pin_memory=True)) == [[0, 1, 2, 3], [4, 5, 6]]


BAD_USE = [
    (lambda: D.DataLoader(D.TensorDataset(torch.zeros(0, 2)), shuffle=True), ValueError, "num_samples should be a positive integer value, but got num_samples=0"),
    (lambda: D.DataLoader([1], batch_size=0), ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
    (lambda: D.DataLoader([1], batch_size=None, drop_last=True), ValueError, "batch_size=None option disables auto-batching"),
    (lambda: D.DataLoader([1], batch_sampler=[[0]], shuffle=True), ValueError, "batch_sampler option is mutually exclusive"),
    (lambda: D.DataLoader([1], sampler=[0], shuffle=True), ValueError, "sampler option is mutually exclusive with shuffle"),
    (lambda: D.DataLoader([1], num_workers=-1), ValueError, "num_workers option should be non-negative"),
    (lambda: D.DataLoader(Count(), shuffle=True), ValueError, "expected unspecified shuffle option, but got shuffle=True"),
    (lambda: D.random_split(range(3), [1, 1]), ValueError, "Sum of input lengths does not equal the length of the input dataset!"),
    (lambda: D.TensorDataset(torch.ones(2), torch.ones(3)), AssertionError, "Size mismatch between tensors"),
    (lambda: D.DataLoader(3, shuffle=True), TypeError, "object of type 'int' has no len()"),
    (lambda: D.ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
]  # fmt: skip


@pytest.mark.parametrize("use, kind, text", BAD_USE)
def test_bad_use_raises_pytorchs_error(use, kind, text):
    with pytest.raises(kind) as error:
        use()
    assert text in str(error.value.args[0])


def test_a_loader_over_nothing_gives_nothing():
    assert list(D.DataLoader([], batch_size=2)) == []


def test_processes_share_out_a_data_set():
    parts = [list(D.DistributedSampler(range(7), 3, rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert list(D.DistributedSampler(range(7), 3, 1, shuffle=False, drop_last=True)) == [1, 4]
    assert list(D.DistributedSampler(range(1), 3, 2, shuffle=False)) == [0]
    sampler = D.DistributedSampler(range(40), 2, 0)
    first = list(sampler)
    assert first == list(sampler) and len(sampler) == 20
    sampler.set_epoch(1)
    assert first != list(sampler)
    with pytest.raises(ValueError, match=r"Invalid rank 3, rank should be in the interval \[0, 2\]"):
        D.DistributedSampler(range(7), 3, 3)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        D.DistributedSampler(range(7))


def test_more_samples_than_there_are_begin_anew():
    drawn = list(D.RandomSampler(range(5), num_samples=13))
    assert len(drawn) == 13 and sorted(drawn[:5]) == sorted(drawn[5:10]) == list(range(5))


class Marked(dict):
    """A dict with something beside its entries."""


def test_containers_keep_their_types_and_what_else_they_carry():
    samples = [Marked(x=i) for i in range(2)]
    for sample in samples:
        sample.name = "marked"
    batch = D.default_collate(samples)
    assert type(batch) is Marked and batch.name == "marked" and batch["x"].tolist() == [0, 1]
    assert type(D.default_convert(samples[0])) is Marked
    queue = D.default_collate([collections.deque([1, 2]), collections.deque([3, 4])])
    assert type(queue) is collections.deque and [t.tolist() for t in queue] == [[1, 3], [2, 4]]
    assert [t.tolist() for t in D.default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]


def test_collating_learns_other_types():
    from naru.utils.data._utils.collate import collate, default_collate_fn_map

    class Point3:
        def __init__(self, x):
            self.x = x

    with pytest.raises(TypeError, match="Point3"):
        D.default_collate([Point3(1)])
    default_collate_fn_map[Point3] = lambda batch, *, collate_fn_map=None: torch.tensor([p.x for p in batch])
    try:
        assert D.default_collate([(Point3(1), 2), (Point3(5), 3)])[0].tolist() == [1, 5]
    finally:
        del default_collate_fn_map[Point3]
    assert collate(["a", "b"], collate_fn_map={str: lambda batch, *, collate_fn_map: "".join(batch)}) == "ab"


SEEDED = [[[9, 8, 1, 5, 2, 0, 7, 6, 4, 3]], [[6, 4, 9, 8, 7, 3, 0, 1, 2, 5]]]
SEEDED_OWN = [[7, 5, 1, 3, 9, 4, 6, 2, 8, 0]]


def test_the_same_seed_gives_the_order_of_the_loader_in_cpp():
    """The numbers stand in tests/cpp/data/samplers_test.cpp, too."""
    torch.manual_seed(3)
    loader = D.DataLoader(D.TensorDataset(torch.arange(10)), batch_size=10, shuffle=True)
    assert [[b.tolist() for (b,) in loader] for _ in range(2)] == SEEDED
    loader = D.DataLoader(range(10), batch_size=10, shuffle=True, generator=seeded(5))
    assert [b.tolist() for b in loader] == SEEDED_OWN


def test_data_sets_side_by_side_give_many_samples_at_once():
    class Many(D.Dataset):
        asked = 0

        def __len__(self):
            return 3

        def __getitems__(self, indices):
            self.asked += 1
            return [10 * i for i in indices]

    many = Many()
    assert D.StackDataset([1, 2, 3], many).__getitems__([2, 0]) == [(3, 20), (1, 0)] and many.asked == 1
    assert D.StackDataset(a=[1, 2, 3], b=many).__getitems__([1]) == [{"a": 2, "b": 10}]
    many.__getitems__ = lambda indices: []
    with pytest.raises(ValueError, match="Expected 1, got 0"):
        D.StackDataset(many).__getitems__([1])
