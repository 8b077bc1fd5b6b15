"""naru: tensors and neural networks, on explicit devices. PyTorch's names, PyTorch's semantics.

>>> import naru as torch
>>> x = torch.ones(2, 3, requires_grad=True)
>>> (x * 2).sum().backward()
>>> x.grad
tensor([[2., 2., 2.],
        [2., 2., 2.]])

PYTEST_DONT_REWRITE: `naru run -m pytest` imports this module before pytest can rewrite its asserts; without the mark pytest warns.
"""

from __future__ import annotations

from math import e as e, inf as inf, nan as nan, pi as pi
from typing import TYPE_CHECKING, Any

from . import _C
from ._compat import placeholders as _placeholders
from ._C import *  # includes `float`, `int`, `bool`, `abs` ..., which shadow the built-ins in this file
from .torch_version import __version__ as __version__

if TYPE_CHECKING:
    from . import (
        accelerator as accelerator,
        amp as amp,
        array_api as array_api,
        autograd as autograd,
        backends as backends,
        compiler as compiler,
        cpu as cpu,
        cuda as cuda,
        distributed as distributed,
        distributions as distributions,
        fallback as fallback,
        fft as fft,
        func as func,
        futures as futures,
        hub as hub,
        jit as jit,
        linalg as linalg,
        masked as masked,
        mps as mps,
        multiprocessing as multiprocessing,
        nested as nested,
        nn as nn,
        optim as optim,
        overrides as overrides,
        profiler as profiler,
        quasirandom as quasirandom,
        random as random,
        safetensors as safetensors,
        serialization as serialization,
        signal as signal,
        sparse as sparse,
        special as special,
        testing as testing,
        torch_version as torch_version,
        utils as utils,
        version as version,
        vision as vision,
        xpu as xpu,
    )
    from ._device.choice import best_device as best_device, pick as pick
    from ._device.sync import count_syncs as count_syncs, forbid_sync as forbid_sync
    from ._device.virtual import virtual as virtual
    from ._device.history import memory_history as memory_history
    from ._functions.alias import as_torch as as_torch
    from ._functions.determinism import (
        get_deterministic_debug_mode as get_deterministic_debug_mode,
        is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
        set_deterministic_debug_mode as set_deterministic_debug_mode,
        use_deterministic_algorithms as use_deterministic_algorithms,
    )
    from ._functions.dtype_limits import finfo as finfo, iinfo as iinfo
    from ._functions.einsum import einsum as einsum
    from ._functions.kernel import kernel as kernel
    from ._compat.functions import (
        compiled_with_cxx11_abi as compiled_with_cxx11_abi,
        cond as cond,
        ctc_loss as ctc_loss,
        dsmm as dsmm,
        embedding_bag as embedding_bag,
        embedding_renorm_ as embedding_renorm_,
        from_file as from_file,
        get_num_interop_threads as get_num_interop_threads,
        hsmm as hsmm,
        hspmm as hspmm,
        is_distributed as is_distributed,
        is_vulkan_available as is_vulkan_available,
        is_warn_always_enabled as is_warn_always_enabled,
        native_dropout as native_dropout,
        saddmm as saddmm,
        set_anomaly_enabled as set_anomaly_enabled,
        set_num_interop_threads as set_num_interop_threads,
        set_warn_always as set_warn_always,
        slice_copy as slice_copy,
        smm as smm,
        sspaddmm as sspaddmm,
        sym_ite as sym_ite,
        sym_sqrt as sym_sqrt,
        sym_sum as sym_sum,
        while_loop as while_loop,
    )
    from ._compat.core_names import DeviceObjType as DeviceObjType, StorageBase as StorageBase
    from ._compat.losses import (
        binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
        cosine_embedding_loss as cosine_embedding_loss,
        hinge_embedding_loss as hinge_embedding_loss,
        kl_div as kl_div,
        margin_ranking_loss as margin_ranking_loss,
        poisson_nll_loss as poisson_nll_loss,
        triplet_margin_loss as triplet_margin_loss,
    )
    from .futures import Future as Future
    from ._functions.printing import set_printoptions as set_printoptions
    from ._functions.linear_algebra import (
        chain_matmul as chain_matmul,
        cholesky as cholesky,
        eig as eig,
        lobpcg as lobpcg,
        lstsq as lstsq,
        lu as lu,
        matrix_rank as matrix_rank,
        pca_lowrank as pca_lowrank,
        qr as qr,
        solve as solve,
        svd_lowrank as svd_lowrank,
        symeig as symeig,
    )
    from ._notebook.extension import load_ipython_extension as load_ipython_extension, unload_ipython_extension as unload_ipython_extension
    from .amp import GradScaler as GradScaler
    from .amp.autocast_mode import autocast as autocast
    from .autograd.grad_mode import enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad, set_grad_enabled as set_grad_enabled
    from .backends._precision import (
        get_float32_matmul_precision as get_float32_matmul_precision,
        set_float32_matmul_precision as set_float32_matmul_precision,
    )
    from .functional import (
        as_strided_ as as_strided_,
        as_strided_copy as as_strided_copy,
        atleast_1d as atleast_1d,
        atleast_2d as atleast_2d,
        atleast_3d as atleast_3d,
        block_diag as block_diag,
        ccol_indices_copy as ccol_indices_copy,
        col_indices_copy as col_indices_copy,
        crow_indices_copy as crow_indices_copy,
        indices_copy as indices_copy,
        row_indices_copy as row_indices_copy,
        values_copy as values_copy,
        broadcast_shapes as broadcast_shapes,
        cartesian_prod as cartesian_prod,
        compile as compile,
        detach_ as detach_,
        detach_copy as detach_copy,
        diagonal_copy as diagonal_copy,
        expand_copy as expand_copy,
        get_autocast_cpu_dtype as get_autocast_cpu_dtype,
        get_autocast_gpu_dtype as get_autocast_gpu_dtype,
        get_device as get_device,
        gru as gru,
        histogramdd as histogramdd,
        index_put_ as index_put_,
        is_storage as is_storage,
        is_tensor as is_tensor,
        lstm as lstm,
        permute_copy as permute_copy,
        resize_as_ as resize_as_,
        rnn_relu as rnn_relu,
        rnn_tanh as rnn_tanh,
        round_ as round_,
        select_copy as select_copy,
        set_autocast_cpu_dtype as set_autocast_cpu_dtype,
        set_autocast_gpu_dtype as set_autocast_gpu_dtype,
        set_default_tensor_type as set_default_tensor_type,
        set_flush_denormal as set_flush_denormal,
        split_copy as split_copy,
        split_with_sizes_copy as split_with_sizes_copy,
        squeeze_copy as squeeze_copy,
        t_copy as t_copy,
        tensordot as tensordot,
        transpose_copy as transpose_copy,
        typename as typename,
        unbind_copy as unbind_copy,
        unfold_copy as unfold_copy,
        unsqueeze_copy as unsqueeze_copy,
        view_copy as view_copy,
        xlogy_ as xlogy_,
    )
    from .random import (
        fork_rng as fork_rng,
        get_rng_state as get_rng_state,
        initial_seed as initial_seed,
        manual_seed as manual_seed,
        seed as seed,
        set_rng_state as set_rng_state,
    )
    from .serialization import load as load, save as save
    from .func import vmap as vmap
    from .graphs import Graph as Graph, graph as graph, make_graphed_callables as make_graphed_callables
    from ._sparse_tensors import (
        sparse_bsc_tensor as sparse_bsc_tensor,
        sparse_bsr_tensor as sparse_bsr_tensor,
        sparse_compressed_tensor as sparse_compressed_tensor,
        sparse_coo_tensor as sparse_coo_tensor,
        sparse_csc_tensor as sparse_csc_tensor,
        sparse_csr_tensor as sparse_csr_tensor,
    )
    from .streams import Event as Event, Stream as Stream
    from .utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack
    from ._compat.native import (
        alpha_dropout as alpha_dropout,
        alpha_dropout_ as alpha_dropout_,
        celu as celu,
        celu_ as celu_,
        constant_pad_nd as constant_pad_nd,
        dropout_ as dropout_,
        empty_permuted as empty_permuted,
        feature_alpha_dropout as feature_alpha_dropout,
        feature_alpha_dropout_ as feature_alpha_dropout_,
        feature_dropout as feature_dropout,
        feature_dropout_ as feature_dropout_,
        grid_sampler as grid_sampler,
        grid_sampler_2d as grid_sampler_2d,
        grid_sampler_3d as grid_sampler_3d,
        hardshrink as hardshrink,
        hash_tensor as hash_tensor,
        native_batch_norm as native_batch_norm,
        native_channel_shuffle as native_channel_shuffle,
        native_group_norm as native_group_norm,
        native_layer_norm as native_layer_norm,
        pairwise_distance as pairwise_distance,
        rms_norm as rms_norm,
        selu as selu,
        selu_ as selu_,
        threshold_ as threshold_,
    )
    from .functional import (
        alias_copy as alias_copy,
        view_as_complex_copy as view_as_complex_copy,
        view_as_real_copy as view_as_real_copy,
    )
    from ._compat.absent_types import (
        bcomplex32 as bcomplex32, bit as bit, bits16 as bits16, bits1x8 as bits1x8, bits2x4 as bits2x4, bits4x2 as bits4x2, bits8 as bits8,
        float4_e2m1fn_x2 as float4_e2m1fn_x2, int1 as int1, int2 as int2,
        int3 as int3, int4 as int4, int5 as int5, int6 as int6, int7 as int7, qint32 as qint32, qint8 as qint8, quint2x4 as quint2x4,
        quint4x2 as quint4x2, quint8 as quint8, uint1 as uint1, uint2 as uint2, uint3 as uint3, uint4 as uint4, uint5 as uint5,
        uint6 as uint6, uint7 as uint7,
    )
    from ._compat.checks import (
        PyTorchFileReader as PyTorchFileReader,
        SymBool as SymBool,
        SymFloat as SymFloat,
        SymInt as SymInt,
        get_device_module as get_device_module,
        sym_float as sym_float,
        sym_int as sym_int,
        sym_max as sym_max,
        sym_min as sym_min,
        sym_not as sym_not,
    )
    from .jit import ScriptModule as ScriptModule
    from ._old_types import *  # FloatTensor, FloatStorage ...

if getattr(_C.Tensor, "__module__", "").split(".")[0] == "naru":
    from . import _tensor

    _tensor.install()
    del _tensor

newaxis = None


def _point_to_wheels() -> None:
    """Gives the core the folders of wheels that ship libraries (scipy-openblas32, NVIDIA's); a library is opened when first needed."""
    import sys

    _C._set_package_folders("\n".join(folder for folder in sys.path if folder and "\n" not in folder))


_point_to_wheels()
del _point_to_wheels


def _tell_top() -> None:
    """With NARU_TOP=1, the process reports its resource use to `naru top`."""
    from os import environ

    if environ.get("NARU_TOP", "0") not in ("", "0"):
        from ._command.publish import start

        start()


_tell_top()
del _tell_top

# Imported on first access: `import naru` stays fast.
_SUBMODULES = frozenset(
    "accelerator array_api autograd backends cpu cuda fallback functional mps nn optim random serialization testing torch_version utils version "
    "amp fft linalg safetensors signal sparse special vision xpu _utils compiler distributions func hub jit masked multiprocessing overrides "
    "profiler _dynamo _inductor __config__ __future__ distributed futures fx onnx library ops classes return_types storage types mtia nested quasirandom "
    "_functorch _guards _higher_order_ops _ops _subclasses _tensor_str".split()  # placeholders
)
_LAZY = {
    **dict.fromkeys(("finfo", "iinfo"), "_functions.dtype_limits"),
    **dict.fromkeys(
        (
            "use_deterministic_algorithms", "is_deterministic_algorithms_warn_only_enabled",
            "set_deterministic_debug_mode", "get_deterministic_debug_mode",
        ),
        "_functions.determinism",
    ),
    **dict.fromkeys(("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"), "autograd.grad_mode"),
    **dict.fromkeys(("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "fork_rng"), "random"),
    **dict.fromkeys(("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"), "amp._scaling"),
    **dict.fromkeys(("save", "load"), "serialization"),
    **dict.fromkeys(("set_float32_matmul_precision", "get_float32_matmul_precision"), "backends._precision"),
    **dict.fromkeys(
        ("lu", "chain_matmul", "svd_lowrank", "pca_lowrank", "lobpcg", "cholesky", "eig", "lstsq", "matrix_rank", "qr", "solve", "symeig"),
        "_functions.linear_algebra",
    ),
    **dict.fromkeys(
        (
            "rms_norm", "pairwise_distance", "hardshrink", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_",
            "feature_alpha_dropout", "feature_alpha_dropout_", "celu", "celu_", "selu", "selu_", "threshold_", "constant_pad_nd", "grid_sampler",
            "grid_sampler_2d", "grid_sampler_3d", "native_layer_norm", "native_group_norm", "native_batch_norm", "native_channel_shuffle",
            "empty_permuted", "hash_tensor",
        ),
        "_compat.native",
    ),
    **dict.fromkeys(
        (
            "_check", "_check_with", "_check_value", "_check_type", "_check_index", "_check_not_implemented", "_check_is_size",
            "_check_tensor_all", "_check_tensor_all_with", "_assert", "_assert_async", "_softmax_backward_data", "get_device_module",
            "_has_compatible_shallow_copy_type", "sym_float", "sym_int", "sym_max", "sym_min", "sym_not", "SymInt", "SymFloat", "SymBool", "PyTorchFileReader",
        ),
        "_compat.checks",
    ),
    **dict.fromkeys(
        """bcomplex32 bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 int1 int2 int3 int4 int5 int6 int7
        qint32 qint8 quint2x4 quint4x2 quint8 uint1 uint2 uint3 uint4 uint5 uint6 uint7""".split(),
        "_compat.absent_types",
    ),
    **dict.fromkeys(
        (
            "cond", "while_loop", "get_num_interop_threads", "set_num_interop_threads", "set_warn_always", "is_warn_always_enabled",
            "set_anomaly_enabled", "compiled_with_cxx11_abi", "is_vulkan_available", "is_distributed", "sym_sum", "sym_ite", "sym_sqrt",
            "from_file", "ctc_loss", "native_dropout", "embedding_renorm_", "embedding_bag", "slice_copy", "smm", "sspaddmm", "saddmm", "dsmm", "hsmm",
            "hspmm",
        ),
        "_compat.functions",
    ),
    **dict.fromkeys(
        (
            "binary_cross_entropy_with_logits", "cosine_embedding_loss", "hinge_embedding_loss", "kl_div", "margin_ranking_loss",
            "poisson_nll_loss", "triplet_margin_loss",
        ),
        "_compat.losses",
    ),
    **dict.fromkeys(("_int_mm", "_scaled_mm", "_segment_reduce", "_standard_gamma"), "_C"),
    "autocast": "amp.autocast_mode",
    "GradScaler": "amp",
    "ScriptModule": "jit",
    **dict.fromkeys(
        ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor", "sparse_compressed_tensor")
        + tuple(f"_validate_sparse_{kind}_tensor_args" for kind in ("coo", "compressed", "csr", "csc", "bsr", "bsc")),
        "_sparse_tensors",
    ),
    "vmap": "func",
    "Future": "futures",
    **dict.fromkeys(("StorageBase", "DeviceObjType"), "_compat.core_names"),
    "einsum": "_functions.einsum",
    "virtual": "_device.virtual",
    "kernel": "_functions.kernel",
    **dict.fromkeys(("best_device", "pick"), "_device.choice"),
    "memory_history": "_device.history",
    "set_printoptions": "_functions.printing",
    "as_torch": "_functions.alias",
    **dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "_notebook.extension"),
    **dict.fromkeys(("from_dlpack", "to_dlpack"), "utils.dlpack"),
    **dict.fromkeys(("Stream", "Event"), "streams"),
    **dict.fromkeys(("Graph", "graph", "make_graphed_callables"), "graphs"),
    **dict.fromkeys(("count_syncs", "forbid_sync"), "_device.sync"),
    **dict.fromkeys(
        (
            "is_tensor", "is_storage", "typename", "compile", "set_default_tensor_type",
            "get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "set_autocast_gpu_dtype", "set_autocast_cpu_dtype",
            "alias_copy", "view_as_real_copy", "view_as_complex_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "permute_copy", "select_copy", "split_copy", "split_with_sizes_copy",
            "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy", "unfold_copy", "unsqueeze_copy", "view_copy",
            "indices_copy", "values_copy", "crow_indices_copy", "col_indices_copy", "ccol_indices_copy", "row_indices_copy",
            "as_strided_", "detach_", "index_put_", "resize_as_", "round_", "xlogy_", "get_device",
            "set_flush_denormal", "lstm", "gru", "rnn_tanh", "rnn_relu", "broadcast_shapes", "block_diag", "cartesian_prod", "histogramdd", "atleast_1d", "atleast_2d", "atleast_3d", "tensordot",
        ),
        "functional",
    ),
}  # fmt: skip
_LEGACY = frozenset(
    "FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor BoolTensor".split()
)


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LAZY:
        value = getattr(importlib.import_module("." + _LAZY[name], __name__), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        try:
            return importlib.import_module("." + name, __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    if name.startswith("_foreach_"):
        from ._compat.foreach import lists

        globals()[name] = found = lists(name)
        return found
    if name in _LEGACY:
        from ._compat.tensor_types import tensor_types

        globals().update(tensor_types("cpu"))
        return globals()[name]
    from ._storage_methods import NAMES, storage_types

    if name in NAMES:
        globals().update(storage_types("cpu"))
        return globals()[name]
    from ._missing import fail, unknown

    fail("", name)
    unknown("", name)


def __dir__() -> list[str]:
    from ._storage_methods import NAMES

    return sorted({*globals(), *_LAZY, *_LEGACY, *NAMES})


def _core_name(name: str) -> Any:
    from ._compat import core_names

    return getattr(core_names, name)


_C.__getattr__ = _core_name  # type: ignore[method-assign]
_placeholders.install()

# Names defined in Python, even if the core has them too.
for _name in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "manual_seed", "finfo", "iinfo", "set_printoptions"):
    globals().pop(_name, None)
for _name in [name for name, module in _LAZY.items() if module == "_compat.losses"]:
    globals().pop(_name, None)
# PyTorch has these in nn.functional or torch.special, or as methods of tensors only.
for _name in """
    absolute_ adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d addbmm_ addmm_ addr_ avg_pool2d avg_pool3d baddbmm_
    binary_cross_entropy bitwise_not_ cross_entropy cumprod_ digamma_ elu elu_ erfinv_ expit gelu gelu_tanh hardsigmoid hardsigmoid_ hardswish
    hardswish_ heaviside_ huber_loss igamma_ igammac_ index_reduce_ isfinite_ isinf_ isnan_ isneginf_ isposinf_ l1_loss leaky_relu leaky_relu_ lgamma_
    linear logical_not_ logsigmoid logsigmoid_ max_pool2d_with_indices max_pool3d_with_indices mish mish_ mse_loss multi_margin_loss
    multilabel_margin_loss mvlgamma_ nextafter_ nll_loss one_hot polygamma_ put_ relu6 relu6_ renorm_ scatter_reduce_ sgn_ sign_ signbit_ silu silu_
    smooth_l1_loss soft_margin_loss softplus softsign softsign_ zeta
""".split():
    globals().pop(_name, None)
# These belong to naru.fft, naru.linalg, naru.signal and naru.special.
for _name in [name for name in globals() if name.startswith(("fft_", "linalg_", "signal_", "special_"))]:
    del globals()[_name]
del _name
