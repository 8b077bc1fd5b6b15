"""torch.profiler: calls with their times, in tables and traces."""
import gzip
import json
import os

import naru as torch
import pytest
from naru import profiler
from naru.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


def test_calls_are_counted_and_their_times_nest():
    x = torch.ones(64, 64)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p, record_function("part"):
        for _ in range(3):
            x = (x @ x).relu() / 64
    torch.ones(1)
    found = {e.key: e for e in p.key_averages()}
    assert [(k, e.count) for k, e in found.items()] == [("part", 1), ("aten::matmul", 3), ("aten::relu", 3), ("aten::div", 3)]
    inner = sum(e.cpu_time_total for k, e in found.items() if k != "part")
    assert found["part"].cpu_time_total >= inner > 0 and found["part"].self_cpu_time_total == pytest.approx(found["part"].cpu_time_total - inner)
    assert found["aten::relu"].cpu_time == pytest.approx(found["aten::relu"].cpu_time_total / 3)
    assert [e.input_shapes for e in p.events() if e.key == "aten::relu"] == [[[64, 64]]] * 3


def test_a_table_is_sorted_and_limited():
    with profile() as p:
        for _ in range(2):
            torch.ones(3).sin()
    lines = p.key_averages().table(sort_by="cpu_time_total", row_limit=1).splitlines()
    assert lines[1].split() == ["Name", "Self", "CPU", "%", "Self", "CPU", "CPU", "total", "%", "CPU", "total", "CPU", "time", "avg", "#", "of", "Calls"]
    assert len(lines) == 6 and lines[-1].startswith("Self CPU time total: ") and lines[3].split()[-1] == "2"
    with pytest.raises(AttributeError):
        p.key_averages().table(sort_by="beauty")


def test_a_trace_has_each_call(tmp_path):
    with profile() as p, record_function("part"):
        torch.ones(3).sin()
    p.add_metadata("run", "7")
    for name, opened in (("t.json", open), ("t.json.gz", gzip.open)):
        p.export_chrome_trace(str(tmp_path / name))
        with opened(tmp_path / name, "rt") as file:
            trace = json.load(file)
        calls = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        assert [e["name"] for e in calls] == ["part", "aten::ones", "aten::sin"] and trace["run"] == "7"
        assert calls[0]["ts"] <= calls[1]["ts"] and calls[0]["dur"] >= calls[1]["dur"] + calls[2]["dur"]


def test_steps_are_recorded_as_they_are_scheduled(tmp_path):
    ready = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: ready.append([e.key for e in p.events()])) as p:
        for _ in range(9):
            torch.ones(1)
            p.step()
    assert ready == [[f"ProfilerStep#{i}" if j == 0 else "aten::ones" for i in steps for j in range(2)] for steps in ((2, 3), (6, 7))]
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "w")):
        torch.ones(1)
    assert [f.name.split(".")[0] for f in tmp_path.glob("*.pt.trace.json")] == ["w"]


def test_functions_are_decorated_and_nothing_is_recorded_elsewhere():
    @record_function("f")
    def f(x):
        return x + 1

    assert f(torch.ones(1)).item() == 2
    with torch.autograd.profiler.profile() as p:
        f(torch.ones(1))
    assert [e.key for e in p.function_events] == ["aten::ones", "f", "aten::add"] and p.self_cpu_time_total > 0
    with torch.autograd.profiler.profile(enabled=False, use_cuda=True) as p:
        torch.ones(1)
    assert len(p.function_events) == 0
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profiler.profile(activities=[])


def test_what_devices_do_is_timed_by_their_clocks_and_counts_for_the_call_that_handed_it_over():
    x = torch.ones(64, 64, device="cuda:0")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p, record_function("part"):
        y = (x + 1) * 2  # fused: nothing has needed it yet
        z = y @ x
        z.cpu()
    kernels = [k for k in p.events() if k.on_device]
    assert [(k.name, k.device) for k in kernels] == [("add+mul", "cuda:0"), ("matmul", "cuda:0"), ("copy cuda:0 to cpu", "cuda:0")]
    assert [k.kind for k in kernels] == ["kernel", "kernel", "gpu_memcpy"] and all("test_profiler.py" in k.line for k in kernels[:2])
    assert all(k.given <= k.end and k.start <= k.end for k in kernels) and kernels[0].start <= kernels[1].start <= kernels[2].start
    found = {(e.key, e.on_device): e for e in p.key_averages()}
    assert found["aten::add", False].device_time_total == 0  # the product submitted the group, so the time counts there
    assert found["aten::matmul", False].device_time_total == pytest.approx(kernels[0].device_time_total + kernels[1].device_time_total)
    assert found["part", False].device_time_total == pytest.approx(sum(k.device_time_total for k in kernels)) == p.events().self_device_time_total
    assert found["part", False].self_device_time_total == 0 and found["matmul", True].self_cpu_time_total == 0
    lines = p.key_averages().table(sort_by="self_device_time_total").splitlines()
    assert "Self device" in lines[1] and lines[-1].startswith("Self device time total: ")


@pytest.mark.skipif(os.environ.get("NARU_CACHING") == "0", reason="it is about cached memory")
def test_a_trace_has_streams_of_devices_arrows_to_them_and_memory(tmp_path):
    with profile(profile_memory=True) as p:
        torch.ones(1000, device="cuda:1").sin().sum().item()
    p.export_chrome_trace(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    work = [e for e in events if e["ph"] == "X" and names.get(e["tid"]) == "cuda:1 stream 0"]
    assert work and {e["cat"] for e in work} <= {"kernel", "gpu_memcpy"}
    begins, ends = ({e["id"]: e for e in events if e["ph"] == mark} for mark in "sf")
    assert set(begins) == set(ends) and all(begins[i]["ts"] <= ends[i]["ts"] + 1e3 for i in begins)
    counters = [e for e in events if e["ph"] == "C" and e["name"] == "memory of cuda:1"]
    assert max(e["args"]["other"] for e in counters) >= 512
    p.export_page(tmp_path / "page.html")
    assert "cuda:1 stream 0" in (tmp_path / "page.html").read_text()


def test_a_profile_within_another_takes_nothing_away_from_it():
    x = torch.ones(64, 64, device="cuda:0")
    with profile() as outer:
        _ = x @ x
        with profile() as inner:
            _ = x.cumsum(0)
        _ = x.sort()
    names = [[k.name for k in p.events() if k.on_device] for p in (outer, inner)]
    assert names == [["matmul", "cumsum", "sort"], ["cumsum"]]


def test_memory_operations_and_callers_are_counted_where_asked_for(tmp_path):
    def part(x):
        return x @ x

    with profile(profile_memory=True, with_flops=True, with_stack=True) as p, record_function("all"):
        x = torch.ones(8, 8)
        y = part(x).t().add_(1)
        y + y
    found = {e.key: e for e in p.key_averages()}
    assert {k: (e.self_cpu_memory_usage, e.cpu_memory_usage, e.flops) for k, e in found.items()} == {
        "all": (0, 768, 0), "aten::ones": (256, 256, 0), "aten::matmul": (256, 256, 1024), "aten::t": (0, 0, 0), "aten::add_": (0, 0, 64), "aten::add": (256, 256, 64),
    }
    matmul = next(e for e in p.events() if e.key == "aten::matmul")
    assert matmul.stack[0].endswith(": part") and matmul.cpu_parent.key == "all" and matmul in matmul.cpu_parent.cpu_children
    table = p.key_averages(group_by_stack_n=1).table(sort_by="self_cpu_memory_usage")
    assert all(title in table for title in ("CPU Mem", "Self CPU Mem", "Source Location", "Total KFLOPs", "1.024", "256 B"))
    p.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert any(":_part" in line.split()[0] and int(line.split()[1]) > 0 for line in (tmp_path / "stacks").read_text().splitlines())
    with pytest.raises(ValueError, match="metric should be one of"):
        p.export_stacks(str(tmp_path / "stacks"), "beauty")
    with profile() as plain:
        pass
    with pytest.raises(AssertionError, match="with_stack=True"):
        plain.export_stacks("nowhere")
    with profile(profile_memory=True) as p:
        torch.ones(8, device="cuda") * 2
    assert [(e.key, e.device_memory_usage, e.cpu_memory_usage) for e in p.key_averages() if not e.on_device] == [("aten::ones", 32, 0), ("aten::mul", 32, 0)]


def test_a_record_can_pause():
    with profile() as p:
        torch.ones(1)
        p.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.zeros(1)
        p.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.full((1,), 2)
    assert [e.key for e in p.events()] == ["aten::ones", "aten::full"]
    with pytest.raises(RuntimeError, match="records nothing"):
        p.toggle_collection_dynamic(True, [])
