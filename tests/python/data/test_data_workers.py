"""The loader's worker processes: the data they send. No test depends on their speed."""
import os
import subprocess
import sys
import textwrap

import naru as torch
from naru.utils import data as D
import numpy as np
import pytest
from worker_cases import CONTEXTS, HOME, loader, Mixed, plain, same

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.mark.parametrize("context", CONTEXTS)
def test_workers_give_what_the_loop_itself_would_make(context):
    for options in ({"batch_size": 3}, {"batch_size": None}, {"batch_size": 4, "collate_fn": plain}, {"batch_sampler": [[9, 1], [4]]}):
        here = list(D.DataLoader(Mixed(), **options))
        there = list(D.DataLoader(Mixed(), **options, num_workers=2, multiprocessing_context=context))
        assert same(here, there)


@pytest.mark.parametrize("workers, prefetch", [(1, 1), (1, 5), (3, 1), (3, 2), (9, 3)])
def test_the_order_depends_on_the_seed_alone(workers, prefetch):
    def order(**options):
        generator = torch.Generator()
        generator.manual_seed(7)
        return [b.tolist() for b in loader(int, 23, batch_size=4, shuffle=True, generator=generator, **options)]

    assert order(num_workers=workers, prefetch_factor=prefetch) == order(num_workers=0, multiprocessing_context=None)


def test_strides_and_flags_survive_the_way():
    def sample(i):
        whole = torch.arange(60000).reshape(100, 200, 3)
        return [whole.permute(2, 0, 1), whole[::2, :, 1], torch.ones(1).expand(5, 5), torch.ones(3, requires_grad=True), torch.tensor(i)]

    got = next(iter(loader(sample, batch_size=None)))
    channels_last, gaps, expanded, leaf, number = sample(0)
    assert same(got[0], channels_last) and got[0].stride() == (1, 600, 3)
    assert torch.equal(got[1], gaps) and got[1].is_contiguous()
    assert same(got[2], expanded) and expanded.stride() == (0, 0)
    assert got[3].requires_grad and got[3].is_leaf and got[4].item() == 0


def test_a_parameter_comes_as_a_parameter():
    got = next(iter(loader(lambda i: torch.nn.Parameter(torch.ones(3), requires_grad=False), batch_size=None)))
    assert type(got) is torch.nn.Parameter and not got.requires_grad


def test_batches_that_are_kept_stay_as_they_are_and_can_be_written():
    kept = [b for b in loader(lambda i: torch.full((100, 100), i), 40, batch_size=2)]
    for i, batch in enumerate(kept):
        batch += 1
        assert batch[0, 0, 0] == 2 * i + 1 and batch[1].min() == batch[1].max() == 2 * i + 2


def test_arrays_that_are_kept_stay_as_they_are_even_if_they_are_read_only():
    def sample(i):
        array = np.full(30000, i)
        array.flags.writeable = False
        return array

    kept = list(loader(sample, 30, batch_size=None, collate_fn=plain))
    assert [int(a.min()) for a in kept] == [int(a.max()) for a in kept] == list(range(30))


def test_large_lists_of_numbers_and_large_texts_go_both_ways():
    batches = list(loader(lambda i: str(i) * 50, 30000, batch_size=10000))
    assert [len(b) for b in batches] == [10000] * 3 and batches[2][-1] == "29999" * 50


def test_prefetching_far_more_than_a_socket_holds_does_not_stop():
    batches = list(loader(lambda i: "x" * 20, 200000, batch_size=2000, num_workers=1, prefetch_factor=100))
    assert sum(map(len, batches)) == 200000


def test_shared_memory_is_used_again_and_files_do_not_stay_open():
    from naru.utils.data._utils.transport import LARGE, Arena, Views, pack, unpack

    arena, views = Arena(), Views()

    def send(value):
        message = pack(0, value, arena)
        files = [os.dup(f) for f in arena.files]
        arena.sent()
        return unpack(bytearray(message), files, views)[1]

    open_files = len(os.listdir("/proc/self/fd"))
    big = torch.ones(LARGE)
    first, second = send(big), send(big * 2)
    assert views.free() == []
    part = first[5:6]
    del first
    assert views.free() == [] and part.item() == 1
    del part
    free = views.free()
    assert free == [1]
    arena.reuse(free)
    third = send(big * 3)
    assert third.sum() == 3 * LARGE and second.sum() == 2 * LARGE and arena._made == 2
    assert len(os.listdir("/proc/self/fd")) == open_files
    del second, third
    for size in range(2, 40):  # no two sizes are equal: blocks that are not reused must be freed
        send(torch.ones(size * size * LARGE // 16))
        arena.reuse(views.free())
    assert len(arena._blocks) <= 9 and len(views._blocks) <= 10


def test_dev_shm_is_not_used():
    """64 batches of 1 MB under way and kept, from 8 workers, do not show in /dev/shm."""
    before = os.statvfs("/dev/shm").f_bfree
    names = set(os.listdir("/dev/shm"))
    kept = list(loader(lambda i: torch.full((256, 1024), float(i)), 64, batch_size=1, num_workers=8))
    during = os.statvfs("/dev/shm").f_bfree
    assert set(os.listdir("/dev/shm")) <= names
    assert (before - during) * os.statvfs("/dev/shm").f_bsize < 32 << 20
    assert [int(b.max()) for b in kept] == list(range(64))


def test_a_tiny_dev_shm_is_enough(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import warnings
            import torch
            from torch.utils.data import DataLoader, Dataset
            warnings.simplefilter("ignore")
            class Large(Dataset):
                def __len__(self): return 128
                def __getitem__(self, i): return torch.full((256, 1024), float(i))
            assert sum(b.sum().item() for b in DataLoader(Large(), 8, num_workers=8)) == 256 * 1024 * sum(range(128))
            print("done")
            """
        )
    )
    inner = f"mount -t tmpfs -o size=1M tmpfs /dev/shm && exec {sys.executable} -m naru run {script}"
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True)
    if probe.returncode:
        pytest.skip("this machine lets nobody mount a small /dev/shm: " + probe.stderr.decode().strip())
    done = subprocess.run(["unshare", "-rm", "sh", "-c", inner], env={**os.environ, "PYTHONPATH": HOME}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_without_memfd_batches_come_through_unnamed_files(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert same(list(D.DataLoader(Mixed())), list(D.DataLoader(Mixed(), num_workers=2, multiprocessing_context="fork")))
    assert list(tmp_path.iterdir()) == []
