"""The context autocast beside PyTorch on the CPU: dtypes, the cache of weights, nesting, threads, backward, checkpoints, custom Functions."""

from __future__ import annotations

import importlib
import threading
import warnings

import numpy as np
import pytest
import torch

import tensorrt_lite as trt

BOTH = pytest.mark.parametrize("library", [trt, torch], ids=["ours", "theirs"])


def name(dtype):
    return str(dtype).rpartition(".")[2]


def square(library, dtype="float32", **options):
    return library.arange(16, dtype=getattr(library, dtype), **options).reshape(4, 4) / 16


@pytest.fixture(autouse=True)
def untouched():
    """No test leaves autocast on."""
    yield
    for library in (trt, torch):
        assert not library.is_autocast_enabled("cpu")
        assert library.is_autocast_cache_enabled()
        assert name(library.get_autocast_dtype("cpu")) == "bfloat16"


CALLS = {
    "product": lambda lib, x: x @ x,
    "matrix with a vector": lambda lib, x: lib.matmul(x, x[0]),
    "mv casts nothing on the CPU": lambda lib, x: lib.mv(x, x[0]),
    "linear": lambda lib, x: lib.nn.functional.linear(x, x, x[0]),
    "convolution": lambda lib, x: lib.nn.functional.conv2d(x[None, None], x[None, None]),
    "transposed convolution": lambda lib, x: lib.nn.functional.conv_transpose2d(x[None, None], x[None, None]),
    "attention": lambda lib, x: lib.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "sum": lambda lib, x: x + x,
    "softmax": lambda lib, x: lib.softmax(x, 0),
    "mean squared error": lambda lib, x: lib.nn.functional.mse_loss(x, x),
    "cross entropy": lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 2, 3])),
    "prod": lambda lib, x: x.prod(),
    "Fourier transform": lambda lib, x: lib.fft.fft(x),
    "distances": lambda lib, x: lib.cdist(x, x),
    "reflected margins": lambda lib, x: lib.nn.functional.pad(x, (1, 1), mode="reflect"),
    "circular margins": lambda lib, x: lib.nn.functional.pad(x, (1, 1), mode="circular"),
    "vecdot": lambda lib, x: lib.linalg.vecdot(x, x),
    "prelu": lambda lib, x: lib.nn.functional.prelu(x, x[0, :1]),
    "prelu of two types": lambda lib, x: lib.nn.functional.prelu(x, x[0, :1].float()),
    "quantile": lambda lib, x: lib.quantile(x, 0.5),
    "in place": lambda lib, x: lib.zeros(4, 4, dtype=x.dtype).addmm_(x, x),
    "into out": lambda lib, x: lib.mm(x, x, out=lib.empty(4, 4, dtype=x.dtype)),
}


def test_prelu_behind_a_convolution():
    gradients = []
    for library in (trt, torch):
        library.manual_seed(0)
        model = library.nn.Sequential(library.nn.Conv2d(1, 4, 3), library.nn.PReLU(4))
        with library.autocast("cpu", dtype=library.bfloat16):
            y = model(library.linspace(-1, 1, 36).reshape(1, 1, 6, 6))
        y.sum().backward()
        assert name(y.dtype) == "bfloat16" and name(model[1].weight.grad.dtype) == "float32"
        gradients.append(model[1].weight.grad.tolist())
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-2)
    with pytest.raises(RuntimeError, match="prelu: Type promoting not supported"):
        trt.nn.functional.prelu(trt.ones(3).bfloat16(), trt.ones(1))


@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("given", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_results_have_the_dtypes_of_pytorch(call, given, low):
    found = []
    for library in (trt, torch):
        with library.autocast("cpu", dtype=getattr(library, low)):
            try:
                found.append(name(call(library, square(library, given)).dtype))
            except Exception as error:
                found.append(type(error).__name__)
    if found[1] == "NotImplementedError" or (found[1] == "RuntimeError" and given == "bfloat16"):
        pytest.skip("PyTorch has no kernel for this")
    assert found[0] == found[1]


@BOTH
def test_cat_promotes_and_refuses_another_half_type(library):
    x = square(library)
    with library.autocast("cpu"):
        assert name(library.cat([x.bfloat16(), x]).dtype) == "float32"
        assert name(library.stack([x.bfloat16(), x.bfloat16()]).dtype) == "bfloat16"
        with pytest.raises(RuntimeError, match="promote|prioritize"):
            library.cat([x.half(), x.half()])


@BOTH
def test_contexts_nest_and_restore_what_was_outside(library):
    x = square(library)
    with library.autocast("cpu"):
        with library.autocast("cpu", enabled=False):
            assert name((x @ x).dtype) == "float32"
        with library.autocast("cpu", dtype=library.float16, cache_enabled=False):
            assert name((x @ x).dtype) == "float16"
            assert not library.is_autocast_cache_enabled()
        assert name((x @ x).dtype) == "bfloat16"
    assert name((x @ x).dtype) == "float32"


def test_one_context_may_be_entered_twice():
    x, context = square(trt), trt.autocast("cpu")
    with context, context:
        assert (x @ x).dtype is trt.bfloat16
    assert (x @ x).dtype is trt.float32


@BOTH
def test_state_is_restored_after_an_error(library):
    with pytest.raises(ZeroDivisionError), library.autocast("cpu"):
        1 / 0
    assert not library.is_autocast_enabled("cpu")


@BOTH
def test_decorated_functions_run_inside(library):
    @library.autocast("cpu")
    def product(x):
        """doc"""
        return x @ x

    assert product.__name__ == "product"
    assert name(product(square(library)).dtype) == "bfloat16"
    with pytest.raises(TypeError, match="requires a callable"):
        library.autocast("cpu")(3)


@BOTH
def test_the_state_is_the_threads_own(library):
    seen = []
    with library.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(library.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert seen == [False]


def cast_node(y, index=1):
    return y.grad_fn.next_functions[index][0]


@BOTH
def test_a_weight_is_cast_once(library):
    x, w = square(library), square(library).requires_grad_()
    w = w.detach().requires_grad_()
    with library.autocast("cpu"):
        assert cast_node(x @ w) is cast_node(x @ w)
        library.clear_autocast_cache()
        first = x @ w
        with library.no_grad():
            x @ w
        assert cast_node(x @ w) is cast_node(first)
    with library.autocast("cpu"):
        assert cast_node(x @ w) is not cast_node(first)
    with library.autocast("cpu", cache_enabled=False):
        assert cast_node(x @ w) is not cast_node(x @ w)


@BOTH
def test_a_weight_used_first_without_gradients_has_them_later(library):
    x, w = square(library), square(library).detach().requires_grad_()
    with library.autocast("cpu"):
        with library.no_grad():
            x @ w
        (x @ w).float().sum().backward()
    assert w.grad is not None and name(w.grad.dtype) == "float32"


def test_a_weight_that_was_written_to_is_cast_again():
    x, w = square(trt), square(trt).detach().requires_grad_()
    with trt.autocast("cpu"):
        before = x @ w
        with trt.no_grad():
            w.zero_()
        assert (x @ w).abs().sum().item() == 0 != before.abs().sum().item()


def test_the_cache_keeps_no_tensor_alive_without_a_graph():
    import gc
    import weakref

    x, w = square(trt), square(trt).detach().requires_grad_()
    with trt.autocast("cpu"):
        x @ w
        gone = weakref.ref(w)
        trt.clear_autocast_cache()
        del w
        gc.collect()
        assert gone() is None


@BOTH
def test_backward_keeps_the_callers_state(library):
    seen = []

    class Product(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append((library.is_autocast_enabled("cpu"), name((g.reshape(4, 4) @ g.reshape(4, 4)).dtype)))
            return g * 2

    x = square(library).detach().requires_grad_()
    Product.apply(x).sum().backward()
    y = Product.apply(x).sum()
    with library.autocast("cpu"):
        y.backward()
    assert seen == [(False, "float32"), (True, "bfloat16")]


@BOTH
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_recompute_in_the_state_of_the_forward_pass(library, reentrant):
    from importlib import import_module

    checkpoint = import_module(f"{library.__name__}.utils.checkpoint").checkpoint
    seen = []

    def run(x):
        y = x @ x
        seen.append(name(y.dtype))
        return y.sin()

    x = square(library).detach().requires_grad_()
    with library.autocast("cpu"):
        y = checkpoint(run, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert seen == ["bfloat16", "bfloat16"]
    assert name(x.grad.dtype) == "float32"


def test_deeply_nested_backward_passes_keep_the_state():
    seen = []

    class Nested(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if ctx.depth:
                with trt.enable_grad():
                    Nested.apply(trt.ones(1, requires_grad=True), ctx.depth - 1).sum().backward()
            else:
                seen.append((trt.is_autocast_enabled("cpu"), trt.get_autocast_dtype("cpu")))
            return g, None

    y = Nested.apply(trt.ones(1, requires_grad=True), 150).sum()
    with trt.autocast("cpu", dtype=trt.float16):
        y.backward()
    assert seen == [(True, trt.float16)]


@BOTH
@pytest.mark.parametrize("cast", [False, True])
def test_custom_functions_follow_the_forward_pass(library, cast):
    seen = []

    class Product(library.autograd.Function):
        @staticmethod
        @library.amp.custom_fwd(device_type="cpu", cast_inputs=library.float32 if cast else None)
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            seen.append((library.is_autocast_enabled("cpu"), name(x.dtype)))
            return x @ w

        @staticmethod
        @library.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            seen.append(library.is_autocast_enabled("cpu"))
            return g @ w.t(), x.t() @ g

    x, w = square(library).bfloat16().requires_grad_(), square(library).bfloat16().requires_grad_()
    with library.autocast("cpu"):
        y = Product.apply(x, w)
    assert name(y.dtype) == ("float32" if cast else "bfloat16")
    y.float().sum().backward()
    assert seen == [(not cast, "float32" if cast else "bfloat16"), not cast]
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        library.amp.custom_fwd(device_type=3)


@BOTH
def test_custom_operators_cast_by_their_registration(library):
    seen = []

    @library.library.custom_op(f"amptest::product_{library.__name__}", mutates_args=(), schema="(Tensor x, Tensor w) -> Tensor")
    def product(x, w):
        seen.append((name(x.dtype), name(w.dtype), library.is_autocast_enabled("cpu")))
        return x @ w

    product.register_autograd(lambda ctx, g: (g, g))
    library.library.register_autocast(product, "cpu", library.bfloat16)
    x = square(library).detach().requires_grad_()
    product(x, x.detach())
    with library.autocast("cpu"):
        y = product(x, x.detach().double().float())
        product(x.detach().double(), x.detach().double())
    y.float().sum().backward()
    assert seen == [("float32", "float32", False), ("bfloat16", "bfloat16", False), ("float64", "float64", False)]
    assert (name(y.dtype), name(x.grad.dtype)) == ("bfloat16", "float32")
    with pytest.raises(ValueError, match="does not support autocast"):
        library.library.register_autocast(product, "meta", library.bfloat16)


@BOTH
def test_functions_of_the_state(library):
    assert [library.amp.is_autocast_available(d) for d in ("cpu", "cuda", "meta")] == [True, True, False]
    library.set_autocast_dtype("cpu", library.float16)
    library.set_autocast_enabled("cpu", True)
    assert name((square(library) @ square(library)).dtype) == "float16"
    assert library.is_autocast_enabled("cpu") and not library.is_autocast_enabled()
    library.set_autocast_enabled("cpu", False)
    library.set_autocast_dtype("cpu", library.bfloat16)
    library.set_autocast_cache_enabled(False)
    assert not library.is_autocast_cache_enabled()
    library.set_autocast_cache_enabled(True)
    assert (library.autocast_increment_nesting(), library.autocast_decrement_nesting()) == (1, 0)
    for call in (lambda: library.is_autocast_enabled(3), lambda: library.set_autocast_dtype("cpu", 3)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(RuntimeError):
        library.set_autocast_enabled("nowhere", True)


def test_deprecated_functions_of_the_state_warn():
    for function, arguments in (
        (trt.is_autocast_cpu_enabled, ()), (trt.set_autocast_cpu_enabled, (False,)), (trt.get_autocast_cpu_dtype, ()), (trt.get_autocast_gpu_dtype, ()),
        (trt.set_autocast_cpu_dtype, (trt.bfloat16,)), (trt.set_autocast_gpu_dtype, (trt.float16,)),
    ):  # fmt: skip
        with pytest.warns(DeprecationWarning, match=function.__name__):
            function(*arguments)


@BOTH
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_deprecated_contexts_warn(library, device):
    from importlib import import_module

    amp = import_module(f"{library.__name__}.{device}.amp")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        context = amp.autocast(enabled=False)
        scaler = amp.GradScaler(enabled=False)
    assert [w.category for w in found] == [FutureWarning, FutureWarning]
    assert isinstance(context, library.autocast) and isinstance(scaler, library.amp.GradScaler)
    assert context.device == device and name(context.fast_dtype) == ("bfloat16" if device == "cpu" else "float16")


@BOTH
def test_what_cannot_be_had_warns_and_is_off(library):
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast"):
        context = library.autocast("cpu", dtype=library.float64)
    with context:
        assert not library.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError):
        library.autocast("nowhere")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        library.autocast(3)
    if not library.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            library.autocast("cuda")


@BOTH
def test_layers_have_pytorchs_dtypes(library):
    x = square(library)
    nn = library.nn
    with library.autocast("cpu"):
        found = [name(layer(x)[0].dtype) for layer in (nn.GRU(4, 4), nn.RNN(4, 4), nn.LSTMCell(4, 4))]
        found.append(name(nn.MultiheadAttention(4, 2)(x, x, x)[0].dtype))
        found.append(name(nn.TransformerEncoderLayer(4, 2)(x[None]).dtype))
        found.append(name(nn.BatchNorm1d(4)(nn.Linear(4, 4)(x)).dtype))
    assert found == ["float32", "bfloat16", "float32", "bfloat16", "float32", "bfloat16"]


@BOTH
def test_an_lstm_has_pytorchs_dtype(library):
    with library.autocast("cpu"):
        try:
            assert name(library.nn.LSTM(4, 4)(square(library))[0].dtype) == "bfloat16"
        except RuntimeError as error:
            if library is trt or "primitive descriptor" not in str(error):
                raise
            pytest.skip("PyTorch has no bfloat16 LSTM for processors with AVX2 alone")


def test_other_devices_are_left_alone():
    x = trt.empty(3, 3, device="meta")
    with trt.autocast("cpu"):
        assert (x @ x).dtype is trt.float32


def network(library):
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)
    )  # fmt: skip


def test_training_a_network_follows_pytorch():
    random = np.random.default_rng(0)
    shapes = [tuple(p.shape) for p in network(torch).parameters()]
    values = [random.normal(size=shape) / max(1, np.prod(shape[1:])) ** 0.5 for shape in shapes]
    inputs, targets = random.normal(size=(16, 1, 8, 8)), random.integers(0, 3, 16)
    found = []
    for library in (trt, torch):
        model = network(library)
        with library.no_grad():
            for parameter, value in zip(model.parameters(), values, strict=True):
                parameter.copy_(library.tensor(value.tolist()))
        optimizer = library.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        scaler = library.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
        x, y = library.tensor(inputs.tolist(), dtype=library.float32), library.tensor(targets.tolist())
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            with library.autocast("cpu"):
                logits = model(x)
                loss = library.nn.functional.cross_entropy(logits, y)
            assert (name(logits.dtype), name(loss.dtype)) == ("bfloat16", "float32")
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        found.append((losses, scaler.state_dict()))
    assert found[0][1] == found[1][1]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=0.03, atol=0.02)
    assert found[0][0][-1] < 0.8 * found[0][0][0]


def block(library):
    nn = library.nn

    class Model(nn.Module):
        """A language model of one block: embedding, causal attention, two layers, tied logits."""

        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(12, 16)
            self.norm, self.last = nn.LayerNorm(16), nn.LayerNorm(16)
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, index):
            x = self.tokens(index)
            b, n, c = x.shape
            q, k, v = (t.reshape(b, n, 2, 8).transpose(1, 2) for t in self.qkv(self.norm(x)).split(16, dim=2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, n, c))
            x = x + self.down(nn.functional.gelu(self.up(self.last(x))))
            return x @ self.tokens.weight.t()

    return Model()


def test_training_a_language_model_follows_pytorch():
    random = np.random.default_rng(1)
    values = [random.normal(size=tuple(p.shape)) * 0.3 for p in block(torch).parameters()]
    text = (np.arange(40)[:, None] + np.arange(9)) % 12
    found = []
    for library in (trt, torch):
        model = block(library)
        with library.no_grad():
            for parameter, value in zip(model.parameters(), values, strict=True):
                parameter.copy_(library.tensor(value.tolist()))
        optimizer = library.optim.AdamW(model.parameters(), lr=0.01, fused=True)
        scaler = library.amp.GradScaler("cpu", init_scale=256.0)
        tokens = library.tensor(text.tolist())
        losses = []
        for _ in range(12):
            with library.autocast("cpu", dtype=library.bfloat16):
                logits = model(tokens[:, :-1])
                loss = library.nn.functional.cross_entropy(logits.reshape(-1, 12), tokens[:, 1:].reshape(-1))
            assert (name(logits.dtype), name(loss.dtype)) == ("bfloat16", "float32")
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert {name(p.grad.dtype) for p in model.parameters()} == {"float32"}
        found.append(losses)
    np.testing.assert_allclose(found[0], found[1], rtol=0.03)
    assert found[0][-1] < 0.6 * found[0][0]


def test_operators_off_the_lists_have_no_kernel_of_autocast():
    """What keeps them at their usual speed while autocast is on."""
    from pathlib import Path

    from tensorrt_lite._C.core.dispatch import operator_kernels
    from tools.codegen.schema import load

    listed = {op.name for op in load(Path(__file__).parents[2] / "cysrc" / "ops") if "autocast" in op.row and op.kind != "composed"}
    assert {operator for operator, keys in operator_kernels().items() if "Autocast" in keys and "::" not in operator} == listed
    assert {"mm", "exp", "sum"} <= listed and not {"add", "relu", "view"} & listed


def test_policies_of_compositions_are_those_of_their_rows():
    """Each composed row with `autocast` has its policy in front of the function."""
    from tensorrt_lite import _C, _ops
    from tensorrt_lite._C.autograd.autocast import PolicyFunction

    def impl(name):
        if name.startswith("fft_"):
            return getattr(trt.fft, name[4:]).impl
        found = getattr(_ops, name, None)
        return found if found is not None else getattr(trt.nn.functional, name.rpartition(".")[2]).impl

    assert {name for name in _C.AUTOCAST if not isinstance(impl(name), PolicyFunction)} == set()
    assert _C.AUTOCAST["tensordot"] == "-p" and _C.AUTOCAST["conv2d"] == "ll" and _C.AUTOCAST["nn.functional.binary_cross_entropy"] == "fb"


def test_questions_about_devices_that_only_pytorch_has():
    torch = pytest.importorskip("torch")
    for device in ("mps", "xpu", "hpu", "mtia", "xla", "ipu", "maia"):
        assert trt.is_autocast_enabled(device) is torch.is_autocast_enabled(device) is False
        assert str(trt.get_autocast_dtype(device)) == str(torch.get_autocast_dtype(device))
    with pytest.raises(RuntimeError, match="unknown device type for autocast"):
        trt.is_autocast_enabled("meta")


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "vmap of grad"])
def test_inside_of_functional_transforms(transform):
    """A transform's tensors are cast as those that they stand for: the types inside and the numbers that come out are PyTorch's."""
    found = []
    for library in (trt, torch):
        func, seen = importlib.import_module(f"{library.__name__}.func"), []
        w, x = square(library), square(library) - 0.5

        def f(w, x, library=library, seen=seen):
            y = library.nn.functional.linear(x, w)
            z = w @ x
            seen.extend([name(y.dtype), name(z.dtype)])
            return y.sum().float() * z.float().sum()

        with library.autocast("cpu", dtype=library.bfloat16):
            result = {
                "grad": lambda: func.grad(f, argnums=(0, 1))(w, x[0]),
                "vjp": lambda: func.vjp(lambda w: f(w, x[0]), w)[1](library.tensor(1.0)),
                "jvp": lambda: func.jvp(lambda w: f(w, x[0]), (w,), (x,)),
                "vmap of grad": lambda: func.vmap(func.grad(f, argnums=(0, 1)), in_dims=(None, 0))(w, x),
            }[transform]()
        found.append((seen, [(name(t.dtype), t.tolist()) for t in result]))
    assert found[0] == found[1]
    assert found[0][0] == ["bfloat16", "bfloat16"]
