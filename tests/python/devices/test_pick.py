"""Choosing devices: the best one, and by memory, uuid or PCI address; properties; reasons for unavailability in every namespace."""
import os
import re

import pytest

import naru
import naru as torch
from naru import _C
from naru._device.choice import byte_count

MIB = 1 << 20


@pytest.fixture
def four():
    with naru.virtual("cuda", count=4):
        yield


def test_the_best_device_is_a_device_that_says_why_the_others_were_not_chosen():
    best = naru.best_device()
    assert best == torch.device("cuda:0") and torch.ones(2, device=best).device == best
    assert set(best.others) == {"rocm", "xpu", "mps"}
    assert best.others["mps"] == "available, but cuda comes before it"
    assert best.others["rocm"] == _C.why_unavailable("rocm") != ""
    with naru.virtual("cuda", count=0):
        assert naru.best_device().type == "mps"
        assert naru.best_device().others["cuda"] == torch.cuda.why_unavailable() != ""


def test_a_kind_that_is_absent_says_why_in_every_namespace():
    assert torch.cuda.why_unavailable() == torch.mps.why_unavailable() == torch.accelerator.why_unavailable() == ""
    with naru.virtual("xpu"):
        assert torch.xpu.why_unavailable() == ""
    with naru.virtual("cuda", count=0), naru.virtual("mps", count=0):
        assert not torch.cuda.is_available() and not torch.mps.is_available()
        reason = torch.cuda.why_unavailable()
        found = _C._availability("cuda")
        assert reason == f"{found['reason']}. {found['remedy']}" and found["reason"] and found["remedy"]
        absent = torch.device("cuda:1")  # naming it initializes nothing
        for use in (lambda: torch.ones(1, device=absent), lambda: torch.ones(1).to(absent), lambda: torch.ones(1).cuda(),
                    lambda: torch.nn.Linear(1, 1).to("cuda"), torch.cuda.current_device, torch.cuda.init):  # fmt: skip
            with pytest.raises(RuntimeError, match=re.escape(reason)):
                use()
        with pytest.raises(naru.DeviceUnavailableError, match=re.escape(reason)):
            torch.zeros(1, device="cuda")


def test_a_device_is_picked_by_uuid_or_the_beginning_of_it(four):
    for i in range(4):
        uuid = torch.cuda.get_device_properties(i).uuid
        assert naru.pick(uuid=uuid) == naru.pick("cuda", uuid=f"GPU-{uuid}") == naru.pick(uuid=f"GPU-{uuid}".upper()) == torch.device("cuda", i)
    assert naru.pick(uuid=str(uuid)[:9]).type == "cuda"
    with pytest.raises(naru.DeviceUnavailableError, match="uuid 0123; what there is:\n  cuda:0 .Virtual cuda. has .* uuid GPU-"):
        naru.pick(uuid="0123")


def test_a_device_is_picked_by_its_pci_address(four):
    addresses = [d["pci"] for d in _C.devices() if d["kind"] == "cuda"]
    assert len(set(addresses)) == 4 and addresses == sorted(addresses)
    for i, address in enumerate(addresses):
        assert naru.pick(pci=address) == naru.pick(pci=address.upper().replace(".0", "")) == naru.pick(pci="0000" + address)
        assert naru.pick(pci=address).index == i
    with pytest.raises(naru.DeviceUnavailableError, match="pci 01:00.0"):
        naru.pick(pci=addresses[0].split(":", 1)[1])  # of domain 0
    for bad in ("17", "x:1:2", "0000:17:00.0.1", "ff01:01:00.z"):
        with pytest.raises(ValueError, match=re.escape(repr(bad))):
            naru.pick(pci=bad)


def test_a_device_is_picked_by_free_memory_and_the_emptiest_of_its_kind_is_taken(four):
    assert naru.pick().index == 0
    held = [torch.empty(2 * i * MIB, dtype=torch.uint8, device=f"cuda:{i}") for i in (3, 1)] + [torch.empty(9 * MIB, device="cuda:0")]
    assert naru.pick() == torch.device("cuda:2")
    total = torch.cuda.mem_get_info(0)[1]
    assert naru.pick(free_memory=total) == torch.device("cuda:2")
    held.append(torch.empty(1, device="cuda:2"))
    with pytest.raises(naru.DeviceUnavailableError, match="wanted a cuda device with 4.00 GiB of free memory; what there is:(\n  cuda:. .*){4}$"):
        naru.pick("cuda", free_memory=total)
    assert naru.pick(free_memory=total).type == "mps", "the next kind has what is wanted"


def test_memory_that_the_cache_keeps_counts_as_free_and_a_limit_counts(four):
    total = torch.cuda.mem_get_info(0)[1]
    x = torch.empty(total // 2, dtype=torch.uint8, device="cuda:3")
    del x
    if os.environ.get("NARU_CACHING") != "0":
        assert torch.cuda.mem_get_info(3)[0] < total
    uuid = torch.cuda.get_device_properties(3).uuid
    assert naru.pick(uuid=uuid, free_memory=total).index == 3
    torch.cuda.set_per_process_memory_fraction(0.25, 3)
    try:
        assert naru.pick(uuid=uuid, free_memory=total // 4).index == 3
        with pytest.raises(naru.DeviceUnavailableError, match="cuda:3 .* has 1.00 GiB free of 4.00 GiB"):
            naru.pick(uuid=uuid, free_memory=total // 4 + 1)
    finally:
        _C.set_memory_limit(torch.device("cuda:3"), 0)
        torch.cuda.empty_cache()


def test_the_cpu_is_picked_only_by_name():
    assert naru.pick("cpu", free_memory="1MiB") == torch.device("cpu")
    with naru.virtual("cuda", count=0), naru.virtual("mps", count=0):
        with pytest.raises(naru.DeviceUnavailableError, match=r"beside the cpu with .*; what there is:\n  cuda: .*\n  rocm: ") as error:
            naru.pick(free_memory=1 << 60)
        assert torch.mps.why_unavailable() in str(error.value)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        naru.pick("gpu")


@pytest.mark.parametrize("text, count", [(7, 7), ("7", 7), ("2k", 2048), ("64MiB", 64 * MIB), ("1.5 GiB", 3 << 29), ("2GB", 2 * 10**9), ("3 b", 3)])
def test_sizes_are_numbers_or_texts(text, count):
    assert byte_count(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "1 Q", "-1", "1e9", "0x10"])
def test_other_texts_are_no_sizes(text):
    with pytest.raises(ValueError, match="wanted a number of bytes"):
        naru.pick(free_memory=text)


def test_properties_are_pytorchs(four):
    p, q = torch.cuda.get_device_properties(1), torch.cuda.get_device_properties("cuda:2")
    assert p.name == torch.cuda.get_device_name(1) and p.total_memory == torch.cuda.mem_get_info(1)[1]
    assert (p.major, p.minor) == torch.cuda.get_device_capability(1)
    assert p.uuid != q.uuid and re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(p.uuid)) and len(p.uuid.bytes) == 16
    assert f"{p.pci_domain_id:04x}:{p.pci_bus_id:02x}:{p.pci_device_id:02x}.0" == next(d["pci"] for d in _C.devices() if d["device"] == "cuda:1")
    assert repr(p) == (
        f"_CudaDeviceProperties(name='{p.name}', major={p.major}, minor={p.minor}, total_memory={p.total_memory // MIB}MB, "
        f"multi_processor_count={p.multi_processor_count}, uuid={p.uuid}, pci_bus_id={p.pci_bus_id}, pci_device_id={p.pci_device_id}, "
        f"pci_domain_id={p.pci_domain_id}, L2_cache_size=0MB)"
    )
    assert p.warp_size == 32 and p.multi_processor_count >= 1
    with pytest.raises(naru.DeviceUnavailableError, match="invalid device ordinal"):
        torch.cuda.get_device_properties(4)


def test_free_memory_is_what_the_driver_has_left():
    free, total = torch.cuda.mem_get_info(0)
    x = torch.empty(8 * MIB, device="cuda:0")
    after, _ = torch.cuda.mem_get_info(0)
    assert free - after == 32 * MIB
    assert total - after == torch.cuda.memory_reserved(0)
    del x
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info(0)[0] >= free


def test_the_namespace_of_xpu_is_pytorchs():
    with naru.virtual("xpu", count=3):
        assert torch.xpu.is_available() and torch.xpu.device_count() == 3 and torch.xpu.current_device() == 0
        with torch.xpu.device(2):
            x = torch.ones(4 * MIB, device="xpu")
            assert x.device == torch.device("xpu:2") and torch.xpu.current_device() == 2
        torch.xpu.set_device(1)
        try:
            with torch.xpu.device_of(x):
                assert torch.xpu.memory_allocated() == 16 * MIB <= torch.xpu.memory_reserved()
                free, total = torch.xpu.mem_get_info()
                assert total - free == torch.xpu.memory_stats()["driver_used_bytes"]
            assert torch.xpu.current_device() == 1 and torch.xpu.memory_allocated() == 0
        finally:
            torch.xpu.set_device(0)
        with torch.xpu.stream(torch.xpu.Stream(device="xpu:2")):
            y = x * 2
        torch.xpu.synchronize("xpu:2")
        assert y.sum().item() == 8 * MIB
        torch.xpu.manual_seed(5)
        a = torch.rand(3, device="xpu")
        torch.xpu.manual_seed_all(5)
        assert torch.equal(a, torch.rand(3, device="xpu"))
        assert torch.xpu.get_device_properties(1).name == torch.xpu.get_device_name(1) == torch.xpu.get_device_capability(1)["name"]
        with pytest.raises(ValueError, match="Expected a xpu device, but got: cpu"):
            torch.xpu.synchronize("cpu")
        assert naru.pick("xpu").type == "xpu"
