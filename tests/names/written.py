"""Calls of names that the databases do not know: `CASES[module, name]` takes a library and the object of that name in it, and returns what both shall agree in.

A case is written once for all names it fits: the object is looked up by the name, so that none counts by standing beside another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CASES: dict[tuple[str, str], Callable[[Any, Any], Any]] = {}


def case(module: str, names: str, call: Callable[[Any, Any], Any]) -> None:
    """Let `call(library, object)` stand for each of the names."""
    for name in names.split():
        if (module, name) in CASES:
            raise ValueError(f"two cases of {module}.{name}")
        CASES[module, name] = call


def raised(call: Callable[[], Any]) -> Any:
    """The type and text of what a call raises; what it returns where it does not."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, " ".join(str(error).split())


def numbers(m: Any, *shape: int, grad: bool = False) -> Any:
    """Different numbers between 0.1 and 0.9."""
    count = 1
    for n in shape:
        count *= n
    return ((m.arange(count, dtype=m.float64) * 7 % 17 / 17) * 0.8 + 0.1).reshape(*shape).requires_grad_(grad)


# ---- torch: in-place functions, element by element

case("torch", """abs_ acos_ arccos_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ celu_ conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_
     expm1_ fix_ floor_ frac_ i0_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_
     tanh_ trunc_""", lambda m, f: (lambda x: (f(x) is x, x))(numbers(m, 3, 2)))  # fmt: skip
case("torch", "acosh_ arccosh_", lambda m, f: (lambda x: (f(x) is x, x))(numbers(m, 3) + 1))
case("torch", "clamp_max_ clamp_min_ fill_ ldexp_", lambda m, f: (lambda x: (f(x, m.tensor(0.5)) is x, x))(numbers(m, 5)))
case("torch", "clamp_ clip_", lambda m, f: (lambda x: (f(x, 0.2, 0.6) is x, x))(numbers(m, 5)))
case("torch", "xlogy_", lambda m, f: (lambda x: (f(x, numbers(m, 5) * 2) is x, x))(numbers(m, 5)))
case("torch", "gcd_ lcm_", lambda m, f: (lambda x: (f(x, m.tensor([4, 6, 9])) is x, x))(m.tensor([6, 4, 12])))
case("torch", "threshold_ threshold", lambda m, f: f(numbers(m, 5), 0.4, 2.0))
case("torch", "addmv_", lambda m, f: f(numbers(m, 2), numbers(m, 2, 3), numbers(m, 3), beta=2, alpha=3))
case("torch", "index_put_", lambda m, f: f(m.zeros(4), [m.tensor([1, 1, 3])], m.tensor([1.0, 2, 3]), True))
case("torch", "embedding_renorm_", lambda m, f: f(numbers(m, 4, 3) * 9, m.tensor([0, 2]), 1.0, 2.0))
case("torch", "as_strided_", lambda m, f: f(m.arange(6.0), (2, 2), (3, 1), 1))
case("torch", "alpha_dropout alpha_dropout_ dropout dropout_", lambda m, f: (f(numbers(m, 6, 5), 0.4, True), f(numbers(m, 3), 0.4, False)))
case("torch", "feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_", lambda m, f: f(numbers(m, 3, 5, 2), 0.4, True))
case("torch", "native_dropout", lambda m, f: f(numbers(m, 6, 5), 0.4, True))
case("torch", "rrelu rrelu_", lambda m, f: (f(numbers(m, 5) - 0.5, 0.1, 0.3, False), f(numbers(m, 5) - 0.5, 0.1, 0.3, True)))

# ---- torch: functions of tensors

case("torch", "adaptive_avg_pool1d adaptive_max_pool1d", lambda m, f: f(numbers(m, 2, 3, 8), 4))
case("torch", "avg_pool1d max_pool1d max_pool1d_with_indices", lambda m, f: f(numbers(m, 2, 3, 8), 3, 2))
case("torch", "max_pool2d", lambda m, f: f(numbers(m, 2, 3, 8, 6), 2))
case("torch", "max_pool3d", lambda m, f: f(numbers(m, 1, 2, 4, 4, 4), 2))
case("torch", "affine_grid_generator", lambda m, f: f(numbers(m, 1, 2, 3), (1, 1, 3, 2), True))
case("torch", "as_tensor asarray tensor", lambda m, f: (f([[1, 2], [3, 4]]), f(2.5), f([True]), f([1, 2], dtype=m.float16)))
case("torch", "bartlett_window blackman_window hamming_window hann_window kaiser_window", lambda m, f: (f(7), f(6, periodic=False), f(1), f(0)))
case("torch", "batch_norm", lambda m, f: f(numbers(m, 4, 3), numbers(m, 3), numbers(m, 3), numbers(m, 3), numbers(m, 3), True, 0.1, 1e-5, True))
case("torch", "instance_norm", lambda m, f: f(numbers(m, 2, 3, 5), numbers(m, 3), numbers(m, 3), None, None, True, 0.1, 1e-5, True))
case("torch", "bilinear", lambda m, f: f(numbers(m, 2, 3), numbers(m, 2, 4), numbers(m, 5, 3, 4), numbers(m, 5)))
case("torch", "binary_cross_entropy_with_logits", lambda m, f: f(numbers(m, 4), numbers(m, 4), None, None, 1))
case("torch", "binomial", lambda m, f: f(m.full((20,), 9.0), m.full((20,), 0.3)))
case("torch", "poisson", lambda m, f: f(numbers(m, 20) * 5))
case(
    "torch", "can_cast", lambda m, f: [f(a, b) for a in (m.bool, m.int32, m.float16, m.complex64) for b in (m.bool, m.uint8, m.float32, m.complex64)]
)
case(
    "torch", "promote_types", lambda m, f: [f(a, b) for a in (m.bool, m.int8, m.uint8, m.float16) for b in (m.bool, m.int64, m.bfloat16, m.complex64)]
)
case("torch", "result_type", lambda m, f: [f(m.ones(2, dtype=m.int8), x) for x in (1, 2.5, 1j, m.ones(()), m.ones(2, dtype=m.uint8))])
case("torch", "celu selu relu hardshrink", lambda m, f: f(numbers(m, 5) - 0.5))
case("torch", "prelu", lambda m, f: f(numbers(m, 2, 3) - 0.5, m.tensor([0.2, 0.3, 0.4], dtype=m.float64)))
case("torch", "chain_matmul", lambda m, f: f(numbers(m, 2, 3), numbers(m, 3, 4), numbers(m, 4, 2)))
case("torch", "channel_shuffle native_channel_shuffle", lambda m, f: f(numbers(m, 1, 4, 2, 2), 2))
case("torch", "pixel_shuffle", lambda m, f: f(numbers(m, 1, 4, 2, 2), 2))
case("torch", "pixel_unshuffle", lambda m, f: f(numbers(m, 1, 1, 4, 2), 2))
case("torch", "conv_tbc", lambda m, f: f(numbers(m, 5, 2, 3), numbers(m, 3, 3, 4), numbers(m, 4), 1))
case("torch", "convolution", lambda m, f: f(numbers(m, 1, 2, 5, 5), numbers(m, 3, 2, 3, 3), numbers(m, 3), (2, 1), (1, 0), (1, 1), False, (0, 0), 1))
case("torch", "cosine_embedding_loss", lambda m, f: f(numbers(m, 2, 3), numbers(m, 2, 3) - 0.4, m.tensor([1, -1]), 0.1, 1))
case("torch", "cosine_similarity pairwise_distance", lambda m, f: f(numbers(m, 3, 4), numbers(m, 3, 4) ** 2 - 0.4))
case("torch", "pdist", lambda m, f: f(numbers(m, 4, 3), 2.0))
case(
    "torch",
    "ctc_loss",
    lambda m, f: f(numbers(m, 6, 2, 4).log_softmax(2), m.tensor([[1, 2], [3, 1]]), m.tensor([6, 5]), m.tensor([2, 1]), 0, 1, False),
)
case("torch", "hinge_embedding_loss", lambda m, f: f(numbers(m, 4), m.tensor([1, -1, 1, -1]), 1.0, 1))
case("torch", "kl_div", lambda m, f: f(numbers(m, 4).log(), numbers(m, 4), 1, log_target=False))
case("torch", "margin_ranking_loss", lambda m, f: f(numbers(m, 4), numbers(m, 4) ** 2, m.tensor([1, -1, 1, -1]), 0.2, 1))
case("torch", "poisson_nll_loss", lambda m, f: f(numbers(m, 4), numbers(m, 4) * 3, True, False, 1e-8, 1))
case("torch", "triplet_margin_loss", lambda m, f: f(numbers(m, 2, 3), numbers(m, 2, 3) ** 2, numbers(m, 2, 3) - 1, 1.0, 2.0, 1e-6, False, 1))
case("torch", "dequantize", lambda m, f: f(m.ones(2, dtype=m.float16)))
case(
    "torch",
    "detach detach_copy view_as_real_copy",
    lambda m, f: (lambda y: (y, y.requires_grad))(f(numbers(m, 3) + (0j if "real" in f.__name__ else 0))),
)
case("torch", "view_as_complex_copy", lambda m, f: f(numbers(m, 3, 2)))
case("torch", "select_copy", lambda m, f: f(numbers(m, 3, 2), 0, 1))
case("torch", "slice_copy", lambda m, f: f(numbers(m, 7, 2), 0, 1, 6, 2))
case("torch", "split_copy", lambda m, f: f(numbers(m, 5, 2), 2))
case("torch", "unsafe_split_with_sizes", lambda m, f: f(numbers(m, 5, 2), [2, 3]))
case("torch", "slice_inverse", lambda m, f: f(m.arange(6)[1:3], m.zeros(6, dtype=m.int64)))
case("torch", "embedding", lambda m, f: f(numbers(m, 5, 3), m.tensor([[1, 4], [0, 1]]), 1))
case("torch", "embedding_bag", lambda m, f: f(numbers(m, 5, 3), m.tensor([1, 4, 0, 1]), m.tensor([0, 2]))[0])
case("torch", "frobenius_norm nuclear_norm", lambda m, f: f(numbers(m, 3, 2), dim=(0, 1)))
case("torch", "norm_except_dim", lambda m, f: f(numbers(m, 3, 2, 2), 2, 1))
case("torch", "from_dlpack", lambda m, f: (lambda x: (f(x), f(x).data_ptr() == x.data_ptr()))(m.arange(4)))
case("torch", "to_dlpack", lambda m, f: (lambda c: (type(c).__name__, m.from_dlpack(c)))(f(m.arange(4))))
case("torch", "frombuffer", lambda m, f: f(bytearray(range(8)), dtype=m.int16, offset=2, count=2))
case("torch", "grid_sampler", lambda m, f: f(numbers(m, 1, 2, 4, 4), numbers(m, 1, 3, 3, 2) * 2 - 1, 0, 0, False))
case("torch", "svd_lowrank pca_lowrank", lambda m, f: (lambda u, s, v: (s, (u * s) @ v.mT))(*f(numbers(m, 6, 4), 4)))
case("torch", "lobpcg", lambda m, f: f(m.diag(m.arange(1.0, 13)), k=2, niter=60)[0])
case("torch", "slogdet", lambda m, f: f(numbers(m, 3, 3)))
case("torch", "vander", lambda m, f: f(m.arange(4), 3, True))
case("torch", "rand", lambda m, f: (f(3, 2), f((2,), dtype=m.float64)))
case("torch", "randperm", lambda m, f: f(9))
case("torch", "range", lambda m, f: f(1, 5, 1.5))
case("torch", "segment_reduce", lambda m, f: f(numbers(m, 6), "sum", lengths=m.tensor([2, 1, 3])))
case("torch", "vmap", lambda m, f: f(lambda a, b: (a * b).sum(), in_dims=(0, 1))(numbers(m, 3, 2), numbers(m, 2, 3)))


def from_numpy(m: Any, f: Any) -> Any:
    import numpy

    array = numpy.arange(6.0).reshape(2, 3)[:, ::2]
    x = f(array)
    array[0, 0] = 9
    return x, x.stride()


case("torch", "from_numpy", from_numpy)


def recurrent(gates: int, layers: bool) -> Any:
    def call(m: Any, f: Any) -> Any:
        weights = [numbers(m, gates * 3, 2) - 0.5, numbers(m, gates * 3, 3) - 0.5, numbers(m, gates * 3), numbers(m, gates * 3) - 0.3]
        if not layers:
            h = numbers(m, 4, 3)
            return f(numbers(m, 4, 2), (h, h * 2) if gates == 4 else h, *weights)
        h = numbers(m, 1, 4, 3)
        return f(numbers(m, 5, 4, 2), (h, h * 2) if gates == 4 else h, weights, True, 1, 0.0, False, False, False)

    return call


for _kind, _gates in (("gru", 3), ("lstm", 4), ("rnn_relu", 1), ("rnn_tanh", 1)):
    case("torch", _kind, recurrent(_gates, True))
    case("torch", f"{_kind}_cell", recurrent(_gates, False))

# ---- torch: types, constants, questions

DTYPES = """float16 float32 float64 complex32 complex64 complex128 uint8 uint16 uint32 uint64 int8 int16 int32 int64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
            float8_e8m0fnu"""  # fmt: skip
case(
    "torch",
    DTYPES,
    lambda m, f: (str(f), f.itemsize, f.is_floating_point, f.is_complex, f.is_signed, m.empty(2, dtype=f).dtype is f, m.ones(2).to(f).to(m.float32)),
)
case("torch", "e pi inf newaxis", lambda m, f: f)
case("torch", "nan", lambda m, f: f != f)
case(
    "torch",
    "channels_last channels_last_3d contiguous_format preserve_format legacy_contiguous_format",
    lambda m, f: (str(f), isinstance(f, m.memory_format)),
)
case("torch", "strided sparse_coo", lambda m, f: (str(f), isinstance(f, m.layout), m.ones(2).layout == f))
case("torch", "dtype device layout memory_format", lambda m, f: [isinstance(v, f) for v in (m.float32, m.device("cpu"), m.strided, m.channels_last)])
case(
    "torch",
    "Size",
    lambda m, f: (f((2, 3)).numel(), f([2, 3]) + (4,), isinstance(m.ones(2, 3).shape, f), repr(f((2,))), type(f((1, 2))[:1]).__name__),
)
case(
    "torch",
    "finfo",
    lambda m, f: [
        [getattr(f(d), k) for k in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")]
        for d in (m.float16, m.float32, m.float64, m.bfloat16)
    ],
)
case(
    "torch", "iinfo", lambda m, f: [[getattr(f(d), k) for k in ("bits", "max", "min", "dtype")] for d in (m.uint8, m.int8, m.int16, m.int32, m.int64)]
)
case("torch", "FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor BoolTensor",
     lambda m, f: (f([1, 0]), f(2).shape, isinstance(m.ones(1), f), isinstance(f([1]), f), repr(f)))  # fmt: skip
case("torch", "FloatStorage DoubleStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage CharStorage ByteStorage BoolStorage ComplexFloatStorage ComplexDoubleStorage Storage",
     lambda m, f: (f([1, 0]).tolist(), len(f(3)), str(f.dtype), isinstance(f(1), f), f([1]).type(), repr(f), raised(lambda: f(1, 2))))  # fmt: skip
case("torch", "TypedStorage", lambda m, f: (f([1, 2], dtype=m.int16).tolist(), f(3, dtype=m.int8).nbytes(), isinstance(m.ones(2).storage(), f)))
case(
    "torch",
    "UntypedStorage",
    lambda m, f: (f(4).nbytes(), f(3).size(), isinstance(m.ones(2).untyped_storage(), f), m.ones(2).untyped_storage().tolist()),
)
case("torch", "SymInt SymFloat SymBool", lambda m, f: [isinstance(v, f) for v in (1, 1.5, True, m.ones(1).size(0))])
case("torch", "Tensor", lambda m, f: (f([1, 2]), f(2, 3).shape, isinstance(m.ones(1), f), issubclass(m.nn.Parameter, f), f(m.ones(2))))
case(
    "torch",
    "Generator",
    lambda m, f: (lambda g: (g.initial_seed(), m.rand(3, generator=g), g.get_state().shape, g.device, f().manual_seed(5).initial_seed()))(
        f().manual_seed(3)
    ),
)
case("torch", "default_generator", lambda m, f: (f.manual_seed(4).initial_seed(), m.rand(2), isinstance(f, m.Generator)))
case("torch", "Event Stream", lambda m, f: isinstance(f, type))
case(
    "torch",
    "AcceleratorError OutOfMemoryError FatalError JITException",
    lambda m, f: (issubclass(f, Exception), issubclass(f, RuntimeError), str(f("text"))),
)
case("torch", "DisableTorchFunction DisableTorchFunctionSubclass", lambda m, f: _without_overrides(m, f))


def _without_overrides(m: Any, f: Any) -> Any:
    class Mine(m.Tensor):
        pass

    x = m.ones(2).as_subclass(Mine)
    with f():
        inside = type(x + 1) is m.Tensor
    return inside, type(x + 1) is Mine


case("torch", "numel", lambda m, f: f(m.ones(2, 3)))
case(
    "torch",
    "is_complex is_conj is_distributed is_floating_point is_inference is_neg is_signed",
    lambda m, f: [f(m.ones(1, dtype=d)) for d in (m.float32, m.int64, m.uint8, m.complex64)],
)
case("torch", "is_nonzero", lambda m, f: (f(m.tensor(2)), f(m.tensor([0.0])), raised(lambda: f(m.ones(2)))[0]))
case("torch", "is_same_size", lambda m, f: (f(m.ones(2, 3), m.ones(2, 3)), f(m.ones(2), m.ones(3))))
case("torch", "is_tensor is_storage", lambda m, f: [f(v) for v in (m.ones(1), m.ones(1).untyped_storage(), m.nn.Parameter(m.ones(1)), 3)])
case("torch", "get_device", lambda m, f: f(m.ones(1)))
case("torch", "typename", lambda m, f: (f(m.ones(1)), f(m.ones(1, dtype=m.int16)), f(3).rpartition(".")[2]))
case(
    "torch",
    "is_vulkan_available is_warn_always_enabled compiled_with_cxx11_abi is_grad_enabled is_inference_mode_enabled get_default_dtype get_default_device",
    lambda m, f: f(),
)
case("torch", "has_lapack has_openmp has_spectral", lambda m, f: f)
case("torch", "get_num_threads get_num_interop_threads", lambda m, f: isinstance(f(), int) and f() >= 1)
case("torch", "get_file_path", lambda m, f: f("torch", "x", "y").split("/")[-2:])
case("torch", "classproperty", lambda m, f: type("C", (), {"value": f(lambda cls: cls.__name__)}).value)
case("torch", "get_device_module", lambda m, f: f("cpu") is m.cpu)
case("torch", "sym_int sym_float sym_not", lambda m, f: (f(2), f(True), raised(lambda: f(2.5))))
case("torch", "sym_max sym_min", lambda m, f: (f(1, 2), f(1, 2.0), f(3.5, 2)))
case("torch", "sym_sqrt", lambda m, f: (f(4), raised(lambda: f(-1))))
case("torch", "sym_sum", lambda m, f: (f([1, 2]), f((1, 2.5)), f(1, 2, 3)))
case("torch", "sym_ite", lambda m, f: (f(True, 1, 2), f(False, 1.0, 2.0), raised(lambda: f(True, 1, 2.0))))
case("torch", "sym_fresh_size", lambda m, f: f(3))
case("torch", "sym_constrain_range", lambda m, f: (f(3, min=1, max=4), raised(lambda: f(3, min=5, max=8))))
case("torch", "sym_constrain_range_for_size", lambda m, f: (f(3, min=2, max=8), raised(lambda: f(3, min=1, max=2))[0]))
case("torch", "cond", lambda m, f: [f(p, lambda a: a + 1, lambda a: a - 1, (m.ones(2),)) for p in (True, m.tensor(False))])
case(
    "torch",
    "eig lstsq matrix_rank solve symeig",
    lambda m, f: raised(lambda: f(m.eye(2), *((m.eye(2),) if f.__name__ in ("lstsq", "solve") else ()))),
)
case("torch", "thread_safe_generator", lambda m, f: f())
case("torch", "from_file", lambda m, f: raised(lambda: f("/nowhere/at/all", size=1)))
case("torch", "save", lambda m, f: (lambda b: (f({"a": m.arange(3)}, b), b.seek(0), m.load(b))[2])(__import__("io").BytesIO()))
case("torch", "load", lambda m, f: (lambda b: (m.save([m.arange(3), "text"], b), b.seek(0), f(b))[2])(__import__("io").BytesIO()))
case(
    "torch",
    "set_printoptions",
    lambda m, f: (f(precision=2, sci_mode=False), repr(m.tensor([1.23456, 1000])), f(profile="default"), repr(m.tensor(1.23456)))[1::2],
)

# ---- torch: states of the process and the thread

case("torch", "manual_seed", lambda m, f: (f(3).initial_seed(), m.rand(2), f(3).initial_seed(), m.rand(2)))
case("torch", "seed", lambda m, f: (isinstance(f(), int), m.initial_seed() != 0))
case("torch", "initial_seed", lambda m, f: (m.manual_seed(8), f())[1])
case("torch", "get_rng_state", lambda m, f: (lambda s: (s.shape, str(s.dtype), m.rand(1), m.set_rng_state(s), m.rand(1)))(f()))
case("torch", "set_rng_state", lambda m, f: (lambda s: (m.rand(1), f(s), m.rand(1)))(m.get_rng_state()))
case(
    "torch",
    "no_grad enable_grad inference_mode",
    lambda m, f: (lambda x: [(_inside(f, lambda: (x * 2).requires_grad)), (x * 2).requires_grad, f()(lambda: m.is_grad_enabled())()])(
        m.ones(1, requires_grad=True)
    ),
)
case("torch", "set_grad_enabled", lambda m, f: (_inside(lambda: f(False), m.is_grad_enabled), m.is_grad_enabled()))


def _inside(context: Any, call: Any) -> Any:
    with context():
        return call()


def setting(reader: str, values: Any) -> Any:
    """Set each value in turn, read it, and put back what was there."""

    def call(m: Any, f: Any) -> Any:
        read = getattr(m, reader)
        before = read()
        try:
            return [(raised(lambda v=v: f(*v) if isinstance(v, tuple) else f(v)), read()) for v in values(m)]
        finally:
            f(before) if not isinstance(before, bool) or f.__name__ != "set_deterministic_debug_mode" else None

    return call


case("torch", "set_default_dtype", setting("get_default_dtype", lambda m: [m.float64, m.float16]))
case("torch", "set_deterministic_debug_mode", setting("get_deterministic_debug_mode", lambda m: [1, "error", 0, 7]))
case("torch", "get_deterministic_debug_mode are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled",
     lambda m, f: [(m.use_deterministic_algorithms(a, warn_only=b), f()) for a, b in ((True, False), (True, True), (False, False))])  # fmt: skip
case("torch", "use_deterministic_algorithms", lambda m, f: [(f(v), m.are_deterministic_algorithms_enabled()) for v in (True, False)])
case("torch", "set_float32_matmul_precision", setting("get_float32_matmul_precision", lambda m: ["high", "medium", "highest"]))
case("torch", "get_float32_matmul_precision", lambda m, f: f())
case("torch", "set_num_threads", setting("get_num_threads", lambda m: [1, 2]))
case("torch", "set_warn_always", setting("is_warn_always_enabled", lambda m: [True, False]))
case("torch", "set_default_device", lambda m, f: (f("meta"), m.ones(1).device, f(None), m.ones(1).device))
case(
    "torch",
    "set_default_tensor_type",
    lambda m, f: (f(m.DoubleTensor), m.ones(1).dtype, f("torch.FloatTensor"), m.ones(1).dtype, raised(lambda: f(m.IntTensor))[0]),
)
case("torch", "set_flush_denormal", lambda m, f: (f(True), m.tensor([1e-323], dtype=m.float64) * 1, f(False)))
case("torch", "set_num_interop_threads", lambda m, f: [raised(lambda v=v: f(v)) for v in ("2", 0)][1])
case("torch", "is_anomaly_enabled is_anomaly_check_nan_enabled", lambda m, f: (m.set_anomaly_enabled(True, True), f(), m.set_anomaly_enabled(True, False), f(), m.set_anomaly_enabled(False)),
)
case("torch", "set_anomaly_enabled", lambda m, f: (f(True), m.is_anomaly_enabled(), f(False), m.is_anomaly_enabled()))
case("torch", "autocast", lambda m, f: _inside(lambda: f("cpu", dtype=m.bfloat16), lambda: (m.ones(2, 2) @ m.ones(2, 2)).dtype))
case(
    "torch",
    "autocast_increment_nesting autocast_decrement_nesting",
    lambda m, f: (f(), (m.autocast_decrement_nesting if "inc" in f.__name__ else m.autocast_increment_nesting)()),
)
case("torch", "clear_autocast_cache", lambda m, f: f())
case("torch", "get_autocast_dtype", lambda m, f: (f("cpu"), f("cuda")))
case("torch", "get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled", lambda m, f: f())
case("torch", "set_autocast_enabled", lambda m, f: (f("cpu", True), m.is_autocast_enabled("cpu"), f("cpu", False), m.is_autocast_enabled("cpu")))
case("torch", "set_autocast_cpu_enabled", lambda m, f: (f(True), m.is_autocast_cpu_enabled(), f(False), m.is_autocast_cpu_enabled()))
case("torch", "set_autocast_cache_enabled", lambda m, f: (f(False), m.is_autocast_cache_enabled(), f(True)))
case("torch", "set_autocast_dtype", lambda m, f: (f("cpu", m.float16), m.get_autocast_dtype("cpu"), f("cpu", m.bfloat16)))
case("torch", "set_autocast_cpu_dtype", lambda m, f: (f(m.float16), m.get_autocast_cpu_dtype(), f(m.bfloat16)))
case("torch", "get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled", lambda m, f: f())
for _kind, _before in (("ipu", "float16"), ("xla", "bfloat16")):
    case("torch", f"set_autocast_{_kind}_dtype", lambda m, f, k=_kind, b=_before: (f(m.float64), m.get_autocast_dtype(k), f(getattr(m, b)), m.get_autocast_dtype(k)))
    case("torch", f"set_autocast_{_kind}_enabled", lambda m, f, k=_kind: (f(True), m.is_autocast_enabled(k), f(False), m.is_autocast_enabled(k)))


def _updated_statistics(m: Any, f: Any) -> Any:
    x = m.arange(60.0).reshape(4, 3, 5).cos()
    mean, var = m.tensor([1.0, 2.0, 3.0]), m.tensor([3.0, 2.0, 1.0])
    return f(x, mean, var, 0.1), mean, var, f(x[:, :, 0], None, None, 0.5)


case("torch", "batch_norm_update_stats", _updated_statistics)
case("torch", "set_autocast_gpu_dtype", lambda m, f: (f(m.bfloat16), m.get_autocast_gpu_dtype(), f(m.float16)))
case(
    "torch",
    "GradScaler",
    lambda m, f: (lambda s: (s.is_enabled(), s.get_scale(), s.scale(m.ones(2)), s.get_growth_factor()))(f("cpu", init_scale=4.0)),
)


def while_loop(m: Any, f: Any) -> Any:
    return raised(lambda: f(lambda i: i < 5, lambda i: (i + 1,), (m.tensor(0),)))


# PyTorch's compiles its functions first, which takes seconds and a C++ compiler; tests/compat/test_older_names.py has ours alone.
_ = while_loop
case("torch", "detach_", lambda m, f: (lambda y: (f(y) is y, y.requires_grad))(numbers(m, 3, grad=True) * 2))
