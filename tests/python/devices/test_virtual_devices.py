"""Virtual devices with limits, delays and faults: each is a proper error, and the program continues."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import naru as torch


def test_memory_is_limited_and_a_smaller_batch_goes_through():
    with torch.virtual("cuda", count=2, memory="64MiB"):
        assert torch.cuda.get_device_properties(0).total_memory == 64 << 20
        batch = 32 << 20
        while True:
            try:
                x = torch.ones(batch, device="cuda") + 1
                x.sum().item()
                break
            except torch.cuda.OutOfMemoryError as error:
                assert "64.00 MiB in all" in str(error)
                batch //= 2
        assert batch == 8 << 20
        y = torch.ones(1 << 20, device="cuda:1")  # the other device has its own memory
        assert y.sum().item() == 1 << 20


def test_new_devices_have_new_memory_and_tensors_of_the_old_ones_stay_valid():
    before = torch.arange(1000.0, device="cuda")
    with torch.virtual("cuda", count=1, memory="32MiB"):
        assert torch.cuda.memory_allocated() == 0
        inside = before * 2
        assert inside.sum().item() == 999000
    assert torch.cuda.get_device_properties(0).total_memory == 4 << 30
    assert inside.sum().item() == 999000 and (before + 1).sum().item() == 500500


def test_delays_are_waited_for_by_whoever_reads_and_by_nobody_else():
    x = torch.ones(1000)
    with torch.virtual("cuda", count=1, launch_delay="100ms", copy_delay="50ms"):
        pinned = x.pin_memory()
        start = time.perf_counter()
        y = pinned.to("cuda", non_blocking=True)
        more = y + 1  # kept alive: without a cache, freeing memory waits
        z = more.cumsum(0)
        submitted = time.perf_counter() - start
        assert z[-1].item() == 2000
        read = time.perf_counter() - start
        assert read > 0.25 > submitted


def test_bandwidth_makes_large_copies_slower():
    with torch.virtual("cuda", count=1, bandwidth="100MB/s"):
        x = torch.ones(5 << 20, dtype=torch.uint8)
        start = time.perf_counter()
        x.cuda()
        assert time.perf_counter() - start > 0.045


@pytest.mark.parametrize("peer", ["on", "off", "corrupt"])
def test_copies_between_devices_arrive_whatever_the_peer_access(peer):
    with torch.virtual("cuda", count=2, peer=peer):
        x = torch.arange(100000.0, device="cuda:0")
        y = x.to("cuda:1")
        assert y.device == torch.device("cuda:1")
        assert torch.equal(y.cpu(), torch.arange(100000.0))
        assert torch.cuda.can_device_access_peer(0, 1) == (peer == "on")


def test_the_nth_allocation_of_the_program_fails_and_the_next_does_not():
    with torch.virtual("cuda", count=1, fail_allocation=2):
        a = torch.empty(100, device="cuda").fill_(1)
        assert a.cpu().sum().item() == 100
        before = torch.cuda.memory_allocated()
        with pytest.raises(torch.OutOfMemoryError, match=r"Allocation number 2 failed, as asked for \(fail_allocation=2\)"):
            torch.empty(100, device="cuda").fill_(1).cpu()
        assert torch.cuda.memory_allocated() == before  # the cache had the memory, and still has it
        assert torch.empty(100, device="cuda").fill_(1).cpu().sum().item() == 100


def test_the_cache_asks_the_driver_again_when_it_fails_so_the_program_goes_on():
    for n in (1, 2, 3):
        with torch.virtual("cuda", count=1, fail_driver_allocation=n):
            a, b = torch.ones(1 << 20, device="cuda"), torch.ones(16 << 20, device="cuda")
            assert (a.sum() + b.sum()).item() == 17 << 20
            assert torch.cuda.memory_allocated() >= 68 << 20


def test_the_nth_copy_fails_at_the_next_read_and_the_device_goes_on():
    x = torch.ones(100)
    with torch.virtual("cuda", count=1, fail_copy=2):
        y = x.cuda()
        with pytest.raises(RuntimeError, match=r"cuda:0: a copy, number 2 failed, as asked for \(fail_copy=2\)"):
            y.cpu()
        assert y.sum().item() == 100


def test_the_nth_launch_fails_at_the_next_read_and_the_device_goes_on():
    with torch.virtual("cuda", count=1, fail_launch=3):
        x = torch.ones(10, device="cuda").cumsum(0)
        y = x.cumsum(0)
        with pytest.raises(RuntimeError, match=r"a launch, number 3 failed"):
            y.cpu()
        for _ in range(20):
            assert x.sum().item() == 55


def test_a_lost_device_says_so_whatever_is_asked_and_others_go_on():
    with torch.virtual("cuda", count=2, lose_after=4):
        x = torch.ones(10, device="cuda:0")
        with pytest.raises(RuntimeError, match="device 'cuda:0' was lost"):
            for _ in range(10):
                x = x.cumsum(0)
            x.cpu()
        for what in (lambda: x.cpu(), lambda: (x + 1).sum().item(), lambda: torch.ones(1 << 22, device="cuda:0").sum().item(),
                     lambda: torch.cuda.synchronize(0)):
            with pytest.raises(RuntimeError, match="lost"):
                what()
        assert torch.ones(3, device="cuda:1").sum().item() == 3
    assert torch.ones(3, device="cuda:0").sum().item() == 3


def test_memory_that_the_host_shares_is_seen_where_it_lies():
    with torch.virtual("mps", unified=True, without="sort"), torch.fallback.policy("count"):
        assert torch._C._describe_device("mps")["unified"]
        x = torch.arange(6.0, device="mps").reshape(2, 3) * 2
        with pytest.raises(TypeError, match="can't convert mps:0 device type tensor to numpy"):
            x.numpy()
        array = x.t().numpy(force=True)
        lent = torch.from_dlpack(x.__dlpack__(dl_device=(1, 0), copy=False))
        assert array.__array_interface__["data"][0] == lent.data_ptr() == x.data_ptr() and lent.device.type == "cpu"
        x += 1
        torch.mps.synchronize()
        assert array.tolist() == [[1, 7], [3, 9], [5, 11]] and lent.tolist() == [[1, 3, 5], [7, 9, 11]]
        lent[0, 0] = 20.0
        assert x.tolist() == [[20, 3, 5], [7, 9, 11]]
        torch.fallback.reset()
        assert x.sort(1).values.tolist() == [[3, 5, 20], [7, 9, 11]]
        assert [use.bytes for use in torch.fallback.report() if use.op == "sort"] == [0]
        del x
        assert array.sum() == 55  # the array keeps the memory
        y = torch.ones(4, device="mps")
        for device in ("cuda:0", "cpu", "mps"):
            assert (y.to(device) + 1).tolist() == [2.0] * 4
    with torch.virtual("mps"):
        x = torch.ones(2, device="mps")
        assert x.numpy(force=True).tolist() == [1, 1]
        with pytest.raises(BufferError, match="copy=False forbids"):
            x.__dlpack__(dl_device=(1, 0), copy=False)


def test_the_fixture_defines_devices_for_a_test(tmp_path):
    code = """
def test_four(virtual_devices):
    import naru
    virtual_devices("cuda", count=4, memory="128MiB")
    assert naru.cuda.device_count() == 4
def test_afterwards():
    import naru
    assert naru.cuda.device_count() == 0
"""
    file = tmp_path / "test_it.py"
    file.write_text(code)
    env = {k: v for k, v in os.environ.items() if k != "NARU_VIRTUAL"}
    env["PYTHONPATH"] = str(Path(torch.__file__).parents[1])
    plugins = ["-p", "naru.testing.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", *plugins, str(file)], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_environment_takes_the_same_options():
    code = "import naru; print(naru.cuda.device_count(), naru.cuda.get_device_properties(0).total_memory, naru.mps.device_count())"
    env = {**os.environ, "NARU_VIRTUAL": "cuda:3(memory=64MiB;copy_delay=1ms),mps:1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.split() == ["3", str(64 << 20), "1"], done.stderr


@pytest.mark.parametrize(
    "options, text",
    [
        ({"memory": "much"}, "memory: wanted a size"),
        ({"memory": 0}, "above 0"),
        ({"copy_delay": "3 apples"}, "copy_delay: wanted a time"),
        ({"peer": "maybe"}, "on, off or corrupt"),
        ({"fail_copy": "x"}, "fail_copy: wanted a number"),
        ({"count": -1}, "negative"),
    ],
)
def test_options_that_cannot_be_read_are_errors(options, text):
    with pytest.raises(RuntimeError, match=text):
        torch.virtual("cuda", **options)
    with pytest.raises(RuntimeError, match="no option 'colour'"):
        torch.virtual("cuda:1(colour=red)")
    assert torch.cuda.device_count() == 2
