"""Every public name that takes or makes tensors asks `__torch_function__`, keeps subclasses where PyTorch does and has PyTorch's names of arguments."""

from __future__ import annotations

import inspect
import types
import warnings

import pytest

import tensorrt_lite as trt
from tensorrt_lite import overrides
from tensorrt_lite._C.core.overrides import PublicFunction, PublicProperty
from tensorrt_lite.nn import functional as F

SPACES = {"trt": trt, "F": F, "Tensor": trt.Tensor, "linalg": trt.linalg, "fft": trt.fft, "special": trt.special, "init": trt.nn.init}

# What is public and never asks, as in PyTorch: settings, files, questions about dtypes, what asks by the functions that it calls.
UNASKED = {
    "trt": """
        are_deterministic_algorithms_enabled broadcast_shapes from_dlpack get_default_device get_default_dtype get_deterministic_debug_mode
        get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions get_rng_state initial_seed is_autocast_enabled
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
        is_autocast_cache_enabled is_autocast_cpu_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
        set_autocast_enabled set_autocast_gpu_dtype
        get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_ipu_dtype set_autocast_ipu_enabled
        set_autocast_xla_dtype set_autocast_xla_enabled
        is_deterministic_algorithms_warn_only_enabled get_device_module is_grad_enabled is_inference_mode_enabled is_storage is_tensor load manual_seed printoptions
        promote_types save seed set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads set_printoptions set_rng_state to_dlpack typename
        use_deterministic_algorithms vmap
        classproperty compiled_with_cxx11_abi cond eig from_file get_file_path init_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled
        is_vulkan_available is_warn_always_enabled lstsq matrix_rank set_anomaly_enabled set_warn_always solve sym_constrain_range
        sym_constrain_range_for_size sym_fresh_size symeig thread_safe_generator while_loop
    """,
    "F": "sigmoid tanh upsample upsample_bilinear upsample_nearest",
    "init": """
        calculate_gain constant dirac dirac_ eye eye_ kaiming_normal kaiming_normal_ kaiming_uniform normal ones_ orthogonal orthogonal_ sparse sparse_
        trunc_normal_ uniform xavier_normal xavier_normal_ xavier_uniform xavier_uniform_ zeros_
    """,
    "Tensor": "__iter__ as_subclass _make_subclass _make_wrapper_subclass _over_copied_storage _warn_of_hooks",
}


class Foreign:
    """No tensor: answers what it was asked."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


class Recorder(overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


def members(space: str):
    owner = SPACES[space]
    for name in dir(owner):
        member = inspect.getattr_static(owner, name, None) if space == "Tensor" else getattr(owner, name)
        if space != "Tensor" and (name.startswith("_") or isinstance(member, (type, types.ModuleType))) or hasattr(object, name) and name not in vars(owner):
            continue
        if callable(member) or isinstance(member, (PublicProperty, property, staticmethod)):
            yield name, member


def public_functions():
    return [pytest.param(space, name, id=f"{space}.{name}") for space in SPACES for name, m in members(space) if isinstance(m, PublicFunction)]


@pytest.mark.parametrize("space", SPACES)
def test_every_public_name_asks(space):
    quiet = UNASKED.get(space, "").split()
    asks = {name for name, m in members(space) if isinstance(m, (PublicFunction, PublicProperty))}
    silent = {name for name, m in members(space)} - asks - {"__dict__", "__slots__", "__new__", "__init__", "__hash__", "__class__", "__init_subclass__"}
    assert silent == set(quiet)


def test_functions_get_foreign_objects_and_hand_over_themselves():
    wrong = []
    for parameter in public_functions():
        space, name = parameter.values
        function = inspect.getattr_static(SPACES[space], name)
        foreign = Foreign()
        func, given_types, args, kwargs = function(foreign)
        expected = function.handed or function
        if func is not expected or given_types != (Foreign,) or args[:1] != (foreign,) and foreign not in kwargs.values():
            wrong.append(parameter.id)
    assert not wrong


def test_lists_and_keywords_are_searched():
    foreign = Foreign()
    assert trt.stack([trt.ones(2), foreign])[0] is trt.stack
    assert trt.add(trt.ones(2), other=foreign)[3] == {"other": foreign}
    assert trt.ones(2).index_put_((foreign,), trt.ones(1))[0] is trt.Tensor.index_put_
    assert trt.ones(2)[foreign][0] is trt.Tensor.__getitem__ and trt.ones(2)[0, foreign][0] is trt.Tensor.__getitem__


def test_a_mode_sees_every_function_and_property():
    wrong = []
    x = trt.ones(2)
    for parameter in public_functions():
        space, name = parameter.values
        function = inspect.getattr_static(SPACES[space], name)
        with Recorder():
            answer = function(x)
        if answer[0] is not (function if parameter.id == "Tensor.__eq__" else function.handed or function):
            wrong.append(parameter.id)
    for name, member in members("Tensor"):
        if isinstance(member, PublicProperty):
            with Recorder():
                read = getattr(x, name)
            if read[0] != member.__get__ or read[2] != (x,):
                wrong.append(name)
    assert not wrong


def test_names_resolve_and_pickle():
    import pickle

    for space in SPACES:
        for name, member in members(space):
            if isinstance(member, PublicFunction):
                full = overrides.resolve_name(member)
                assert full is not None
                if full.startswith("tensorrt_lite.") and (space != "trt" or full == f"tensorrt_lite.{name}"):
                    assert eval(full, {"tensorrt_lite": trt}) is member, full
                if space in ("trt", "linalg", "F", "fft", "special") and not name.startswith("_"):
                    assert pickle.loads(pickle.dumps(member)) is member
    assert overrides.resolve_name(trt.Tensor.grad.__get__) == "tensorrt_lite.Tensor.grad.__get__"
    assert pickle.loads(pickle.dumps(trt.Tensor.add)) is trt.Tensor.add


# ---- beside PyTorch ------------------------------------------------------------------------------------------------


def beside_torch():
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torch.nn.functional")
    return torch, {"trt": torch, "F": functional, "Tensor": torch.Tensor, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special, "init": torch.nn.init}


def test_what_pytorch_overrides_is_overridable_here():
    torch, spaces = beside_torch()
    theirs = torch.overrides.get_testing_overrides()
    missing = []
    for space, owner in spaces.items():
        for name in dir(owner):
            member = inspect.getattr_static(owner, name) if owner is torch.Tensor else getattr(owner, name)
            function = member.__get__ if owner is torch.Tensor and not callable(member) and hasattr(member, "__get__") else member
            try:
                overridable = function in theirs
            except TypeError:
                continue
            if overridable and hasattr(SPACES[space], name):
                ours = inspect.getattr_static(SPACES[space], name, None) or getattr(SPACES[space], name)
                if not isinstance(ours, (PublicFunction, PublicProperty)):
                    missing.append(f"{space}.{name}")
    assert not missing


# TorchScript's overloads of lists, and options of CUDA's products alone (docs/gaps.md).
OTHER_NAMES = {"as_tensor": {"t"}, "tensor": {"t"}, "sort": {"reverse"}, "copy_": {"other"}}


def test_arguments_have_pytorch_names():
    """A parameter of PyTorch's schema, or of its function in Python, is one here."""
    torch, spaces = beside_torch()
    wrong = []
    prefixes = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}
    for space, owner in spaces.items():
        for name, member in members(space):
            theirs = getattr(owner, name, None)
            if not isinstance(member, PublicFunction) or theirs is None:
                continue
            signature = inspect.signature(member)
            known = set(signature.parameters) | {p.removesuffix("_") for p in signature.parameters} | set(member.spellings or {}) | {"layout", "pin_memory", "generator"} | OTHER_NAMES.get(name, set())
            if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
                continue
            python = getattr(theirs, "__wrapped__", theirs)
            if isinstance(python, types.FunctionType):
                wanted = [{n for n, p in inspect.signature(python).parameters.items() if not n.startswith("_") and p.kind is not p.VAR_KEYWORD}]
            else:
                wanted = [schema_names(s, space == "Tensor") for s in torch._C._jit_get_schemas_for_operator("aten::" + prefixes.get(space, "") + name)]
            for names in wanted:
                if names and names - known - {"args", "kwargs", "tensors", "operands"}:
                    wrong.append(f"{space}.{name}{signature}: {names - known}")
    assert not wrong


def schema_names(schema, method: bool) -> set[str] | None:
    """The arguments of an overload that Python code can call."""
    arguments = schema.arguments
    if not arguments or any("Dimname" in str(a.type) or a.is_out for a in arguments):
        return None
    if arguments[0].name in ("a", "x") or schema.overload_name in ("dtype", "Tensor_Scalar", "Scalar_Tensor", "enum") or method and arguments[0].name != "self":
        return None
    if any("t[]" in str(a.type) or "t" == str(a.type) or "List[t]" in str(a.type) or "Dict" in str(a.type) for a in arguments):
        return None
    return {("self" if method else "input") if a.name == "self" else a.name for a in arguments}


ARGUMENTS = [(), ("x",), (0,), (1,), (0, 1), (1, 0), (0, 0, 1), (0, "i", "x"), ("x", "x"), (2, 3), ("m",), ((2, 3),), ("b", 1.0), ("i",), (0, "i"), (0, "i", 1.0), ("i", "v"), ((1,),)]
# Random, of other types than float, or ending the tensor; and what has its own test.
NOT_TRIED = {"__reduce_ex__", "__setstate__", "share_memory_", "numpy", "__array__", "__deepcopy__", "record_stream", "module_load", "backward", "__dir__", "__torch_function__"}


def test_subclasses_keep_their_class_where_pytorch_keeps_it():
    torch, _ = beside_torch()
    differ, compared = [], 0
    for name in dir(torch.Tensor):
        if name in NOT_TRIED or name.startswith("_") and not name.startswith("__") or not hasattr(trt.Tensor, name) or hasattr(object, name):
            continue
        if name in ("__new__", "__iter__", "__dlpack__", "__cuda_array_interface__", "requires_grad_", "is_shared"):
            continue
        for arguments in ARGUMENTS:
            theirs = outcome(torch, name, arguments)
            if theirs is None:
                continue
            ours = outcome(trt, name, arguments)
            if name in ("__pow__", "__rpow__", "__ipow__") and len(arguments) > 1:
                continue  # a modulus: PyTorch answers NotImplemented
            if ours is not None:
                compared += 1
                if ours != theirs:
                    differ.append(f"{name}{arguments}: {ours}, PyTorch {theirs}")
    assert not differ
    assert compared > 600


def outcome(library, name, arguments):
    """The classes in the result of `x.name(*arguments)` of a subclass's tensor, None when it raises."""

    class Kind(library.Tensor):
        pass

    values = {
        "x": lambda: (library.arange(6.0).reshape(2, 3) + 1).as_subclass(Kind),
        "m": lambda: library.ones(3, 2),
        "i": lambda: library.zeros(2, 3, dtype=library.int64),
        "b": lambda: library.ones(2, 3, dtype=library.bool),
        "v": lambda: library.ones(2, 3),
    }
    x = values["x"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            member = getattr(x, name)
            result = member(*(values[a]() if isinstance(a, str) and a in values else a for a in arguments)) if callable(member) else member
        except Exception:
            return None
    return classes(result, library)


def classes(result, library):
    if isinstance(result, library.Tensor):
        return type(result).__name__
    if isinstance(result, (tuple, list)) and not isinstance(result, library.Size):
        return [classes(r, library) for r in result]
    return "other"
