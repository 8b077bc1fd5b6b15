"""Entries of tools/parity.py for naru's functions and Tensor's methods that C++ spells differently or lacks."""

from __future__ import annotations

PYTHON = "Python's own"
COPY = "a clone() of the view"
KEYWORD = "a word of C++'s, or short for what is one"
AUTOCAST = "a block; it knows what was set before"
SETTING = "a field of Precision"
AT_ONCE = "conj() and neg() are computed at once: nothing is left to resolve"
QUANTIZED = "says in Python that there are no quantized tensors"
KIND = "its kind()"
DTYPES = "naru::Tensor::to"
STRIDED = "says in Python that this layout is not there"
NESTED = "nested tensors are Python's, over operators that C++ has"
OLD = "an old name that PyTorch warns of, or has taken away"
PLAIN = "another name of it"
INTERNAL = "what nn.functional's function stands on in PyTorch"
RESULTS = "its other results are what the function computes within"
ONE_OR_TWO = "with its settings spelt out"
PRINT = "naru::print_options"
SYMBOL = "of sizes that are symbols; C++'s are numbers"


def _same(names: str, target: str | None, remark: str) -> dict[str, tuple[str | None, str]]:
    return {name: (target and target.replace("*", name.rstrip("_")), remark) for name in names.split()}


FUNCTIONS: dict[str, tuple[str | None, str]] = {
    "affine_grid_generator": ("naru::nn::functional::affine_grid", PLAIN),
    **_same("alias_copy as_strided_copy ccol_indices_copy col_indices_copy crow_indices_copy row_indices_copy detach_copy diagonal_copy expand_copy indices_copy permute_copy select_copy slice_copy "
            "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy values_copy unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy", "naru::Tensor::clone", COPY),
    **_same("alpha_dropout_ feature_alpha_dropout_", "naru::nn::functional::*", "not in place"),
    "feature_dropout_": ("naru::nn::functional::dropout2d", "not in place"),
    **_same("are_deterministic_algorithms_enabled get_deterministic_debug_mode is_deterministic_algorithms_warn_only_enabled", "naru::deterministic_algorithms", ""),
    "set_deterministic_debug_mode": ("naru::use_deterministic_algorithms", ""),
    **_same("as_tensor asarray", "naru::tensor", "of numbers; from_blob of memory"),
    **_same("from_numpy frombuffer", "naru::from_blob", ""),
    **_same("autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
            "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_dtype "
            "set_autocast_enabled set_autocast_gpu_dtype", "naru::Autocast", AUTOCAST),
    **_same("as_torch compile compiled_with_cxx11_abi is_warn_always_enabled load_ipython_extension set_warn_always unload_ipython_extension is_storage typename get_device_module set_default_tensor_type", None, PYTHON),
    "embedding_renorm_": ("naru::nn::functional::embedding", "with max_norm"),
    "from_file": ("naru::from_blob", "of memory that the program has mapped"),
    **_same("get_num_interop_threads set_num_interop_threads", None, "there is no second pool of threads"),
    **_same("is_distributed is_vulkan_available", None, "no, always"),
    "can_cast": ("naru::category_of", "categories are in order: a type goes to those of its own and of higher ones"),
    "constant_pad_nd": ("naru::nn::functional::pad", PLAIN),
    "empty_permuted": ("naru::empty_strided", "strides say the order"),
    "frobenius_norm": ("naru::linalg::matrix_norm", PLAIN),
    "nuclear_norm": ("naru::linalg::matrix_norm", "\"nuc\""),
    "get_default_device": ("naru::default_device", ""),
    "get_default_dtype": ("naru::default_dtype", ""),
    "get_device": ("naru::Tensor::device", "its index"),
    **_same("get_float32_matmul_precision", "naru::tf32_allowed", SETTING),
    **_same("set_float32_matmul_precision", "naru::allow_tf32", SETTING),
    "get_printoptions": (PRINT, ""),
    "set_printoptions": ("naru::set_print_options", ""),
    **_same("get_rng_state set_rng_state", "naru::default_generator", "offset(), set_state()"),
    **_same("grid_sampler grid_sampler_2d grid_sampler_3d", "naru::nn::functional::grid_sample", PLAIN),
    "hash_tensor": (None, "a checksum by bitwise_xor, in Python"),
    "is_anomaly_enabled": ("naru::anomaly_enabled", ""),
    "is_anomaly_check_nan_enabled": ("naru::anomaly_check_nan_enabled", ""),
    "is_grad_enabled": ("naru::grad_enabled", ""),
    **_same("is_conj is_neg resolve_conj resolve_neg", None, AT_ONCE),
    **_same("isa_name set_isa set_jit set_fusion matmul_libraries set_matmul_libraries", None, "for tests and for `naru doctor`; NARU_ISA and the like in C++ (docs/environment.md)"),
    "kernel": ("naru::Kernel", ""),
    **_same("lobpcg pca_lowrank svd_lowrank", None, "programs over the functions of linalg, in Python"),
    "make_graphed_callables": (None, "a module's calls are made by Python; naru::Graph captures C++'s"),
    "native_batch_norm": ("naru::batch_norm", RESULTS),
    "native_dropout": ("naru::nn::functional::dropout", RESULTS),
    "native_group_norm": ("naru::group_norm", RESULTS),
    "native_layer_norm": ("naru::layer_norm", RESULTS),
    "native_channel_shuffle": ("naru::nn::functional::channel_shuffle", PLAIN),
    **_same("promote_types result_type", "naru::promote", "of tensors' dtypes; an Operand's number counts by its category"),
    "set_anomaly_enabled": ("naru::set_detect_anomaly", ""),
    "set_flush_denormal": (None, "denormals are honoured, always: it says False in Python"),
    **_same("dsmm hsmm hspmm smm spmm", "naru::sparse::mm", PLAIN),
    **_same("saddmm sspaddmm", "naru::sparse::mm", "and a sum"),
    **_same("sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum", None, SYMBOL),
    **_same("symeig", None, OLD),
    "total_memory": ("naru::get_device_properties", "total_memory"),
    "unsafe_chunk": ("naru::chunk", "pieces may be written to in any case"),
    **_same("unsafe_split unsafe_split_with_sizes", "naru::split", "pieces may be written to in any case"),
    "while_loop": (None, "C++'s own while"),
}

METHODS: dict[str, tuple[str | None, str]] = {
    "H": ("naru::matrix_H", ""),
    "T": ("naru::numpy_T", ""),
    **_same("bool byte char short int long half float double bfloat16 chalf cfloat cdouble type", DTYPES, KEYWORD),
    **_same("xpu mps mtia ipu to_device", DTYPES, "a Device"),
    **_same("is_meta is_mps is_xpu is_hpu is_ipu is_maia is_mtia is_vulkan is_xla get_device", "naru::Tensor::device", KIND),
    **_same("numpy tolist", "naru::Tensor::to_doubles", "to_ints, span, accessor, item"),
    **_same("apply_ map_ map2_", "naru::Tensor::accessor", "a loop over the elements"),
    **_same("as_subclass module_load reinforce volatile new", None, PYTHON),
    "grad_dtype": ("naru::Tensor::grad", "its dtype(); it is the tensor's"),
    **_same("is_mkldnn to_mkldnn slice_inverse", None, STRIDED),
    **_same("is_nested to_padded_tensor", None, NESTED),
    **_same("smm sspaddmm", "naru::sparse::mm", "and a sum"),
    **_same("dequantize int_repr is_quantized q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme", None, QUANTIZED),
    **_same("is_conj is_neg resolve_conj resolve_neg", None, AT_ONCE),
    "is_distributed": (None, "says False in Python: tensors live on one device"),
    "const_data_ptr": ("naru::Tensor::data_ptr", ""),
    "dim_order": ("naru::Tensor::strides", "their order"),
    "dropout_": ("naru::dropout_", "a function"),
    **_same("eig lstsq symeig", None, OLD),
    "lu": ("naru::linalg::lu_factor", OLD),
    "solve": ("naru::linalg::solve", OLD),
    "hardshrink": ("naru::nn::functional::hardshrink", "a function"),
    "hash_tensor": (None, "a checksum by bitwise_xor, in Python"),
    "indices": ("naru::sparse_indices", "a function"),
    "values": ("naru::sparse_values", "a function"),
    "to_sparse_coo": ("naru::Tensor::to_sparse", PLAIN),
    **_same("is_sparse is_sparse_csr layout stft istft ccol_indices row_indices to_sparse_csc to_sparse_bsr to_sparse_bsc", "naru::*", "a function"),
    **{name: ("naru::" + name, "a function") for name in ("sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_")},
    "is_set_to": ("naru::Tensor::data_ptr", "with sizes() and strides()"),
    "is_signed": ("naru::is_signed", "of its dtype()"),
    "itemsize": ("naru::Tensor::element_size", PLAIN),
    **_same("ndim ndimension", "naru::Tensor::dim", PLAIN),
    "nelement": ("naru::Tensor::numel", PLAIN),
    "shape": ("naru::Tensor::sizes", PLAIN),
    "new_empty_strided": ("naru::empty_strided", "with options()"),
    "new_tensor": ("naru::tensor", "with options()"),
    "output_nr": ("naru::Tensor::grad_fn", "the node"),
    "record_stream": (None, "does nothing in Python, either: freed memory is handed out when work on it is done"),
    "register_post_accumulate_grad_hook": ("naru::register_post_accumulate_grad_hook", "a function"),
    **_same("resize resize_as", "naru::Tensor::resize_", OLD),
    **_same("storage storage_type untyped_storage", "naru::Tensor::data_ptr", "C++ has no class of storages"),
    **_same("swapaxes_ swapdims_", "naru::Tensor::transpose_", PLAIN),
    "unsafe_chunk": ("naru::Tensor::chunk", "pieces may be written to in any case"),
    **_same("unsafe_split unsafe_split_with_sizes split_with_sizes", "naru::Tensor::split", "pieces may be written to in any case"),
}
