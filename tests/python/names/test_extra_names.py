"""Public names that naru has and PyTorch 2.15 has not: these, and no others. (PyTorch's names are in naru/_missing/names.txt.)"""
import types

import naru
import pytest
from naru import _missing

DEVICES = """DeviceLostError DeviceUnavailableError best_device count_syncs current_device device_count device_name devices empty_cache forbid_sync graph
    is_available make_graphed_callables max_memory_allocated max_memory_reserved memory_allocated memory_history memory_reserved pick
    reset_peak_memory_stats set_device set_memory_limit synchronize total_memory virtual why_unavailable""".split()
SWITCHES = "isa_name matmul_libraries set_fusion set_isa set_jit set_matmul_libraries".split()
TOOLS = "HookHandle as_torch kernel load_ipython_extension unload_ipython_extension fork_rng get_printoptions".split()
EXTRA = {*DEVICES, *SWITCHES, *TOOLS}
UNLISTED = {"StorageBase", "set_grad_enabled"}  # PyTorch has them there, from modules that the list leaves out


def names_of(module):
    """Functions and classes of naru that are public in a module."""
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, types.ModuleType) and getattr(value, "__module__", "").startswith(("naru", "torch")):
            yield name


def test_the_top_has_pytorchs_names_and_these():
    assert {n for n in names_of(naru) if n not in _missing.names()[""]} == EXTRA | UNLISTED


@pytest.mark.parametrize("name", ["gelu", "relu6", "silu", "elu", "leaky_relu", "mse_loss", "cross_entropy", "one_hot", "linear", "sign_", "put_"])
def test_what_pytorch_has_in_other_places_is_not_at_the_top(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(naru, name)
    assert name.endswith("_") and hasattr(naru.Tensor, name) or hasattr(naru.nn.functional, name)
