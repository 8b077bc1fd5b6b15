"""Running out of memory raises an error with sizes and holders, at the call that allocates; the program continues."""
import gc

import pytest

import naru
from naru import _C

MIB = 1 << 20


@pytest.fixture
def small_device():
    """cuda:1 with 64 MiB."""
    gc.collect()  # frames that a failed assertion keeps alive
    d = naru.device("cuda:1")
    naru.cuda.synchronize(d)
    _C.empty_cache(d)
    _C.set_memory_limit(d, 64 * MIB)
    yield "cuda:1"
    _C.set_memory_limit(d, 0)


def test_the_error_names_the_request_the_figures_and_the_largest_holders_by_line(small_device):
    kept = naru.zeros(10 * MIB, device=small_device)  # the holder: 40 MiB
    with pytest.raises(naru.OutOfMemoryError) as raised:
        naru.zeros(10 * MIB, device=small_device)
    text = str(raised.value)
    assert "CUDA out of memory. Tried to allocate 40.00 MiB" in text
    assert "64.00 MiB" in text
    assert "40.00 MiB made by zeros at" in text and "test_out_of_memory.py" in text
    assert kept.sum().item() == 0


def test_a_request_that_can_never_be_met_fails_at_the_call():
    with pytest.raises(RuntimeError, match="not enough memory"):
        naru.zeros(1 << 45)
    with pytest.raises(RuntimeError):
        naru.empty(1 << 62)


def test_requests_that_fit_one_by_one_but_not_together_fail_at_the_call_too(small_device):
    kept = []
    with pytest.raises(naru.OutOfMemoryError):
        for _ in range(10):
            kept.append(naru.ones(5 * MIB, device=small_device) * 2)
    assert 2 <= len(kept) <= 3
    assert kept[0][:3].tolist() == [2, 2, 2]


def test_the_program_catches_it_halves_its_batch_and_goes_on(small_device):
    def work(batch):
        x = naru.ones(batch, 256 * 1024, device=small_device)
        return (x * 2).sum().item()

    batch, done = 64, None
    while done is None:
        try:
            done = work(batch)
        except naru.OutOfMemoryError:
            batch //= 2
    assert done == 2 * batch * 256 * 1024
    assert batch in (16, 32)


def test_what_is_no_longer_held_can_be_had_again(small_device):
    for _ in range(20):
        x = naru.ones(7 * MIB, device=small_device)  # 28 MiB, while the previous result is still held
        x += 1
    assert x.max().item() == 2


def test_temporaries_of_a_chain_do_not_pile_up(small_device):
    x = y = naru.ones(2 * MIB, device=small_device)  # 8 MiB each; thirty results would be 240
    for _ in range(15):
        y = (y + 1) * 0.5
    assert y.max().item() == 1


def test_what_waits_to_run_is_counted_and_listed_with_its_line(small_device):
    waiting = naru.ones(4 * MIB, device=small_device)  # deferred: it has no memory until it is needed
    for ask in (lambda: naru.ones(20 * MIB, device=small_device), lambda: naru.empty(13 * MIB, device=small_device), lambda: naru.eye(4096, device=small_device)):
        with pytest.raises(naru.OutOfMemoryError, match=r"16\.00 MiB are allocated") as raised:
            ask()
        assert "16.00 MiB made by ones at" in str(raised.value), raised.value
    assert waiting.sum().item() == 4 * MIB


@pytest.mark.parametrize("make", [lambda n, d: naru.ones(n, device=d), lambda n, d: naru.arange(n, device=d), lambda n, d: naru.empty(n, device=d)])
def test_memory_that_only_waiting_work_holds_is_free_for_the_next_result(small_device, make):
    x = naru.empty(8 * MIB, device=small_device).fill_(2.0)
    naru.cuda.synchronize(small_device)
    y = x * 3  # 32 MiB each: with both, the device is full
    del x
    kept = make(4 * MIB, small_device)
    assert kept.numel() == 4 * MIB and y[:2].tolist() == [6.0, 6.0]
