"""What is not there: names of PyTorch that this package does not have, and the compiled core where it is not built. Read when a
look-up has failed, never before."""

from __future__ import annotations

import sys

# Module (without the package's name): PyTorch's names in it that are planned or left out. docs/gaps.md says more.
_NAMES = {
    "": """
        ao classes compile cpp export functional fx package quantization types
        bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2
        int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 qint32 qint8 quint2x4 quint4x2 quint8
        empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine quantize_per_channel quantize_per_tensor
    """,
    "nn": "intrinsic qat quantizable quantized",
    "nn.parallel": "DistributedDataParallel DistributedDataParallelCPU distributed",
    "utils": "bottleneck bundled_inputs hipify jit mkldnn mobile_optimizer model_dump show_pickle viz",
    "utils.benchmark": "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedSparseTensor",
    "utils.cpp_extension": "SyclExtension",
    "utils.checkpoint": "DefaultDeviceType GraphExecGroup",
    "autograd": "SavedTensor",
    "cuda": """
        gds green_contexts jiterator nccl tunable GreenContext current_blas_handle current_solver_handle
    """,
    "accelerator": """
        Graph empty_cache empty_host_cache get_device_capability get_memory_info max_memory_allocated max_memory_reserved memory_allocated
        memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats
    """,
    "compiler": "compile config set_stance substitute_in_graph wrap_numpy",
    "distributed": """
        Backend DeviceMesh FileStore GradBucket HashStore P2POp PrefixStore ProcessGroup ReduceOp Store TCPStore Work algorithms all_gather all_gather_into_tensor
        all_gather_object all_reduce all_to_all all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list destroy_process_group device_mesh elastic fsdp
        gather gather_object get_backend get_rank get_world_size group init_device_mesh init_process_group irecv isend launch monitored_barrier new_group new_subgroups nn
        optim pipelining recv reduce reduce_scatter reduce_scatter_tensor rpc scatter scatter_object_list send tensor
    """,
    "func": "rearrange",
    "jit": """
        Attribute CompilationUnit Error Future ScriptFunction ScriptModule fork freeze interface isinstance load optimize_for_inference save strict_fusion trace
        trace_module wait
    """,
    "onnx": "ExportableModule ONNXProgram OnnxExporterError errors export ops",
    "profiler": "ExecutionTraceObserver python_tracer",
    "serialization": "validate_hpu_device",
    "backends": "cusparselt kleidiai miopen",
}  # fmt: skip


class _Similar:
    """What the interpreter looks for similar names in: a module's of about the same length, since it suggests none among more than 750."""

    def __init__(self, owner: str, name: str) -> None:
        self._owner, self._length = owner, len(name)

    def __dir__(self) -> list[str]:
        return [name for name in dir(sys.modules[self._owner]) if abs(len(name) - self._length) < 4]


_REASON = "it is not implemented (docs/gaps.md, or tensorrt-lite missing)"


def _owner(module: str) -> str:
    return f"tensorrt_lite.{module}" if module else "tensorrt_lite"


def is_known(module: str, name: str) -> bool:
    """Whether `name` is one of PyTorch's that a module (without the package's name; '' is the package) is known not to have."""
    return name in _NAMES.get(module, "").split()


def error(module: str, name: str) -> AttributeError:
    """The error for a name that a module (without the package's name; '' is the package) does not have."""
    from tensorrt_lite._names.listing import public_name

    owner = _owner(module)
    text = f"module '{public_name()}{owner.removeprefix('tensorrt_lite')}' has no attribute '{name}'"
    # the interpreter suggests similar names to an error that does not say whose attribute it is, and `complex` is no `compile`
    if is_known(module, name):
        return AttributeError(f"{text}: {_REASON}", name=name)
    return AttributeError(text, name=name, obj=_Similar(owner, name))


def refuse_import(fullname: str) -> None:
    """Called by the package's finder for a module of this package that does not exist. ModuleNotFoundError with the reason where it is one
    of PyTorch's and an import statement wants it; `importlib.util.find_spec`, which only asks, gets its None."""
    package, _, name = fullname.rpartition(".")
    imports = sys._getframe(3).f_code.co_name == "_find_and_load_unlocked"  # below this function, the finder and importlib's search
    if imports and is_known(package.removeprefix("tensorrt_lite").removeprefix("."), name):
        raise ModuleNotFoundError(f"No module named '{fullname}': {_REASON}", name=fullname)


def unbuilt(error: ImportError) -> ImportError:
    """What to raise in place of `error`: how to build the core where it lacks a module (never built, for another Python, or from older
    sources), that another interpreter of the process has it, the error itself where a module is there and does not load."""
    import sysconfig
    from pathlib import Path

    if "one interpreter per process" in str(error):
        return ImportError(
            "tensorrt_lite is in use by another interpreter of this process: subinterpreters cannot have it beside each other, or beside the main one (docs/gaps.md)",
            name="tensorrt_lite",
        )
    if not (error.name or "").startswith("tensorrt_lite._C") or (error.path or "").endswith(".so"):
        return error
    package = Path(__file__).resolve().parent.parent
    root = package.parent
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = sorted({"." + path.name.partition(".")[2] for path in (package / "_C").glob("core/*.so")})
    if not built:
        why = "is not built"
    elif suffix in built:
        why = f"is older than the package ({error})"
    else:
        why = f"is for another Python ({', '.join(built)}; this one loads {suffix})"
    if (root / "setup.py").exists():
        how = f"Build it with `{sys.executable} -m pip install -e {root}` (needs gcc; takes minutes), or leave this folder to import an installed package"
    else:
        how = f"Install the package again with `{sys.executable} -m pip install --force-reinstall tensorrt-lite`"
    return ImportError(f"tensorrt_lite: the compiled core in {package / '_C'} {why}. {how}.", name=error.name, path=str(package))
