"""The loader's worker processes. Nothing here depends on how fast they are."""
import collections
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import naru
import naru as torch
import numpy as np
import pytest
from naru.utils import data as D

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
HOME = os.path.dirname(os.path.dirname(os.path.abspath(naru.__file__)))
CONTEXTS = ["fork", "spawn", "forkserver"]
Point = collections.namedtuple("Point", "x y")


class Mixed(D.Dataset):
    """A bit of everything, small and large."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return {
            "large": torch.arange(20000).reshape(2, 100, 100) + i,
            "small": torch.ones(2, dtype=torch.bfloat16) * i,
            "array": np.full((90, 90), i, dtype=np.float32),
            "point": Point(i, [float(i), f"text {i}"]),
            "empty": torch.zeros(0, 3),
        }


class Call(D.Dataset):
    """Samples by a function of the number."""

    def __init__(self, function, size=8):
        self.function, self.size = function, size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return self.function(i)


def loader(function, size=8, **options):
    return D.DataLoader(Call(function, size), **{"num_workers": 2, "multiprocessing_context": "fork", **options})


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def gone(pid):
    """Whether a process has ended (one that waits to be reaped counts)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass within two minutes"
        time.sleep(0.01)


def plain(samples):
    return samples


# --- batches


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
    for size in range(2, 40):  # nothing fits anything: what is not used again is given back
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


# --- what goes wrong


class Picky(Exception):
    def __init__(self, code, reason):
        super().__init__(code, reason)


def raising(error):
    def sample(i):
        if i == 3:
            raise error
        return i

    return sample


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_an_error_in_a_worker_is_raised_with_its_type_and_traceback(context):
    it = iter(D.DataLoader([0, 1], sampler=[0, 7, 1], num_workers=2, multiprocessing_context=context))
    assert next(it).item() == 0
    with pytest.raises(IndexError) as error:
        next(it)
    text = str(error.value)
    assert text.startswith("Caught IndexError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):\n")
    assert "IndexError: list index out of range" in text
    # The pass goes on.
    assert [b.item() for b in it] == [1]


def test_the_text_of_a_key_error_can_be_read():
    with pytest.raises(KeyError) as error:
        list(loader(raising(KeyError("colour"))))
    assert str(error.value).count("\n") > 3 and "KeyError: 'colour'\n" in str(error.value)


def test_an_error_that_cannot_be_made_from_a_text_is_a_runtime_error_with_that_text():
    with pytest.raises(RuntimeError, match="Caught Picky in DataLoader worker process 1"):
        list(loader(raising(Picky(5, "no"))))

    class Local(Exception):
        pass

    with pytest.raises(RuntimeError, match="Caught RuntimeError(.|\n)*Local: strange"):
        list(loader(raising(Local("strange"))))


def test_what_cannot_be_pickled_is_an_error_and_not_a_hang():
    with pytest.raises(Exception, match="in DataLoader worker process 0(.|\n)*lambda"):
        list(loader(lambda i: lambda: i, batch_size=None))
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        list(loader(lambda i: torch.ones(1, requires_grad=True) * 2, batch_size=None))


class Explosive:
    def __reduce__(self):
        return int, ("boom",)


def test_what_cannot_be_unpickled_is_an_error_and_not_a_hang():
    with pytest.raises(ValueError, match="unpickled(.|\n)*invalid literal for int"):
        list(loader(lambda i: Explosive(), batch_size=None))


def killed(how):
    def sample(i):
        if i == 5:
            how()
        return i

    return sample


@pytest.mark.parametrize(
    "how, text, cause",
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal SIGKILL", "is killed by signal: Killed. "),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "signal SIGSEGV", "is killed by signal: Segmentation fault. "),
        (lambda: os._exit(3), "exit code 3", "exited unexpectedly with exit code 3."),
        (lambda: sys.exit(4), "exit code 4", "exited unexpectedly with exit code 4."),
    ],
)
def test_a_worker_that_dies_is_an_error_and_not_a_hang(how, text, cause):
    import faulthandler

    faulthandler.disable()  # the dying worker's report is not wanted here
    it = iter(loader(killed(how)))
    with pytest.raises(RuntimeError) as error:
        list(it)
    assert error.match(r"DataLoader worker \(pid\(s\) [0-9]+\) exited unexpectedly with " + text)
    assert cause in str(error.value.__cause__)
    with pytest.raises(RuntimeError, match="has ended with an error"):
        next(it)


def test_a_worker_killed_from_outside_while_idle_is_an_error():
    it = iter(loader(lambda i: os.getpid(), 1000, batch_size=None))
    pid = next(it)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) {pid}\) exited unexpectedly"):
        list(it)


def test_persistent_workers_are_replaced_after_one_has_died():
    flag = multiprocessing.get_context("fork").Event()
    flag.set()
    data = loader(lambda i: os._exit(1) if flag.is_set() else i, persistent_workers=True)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(data)
    flag.clear()
    assert [b.item() for b in data] == list(range(8))


def test_the_timeout_is_an_error():
    release = multiprocessing.get_context("fork").Event()
    it = iter(loader(lambda i: release.wait(), timeout=0.2))
    with pytest.raises(RuntimeError, match="^DataLoader timed out after 0.2 seconds$"):
        next(it)
    release.set()
    until(lambda: _ended_up_with(it, True))


def _ended_up_with(it, value):
    try:
        return next(it).item() is value
    except RuntimeError as error:
        assert "timed out" in str(error)
        return False


def test_an_error_in_worker_init_fn_is_raised():
    def broken(worker):
        raise ValueError(f"no {worker}")

    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0(.|\n)*no 0"):
        next(iter(loader(int, worker_init_fn=broken)))


def test_devices_opened_before_the_fork_are_named_in_the_error():
    torch.ones(1, device="cuda:0").cpu()
    with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
        next(iter(loader(lambda i: torch.ones(1, device="cuda:0").cpu())))


def on_device(i):
    return torch.full((2, 20000), float(i), device="cuda:1")


def test_tensors_on_a_device_come_back_to_it():
    got = list(D.DataLoader(Call(on_device, 3), num_workers=1, multiprocessing_context="spawn"))
    assert [str(b.device) for b in got] == ["cuda:1"] * 3 and [b.max().item() for b in got] == [0, 1, 2]


def test_forked_workers_compute_on_the_cpu_whatever_their_parent_did():
    def compute(i):
        if i % 2:
            torch.set_num_threads(2)
        x = torch.full((400, 400), 1.0 / 400) + i
        return (x @ torch.ones(400, 400)).tanh().sum() + torch.sort(torch.rand(100000)).values[0] * 0

    parent = [compute(i).item() for i in range(4)]  # the thread pool and the libraries are at work
    torch.set_num_threads(torch.get_num_threads())
    assert [b.item() for b in loader(compute, 4)] == parent


# --- workers


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
    assert pids(data) == first  # what was left of the pass before is not seen
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
        assert len(list(D.DataLoader(Stream(4, told=2)))) == 4  # nobody asked


# --- page-locked memory


class Own:
    def __init__(self, samples):
        self.x = torch.stack([s for s in samples])
        self.pinned = False

    def pin_memory(self):
        self.x, self.pinned = self.x.pin_memory(), True
        return self


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_any_structure_are_pinned(workers):
    options = {"pin_memory": True, "num_workers": workers}
    for batch in D.DataLoader(Mixed(), batch_size=2, **options):
        assert batch["large"].is_pinned() and batch["small"].is_pinned() and batch["array"].is_pinned()
        assert batch["point"].x.is_pinned() and batch["point"].y[1][0].startswith("text")
    batch = next(iter(D.DataLoader(Call(torch.tensor), collate_fn=Own, **options)))
    assert batch.pinned and batch.x.is_pinned() and batch.x.tolist() == [0]
    assert [b.tolist() for b in D.DataLoader(D.TensorDataset(torch.arange(3)), **options) for b in b] == [[0], [1], [2]]


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


# --- the end of the program


def answer_to_ctrl_c():
    """Of a program in the background SIGINT is ignored, and so of the programs it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_script(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text("import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, "-m", "naru", "run", str(script)],
        env={**os.environ, "PYTHONPATH": HOME}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=answer_to_ctrl_c, start_new_session=True,
    )  # fmt: skip


ENDLESS = """
import os, threading, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 10 ** 9
    def __getitem__(self, i):
        {sample}
        return os.getpid()
def loop():
    data = DataLoader(Data(), batch_size=None, num_workers=2, multiprocessing_context="{context}", pin_memory={pin})
    it = iter(data)
    print(next(it), next(it), flush=True)
    print("ready", flush=True)
    {body}
if __name__ == "__main__":
    loop()
"""
LOADING = "for _ in it: pass"
WAITING = "it = list(it)"
TRAINING = "while True: sum(range(1000))"
STUCK = "if i > 1: threading.Event().wait()"


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("body, sample", [(LOADING, "pass"), (LOADING, STUCK), (TRAINING, "pass"), (TRAINING, STUCK)])
@pytest.mark.parametrize("everybody", [False, True])
def test_ctrl_c_ends_the_program_and_its_workers(tmp_path, context, pin, body, sample, everybody):
    program = run_script(tmp_path, ENDLESS.format(context=context, body=body, sample=sample, pin=pin))
    pids = [int(p) for p in program.stdout.readline().split()]
    assert program.stdout.readline() == "ready\n", program.stderr.read()
    # From a terminal the signal reaches the whole group of processes; from `kill`, one.
    (os.killpg if everybody else os.kill)(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=120)
    assert "KeyboardInterrupt" in err and program.returncode in (130, -signal.SIGINT), err
    assert "worker" not in err.split("KeyboardInterrupt")[-1]
    until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_do_not_outlive_a_program_that_is_killed(tmp_path, context):
    program = run_script(tmp_path, ENDLESS.format(context=context, body=LOADING, sample=STUCK, pin=False))
    pids = [int(p) for p in program.stdout.readline().split()]
    assert program.stdout.readline() == "ready\n", program.stderr.read()
    program.kill()
    program.communicate(timeout=120)
    until(lambda: all(gone(pid) for pid in pids))


def test_a_program_ends_that_leaves_persistent_workers_behind(tmp_path):
    body = "global kept; kept = (it, data); data.more = data"
    text = ENDLESS.format(context="fork", body=body, sample="pass", pin=True).replace("pin_memory", "persistent_workers=True, pin_memory")
    program = run_script(tmp_path, text)
    pids = [int(p) for p in program.stdout.readline().split()]
    out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (0, "")
    until(lambda: all(gone(pid) for pid in pids))


def test_a_script_run_by_naru_run_has_torch_in_workers_started_anew(tmp_path):
    script = """
    import torch
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __len__(self): return 2
        def __getitem__(self, i): return torch.__name__
    if __name__ == "__main__":
        for context in ("spawn", "forkserver", "fork"):
            print(list(DataLoader(Data(), batch_size=None, num_workers=1, multiprocessing_context=context)))
    """
    out, err = run_script(tmp_path, script).communicate(timeout=120)
    assert (out, err) == ("['naru', 'naru']\n" * 3, "")


# --- use


BAD_USE = [
    (lambda: D.DataLoader([1], num_workers=1, multiprocessing_context="thread"), ValueError, "should specify a valid start method in ["),
    (lambda: D.DataLoader([1], num_workers=1, multiprocessing_context=3), TypeError, "should be a valid context object or a string"),
    (lambda: D.DataLoader([1], multiprocessing_context="fork"), ValueError, "can only be used with multi-process loading (num_workers > 0)"),
    (lambda: D.DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor option could only be specified in multiprocessing"),
    (lambda: D.DataLoader([1], num_workers=1, prefetch_factor=-1), ValueError, "prefetch_factor option should be non-negative"),
    (lambda: D.DataLoader([1], timeout=-1), ValueError, "timeout option should be non-negative"),
    (lambda: D.DataLoader([1], persistent_workers=True), ValueError, "persistent_workers option needs num_workers > 0"),
    (lambda: setattr(D.DataLoader([1]), "batch_size", 2), ValueError, "batch_size attribute should not be set after DataLoader is initialized"),
    (lambda: iter(D.DataLoader([1], timeout=1)), AssertionError, "timeout"),
    (lambda: iter(D.DataLoader([1], num_workers=1, prefetch_factor=0)), AssertionError, "prefetch_factor must be greater than 0"),
]  # fmt: skip


@pytest.mark.parametrize("use, kind, text", BAD_USE)
def test_bad_use_of_workers_raises_pytorchs_error(use, kind, text):
    with pytest.raises(kind) as error:
        use()
    assert text in str(error.value.args[0])


def test_more_workers_than_processors_are_warned_of():
    with pytest.warns(UserWarning, match="This DataLoader will create 4096 worker processes in total. Our suggested max number of worker"):
        D.DataLoader([1], num_workers=4096)


FINALIZER = """
import builtins, gc, sys, threading, naru as torch
from naru.utils import data as D

class Numbers:
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return torch.tensor(i)

def refuse(what):
    def f(*args, **kwargs):
        raise AssertionError(f"a finalizer must not {what}")
    return f

def dropped(loader):
    it = iter(loader)
    next(it)
    cycle = [it]
    cycle.append(cycle)
    del it, cycle

for options in ({"num_workers": 2}, {"num_workers": 2, "pin_memory": True}, {"num_workers": 2, "persistent_workers": True}):
    loader = D.DataLoader(Numbers(), batch_size=4, **options)
    gc.disable()
    dropped(loader)
    loader = None
    import multiprocessing.process
    kept = builtins.__import__, threading.Thread.join, multiprocessing.process.BaseProcess.join, threading.Event.wait
    unraisable = []
    sys.unraisablehook = lambda u: unraisable.append(u.exc_value)
    excepthook, sys.excepthook = sys.excepthook, lambda *e: unraisable.append(e[1])
    builtins.__import__ = refuse("import")
    threading.Thread.join = threading.Event.wait = refuse("wait")
    multiprocessing.process.BaseProcess.join = refuse("wait")
    gc.collect()
    builtins.__import__, threading.Thread.join, multiprocessing.process.BaseProcess.join, threading.Event.wait = kept
    sys.excepthook = excepthook
    assert not unraisable, unraisable
    gc.enable()
    for child in multiprocessing.active_children():
        child.join(30)
        assert child.exitcode == 0, child
print("ended")
"""


def test_a_finalizer_imports_nothing_and_waits_for_nobody():
    done = subprocess.run([sys.executable, "-c", FINALIZER], capture_output=True, text=True, timeout=120, env={**os.environ, "NARU_VIRTUAL": "cuda:1"})
    assert done.returncode == 0 and done.stdout == "ended\n", done.stdout + done.stderr
