"""Calls of modules, functions, initialisations and utilities of nn that the databases do not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .written import case, numbers, raised


def images(m: Any, channels: int = 4) -> Any:
    return numbers(m, 2, channels, 4, 4) - 0.3


# ---- modules

for _names, _arguments, _inputs in (
    ("AlphaDropout Dropout FeatureAlphaDropout Dropout1d", (0.4,), lambda m: [numbers(m, 3, 4, 5)]),
    ("Dropout2d", (0.4,), lambda m: [images(m)]),
    ("Dropout3d", (0.4,), lambda m: [numbers(m, 2, 3, 2, 2, 2)]),
    ("ChannelShuffle", (2,), lambda m: [images(m)]),
    ("CosineSimilarity PairwiseDistance", (), lambda m: [numbers(m, 3, 4), numbers(m, 3, 4) ** 2 - 0.4]),
    ("CrossMapLRN2d", (3,), lambda m: [images(m)]),
    ("Flatten", (), lambda m: [images(m)]),
    ("Unflatten", (1, (2, 2)), lambda m: [images(m)]),
    ("Fold", ((4, 5), (2, 2)), lambda m: [numbers(m, 1, 8, 12)]),
    ("Unfold", ((2, 2),), lambda m: [images(m)]),
    ("Hardsigmoid Identity", (), lambda m: [images(m)]),
    ("RReLU", (), lambda m: [images(m)]),
    ("PixelShuffle", (2,), lambda m: [images(m)]),
    ("PixelUnshuffle", (2,), lambda m: [images(m)]),
    ("Upsample UpsamplingBilinear2d UpsamplingNearest2d", (None, 2), lambda m: [images(m)]),
    ("NLLLoss2d", (), lambda m: [images(m), m.ones(2, 4, 4, dtype=m.int64)]),
    ("TripletMarginLoss TripletMarginWithDistanceLoss", (), lambda m: [numbers(m, 2, 3), numbers(m, 2, 3) ** 2, numbers(m, 2, 3) - 1]),
):

    def _call(m: Any, f: Any, arguments: Any = _arguments, inputs: Callable[[Any], Any] = _inputs) -> Any:
        module = f(*arguments)
        given = inputs(m)
        result = module(*given)
        return result, module.eval()(*given), module.extra_repr()

    case("nn", _names, _call)


def with_numbers(m: Any, module: Any) -> Any:
    """The module in double precision with parameters that do not depend on random numbers."""
    module = module.double()
    with m.no_grad():
        for p in module.parameters():
            p.copy_(numbers(m, *p.shape) - 0.4)
    return module


def pooled(m: Any, f: Any) -> Any:
    dims = int(f.__name__[-2])
    x = numbers(m, 1, 2, *[4] * dims)
    y, where = getattr(m.nn.functional, f"max_pool{dims}d")(x, 2, return_indices=True)
    return f(2)(y, where)


def lazy(m: Any, f: Any) -> Any:
    kind = f.__name__
    module = f(3) if kind == "LazyLinear" else f()
    before = type(next(module.parameters())).__name__ if next(iter(module.parameters()), None) is not None else None
    x = numbers(m, 2, 4) if kind == "LazyLinear" else numbers(m, 3, 4, *[3] * int(kind[-2]))
    module(x.float())
    return before, type(module).__name__, [tuple(p.shape) for p in module.parameters()], sorted(module.state_dict())


def container(m: Any, f: Any) -> Any:
    parts = [m.nn.Linear(2, 3), m.nn.ReLU()]
    with_numbers(m, parts[0])
    if f.__name__ == "ModuleDict":
        made = f({"a": parts[0], "b": parts[1]})
        return list(made.keys()), made["a"](numbers(m, 1, 2)), len(made), made.pop("b") is parts[1], repr(made)
    if f.__name__ == "Sequential":
        made = f(*parts)
        return made(numbers(m, 1, 2)), repr(made), len(made[:1]), sorted(made.state_dict()), made.append(m.nn.Tanh())(numbers(m, 1, 2))
    made = f(parts)
    return len(made), made[0] is parts[0], repr(made), len(made + [m.nn.Tanh()]), [n for n, _ in made.named_parameters()]


def parameters(m: Any, f: Any) -> Any:
    a, b = m.nn.Parameter(numbers(m, 2)), m.nn.Parameter(numbers(m, 3))
    made = f({"a": a, "b": b}) if f.__name__ == "ParameterDict" else f([a, b])
    return [(n, p) for n, p in made.named_parameters()], len(made), (made["b"] if f.__name__ == "ParameterDict" else made[1]) is b, repr(made)


case("nn", "MaxUnpool1d MaxUnpool2d MaxUnpool3d", pooled)
case("nn", "LazyLinear LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d", lazy)
case("nn", "ModuleDict ModuleList Sequential", container)
case("nn", "ParameterDict ParameterList", parameters)
case("nn", "Parameter", lambda m, f: (lambda p: (p, p.requires_grad, isinstance(p, m.Tensor), f(m.ones(1), False).requires_grad, repr(p)))(f(numbers(m, 2))))
case("nn", "Buffer", lambda m, f: (lambda b: (b, isinstance(b, f), b.persistent, f(m.ones(1), persistent=False).persistent))(f(numbers(m, 2))))
case("nn", "UninitializedParameter UninitializedBuffer", lambda m, f: (lambda p: (raised(lambda: p.shape)[0], p.materialize((2, 3)), p.shape, type(p).__name__)[::2])(f()))
case("nn", "EmbeddingBag", lambda m, f: with_numbers(m, f(5, 3, mode="sum"))(m.tensor([1, 4, 0, 1]), m.tensor([0, 2])))
case("nn", "AdaptiveLogSoftmaxWithLoss", lambda m, f: (lambda a: (a(numbers(m, 4, 6), m.tensor([0, 3, 7, 9])), a.log_prob(numbers(m, 2, 6)), a.predict(numbers(m, 3, 6))))(with_numbers(m, f(6, 10, [2, 5]))))
case("nn", "SyncBatchNorm", lambda m, f: (sorted(f(3).state_dict()), type(f.convert_sync_batchnorm(m.nn.Sequential(m.nn.BatchNorm1d(2)))[0]).__name__))
case("nn", "DataParallel", lambda m, f: f(with_numbers(m, m.nn.Linear(2, 3)))(numbers(m, 4, 2)))
case("nn", "TransformerDecoder", lambda m, f: with_numbers(m, f(m.nn.TransformerDecoderLayer(4, 2, 8, 0.0, batch_first=True), 2)).eval()(numbers(m, 2, 3, 4), numbers(m, 2, 5, 4)))
case("nn", "Container", lambda m, f: (lambda c: [n for n, _ in c.named_children()])(f(a=m.nn.ReLU())))
case("nn", "RNNBase", lambda m, f: (lambda r: (sorted(n for n, _ in r.named_parameters()), with_numbers(m, r).weight_hh_l0))(f("LSTM", 2, 3)))
case("nn", "RNNCellBase", lambda m, f: sorted((n, tuple(p.shape)) for n, p in f(2, 3, True, 4).named_parameters()))
case("nn", "LinearCrossEntropyOptions", lambda m, f: sorted(vars(f())) if hasattr(f(), "__dict__") else f.__name__)


def plain_module(m: Any, f: Any) -> Any:
    class Net(f):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = m.nn.Linear(2, 3)
            self.register_buffer("count", m.zeros(1))

        def forward(self, x: Any) -> Any:
            return self.layer(x)

    net = with_numbers(m, Net())
    calls = []
    net.register_forward_hook(lambda module, args, out: calls.append(out.shape))
    return net(numbers(m, 4, 2)), calls, sorted(net.state_dict()), repr(net), net.training, net.eval().training, [n for n, _ in net.named_modules()], raised(lambda: net.absent)[0]


case("nn", "Module", plain_module)

# ---- functions

F = "nn.functional"
case(F, "adaptive_max_pool1d_with_indices", lambda m, f: f(numbers(m, 2, 3, 8), 4))
case(F, "adaptive_max_pool2d_with_indices", lambda m, f: f(images(m), 2))
case(F, "adaptive_max_pool3d_with_indices", lambda m, f: f(numbers(m, 1, 2, 4, 4, 4), 2))
case(F, "max_pool1d_with_indices", lambda m, f: f(numbers(m, 2, 3, 8), 2))
case(F, "max_pool2d_with_indices", lambda m, f: f(images(m), 2))
case(F, "max_pool3d_with_indices", lambda m, f: f(numbers(m, 1, 2, 4, 4, 4), 2))
case(F, "fractional_max_pool2d_with_indices", lambda m, f: f(images(m), 2, output_size=2, _random_samples=numbers(m, 2, 4, 2)))
case(F, "fractional_max_pool3d_with_indices", lambda m, f: f(numbers(m, 1, 2, 4, 4, 4), 2, output_size=2, _random_samples=numbers(m, 1, 2, 3)))
case(F, "affine_grid", lambda m, f: f(numbers(m, 1, 2, 3), (1, 1, 3, 2), align_corners=False))
case(F, "celu_ elu_ selu_ relu_ leaky_relu_ hardtanh_ rrelu_", lambda m, f: (lambda x: (f(x) is x, x))(numbers(m, 5) * 3 - 1.5))
case(F, "threshold_", lambda m, f: (lambda x: (f(x, 0.4, 2.0) is x, x))(numbers(m, 5)))
case(F, "conv_tbc", lambda m, f: f(numbers(m, 5, 2, 3), numbers(m, 3, 3, 4), numbers(m, 4), 1))
case(F, "dropout1d", lambda m, f: (f(numbers(m, 3, 4, 5), 0.4), f(numbers(m, 3, 4, 5), 0.4, False)))
case(F, "fold", lambda m, f: f(numbers(m, 1, 8, 12), (4, 5), (2, 2)))
case(F, "gumbel_softmax", lambda m, f: (f(numbers(m, 3, 4), 0.7), f(numbers(m, 3, 4), hard=True)))
case(F, "lp_pool1d", lambda m, f: f(numbers(m, 2, 3, 8), 3.0, 2))
case(F, "lp_pool2d", lambda m, f: f(images(m) + 0.3, 3.0, 2))
case(F, "lp_pool3d", lambda m, f: f(numbers(m, 1, 2, 4, 4, 4), 3.0, 2))
case(F, "native_channel_shuffle", lambda m, f: f(images(m), 2))
case(F, "upsample", lambda m, f: f(images(m), scale_factor=2))
case(F, "grouped_mm", lambda m, f: f((numbers(m, 16, 16) - 0.5).bfloat16(), (numbers(m, 2, 16, 16) - 0.5).bfloat16(), offs=m.tensor([8, 16], dtype=m.int32)))
case(F, "has_torch_function has_torch_function_variadic", lambda m, f: (f((m.ones(1),)) if f.__name__.endswith("function") else f(m.ones(1), 2)))
case(F, "has_torch_function_unary", lambda m, f: f(m.ones(1)))
case(F, "handle_torch_function", lambda m, f: type(f).__name__ == "function")
case(F, "assert_int_or_pair", lambda m, f: (f([1, 2], "stride", "{} is wrong"), raised(lambda: f([1, 2, 3], "stride", "{} is wrong"))[0]))
case(F, "boolean_dispatch", lambda m, f: (lambda g: (g(1, which=True), g(1, which=False), g(1)))(f("which", 1, False, lambda x, which=False: x + 1, lambda x, which=False: x - 1, "m", "g")))

# ---- initialisation and utilities

I = "nn.init"  # noqa: E741
case(I, "calculate_gain", lambda m, f: [f(k) for k in ("linear", "relu", "tanh", "selu")] + [f("leaky_relu", 0.3)])
case(I, "constant constant_", lambda m, f: f(m.empty(2, 3), 0.7))
case(I, "dirac dirac_", lambda m, f: f(m.empty(4, 2, 3)))
case(I, "eye eye_", lambda m, f: f(m.empty(2, 3)))
case(I, "ones_ zeros_", lambda m, f: f(m.empty(2, 3)))
case(I, """kaiming_normal kaiming_normal_ kaiming_uniform kaiming_uniform_ normal normal_ orthogonal orthogonal_ trunc_normal_ uniform uniform_ xavier_normal xavier_normal_ xavier_uniform
     xavier_uniform_""", lambda m, f: (f(m.empty(4, 5)), f(m.empty(3, 20))))  # fmt: skip
case(I, "sparse sparse_", lambda m, f: f(m.empty(6, 5), 0.3))

U = "nn.utils"


def gradients(m: Any) -> list[Any]:
    found = []
    for i, shape in enumerate(((2, 3), (4,))):
        p = m.nn.Parameter(numbers(m, *shape))
        p.grad = numbers(m, *shape) * (i + 1) * 3
        found.append(p)
    return found


case(U, "clip_grad_norm clip_grad_norm_", lambda m, f: (lambda ps: (f(ps, 1.5, 2.0), [p.grad for p in ps]))(gradients(m)))
case(U, "clip_grad_value_", lambda m, f: (lambda ps: (f(ps, 0.9), [p.grad for p in ps]))(gradients(m)))
case(U, "clip_grads_with_norm_", lambda m, f: (lambda ps: (f(ps, 1.5, m.tensor(6.0)), [p.grad for p in ps]))(gradients(m)))
case(U, "get_total_norm", lambda m, f: [f([p.grad for p in gradients(m)], k) for k in (1.0, 2.0, float("inf"))])
case(U, "convert_conv2d_weight_memory_format", lambda m, f: f(m.nn.Conv2d(4, 8, 3), m.channels_last).weight.stride())
case(U, "convert_conv3d_weight_memory_format", lambda m, f: f(m.nn.Conv3d(4, 8, 3), m.channels_last_3d).weight.stride())


def norm_with_numbers(m: Any, norm: Any) -> Any:
    norm = with_numbers(m, norm).eval()
    norm.running_mean.copy_(numbers(m, *norm.running_mean.shape))
    norm.running_var.copy_(numbers(m, *norm.running_var.shape))
    return norm


case(U, "fuse_conv_bn_eval", lambda m, f: f(with_numbers(m, m.nn.Conv2d(4, 3, 3)).eval(), norm_with_numbers(m, m.nn.BatchNorm2d(3)))(images(m)))
case(U, "fuse_linear_bn_eval", lambda m, f: f(with_numbers(m, m.nn.Linear(4, 3)).eval(), norm_with_numbers(m, m.nn.BatchNorm1d(3)))(numbers(m, 2, 4)))
case(U, "fuse_conv_bn_weights", lambda m, f: f(numbers(m, 3, 2, 3, 3), None, numbers(m, 3), numbers(m, 3), 1e-5, numbers(m, 3), numbers(m, 3)))
case(U, "fuse_linear_bn_weights", lambda m, f: f(numbers(m, 3, 2), numbers(m, 3), numbers(m, 3), numbers(m, 3), 1e-5, numbers(m, 3), numbers(m, 3)))
case(U, "parameters_to_vector", lambda m, f: f(gradients(m)))
case(U, "vector_to_parameters", lambda m, f: (lambda ps: (f(numbers(m, 10), ps), ps))(gradients(m)))
case(U, "skip_init", lambda m, f: (lambda layer: (type(layer).__name__, tuple(layer.weight.shape)))(f(m.nn.Linear, 2, 3)))
case(U, "weight_norm", lambda m, f: (lambda layer: (layer(numbers(m, 2, 4)), sorted(n for n, _ in layer.named_parameters()), layer.weight_g))(f(with_numbers(m, m.nn.Linear(4, 3)))))
case(U, "remove_weight_norm", lambda m, f: (lambda layer: (f(layer) is layer, sorted(n for n, _ in layer.named_parameters()), layer.weight))(m.nn.utils.weight_norm(with_numbers(m, m.nn.Linear(4, 3)))))
case(U, "spectral_norm", lambda m, f: (lambda layer: (layer(numbers(m, 2, 4)), sorted(layer.state_dict())))(f(with_numbers(m, m.nn.Linear(4, 3)))))
case(U, "remove_spectral_norm", lambda m, f: (lambda layer: (f(layer) is layer, sorted(layer.state_dict()), layer.weight))(m.nn.utils.spectral_norm(with_numbers(m, m.nn.Linear(4, 3)))))
case("nn", "TransformerEncoder", lambda m, f: with_numbers(m, f(m.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2)).train()(numbers(m, 2, 3, 4)))
