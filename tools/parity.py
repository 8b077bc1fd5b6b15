"""Generates docs/cpp-parity.md: the C++ name of each public name in Python's namespaces, or the reason why there is none.

    python -m tools.parity            writes the page
    python -m tools.parity --check    checks whether it is up to date (as tests/python/project/test_parity.py does)

Names are looked up in the headers listed in the namespace's row; names that are spelled differently or are missing for a reason are in a table
below.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from importlib import import_module

from tools import parity_core
from tools.pages import ROOT, write_page

PAGE = ROOT / "docs" / "cpp-parity.md"

# Python namespace: (C++ namespace, headers).
NAMESPACES = {
    "": ("naru", ["*"]),
    "Tensor": ("naru::Tensor", ["tensor", "tensor_methods", "function_methods"]),
    "autograd": ("naru::autograd", ["autograd"]),
    "autograd.functional": ("naru::autograd", ["autograd/derivatives"]),
    "nn": ("naru::nn", ["nn"]),
    "nn.functional": ("naru::nn::functional", ["nn/functional", "nn/transformer"]),
    "nn.init": ("naru::nn::init", ["nn/init"]),
    "nn.utils": ("naru::nn::utils", ["nn/utils"]),
    "nn.utils.rnn": ("naru::nn::utils::rnn", ["nn/recurrent", "nn/utils"]),
    "optim": ("naru::optim", ["optim"]),
    "optim.lr_scheduler": ("naru::optim", ["optim/lr_scheduler"]),
    "utils.data": ("naru::data", ["data"]),
    "fft": ("naru::fft", ["ops/fft"]),
    "linalg": ("naru::linalg", ["ops/linalg"]),
    "sparse": ("naru::sparse", ["ops/sparse"]),
    "masked": ("naru::masked", ["ops/masked"]),
    "special": ("naru::special", ["ops/special", "ops/aliases"]),
    "signal.windows": ("naru::signal::windows", ["ops/signal"]),
    "accelerator": ("naru", ["device"]),
    "cuda": ("naru", ["device", "random"]),
}
# Names that these modules import for their own use.
HELPERS = {
    "accelerator": {"current_kind", "device_index", "kinds", "KINDS", "to_device", "devices"},
    "cuda": {"device_of", "to_device"}
    | {f"{kind}Tensor" for kind in "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()},  # legacy types, created on first access
}

PARAMETER = "a Tensor that `Module::register_parameter` has made a parameter: C++ needs no class for it"
LAZY = "a Tensor without elements, until the module has been called"
DEPRECATED = "an old name that PyTorch warns of"
PICKLED = "worker processes are Python's; C++'s workers are threads, which share the data set"

PROPERTY = "replaces an attribute of a class by what a function gives; C++'s members are fixed: compute the value in forward()"
BY_HOOK = "sets a member before each call; C++'s members are fixed: compute the value in forward()"
EVALUATED = "clone() the layer and give it what the function of weights gives"

CURRENT = "naru::Stream::current"
RESET_PEAK = "naru::reset_peak_memory_stats"
NO_CACHE = "says nothing in Python, either: there is no such cache"
DRIVER = "what NVIDIA's compiler was told; kernels are compiled at run time"
GENERATOR = "one generator draws for all devices"
LAZY_START = "devices start at their first use"

# (namespace, name): the C++ name, or None and the reason.
SPELT = {
    **{("", name): row for name, row in parity_core.FUNCTIONS.items()},
    **{("Tensor", name): row for name, row in parity_core.METHODS.items()},
    ("linalg", "diagonal"): ("naru::Tensor::diagonal", "a method"),
    ("linalg", "LinAlgError"): ("naru::LinAlgError", ""),
    ("linalg", "matmul"): ("naru::matmul", ""),
    ("autograd", "Variable"): (None, "the old wrapper: a Tensor is one"),
    ("nn", "SyncBatchNorm"): ("naru::nn::BatchNorm2d", "and the like: there is one process"),
    ("nn", "RNNBase"): ("naru::nn::RecurrentBase", ""),
    ("nn", "RNNCellBase"): ("naru::nn::RecurrentCell", ""),
    ("autograd", "backward"): ("naru::backward", ""),
    ("autograd", "grad"): ("naru::grad", ""),
    ("autograd", "enable_grad"): ("naru::EnableGrad", "a guard"),
    ("autograd", "no_grad"): ("naru::NoGrad", "a guard"),
    ("autograd", "inference_mode"): ("naru::InferenceMode", "a guard"),
    ("autograd", "set_grad_enabled"): ("naru::set_grad_enabled", ""),
    ("autograd", "set_multithreading_enabled"): (None, "says nothing in Python, either: backward runs on the calling thread"),
    ("autograd", "set_detect_anomaly"): ("naru::set_detect_anomaly", ""),
    ("autograd", "detect_anomaly"): ("naru::DetectAnomaly", "a guard"),
    ("autograd", "function"): ("naru/autograd/function.h", "a module of Python's"),
    ("autograd", "functional"): ("naru/autograd/derivatives.h", "a module of Python's"),
    ("nn", "Parameter"): (None, PARAMETER),
    ("nn", "Buffer"): (None, "a Tensor that `Module::register_buffer` was given"),
    ("nn", "UninitializedParameter"): (None, LAZY),
    ("nn", "UninitializedBuffer"): (None, LAZY),
    ("nn", "LinearCrossEntropyOptions"): ("naru::nn::functional::LinearCrossEntropyOptions", "C++'s are the arguments; logits are made all at once"),
    ("nn", "NLLLoss2d"): ("naru::nn::NLLLoss", DEPRECATED),
    ("nn.functional", "upsample"): ("naru::nn::functional::interpolate", DEPRECATED),
    ("nn.functional", "upsample_nearest"): ("naru::nn::functional::interpolate", DEPRECATED),
    ("nn.functional", "upsample_bilinear"): ("naru::nn::functional::interpolate", DEPRECATED),
    ("nn.functional", "native_channel_shuffle"): ("naru::nn::functional::channel_shuffle", "another name of it"),
    ("nn.utils", "clip_grad_norm"): ("naru::nn::utils::clip_grad_norm_", DEPRECATED),
    ("nn.utils", "rnn"): ("naru::nn::utils::rnn", "a namespace"),
    ("nn.utils", "parametrizations"): (None, PROPERTY),
    ("nn.utils", "parametrize"): (None, PROPERTY),
    ("nn.utils", "prune"): (None, BY_HOOK),
    ("nn.utils", "weight_norm"): (None, BY_HOOK),
    ("nn.utils", "remove_weight_norm"): (None, BY_HOOK),
    ("nn.utils", "spectral_norm"): (None, BY_HOOK),
    ("nn.utils", "remove_spectral_norm"): (None, BY_HOOK),
    ("nn.utils", "stateless"): (None, "puts other tensors into a module's members for one call; C++'s forward() can take them as arguments"),
    ("nn.utils", "skip_init"): (None, "C++'s constructors draw their parameters; load_state_dict() or copy_() write over them"),
    ("nn.utils", "fuse_conv_bn_eval"): ("naru::nn::utils::fuse_conv_bn_weights", EVALUATED),
    ("nn.utils", "fuse_linear_bn_eval"): ("naru::nn::utils::fuse_linear_bn_weights", EVALUATED),
    ("nn.utils", "convert_conv2d_weight_memory_format"): ("naru::Tensor::contiguous", "of each weight, in a memory format"),
    ("nn.utils", "convert_conv3d_weight_memory_format"): ("naru::Tensor::contiguous", "of each weight, in a memory format"),
    ("optim", "swa_utils"): ("naru/optim/averaged_model.h", "a module of Python's"),
    ("optim", "lr_scheduler"): ("naru/optim/lr_scheduler.h", "a module of Python's"),
    ("optim", "optimizer"): ("naru/optim.h", "a module of Python's"),
    ("utils.data", "default_convert"): (None, "NumPy's arrays and Python's containers become tensors; C++'s samples are tensors"),
    ("utils.data", "get_worker_info"): (None, PICKLED),
    ("utils.data", "Sampler"): ("naru::data::Sampler", ""),
    ("sparse", "check_sparse_tensor_invariants"): (None, "a switch of Python's: C++'s constructors of sparse tensors look at their parts, always"),
    ("sparse", "as_sparse_gradcheck"): ("naru::gradcheck", "of a function of the values"),
    ("sparse", "spdiags"): ("naru::sparse_coo_tensor", "of the diagonals' places"),
    ("accelerator", "current_accelerator"): ("naru::best_device", ""),
    ("accelerator", "current_device_index"): ("naru::current_device", ""),
    ("accelerator", "current_device_idx"): ("naru::current_device", DEPRECATED),
    ("accelerator", "set_device_index"): ("naru::set_device", ""),
    ("accelerator", "set_device_idx"): ("naru::set_device", DEPRECATED),
    ("accelerator", "current_stream"): (CURRENT, ""),
    ("accelerator", "set_stream"): ("naru::set_current_stream", ""),
    ("accelerator", "get_memory_info"): ("naru::mem_get_info", ""),
    ("accelerator", "get_device_capability"): ("naru::get_device_properties", "float64, float16, bfloat16"),
    ("accelerator", "empty_host_cache"): ("naru::empty_cache", "of Device(\"cpu\")"),
    ("cuda", "AcceleratorError"): ("naru::RuntimeError", ""),
    ("cuda", "OutOfMemoryError"): ("naru::OutOfMemoryError", ""),
    ("cuda", "CUDAGraph"): ("naru::Graph", ""),
    ("cuda", "StreamContext"): ("naru::StreamGuard", "a guard"),
    ("cuda", "stream"): ("naru::StreamGuard", "a guard"),
    ("cuda", "device"): ("naru::DeviceGuard", "a guard"),
    ("cuda", "can_device_access_peer"): ("naru::can_access_peer", ""),
    ("cuda", "current_stream"): (CURRENT, ""),
    ("cuda", "default_stream"): ("naru::Stream::default_stream", ""),
    ("cuda", "set_stream"): ("naru::set_current_stream", ""),
    ("cuda", "device_memory_used"): ("naru::memory_stats", "\"driver_used_bytes\""),
    ("cuda", "get_allocator_backend"): (None, "there is one allocator"),
    ("cuda", "get_arch_list"): (None, DRIVER),
    ("cuda", "get_gencode_flags"): (None, DRIVER),
    ("cuda", "get_device_capability"): ("naru::get_device_properties", "major, minor"),
    ("cuda", "get_device_name"): ("naru::device_name", ""),
    ("cuda", "get_per_process_memory_fraction"): ("naru::memory_stats", "\"limit_bytes\""),
    ("cuda", "get_rng_state"): ("naru::default_generator", GENERATOR),
    ("cuda", "get_rng_state_all"): ("naru::default_generator", GENERATOR),
    ("cuda", "set_rng_state"): ("naru::default_generator", GENERATOR),
    ("cuda", "set_rng_state_all"): ("naru::default_generator", GENERATOR),
    ("cuda", "initial_seed"): ("naru::default_generator", GENERATOR),
    ("cuda", "seed"): ("naru::default_generator", GENERATOR),
    ("cuda", "seed_all"): ("naru::default_generator", GENERATOR),
    ("cuda", "manual_seed_all"): ("naru::manual_seed", GENERATOR),
    ("cuda", "get_sync_debug_mode"): ("naru::sync_mode", ""),
    ("cuda", "set_sync_debug_mode"): ("naru::set_sync_mode", ""),
    ("cuda", "graph"): ("naru::Graph", "its capture is a member"),
    ("cuda", "graph_pool_handle"): (None, "graphs have no pools: they hold their tensors"),
    ("cuda", "is_current_stream_capturing"): ("naru::is_capturing", ""),
    ("cuda", "has_half"): ("naru::get_device_properties", "float16"),
    ("cuda", "has_magma"): (None, "a library of PyTorch's"),
    ("cuda", "init"): (None, LAZY_START),
    ("cuda", "is_initialized"): (None, LAZY_START),
    ("cuda", "ipc_collect"): (None, NO_CACHE),
    ("cuda", "is_bf16_supported"): ("naru::get_device_properties", "bfloat16"),
    ("cuda", "is_tf32_supported"): ("naru::allow_tf32", "whether it may be used; devices without it compute in float32"),
    ("cuda", "make_graphed_callables"): (None, "a module's calls are made by Python; naru::Graph captures C++'s"),
    ("cuda", "max_memory_cached"): ("naru::max_memory_reserved", DEPRECATED),
    ("cuda", "memory_cached"): ("naru::memory_reserved", DEPRECATED),
    ("cuda", "memory_stats_as_nested_dict"): ("naru::memory_stats", "names with dots in them"),
    ("cuda", "reset_max_memory_allocated"): (RESET_PEAK, DEPRECATED),
    ("cuda", "reset_max_memory_cached"): (RESET_PEAK, DEPRECATED),
}


def public_names(namespace: str) -> list[str]:
    """The names that `from naru.<namespace> import *` imports or would import; for naru itself its functions, for Tensor its methods and
    attributes."""
    if namespace in ("", "Tensor"):
        naru = import_module("naru")
        owner = naru.Tensor if namespace else naru
        names = [n for n in dir(owner) if not n.startswith("_")]
        if not namespace:
            names = [n for n in names if callable(getattr(naru, n)) and not inspect.isclass(getattr(naru, n))]
        return sorted(names, key=str.lower)
    module = import_module("naru." + namespace)
    names = getattr(module, "__all__", None)
    if names is None or namespace == "nn":
        no_part = HELPERS.get(namespace, set()) | {"annotations", "TYPE_CHECKING", "Tensor", "Any", "Sequence", "takes_tensors", "Callable"}
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and not inspect.ismodule(value) and name not in no_part
        ]
    return sorted(names, key=str.lower)


@cache
def texts(headers: tuple[str, ...]) -> str:
    """The text of the headers or method tables with these names, and of those in folders with these names."""
    folder = ROOT / "include" / "naru"
    paths = sorted(folder.rglob("*.h")) if headers == ("*",) else [p for h in headers for p in sorted([*folder.glob(f"{h}.*"), *folder.glob(f"{h}/*")])]
    return "\n".join(p.read_text() for p in paths)


@cache
def operators() -> frozenset[str]:
    """The names in the elementwise table: functions of naru, and methods of Tensor, also in place."""
    names = re.findall(r"NARU_OP\d\((\w+),", (ROOT / "include" / "naru" / "elementwise.inc").read_text())
    return frozenset((*names, *(f"{n}_" for n in names)))


# A class, a using that names a type or a function, and a function, at the beginning of a line.
DECLARATIONS = (r"\b(?:class|struct) (\w+)", r"\busing (\w+) =", r"\busing (?:\w+::)+(\w+);", r"^(?=[\w:&<>,* ]*[\s&*](\w+)\()")


@cache
def declared(headers: tuple[str, ...]) -> frozenset[str]:
    """The names that the headers declare: classes, aliases, usings and functions."""
    return frozenset(name for pattern in DECLARATIONS for name in re.findall(pattern, texts(headers), re.M))


def spelt_alike(namespace: str, name: str) -> tuple[str | None, str]:
    """The C++ spelling of a Python name, and a remark; None if there is none."""
    prefix, headers = NAMESPACES[namespace]
    if name in declared(tuple(headers)) or (namespace in ("", "Tensor") and name in operators() and not (name.endswith("_") and not namespace)):
        return f"{prefix}::{name}", ""
    if namespace == "" and spelt_alike("Tensor", name)[0]:
        return f"naru::Tensor::{name}", "a method"
    return None, ""


def rows(namespace: str) -> list[tuple[str, str | None, str]]:
    """Returns (name, C++ name or None, remark or reason) for each public name; None without a reason is a gap."""
    prefix, _ = NAMESPACES[namespace]
    found = []
    for name in public_names(namespace):
        if (namespace, name) in SPELT:
            found.append((name, *SPELT[namespace, name]))
        elif namespace == "nn.init" and not name.endswith("_") and name != "calculate_gain":
            found.append((name, f"{prefix}::{name}_", DEPRECATED))
        else:
            found.append((name, *spelt_alike(namespace, name)))
    return found


def holes() -> list[str]:
    """Names with neither a C++ name nor a reason."""
    return [f"{namespace}.{name}" for namespace in NAMESPACES for name, other, why in rows(namespace) if other is None and not why]


def page() -> str:
    """Returns the page's text."""
    out = [
        "# Python's names in C++",
        "",
        "Made by `python -m tools.parity`; `tests/python/project/test_parity.py` keeps it up to date. Each public name of these namespaces has a C++ one, or a reason why not.",
        "Of `naru` itself and of `Tensor` those are listed that C++ spells otherwise.",
        "",
    ]
    for namespace in NAMESPACES:
        table = rows(namespace)
        there = sum(other is not None for _, other, _ in table)
        out += [f"## {'naru.' + namespace if namespace else 'naru'}: {there} of {len(table)}", "", "| Python | C++ | |", "|---|---|---|"]
        for name, other, why in table:
            if namespace in ("", "Tensor") and other == f"{NAMESPACES[namespace][0]}::{name}":
                continue
            out.append(f"| `{name}` | {f'`{other}`' if other else '–'} | {why} |")
        out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(write_page("parity", PAGE, page, lambda: f"; without a C++ name or a reason: {', '.join(holes()) or 'none'}"))
