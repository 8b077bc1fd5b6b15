"""Figures of memory, their identity, and the history's page."""
import random
from html.parser import HTMLParser

import pytest

import naru
from naru import _C
from naru._device import memory

MIB = 1 << 20


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "mps:0"])
def test_what_is_taken_is_what_is_in_tensors_and_what_is_cached(device):
    d = naru.device(device)
    _C.synchronize(d)
    before = memory.stats(d)["allocated_bytes.all.current"]
    kept = []
    for i in range(50):
        kept.append(naru.ones((i % 7 + 1) * 40000, device=device))
        if i % 3 == 0:
            kept.pop(i % len(kept))
        s = memory.stats(d)
        assert s["reserved_bytes.all.current"] == s["allocated_bytes.all.current"] + s["inactive_split_bytes.all.current"]
        assert s["allocated_bytes.all.current"] - before >= sum(t.nbytes for t in kept)
    kept.clear()
    assert memory.stats(d)["allocated_bytes.all.current"] == before
    _C.empty_cache(d)
    assert memory.stats(d)["reserved_bytes.all.current"] <= s["reserved_bytes.all.current"]


@pytest.mark.parametrize("device", ["cpu", "cuda:1", "mps:0"])
def test_what_the_driver_says_is_used_is_allocated_and_cached_and_other(device):
    def figures():
        s = memory.stats(device)
        used, allocated, cached = (s[k] for k in ("driver_used_bytes", "allocated_bytes.all.current", "inactive_split_bytes.all.current"))
        assert used == allocated + cached + s["other_bytes"] <= _C.total_memory(naru.device(device))
        assert min(allocated, cached, s["other_bytes"]) >= 0
        return s

    draw, kept = random.Random(11), []
    for _ in range(200):
        step = draw.random()
        if step < 0.55 or not kept:
            kept.append(naru.empty(draw.choice([1, 100, 5000, 300_000, 2 * MIB]), device=device))
        elif step < 0.95:
            kept.pop(draw.randrange(len(kept)))
        else:
            _C.empty_cache(naru.device(device))
        s = figures()
        if device != "cpu":  # nobody else takes memory of a virtual device
            assert s["other_bytes"] == 0
            assert s["driver_used_bytes"] == s["reserved_bytes.all.current"]
        if device == "cuda:1":
            free, total = naru.cuda.mem_get_info(1)
            assert total - free == s["driver_used_bytes"]
    kept.clear()
    _C.empty_cache(naru.device(device))
    figures()


def test_a_tensor_counts_until_it_is_deleted_and_the_cache_until_it_is_emptied():
    naru.cuda.empty_cache()
    start = naru.cuda.memory_allocated(0), naru.cuda.memory_reserved(0)
    x = naru.randn(1000, 1000, device="cuda:0")
    assert naru.cuda.memory_allocated(0) - start[0] == 4000256  # rounded up to 512
    del x
    assert naru.cuda.memory_allocated(0) == start[0]
    assert naru.cuda.memory_reserved(0) > start[1]
    naru.cuda.empty_cache()
    assert naru.cuda.memory_reserved(0) == start[1]


def test_peaks_are_kept_until_they_are_reset():
    x = naru.ones(4 * MIB, device="cuda:0") + 1
    x.sum().item()
    peak = naru.cuda.max_memory_allocated(0)
    del x
    assert naru.cuda.max_memory_allocated(0) == peak > naru.cuda.memory_allocated(0)
    naru.cuda.reset_peak_memory_stats(0)
    assert naru.cuda.max_memory_allocated(0) < peak


def test_the_summary_is_a_table_of_the_figures():
    x = naru.ones(MIB, device="cuda:0")
    x.sum().item()
    text = naru.cuda.memory_summary(0)
    assert "in tensors" in text and "MiB" in text and "cuda:0" in text
    assert naru.cuda.memory_stats(0)["allocated_bytes.all.current"] >= 4 * MIB


def test_a_fraction_limits_what_the_process_takes():
    total = naru.cuda.get_device_properties(1).total_memory
    naru.cuda.empty_cache()
    naru.cuda.set_per_process_memory_fraction(0.01, 1)
    try:
        with pytest.raises(naru.OutOfMemoryError):
            naru.empty(total // 50, dtype=naru.uint8, device="cuda:1")
    finally:
        naru.cuda.set_per_process_memory_fraction(1.0, 1)
    with pytest.raises(ValueError, match="Invalid fraction"):
        naru.cuda.set_per_process_memory_fraction(1.5, 1)


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts = []

    def handle_data(self, data):
        self.texts.append(data)


def test_a_history_knows_who_held_most_and_becomes_one_page(tmp_path):
    with naru.memory_history("cuda:0") as h:
        big = naru.ones(2 * MIB, device="cuda:0")
        small = naru.zeros(MIB // 4, device="cuda:0")
        total = (big.sum() + small.sum()).item()
        del big
    assert total == 2 * MIB
    name, most, count = h.holders()[0]
    assert "test_memory.py" in name and "ones" in name and most == 8 * MIB and count == 1
    assert sum(e["bytes"] for e in h.events if e["bytes"] > 0) >= 9 * MIB
    assert any(e["bytes"] == -8 * MIB for e in h.events)
    page = h.page(tmp_path / "memory.html").read_text()
    assert "http" not in page.replace("http-equiv", "")  # nothing is fetched
    cells = Cells()
    cells.feed(page)
    assert any("test_memory.py" in t for t in cells.texts) and "8.00 MiB" in cells.texts
