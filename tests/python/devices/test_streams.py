"""Streams, events, and synchronization counts, on virtual devices."""

import inspect
import threading
import warnings

import pytest

import naru as torch


def here(offset=0):
    frame = inspect.currentframe().f_back
    return f"test_streams.py:{frame.f_lineno + offset}"


def test_a_stream_has_a_device_a_number_and_a_place_as_current_stream():
    s = torch.cuda.Stream()
    assert s.device == torch.device("cuda:0") and s.stream_id > 0 and s.priority == 0
    assert torch.cuda.default_stream().stream_id == 0
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.cuda.stream(s):
        assert torch.cuda.current_stream() == s
        assert torch.accelerator.current_stream() == s
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with s as inner:
        assert inner is s and torch.cuda.current_stream() == s
    assert torch.cuda.current_stream() != s
    assert isinstance(s, torch.Stream) and type(s) is torch.cuda.Stream
    assert isinstance(torch.cuda.current_stream(), torch.cuda.Stream)
    assert repr(s).startswith("<torch.cuda.Stream device=cuda:0 cuda_stream=0x")
    assert repr(torch.Stream("cuda:1")).startswith("torch.Stream device_type=cuda, device_index=1, stream_id=")
    assert hash(s) == hash(s) and s != torch.cuda.Stream()


def test_a_stream_of_another_device_makes_that_device_current_within_the_block():
    s = torch.cuda.Stream(device=1)
    with torch.cuda.stream(s):
        assert torch.cuda.current_device() == 1
        assert torch.ones(1, device="cuda").device == torch.device("cuda:1")
    assert torch.cuda.current_device() == 0


def test_no_stream_changes_nothing():
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_set_stream_lasts_and_belongs_to_the_thread():
    s = torch.cuda.Stream()
    seen = []
    torch.cuda.set_stream(s)
    try:
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_stream()))
        thread.start()
        thread.join()
        assert torch.cuda.current_stream() == s
        assert seen == [torch.cuda.default_stream()]
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream())


def test_streams_wait_for_what_they_use_without_being_told():
    x = torch.arange(10000.0, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(4)]
    for round in range(20):
        for s in streams:
            with torch.cuda.stream(s):
                x = x * 2 - x.sum() * 0 + 1 if round % 2 else (x - 1) / 2
    expected = torch.arange(10000.0)
    for round in range(20):
        for _ in streams:
            expected = expected * 2 - expected.sum() * 0 + 1 if round % 2 else (expected - 1) / 2
    assert torch.equal(x.cpu(), expected)


def test_many_streams_may_read_what_one_then_overwrites():
    source = torch.zeros(100000, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(5)]
    results = []
    for i in range(30):
        for s in streams:
            with torch.cuda.stream(s):
                results.append((i, source.cumsum(0)[-1]))
        source += 1
    for i, r in results:
        assert r.item() == i * 100000


def test_memory_is_handed_on_while_the_last_owner_is_still_being_computed():
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    total = []
    for i in range(50):
        with torch.cuda.stream(a if i % 2 else b):
            x = torch.full((1 << 18,), float(i), device="cuda")
            total.append(x.sum())
            del x
    assert torch.cuda.max_memory_allocated() - before < 3 * (1 << 20) + 50 * 512
    assert [t.item() for t in total] == [i * float(1 << 18) for i in range(50)]


def test_events_order_streams_and_take_the_time():
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(a):
        start.record()
        x = torch.ones(1 << 16, device="cuda").cumsum(0)
        end.record()
    b.wait_event(end)
    b.wait_stream(a)
    with torch.cuda.stream(b):
        y = x[-1]
    end.synchronize()
    assert start.query() and end.query()
    assert start.elapsed_time(end) > 0 > end.elapsed_time(start)
    assert y.item() == 1 << 16
    assert end.device == torch.device("cuda:0")


def test_an_event_that_was_never_recorded_holds_nobody_up():
    e = torch.cuda.Event()
    assert e.query() and repr(e) == "<torch.cuda.Event uninitialized>"
    e.synchronize()
    e.wait()
    torch.cuda.current_stream().wait_event(e)
    with pytest.raises(ValueError, match="enable_timing=True"):
        e.elapsed_time(e)
    timed = torch.cuda.Event(enable_timing=True)
    with pytest.raises(ValueError, match="recorded"):
        timed.elapsed_time(timed)


def test_generic_streams_and_events_work_for_every_kind():
    for kind in ("cuda", "mps"):
        s = torch.Stream(device=kind)
        with s:
            x = torch.ones(1000, device=kind) * 3
        e = s.record_event()
        e.synchronize()
        assert e.query() and s.query()
        assert x.sum().item() == 3000
    cpu = torch.Stream("cpu")
    assert cpu.query()
    cpu.synchronize()


def test_streams_of_other_kinds_are_refused_by_a_namespace():
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.cuda.Stream("mps:0")


def test_copies_without_blocking_need_no_waiting():
    host = torch.arange(50000.0).pin_memory()
    expected = host.clone()
    there = host.to("cuda", non_blocking=True)
    host.add_(1)  # waits until the copy has read it
    back = torch.empty(50000).pin_memory()
    back.copy_(there, non_blocking=True)
    assert torch.equal(back, expected)  # waits until the copy has written it
    assert torch.equal(host, expected + 1)


def test_count_syncs_lists_each_with_its_line():
    x = torch.ones(100, device="cuda")
    with torch.count_syncs() as c:
        y = x * 2
        z = y + x
        assert len(c) == 0
        value = z.sum().item(); first = here()
        torch.cuda.synchronize(); second = here()
        z.cpu(); third = here()
        pinned = torch.empty(100).pin_memory()
        pinned.copy_(z, non_blocking=True)
        assert len(c) == 3
        pinned.tolist(); fourth = here()
        torch.cuda.current_stream().synchronize(); fifth = here()
    x.sum().item()
    assert value == 300
    assert [entry.where.split("/")[-1] for entry in c] == [first, second, third, fourth, fifth]
    assert all(entry.device == torch.device("cuda:0") for entry in c)
    assert c[1].what == "synchronize"


def test_counts_nest():
    x = torch.ones(3, device="cuda")
    with torch.count_syncs() as outer:
        x.tolist()
        with torch.count_syncs() as inner:
            x.tolist()
    assert (len(outer), len(inner)) == (2, 1)


def test_a_training_step_on_a_device_does_not_synchronize():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, y = torch.randn(5, 8, device="cuda"), torch.randint(0, 3, (5,), device="cuda")
    with torch.forbid_sync():
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    assert loss.item() > 0


def test_forbid_sync_names_the_line_and_what_to_do():
    x = torch.ones(3, device="cuda")
    with torch.forbid_sync():
        (x + 1).sum()
        with pytest.raises(RuntimeError, match=r"synchronizing operation where that is forbidden: copy \(cuda:0, at .*test_streams.py:\d+\)"):
            x.tolist()
        with pytest.raises(RuntimeError, match="forbidden"):
            torch.cuda.synchronize()
    assert x.tolist() == [1, 1, 1]


def test_the_sync_debug_mode_warns():
    x = torch.ones(3, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    try:
        assert torch.cuda.get_sync_debug_mode() == 1
        with pytest.warns(UserWarning, match="called a synchronizing operation: copy"):
            x.tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning):
                x.tolist()
    finally:
        torch.cuda.set_sync_debug_mode(0)
    with pytest.raises(RuntimeError, match="expected one of"):
        torch.cuda.set_sync_debug_mode("sometimes")


def test_record_stream_is_accepted():
    x = torch.ones(3, device="cuda")
    x.record_stream(torch.cuda.Stream())
    with pytest.raises(RuntimeError, match="record_stream"):
        torch.ones(3).record_stream(torch.cuda.Stream())


def test_gradients_are_taken_over_on_devices_and_backward_may_run_on_another_stream():
    x = torch.randn(1000, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        y = (x * x).sum()
    y.backward()
    assert torch.equal(x.grad.cpu(), 2 * x.detach().cpu())
