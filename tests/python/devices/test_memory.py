"""Memory statistics, their consistency, and the page of the memory history."""
import json
import os
import pickle
import random

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
        assert s["reserved_bytes.all.current"] == s["allocated_bytes.all.current"] + s["cached_bytes"]
        assert s["allocated_bytes.all.current"] - before >= sum(t.nbytes for t in kept)
    kept.clear()
    assert memory.stats(d)["allocated_bytes.all.current"] == before
    _C.empty_cache(d)
    assert memory.stats(d)["reserved_bytes.all.current"] <= s["reserved_bytes.all.current"]


@pytest.mark.parametrize("device", ["cpu", "cuda:1", "mps:0"])
def test_what_the_driver_says_is_used_is_allocated_and_cached_and_other(device):
    def figures():
        s = memory.stats(device)
        used, allocated, cached = (s[k] for k in ("driver_used_bytes", "allocated_bytes.all.current", "cached_bytes"))
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
        if device != "cpu":  # nothing else uses memory of a virtual device
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


FIGURES = "allocation segment active inactive_split allocated_bytes reserved_bytes active_bytes inactive_split_bytes requested_bytes".split()
POOLS = ("all", "large_pool", "small_pool")
COLUMNS = ("current", "peak", "allocated", "freed")
COUNTS = "num_alloc_retries num_ooms num_sync_all_streams num_device_alloc num_device_free max_split_size".split()


def test_the_stats_have_pytorchs_keys():
    s = naru.cuda.memory_stats(0)
    wanted = {f"{figure}.{pool}.{column}" for figure in FIGURES for pool in POOLS for column in COLUMNS} | set(COUNTS)
    wanted |= {f"oversize_{what}.{column}" for what in ("allocations", "segments") for column in COLUMNS}
    assert set(s) == wanted | {"cached_bytes", "driver_used_bytes", "other_bytes", "limit_bytes"}
    assert naru.cuda.memory_stats_as_nested_dict(0)["requested_bytes"]["small_pool"].keys() == set(COLUMNS)


def test_each_figure_is_the_sum_of_the_pools_and_of_what_came_and_went():
    draw, kept = random.Random(3), []
    naru.cuda.reset_accumulated_memory_stats(0)
    start = naru.cuda.memory_stats(0)
    for _ in range(200):
        if draw.random() < 0.6 or not kept:
            kept.append(naru.empty(draw.choice([1, 700, 5000, 300_000, 3 * MIB]), device="cuda:0"))
        else:
            kept.pop(draw.randrange(len(kept)))
        s = naru.cuda.memory_stats(0)
        for figure in FIGURES:
            assert s[f"{figure}.all.current"] == sum(s[f"{figure}.{pool}.current"] for pool in POOLS[1:])
            for pool in POOLS:
                now, peak, came, went = (s[f"{figure}.{pool}.{c}"] for c in COLUMNS)
                assert 0 <= now <= peak and now - start[f"{figure}.{pool}.current"] == came - went
        assert s["requested_bytes.all.current"] <= s["allocated_bytes.all.current"]
        assert s["inactive_split_bytes.all.current"] <= s["cached_bytes"]
    kept.clear()
    naru.cuda.empty_cache()
    s = naru.cuda.memory_stats(0)
    assert s["num_device_alloc"] - s["num_device_free"] == s["segment.all.current"]


def test_a_request_that_fails_counts_as_a_retry_and_a_failure():
    with naru.virtual("xpu", count=1, memory=64 * MIB):
        before = naru.xpu.memory_stats(0)
        most = naru.empty(40 * MIB, dtype=naru.uint8, device="xpu:0")
        with pytest.raises(naru.OutOfMemoryError):
            naru.zeros(40 * MIB, dtype=naru.uint8, device="xpu:0").sum().item()
        s = naru.xpu.memory_stats(0)
        assert s["num_ooms"] == before["num_ooms"] + 1 and s["num_alloc_retries"] == before["num_alloc_retries"] + 1
        naru.xpu.reset_accumulated_memory_stats(0)
        assert naru.xpu.memory_stats(0)["num_ooms"] == 0 and most.numel() == 40 * MIB


def test_the_summary_has_pytorchs_rows():
    x = naru.ones(MIB, device="cuda:0")
    x.sum().item()
    text = naru.cuda.memory_summary(0)
    lines = text.splitlines()
    assert {len(line) for line in lines} == {77} and "cuda:0" in text
    titles = [line.strip("|").split("|")[0].strip() for line in lines]
    rows = (
        "Metric", "Allocated memory", "Active memory", "Requested memory", "GPU reserved memory", "Non-releasable memory", "Allocations",
        "Active allocs", "GPU reserved segments", "Non-releasable allocs", "Oversize allocations", "Oversize GPU segments", "Held by others", "Limit",
    )  # fmt: skip
    assert [t for t in titles if t in rows] == list(rows) and titles.count("from large pool") == titles.count("from small pool") == 9
    now = naru.cuda.memory_stats(0)["allocated_bytes.all.current"]
    cell = lines[titles.index("Allocated memory")].strip("|").split("|")[1].split()
    assert now >= 4 * MIB and cell in ([str(now // 1024), "KiB"], [str(now >> 20), "MiB"])
    short = naru.cuda.memory_summary(0, abbreviated=True)
    assert "Requested memory" in short and "pool" not in short


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
    assert "http" not in page  # nothing is loaded from the network
    assert "$DATA" not in page and f",{8 * MIB}," in page and "test_memory.py" in page


def train(device, steps=2):
    """A history of a few steps of a small model."""
    with naru.memory_history(device) as history:
        model = naru.nn.Sequential(naru.nn.Linear(64, 128), naru.nn.Tanh(), naru.nn.Linear(128, 64)).to(device)
        optimizer = naru.optim.Adam(model.parameters())
        for _ in range(steps):
            loss = model(naru.ones(256, 64, device=device)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return history


def test_a_history_knows_what_memory_is_for_in_which_module_and_from_which_calls():
    history = train("cuda:0")
    taken = [e for e in history.events if e["bytes"] > 0]
    by_role = {role: [e for e in taken if e["role"] == role] for role in ("parameter", "gradient", "activation", "optimizer state")}
    weights = {"Sequential.0.weight", "Sequential.0.bias", "Sequential.2.weight", "Sequential.2.bias"}
    assert {e["name"] for e in by_role["parameter"]} == weights
    assert {e["name"] for e in by_role["gradient"]} == {f"gradient of {w}" for w in weights} and len(by_role["gradient"]) == 8
    assert {e["name"] for e in by_role["optimizer state"]} == {f"{s} of {w}" for w in weights for s in ("exp_avg", "exp_avg_sq")}
    assert {"Sequential.1", "Sequential.2"} <= {e["within"] for e in by_role["activation"]}
    assert all(e["backward"] for e in by_role["gradient"]) and not any(e["backward"] for e in by_role["activation"])
    assert all(e["stack"][0][1] == "train" and e["stack"][0][0] == e["line"] for e in by_role["activation"])
    assert [text for _, text in history.steps] == ["step 1", "step 2"]
    # A free event has the fields of its allocation.
    roles = {e["number"]: e["role"] for e in taken}
    assert all(roles[e["number"]] == e["role"] for e in history.events)
    # Outside of a history nothing is recorded about it.
    assert not naru.nn.modules._global_hooks._global_call_hooks
    with pytest.raises(RuntimeError, match="within the block"):
        history.mark("late")
    with naru.memory_history("cuda:0") as history:
        with pytest.raises(RuntimeError, match="a history of cuda:0 is being recorded already"), naru.memory_history(["cuda:1", "cuda:0"]):
            pass
        with naru.memory_history("cuda:1"):
            pass


def test_a_history_becomes_a_snapshot_as_pytorch_writes_it_and_counters_for_perfetto(tmp_path):
    history = train("cuda:1", 1)
    with open(history.dump_snapshot(tmp_path / "s.pickle"), "rb") as file:
        snapshot = pickle.load(file)
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    assert [len(t) > 0 for t in snapshot["device_traces"]] == [False, True]
    live, taken = {}, 0
    for entry in snapshot["device_traces"][1]:
        assert set(entry) == {"action", "addr", "size", "stream", "time_us", "frames"}
        if entry["action"] == "alloc":
            assert entry["addr"] not in live
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            assert live.pop(entry["addr"]) == entry["size"]
        elif entry["action"] in ("segment_alloc", "segment_free"):
            taken += entry["size"] * (1 if entry["action"] == "segment_alloc" else -1)
        assert all(set(frame) == {"filename", "line", "name"} for frame in entry["frames"])
    # Blocks held at the end are in segments, and the blocks cover the segments.
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    assert {b["address"]: b["size"] for b in blocks if b["state"] == "active_allocated"} == live
    assert sum(live.values()) == history.events[-1]["allocated"] and taken == history.events[-1]["reserved"]
    for s in snapshot["segments"]:
        assert sum(b["size"] for b in s["blocks"]) == s["total_size"] and s["device"] == 1
    trace = json.loads(history.export_chrome_trace(tmp_path / "t.json").read_text())["traceEvents"]
    counters = [e for e in trace if e["ph"] == "C"]
    assert [sum(v for k, v in e["args"].items() if k != "cached") for e in counters] == [e["allocated"] for e in history.events]
    assert [e["name"] for e in trace if e["ph"] == "i"] == ["step 1"]


@pytest.mark.skipif(os.environ.get("NARU_CACHING") == "0", reason="it is about cached memory")
def test_pytorchs_own_calls_record_a_history_and_dump_its_snapshot(tmp_path):
    recorder = naru.cuda.memory
    assert recorder.memory_allocated is naru.cuda.memory_allocated
    with pytest.raises(RuntimeError, match="nothing is recorded"):
        recorder._snapshot()
    recorder._record_memory_history(max_entries=1000)
    try:
        kept = naru.ones(MIB, device="cuda:1")
        recorder._dump_snapshot(tmp_path / "s.pickle")  # the program continues
        del kept
        actions = [entry["action"] for entry in recorder._snapshot()["device_traces"][1]]
    finally:
        recorder._record_memory_history(enabled=None)
    with open(tmp_path / "s.pickle", "rb") as file:
        traces = pickle.load(file)["device_traces"]
    assert [t["size"] for t in traces[1] if t["action"] == "alloc"][-1] == 4 * MIB
    assert "free_completed" not in [t["action"] for t in traces[1]] and actions[-1] == "free_completed"
