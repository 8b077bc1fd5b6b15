"""The loader's worker processes: failures are errors and never hangs."""
import multiprocessing
import os
import signal
import sys

import naru as torch
from naru.utils import data as D
import pytest
from worker_cases import Call, killed, loader, until, with_cuda

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


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
    # The iteration continues.
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

    faulthandler.disable()  # suppress the dying worker's crash report
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


@with_cuda
def test_devices_opened_before_the_fork_are_named_in_the_error():
    torch.ones(1, device="cuda:0").cpu()
    with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
        next(iter(loader(lambda i: torch.ones(1, device="cuda:0").cpu())))


def on_device(i):
    return torch.full((2, 20000), float(i), device="cuda:1")


@with_cuda
def test_tensors_on_a_device_come_back_to_it():
    got = list(D.DataLoader(Call(on_device, 3), num_workers=1, multiprocessing_context="spawn"))
    assert [str(b.device) for b in got] == ["cuda:1"] * 3 and [b.max().item() for b in got] == [0, 1, 2]


def test_forked_workers_compute_on_the_cpu_whatever_their_parent_did():
    def compute(i):
        if i % 2:
            torch.set_num_threads(2)
        x = torch.full((400, 400), 1.0 / 400) + i
        return (x @ torch.ones(400, 400)).tanh().sum() + torch.sort(torch.rand(100000)).values[0] * 0

    threads = torch.get_num_threads()
    try:
        parent = [compute(i).item() for i in range(4)]  # the thread pool and the libraries have started
        assert [b.item() for b in loader(compute, 4)] == parent
    finally:
        torch.set_num_threads(threads)
