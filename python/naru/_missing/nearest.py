"""The nearest replacements for PyTorch names that naru lacks. The longest matching name counts; entries are worded to complete the message
"torch.X is in PyTorch 2.15 but not in naru yet; nearest: ..."."""

from __future__ import annotations

# The replacement -> the names that it replaces.
_ROWS = {
    "torch.fx.symbolic_trace": "fx.experimental",
    "naru.Graph within a process, torch.save of a state_dict between processes": "export",
    "torch.float16 and torch.bfloat16": """
        quantization ao nn.quantized nn.qat nn.intrinsic nn.quantizable qint8 quint8 qint32 quint4x2 quint2x4 qscheme quantize_per_tensor
        quantize_per_channel quantize_per_tensor_dynamic dequantize empty_quantized fake_quantize_per_tensor_affine
        fake_quantize_per_channel_affine per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric
        per_channel_affine_float_qparams q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis int_repr
        fused_moving_avg_obs_fake_quant choose_qparams_optimized quantized_batch_norm quantized_gru_cell quantized_lstm_cell
        quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quantized_gru
        quantized_lstm fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
        fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
        backends.quantized jit.quantized Tensor.dequantize Tensor.int_repr Tensor.q_scale Tensor.q_zero_point Tensor.q_per_channel_scales
        Tensor.q_per_channel_zero_points Tensor.q_per_channel_axis Tensor.qscheme nn.functional.scaled_addmm
        nn.functional.scaled_addmm_ nn.functional.scaled_grouped_mm float4_e2m1fn_x2 bcomplex32""",
    "torch.int8 and torch.uint8": """
        int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 bits16 bits1x8 bits2x4 bits4x2 bits8""",
    "torch.nn.parallel.DistributedDataParallel and the collectives of torch.distributed": "distributed",
    "torch.profiler.record_function": "cuda.profiler profiler.itt autograd.profiler.emit_itt",
    "torch.nn.parallel.scatter, gather and replicate": "cuda.comm cuda.nccl nn.parallel.comm.nccl nn.parallel.comm.reduce_add_coalesced",
    "naru.kernel, which compiles a kernel of your own for every device": """
        cuda.jiterator mps.load_metallib library.triton_op library.wrap_triton""",
    "torch.library.custom_op": """
        library.impl_abstract library.fallthrough_kernel library.register_autocast library.register_torch_dispatch library.get_kernel library.get_ctx""",
    "torch.save and torch.load of a state_dict, beside the program's own files": "package",
    "concurrent.futures": "fork wait jit.Future",
    "the same names with _foreach_ in front, as torch._foreach_add": "foreach",
    "the functions of torch.masked, which take a mask": """
        masked.MaskedTensor masked.masked_tensor masked.as_masked_tensor masked.is_masked_tensor masked.maskedtensor""",
    "torch.nested with layout=torch.jagged": "nn.attention.varlen",
    "torch.utils.tensorboard.SummaryWriter": "monitor",
    "torch.onnx.export": """
        onnx.ops onnx.operators onnx.symbolic_helper onnx.utils onnx.verification onnx.testing onnx.ExportableModule
        utils.mobile_optimizer utils.bundled_inputs utils.model_dump jit.mobile""",
    "torch.jit.script and torch.jit.trace, which run the Python function as it is": """
        CompilationUnit ScriptClass ScriptFunction ScriptMethod ScriptObject jit.CompilationUnit jit.annotations.check_fn jit.frontend
        jit.generate_bytecode jit.supported_ops jit.export_opnames import_ir_module import_ir_module_from_buffer parse_ir parse_schema
        parse_type_comment""",
    "torch.compile, which takes every function as it is and says by `explain` what is not fused": """
        compiler.precompile compiler.config compiler.nested_compile_region compiler.nonstrict_trace compiler.wrap_numpy
        compiler.load_compiled_function compiler.save_cache_artifacts compiler.load_cache_artifacts compiler.set_default_backend
        compiler.get_default_backend""",
    "int, float and bool: shapes are known when an operator is called": "SymInt SymFloat SymBool",
    "torch.UntypedStorage, by tensor.untyped_storage()": """
        QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage""",
    "torch.Tensor.to_sparse, or a dense tensor times a mask": """
        sparse.to_sparse_semi_structured sparse.SparseSemiStructuredTensor sparse.SparseSemiStructuredTensorCUSPARSELT
        sparse.SparseSemiStructuredTensorCUTLASS sparse.semi_structured backends.cusparselt""",
    "torch.linalg.solve of to_dense()": "sparse.solve",
    "torch.autograd.gradcheck": """
        autograd.gradcheck.get_numerical_jacobian autograd.gradcheck.get_analytical_jacobian""",
    "the tensor itself: the libraries are called without a layout of their own": "Tensor.to_mkldnn utils.mkldnn",
    "torch.nn.functional and torch.nn, which choose the library by themselves": """
        cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
        cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable miopen_batch_norm miopen_convolution
        miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution
        miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d
        mkldnn_rnn_layer backends.miopen backends.nnpack backends.xnnpack backends.kleidiai backends.mha nn.backends""",
    "torch.nn.SyncBatchNorm, or torch.nn.BatchNorm2d": """
        batch_norm_stats batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_backward_elemt
        batch_norm_backward_reduce batch_norm_update_stats""",
    "torch.nn.attention.sdpa_kernel": """
        nn.attention.activate_flash_attention_impl nn.attention.current_flash_attention_impl nn.attention.list_flash_attention_impls
        nn.attention.register_flash_attention_impl nn.attention.restore_flash_attention_impl backends.cuda.SDPAParams""",
    "the optimizer's class: its step over all parameters is one call": """
        optim.functional optim.adadelta.adadelta optim.adagrad.adagrad optim.adam.adam optim.adamax.adamax optim.asgd.asgd
        optim.radam.radam optim.rmsprop.rmsprop optim.rprop.rprop optim.sgd.sgd optim.swap_in_optimizer_params_and_state""",
    "`naru doctor`, and torch.__config__.show()": "utils.collect_env",
    "torch.utils.benchmark.Timer": """
        utils.throughput_benchmark utils.ThroughputBenchmark ThroughputBenchmark utils.benchmark.Fuzzer utils.benchmark.FuzzedTensor
        utils.benchmark.FuzzedParameter utils.benchmark.FuzzedSparseTensor utils.benchmark.CallgrindStats utils.benchmark.op_fuzzers""",
    "torch.utils.data.Dataset and IterableDataset": """
        utils.data.datapipes utils.data.IterDataPipe utils.data.MapDataPipe utils.data.DFIterDataPipe utils.data.functional_datapipe
        utils.data.graph utils.data.graph_settings utils.data.DataChunk""",
    "torch.utils.checkpoint.checkpoint of the parts that are to be computed anew": """
        utils.checkpoint.CheckpointPolicy utils.checkpoint.SelectiveCheckpointContext
        utils.checkpoint.create_selective_checkpoint_contexts utils.checkpoint.SAC_IGNORED_OPS""",
    "torch.nn.Module.register_full_backward_hook": "utils.hooks.BackwardHook",
    "a backend in C++ (docs/extending.md)": """
        utils.backend_registration utils.rename_privateuse1_backend utils.generate_methods_for_privateuse1_backend""",
    "torch.profiler.profile": "profiler.ExecutionTraceObserver autograd.profiler_legacy cuda.tunable backends.mkl.verbose",
    "a class with `__torch_function__`, which every function asks": """
        overrides.get_testing_overrides overrides.get_ignored_functions overrides.redispatch_function
        overrides.enable_reentrant_dispatch""",
    "one generator a thread, by torch.Generator": "random.thread_safe_generator",
    "torch.accelerator.memory_stats and empty_cache; allocators can't be replaced": """
        cuda.host_memory_stats cuda.host_memory_stats_as_nested_dict cuda.memory.MemPool cuda.memory.CUDAPluggableAllocator xpu.MemPool""",
    "re, over the text": "FileCheck testing.FileCheck",
    "the result of a call, whose fields have the same names": """
        return_types.linalg_eigh return_types.linalg_qr return_types.linalg_svd return_types.linalg_slogdet return_types.linalg_eig""",
    "torch.nn.Sequential": "nn.Container nn.modules.Container",
    "torch.autograd.Function": "autograd.NestedIOFunction",
}
NEAREST = {name: nearest for nearest, some in _ROWS.items() for name in some.split()}


def nearest_to(qualified: str) -> str | None:
    """The replacement for a name (without `torch.`), or None."""
    while qualified:
        if qualified in NEAREST:
            return NEAREST[qualified]
        qualified = qualified.rpartition(".")[0]
    return None
