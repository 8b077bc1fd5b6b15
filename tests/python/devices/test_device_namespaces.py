"""The namespaces of devices are complete: every name of PyTorch's is there, or its absence is explained."""
import naru as torch
import pytest

MIB = 1 << 20


def test_figures_of_memory_exist_for_every_kind_under_its_own_names():
    for space, name in ((torch.cuda, "cuda:1"), (torch.accelerator, "mps:0"), (torch.accelerator, "cuda:1")):
        space.reset_accumulated_memory_stats(name)
        assert space.memory_stats(name)["allocation.all.allocated"] == 0
        before = space.memory_allocated(name)
        x = torch.ones(MIB, device=name)
        assert space.memory_allocated(name) - before == 4 * MIB
        assert space.memory_reserved(name) >= space.memory_allocated(name) and space.max_memory_reserved(name) >= space.memory_reserved(name)
        assert space.memory_stats(name)["allocation.all.allocated"] == 1
        assert name in space.memory_summary(name)
        del x
        space.reset_peak_memory_stats(name)
        assert space.max_memory_allocated(name) == before
    nested = torch.cuda.memory_stats_as_nested_dict(0)
    assert nested["allocated_bytes"]["all"]["current"] == torch.cuda.memory_allocated(0)
    assert torch.cuda.device_memory_used(0) == torch.cuda.memory_stats(0)["driver_used_bytes"]


def test_the_fraction_that_was_set_is_told():
    torch.cuda.set_per_process_memory_fraction(0.25, 1)
    try:
        assert abs(torch.cuda.get_per_process_memory_fraction(1) - 0.25) < 1e-9
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, 1)
    with pytest.raises(ValueError, match="Allowed range: 0~2"):
        torch.mps.set_per_process_memory_fraction(2.5)
    with pytest.raises(TypeError, match="must be `float`"):
        torch.mps.set_per_process_memory_fraction(1)
    torch.mps.set_per_process_memory_fraction(1.5)


def test_the_accelerator_takes_devices_of_any_kind():
    a = torch.accelerator
    assert a.kinds()[:1] == ["cuda"] and "mps" in a.kinds()
    assert a.devices("mps") == [torch.device("mps:0")] and torch.device("cuda:1") in a.devices()
    a.synchronize("mps")
    a.synchronize(1)
    free, total = a.get_memory_info("mps:0")
    assert 0 < free <= total == torch.mps.recommended_max_memory()
    assert torch.float32 in a.get_device_capability()["supported_dtypes"]
    a.set_device_index("cuda:1")
    try:
        assert a.current_device_index() == 1
        with a.device_index(0):
            assert torch.cuda.current_device() == 0
        with a.device_index("mps:0"), a.device_index(None):
            assert torch.cuda.current_device() == 1
    finally:
        a.set_device_index(0)
    a.empty_cache()
    a.empty_host_cache()
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        a.synchronize("cpu")
    with pytest.raises(RuntimeError, match="rocm is not available: "):
        a.synchronize("rocm:0")


def test_without_any_accelerator_the_error_tells_the_reason_for_each_kind():
    with torch.virtual("cuda", count=0), torch.virtual("mps", count=0), torch.virtual("xpu", count=0):
        a = torch.accelerator
        if a.is_available():
            return  # this machine has a real one
        with pytest.raises(RuntimeError, match="(?s)Cannot access accelerator device when none is available.*cuda: .*mps: "):
            a.current_device_index()
        assert a.device_count() == 0 and a.current_accelerator() is None and a.kinds() == a.devices() == []


def test_what_only_a_vendor_has_is_absent_with_a_reason():
    for space, name, reason in (
        (torch.cuda, "export_dot", "CUDA's own graphs"), (torch.cuda, "cudart", "CUDA's runtime"), (torch.cuda, "temperature", "nvidia-smi"),
        (torch.cuda, "MemPool", "allocators can't be replaced"),
        (torch.mps, "load_metallib", "compile_shader"),
    ):  # fmt: skip
        assert not hasattr(space, name)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{reason}"):
            getattr(space, name)
    with pytest.raises(AttributeError, match="module 'torch.mps' has no attribute 'nothing_of_the_kind'$"):
        torch.mps.nothing_of_the_kind  # noqa: B018


def test_small_questions_have_plain_answers():
    assert torch.cuda.is_current_stream_capturing() is False
    assert torch.cuda.get_allocator_backend() == "native" and torch.cuda.get_gencode_flags() == ""
    assert len(torch.cuda.default_generators) == torch.cuda.device_count() == 2
    assert issubclass(torch.cuda.AcceleratorError, RuntimeError)
    before = torch.backends.cudnn.set_flags(_benchmark=True)
    assert torch.backends.cudnn.benchmark is True and before[1] is False
    torch.backends.cudnn.set_flags(_benchmark=False)
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    assert torch.backends.mps.get_name() and torch.backends.mps.get_core_count() >= 0
    assert torch.backends.mps.is_macos13_or_newer() in (True, False)
    assert torch.mps.Stream("mps:0").device == torch.device("mps:0")


def test_the_default_device_is_where_tensors_are_made_that_name_none():
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("cuda:1")
    try:
        assert str(torch.get_default_device()) == "cuda:1"
        made = [torch.ones(2), torch.tensor([1.0]), torch.arange(3), torch.rand(2), torch.nn.Linear(2, 2).weight, torch.eye(2)]
        assert {str(t.device) for t in made} == {"cuda:1"}
        assert str(torch.ones(1, device="cpu").device) == "cpu"
        assert str(torch.ones_like(torch.ones(1, device="mps")).device) == "mps:0"
        with torch.device("mps"):
            assert str(torch.zeros(1).device) == "mps:0"
            with torch.device("cpu"):
                assert str(torch.zeros(1).device) == "cpu"
        assert str(torch.zeros(1).device) == "cuda:1"
    finally:
        torch.set_default_device(None)
    assert str(torch.zeros(1).device) == "cpu"
    with pytest.raises(RuntimeError, match="rocm"):
        torch.set_default_device("rocm:3")
    assert str(torch.zeros(1).device) == "cpu"
