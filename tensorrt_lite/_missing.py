"""Names that PyTorch has and this package has not: what a module's `__getattr__` says of them. Read when a look-up has failed, never before."""

from __future__ import annotations

# Module (without the package's name): PyTorch's names in it that are planned or left out. docs/gaps.md says more.
_NAMES = {
    "": """
        accelerator amp ao autocast classes compile compiler cond cpp distributed distributions export func functional fx hub jit masked monitor mps mtia nested
        overrides package profiler quantization quasirandom return_types signal sparse special types vmap while_loop xpu
        Event Future GradScaler Storage Stream SymBool SymFloat SymInt Tag TypedStorage DisableTorchFunction DisableTorchFunctionSubclass
        BFloat16Storage BFloat16Tensor BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage HalfStorage
        IntStorage LongStorage ShortStorage
        bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
        int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 uint16 uint32 uint64 qint32 qint8 quint2x4 quint4x2 quint8
        jagged sparse_bsc sparse_bsr sparse_csc sparse_csr
        binomial ctc_loss dequantize embedding_bag embedding_renorm_ empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine frexp from_file
        frobenius_norm get_autocast_dtype get_device_module gru gru_cell hash_tensor igamma igammac is_autocast_enabled is_distributed
        is_warn_always_enabled lobpcg lstm lstm_cell native_channel_shuffle nuclear_norm pca_lowrank quantize_per_channel quantize_per_tensor
        rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell segment_reduce set_autocast_dtype set_autocast_enabled set_default_tensor_type set_flush_denormal
        set_warn_always smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sspaddmm
        svd_lowrank unsafe_split_with_sizes
        cosine_embedding_loss hinge_embedding_loss margin_ranking_loss poisson_nll_loss triplet_margin_loss
    """,
    "nn": """
        DataParallel LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
        LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LinearCrossEntropyLoss SyncBatchNorm UninitializedBuffer UninitializedParameter grad
        intrinsic parallel qat quantizable quantized
    """,
    "nn.functional": "grad grouped_mm linear_cross_entropy scaled_grouped_mm scaled_mm",
    "nn.utils": """
        convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights
        parametrizations parametrize prune remove_spectral_norm remove_weight_norm skip_init spectral_norm stateless weight_norm
    """,
    "optim": "Muon SparseAdam swap_in_optimizer_params_and_state",
    "utils": """
        ThroughputBenchmark benchmark bottleneck bundled_inputs collect_env cpp_extension cpp_backtrace deterministic flop_counter hooks mobile_optimizer
        model_zoo module_tracker swap_tensors tensorboard
    """,
    "utils.checkpoint": """
        CheckpointPolicy GraphExecGroup SelectiveCheckpointContext check_backward_validity create_selective_checkpoint_contexts detach_variable get_device_states
        set_checkpoint_debug_enabled set_device_states
    """,
    "utils.data": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe datapipes functional_datapipe",
    "autograd": "profiler profiler_legacy SavedTensor kineto_available",
    "autograd.graph": "allow_mutation_on_saved_tensors disable_saved_tensors_hooks register_multi_grad_hook",
    "cuda": """
        amp comm gds green_contexts jiterator nccl sparse tunable GreenContext current_blas_handle current_solver_handle BFloat16Tensor BoolTensor ByteTensor
        CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
    """,
    "multiprocessing": "get_all_sharing_strategies get_sharing_strategy set_sharing_strategy spawn start_processes",
    "serialization": """
        get_crc32_options get_default_load_endianness get_default_mmap_options register_package set_crc32_options set_default_load_endianness
        set_default_mmap_options skip_data
    """,
    "backends": "cusparselt kleidiai mha miopen",
}  # fmt: skip


def error(module: str, name: str) -> AttributeError:
    """The error for a name that a module (without the package's name; '' is the package) does not have."""
    owner = f"tensorrt_lite.{module}" if module else "tensorrt_lite"
    why = ": it is not implemented (docs/gaps.md)" if name in _NAMES.get(module, "").split() else ""
    return AttributeError(f"module '{owner}' has no attribute '{name}'{why}")
