"""tensorrt_lite: PyTorch's programming model in a small runtime. Not related to NVIDIA TensorRT.

>>> import tensorrt_lite as trt
>>> x = trt.ones(2, 3, requires_grad=True)
>>> (x * 2).sum().backward()
>>> x.grad.tolist()
[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
"""

from __future__ import annotations

import gc as _gc
import sys as _sys

# What the import makes stays; collections that thousands of new functions start would take a tenth of it.
_collecting = _gc.isenabled()
_gc.disable()
try:
    from tensorrt_lite import _ops, _public, _root
    from tensorrt_lite._interop import companions as _companions
    from tensorrt_lite.tensor import _TYPE_NAMES as _type_names
    from tensorrt_lite.tensor import Tensor, UntypedStorage
except ImportError as _error:
    from tensorrt_lite._names.missing import unbuilt

    raise unbuilt(_error) from None
finally:
    if _collecting:
        _gc.enable()
from tensorrt_lite._C.core.hints import LookUp as _LookUp

__version__ = "0.1.0"

globals().update({name: value for name, value in vars(_root).items() if not name.startswith("__") and name not in ("annotations", "builtins", "_name", "_function")})

# Packages that are imported when they are first used: `import tensorrt_lite` stays within 50 ms.
_LAZY = {
    "nn", "optim", "utils", "autograd", "cuda", "backend", "backends", "testing", "bench", "random", "serialization", "linalg", "fft", "special", "signal", "cpu", "library", "multiprocessing", "version",
    "__config__", "__future__", "accelerator", "amp", "compat", "compiler", "distributed", "distributions", "func", "hub", "jit", "masked", "nested", "onnx", "overrides", "profiler", "sparse", "array_api",
    "futures", "monitor", "quasirandom", "return_types",
}  # fmt: skip
_LAZY_NAMES = {
    "save": "serialization", "load": "serialization", "no_grad": "autograd.grad_mode", "enable_grad": "autograd.grad_mode",
    "set_grad_enabled": "autograd.grad_mode", "inference_mode": "autograd.grad_mode", "set_printoptions": "_tensor_str", "get_printoptions": "_tensor_str", "printoptions": "_tensor_str", "manual_seed": "random",
    "seed": "random", "initial_seed": "random", "get_rng_state": "random", "set_rng_state": "random", "Generator": "random", "default_generator": "random",
    **dict.fromkeys((
        "get_num_interop_threads", "set_num_interop_threads", "use_deterministic_algorithms", "are_deterministic_algorithms_enabled",
        "is_deterministic_algorithms_warn_only_enabled", "get_deterministic_debug_mode", "set_deterministic_debug_mode", "get_float32_matmul_precision",
        "set_float32_matmul_precision", "_build_info",
    ), "_functions.settings"),
    "autocast": "amp", "GradScaler": "amp",
    **dict.fromkeys((
        "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype",
        "get_autocast_gpu_dtype", "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
        "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_ipu_enabled", "is_autocast_xla_enabled",
        "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
    ), "amp._state"),
    "OutOfMemoryError": "cuda.memory", "DisableTorchFunction": "_C.core.overrides", "DisableTorchFunctionSubclass": "_C.core.overrides",
    "result_type": "_functions.promotion", "can_cast": "_functions.promotion", "affine_grid_generator": "nn._functional.vision",
    "cosine_similarity": "nn.functional", "pairwise_distance": "nn.functional", "embedding": "_ops",
    "finfo": "_functions.dtype_limits", "iinfo": "_functions.dtype_limits", "from_dlpack": "_interop.dlpack", "to_dlpack": "_interop.dlpack", "ops": "library",
    "TypedStorage": "_legacy.typed_storage", "Stream": "backend.streams", "Event": "backend.streams", "get_device_module": "backend.privateuse1",
    "_register_device_module": "backend.privateuse1",
    "vmap": "_transforms.mapping",
    **dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig"), "_legacy.removed"),
    **dict.fromkeys((
        "SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max",
        "sym_min", "sym_not", "sym_sqrt", "sym_sum",
    ), "_functions.symbolic"),
    **dict.fromkeys((
        "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all", "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
    ), "_functions.checks"),
    "cond": "_functions.control_flow", "while_loop": "_functions.control_flow", "Future": "futures", "thread_safe_generator": "random",
    **dict.fromkeys((
        "AcceleratorError", "FatalError", "JITException", "Tag", "classproperty", "compiled_with_cxx11_abi", "from_file", "get_file_path",
        "has_lapack", "has_mkl", "has_openmp", "has_spectral", "init_num_threads", "is_vulkan_available", "is_warn_always_enabled", "legacy_contiguous_format",
        "set_warn_always",
    ), "_functions.package_facts"),
    "is_anomaly_enabled": "autograd.anomaly_mode", "is_anomaly_check_nan_enabled": "autograd.anomaly_mode", "set_anomaly_enabled": "autograd.anomaly_mode",
    "set_default_tensor_type": "_legacy.typed_tensors", "set_flush_denormal": "_C.core.parallel",
}  # fmt: skip
_ASKING = {"result_type", "can_cast", "embedding", "affine_grid_generator", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"}  # of them, those that ask overrides
# Methods that are functions of the package, too.
_METHODS = {
    "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "clip_", "detach", "detach_", "fix_", "get_device", "is_conj", "is_inference", "is_neg",
    "as_strided_", "dequantize", "is_distributed", "is_nonzero", "is_same_size", "is_signed", "negative_", "resize_as_", "resolve_conj", "resolve_neg", "slice_inverse", "zero_",
}  # fmt: skip
_TYPED = {f"{kind}Tensor" for kind in _type_names.values() if not kind.startswith(("Complex", "UInt", "Float8"))}  # FloatTensor and its kin
_ABSENT = {"mps", "mtia", "xpu", "_dynamo"}  # modules whose answers are those of a build without the device, or without the compiler
_STORAGES = {
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage", "DoubleStorage", "FloatStorage",
    "HalfStorage", "IntStorage", "LongStorage", "ShortStorage",
}  # fmt: skip


def __getattr__(name: str):
    from importlib import import_module

    if name in _LAZY_NAMES:
        value = getattr(import_module(f"tensorrt_lite.{_LAZY_NAMES[name]}"), name)
        if name in _ASKING:
            value = _public.function(value, name, "tensorrt_lite")
    elif name in _LAZY:
        value = import_module(f"tensorrt_lite.{name}")
    elif name in _METHODS:
        value = _public.function(Tensor.__dict__[name].impl, name, "tensorrt_lite")
    elif name in _TYPED:
        from tensorrt_lite._legacy.typed_tensors import typed_class

        value = typed_class(name)
    elif name in _STORAGES:
        from tensorrt_lite._legacy.typed_storage import legacy_class

        value = legacy_class(name)
    elif name == "_storage_classes":
        value = {UntypedStorage, *(globals().get(kind) or __getattr__(kind) for kind in ("TypedStorage", *_STORAGES))}
    elif name == "Storage":
        value = __getattr__("FloatStorage")
    elif name in _ABSENT:
        value = import_module(f"tensorrt_lite.compat.modules.{name}")
    else:
        from tensorrt_lite._names.missing import error

        raise error("", name)
    globals()[name] = value
    return value


globals()["__getattr__"] = _LookUp(__getattr__)


class _MissingModules:
    """On `sys.meta_path` behind all others, which have failed: says why a module of PyTorch's is not here."""

    @staticmethod
    def find_spec(fullname: str, *details: object) -> None:
        if fullname.startswith("tensorrt_lite."):
            from tensorrt_lite._names.missing import refuse_import

            refuse_import(fullname)


_sys.meta_path.append(_MissingModules)
_companions.install()


def __dir__() -> list[str]:
    from tensorrt_lite._names.listing import public

    return public(globals(), [*_LAZY, *_LAZY_NAMES, *_METHODS, *_TYPED, *_STORAGES, "Storage"])
