"""torch.multiprocessing: tensors shared between processes."""
import os

import naru as torch
import naru.multiprocessing as mp
import pytest


def write(index, shared, queue, done):
    shared[index] = 10.0 * (index + 1)
    queue.put((index, torch.full((2,), float(index)), torch.nn.Parameter(torch.ones(1)), shared[index:]))
    done.wait(30)


def test_what_a_process_writes_the_others_see():
    context = mp.get_context("spawn")
    shared, queue, done = torch.zeros(2), context.SimpleQueue(), context.Event()
    running = mp.spawn(write, args=(shared, queue, done), nprocs=2, join=False)
    found = sorted((queue.get() for _ in range(2)), key=lambda item: item[0])
    assert shared.is_shared() and shared.tolist() == [10.0, 20.0]
    assert [item[1].tolist() for item in found] == [[0.0, 0.0], [1.0, 1.0]] and isinstance(found[0][2], torch.nn.Parameter) and found[0][2].requires_grad
    found[1][3][0] = 5.0
    assert shared.tolist() == [10.0, 5.0]
    done.set()
    while not running.join():
        pass


def write_through_a_view(index, whole, view, on_device, more, shared):
    view[0] = 9.0
    shared[:] = torch.cat([whole, on_device.cpu(), more.cpu()])


def test_a_process_that_is_started_gets_views_of_one_storage_as_such_and_copies_of_what_is_on_devices():
    whole, shared = torch.arange(3.0), torch.zeros(7)
    mp.spawn(write_through_a_view, args=(whole, whole[1:], torch.ones(2, device="cuda"), torch.full((2,), 4.0, device="cuda"), shared))
    assert whole.tolist() == [0.0, 9.0, 2.0] and shared.tolist() == [0.0, 9.0, 2.0, 1.0, 1.0, 4.0, 4.0]


def fail(index):
    if index == 1:
        raise ValueError("this one failed")


def vanish(index):
    os._exit(3)


def test_errors_of_processes_come_back():
    with pytest.raises(mp.ProcessRaisedException, match="-- Process 1 terminated with the following error:\n(.|\n)*ValueError: this one failed") as error:
        mp.start_processes(fail, nprocs=2, start_method="fork")
    assert error.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3") as ended:
        mp.start_processes(vanish, nprocs=1, start_method="fork")
    assert ended.value.exit_code == 3


def test_a_tensor_with_history_is_refused_and_devices_are_copied():
    from multiprocessing.reduction import ForkingPickler

    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(x * 2)
    here, there = mp.Pipe()
    here.send([torch.ones(2, device="cuda"), torch.empty(0), torch.arange(6).view(2, 3).t()])
    on_device, empty, turned = there.recv()
    assert str(on_device.device) == "cuda:0" and on_device.tolist() == [1, 1] and empty.shape == (0,) and turned.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_names_of_pythons_multiprocessing_are_there():
    import multiprocessing

    assert mp.Process is multiprocessing.Process and mp.cpu_count() == multiprocessing.cpu_count()
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
