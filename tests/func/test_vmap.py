"""vmap and its levels: errors, randomness, custom operators, what is read from wrappers."""

from __future__ import annotations

import threading
import warnings

import pytest

import tensorrt_lite as trt
from tensorrt_lite import library
from tensorrt_lite._C.core import transform
from tensorrt_lite.func import debug_unwrap, functional_call, grad, jvp, replace_all_batch_norm_modules_, stack_module_state, vjp, vmap


@pytest.fixture(autouse=True)
def no_level_is_left():
    yield
    assert transform.all_levels() == ()
    assert transform.innermost() is None


# ---- arguments


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: vmap(trt.sin, randomness="some")(x), RuntimeError, "Only allowed values for randomness"),
        (lambda x: vmap(trt.sin, chunk_size=0)(x), ValueError, "chunk_size should be None or greater than 0"),
        (lambda x: vmap(trt.sin)(), ValueError, "got no inputs"),
        (lambda x: vmap(trt.sin, in_dims="0")(x), ValueError, "expected `in_dims` to be int or a"),
        (lambda x: vmap(trt.sin, in_dims=(0, 0))(x), ValueError, "in_dims is not compatible with the structure of `inputs`"),
        (lambda x: vmap(trt.sin, in_dims=5)(x), ValueError, "expected in_dim to satisfy -2 <= in_dim < 2"),
        (lambda x: vmap(trt.add)(x, 3), ValueError, "We cannot vmap over non-Tensor arguments"),
        (lambda x: vmap(trt.sin, in_dims=(None,))(x), ValueError, "at least one"),
        (lambda x: vmap(trt.add)(x, trt.ones(4)), ValueError, "same size in the mapped dimension"),
        (lambda x: vmap(lambda a: 3)(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(trt.linalg.det)(x), RuntimeError, "must have at least 2 dimensions"),
        (lambda x: vmap(trt.linalg.svd)(x), RuntimeError, "must have at least 2 dimensions"),
        (lambda x: vmap(trt.sin, out_dims=None)(x), ValueError, "can not return a BatchedTensor when out_dim is None"),
        (lambda x: vmap(trt.sin, out_dims=7)(x), IndexError, "imension"),
        (lambda x: grad(lambda a: a * a)(3.0), ValueError, "must be Tensor, got <class 'float'>"),
        (lambda x: vjp(lambda a: a * a, 3.0), ValueError, "must be Tensor, got <class 'float'>"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, said) -> None:
    with pytest.raises(error, match=said):
        call(trt.ones(3, 2))


# ---- what a batch cannot do


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x.sum().item() * x, r"calling .item\(\) on a Tensor"),
        (lambda x: x if x.sum() > 0 else -x, "data-dependent control flow"),
        (lambda x: x.nonzero(), "dynamic operator"),
        (lambda x: x[x > 0], "dynamic operator"),
        (lambda x: trt.zeros(2).add_(x), "is not possible because there exists a Tensor `other`"),
        (lambda x: trt.zeros(2).copy_(x), "is not possible because there exists a Tensor `other`"),
        (lambda x: x.requires_grad_(), "inside of a function being transformed"),
        (lambda x: x.numpy(), "needs the numbers of one tensor"),
        (lambda x: x.tolist(), "needs the numbers of one tensor"),
    ],
)
def test_what_depends_on_values_is_refused(function, said) -> None:
    with pytest.raises(RuntimeError, match=said):
        vmap(function)(trt.randn(3, 2))


def test_a_number_is_written_by_a_batched_mask() -> None:
    x = trt.tensor([[1.0, -1.0], [-2.0, 3.0]])

    def clipped(a):
        b = a.clone()
        b[b < 0] = 0
        return b

    assert vmap(clipped)(x).tolist() == [[1.0, 0.0], [0.0, 3.0]]


def test_wrappers_of_grad_have_numbers() -> None:
    seen = []

    def f(x):
        seen.extend([x.item(), x.tolist(), float(x), bool(x > 0), f"{x:.1f}"])
        return x * x if x > 0 else x

    assert grad(f)(trt.tensor(3.0)).item() == 6.0
    assert seen == [3.0, 3.0, 3.0, True, "3.0"]


def test_captured_tensors_are_not_written_inside_grad() -> None:
    captured = trt.zeros(2)

    def f(x):
        captured.add_(x)
        return captured.sum()

    with pytest.raises(RuntimeError, match="would mutate a captured"):
        grad(f)(trt.ones(2))
    assert captured.tolist() == [0.0, 0.0]


def test_a_batch_of_nothing() -> None:
    assert vmap(lambda x: (x * 2).sum())(trt.ones(0, 3)).shape == (0,)
    assert vmap(grad(lambda x: (x @ trt.ones(3, 2)).sum()))(trt.ones(0, 3)).shape == (0, 3)


def test_writes_reach_the_argument() -> None:
    x = trt.ones(3, 2)
    vmap(lambda a, b: a.mul_(b))(x, trt.arange(3.0))
    assert x.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_a_write_inside_vmap_counts_for_saved_tensors() -> None:
    w, x = trt.ones(3, requires_grad=True), trt.ones(2, 3)
    y = (w * x).sum()
    vmap(lambda a: a.zero_())(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_shapes_in_place() -> None:
    def f(x):
        y = x.clone()
        y.unsqueeze_(0)
        y.transpose_(0, 1)
        return y * 2

    assert vmap(f)(trt.ones(3, 2)).shape == (3, 2, 1)
    assert grad(lambda x: f(x).sum())(trt.ones(2)).tolist() == [2.0, 2.0]


# ---- random numbers


def test_randomness_modes() -> None:
    x = trt.zeros(3, 4)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: a + trt.rand(4))(x)
    for draw in (lambda a: a + trt.rand(4), lambda a: a + trt.randn_like(a), lambda a: a + trt.randint(0, 1000, (4,)), lambda a: a.clone().uniform_()):
        different = vmap(draw, randomness="different")(x)
        same = vmap(draw, randomness="same")(x)
        assert len({tuple(row) for row in different.tolist()}) == 3
        assert len({tuple(row) for row in same.tolist()}) == 1
    ones = trt.ones(3, 64)
    for layer in (trt.nn.Dropout(), trt.nn.AlphaDropout()):
        assert len({tuple(row) for row in vmap(layer, randomness="different")(ones).tolist()}) == 3
    assert len({tuple(row) for row in vmap(trt.nn.Dropout(), randomness="same")(ones).tolist()}) == 1
    assert sorted(vmap(lambda a: trt.randperm(4), randomness="different")(x).tolist()[2]) == [0, 1, 2, 3]
    assert vmap(lambda a: trt.multinomial(a, 2), randomness="different")(ones).shape == (3, 2)
    assert vmap(lambda a: trt.normal(a, 1.0), randomness="different")(x).shape == (3, 4)
    with pytest.raises(RuntimeError, match="inplace randomness on an unbatched tensor"):
        vmap(lambda a: a + trt.zeros(4).uniform_(), randomness="different")(x)


def test_chunks_draw_the_same_numbers_in_same_mode() -> None:
    rows = vmap(lambda a: a + trt.rand(2), randomness="same", chunk_size=2)(trt.zeros(5, 2)).tolist()
    assert all(row == rows[0] for row in rows)


# ---- the loop


def test_an_operator_without_a_rule_loops_and_says_so() -> None:
    from tensorrt_lite._transforms.batching import fallbacks

    fallbacks.clear()
    scores, targets = trt.randn(2, 6, 1, 4).log_softmax(-1), trt.randint(1, 4, (2, 1, 3))

    def loss(x, y):
        return trt.nn.functional.ctc_loss(x, y, (6,), (3,))

    with pytest.warns(UserWarning, match="performance drop because we have not yet implemented the batching rule for aten::_ctc_loss"):
        found = vmap(loss)(scores, targets)
    assert fallbacks["_ctc_loss"] == 1
    assert trt.allclose(found, trt.stack([loss(x, y) for x, y in zip(scores, targets)]))


# ---- custom operators


def test_custom_operators() -> None:
    calls = []

    @library.custom_op("test_vmap::scaled", mutates_args=())
    def scaled(x: trt.Tensor, factor: float) -> trt.Tensor:
        calls.append(tuple(x.shape))
        return x * factor

    scaled.register_autograd(lambda ctx, g: (g * 10, None), setup_context=lambda ctx, inputs, output: None)
    x = trt.ones(3, 2)
    with pytest.warns(UserWarning, match="register_vmap gives it a rule"):
        assert vmap(lambda a: scaled(a, 2.0))(x).tolist() == (x * 2).tolist()
    assert calls == [(2,)] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert vmap(grad(lambda a: scaled(a, 2.0).sum()))(x).tolist() == (x * 10).tolist()
        assert grad(lambda a: vmap(lambda b: scaled(b, 2.0))(a).sum())(x).tolist() == (x * 10).tolist()
    calls.clear()

    @scaled.register_vmap
    def rule(info, in_dims, x, factor):
        assert info.batch_size == 3 and in_dims == (0, None)
        return scaled(x, factor), 0

    assert vmap(lambda a: scaled(a, 2.0))(x).tolist() == (x * 2).tolist()
    assert calls == [(3, 2)]
    assert vmap(grad(lambda a: scaled(a, 2.0).sum()))(x).tolist() == (x * 10).tolist()


def test_functions_without_a_rule_are_refused() -> None:
    class Old(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Both(trt.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def vmap(info, in_dims, x):
            return x, 0

    class WithoutRule(trt.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(WithoutRule.apply)(trt.ones(2))
    for call in (lambda: vmap(Old.apply)(trt.ones(2)), lambda: grad(Old.apply)(trt.tensor(1.0))):
        with pytest.raises(RuntimeError, match="must override the setup_context"):
            call()
    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply)(trt.ones(2))


# ---- modules


def test_modules() -> None:
    models = [trt.nn.Sequential(trt.nn.Linear(3, 4), trt.nn.BatchNorm1d(4)) for _ in range(2)]
    x = trt.randn(5, 3)
    for m in models:
        replace_all_batch_norm_modules_(m)
    params, buffers = stack_module_state(models)
    assert all(p.requires_grad and p.is_leaf for p in params.values()) and not buffers
    found = vmap(lambda p, x: functional_call(models[0], p, x), in_dims=(0, None))(params, x)
    assert trt.allclose(found, trt.stack([m(x) for m in models]), atol=1e-6)
    with pytest.raises(RuntimeError, match="at least one model"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([models[0], trt.nn.Linear(3, 4)])
    with pytest.raises(RuntimeError, match="running_mean or running_var, which will be updated in place"):
        vmap(trt.nn.BatchNorm1d(3))(trt.randn(2, 4, 3))
    with pytest.raises(ValueError, match="multiple dictionaries"):
        functional_call(models[0], ({"0.bias": x}, {"0.bias": x}), x)


# ---- levels


def test_wrappers_say_what_they_stand_for() -> None:
    def f(x):
        assert x.shape == (2,) and x.device == trt.device("cpu") and x.dtype is trt.float32 and isinstance(x, trt.Tensor) and x.is_cpu and not x.is_meta
        assert debug_unwrap(x).shape == (3, 2) and debug_unwrap(x, recurse=False).shape == (3, 2)
        assert not x.requires_grad
        return x

    vmap(f)(trt.ones(3, 2))
    x = trt.ones(2)
    assert debug_unwrap(x) is x


def test_vjp_function_outlives_its_call_and_follows_the_caller() -> None:
    x = trt.tensor([1.0, 2.0])
    _, pull_back = vjp(lambda a: a**3, x)
    batch = trt.eye(2)
    assert vmap(pull_back)(batch)[0].tolist() == [[3.0, 0.0], [0.0, 12.0]]
    w = trt.ones(2, requires_grad=True)
    pull_back(w)[0].sum().backward()
    assert w.grad.tolist() == [3.0, 12.0]


def test_user_duals_pass_through_vmap() -> None:
    import tensorrt_lite.autograd.forward_ad as fw

    x, t = trt.randn(3, 2), trt.randn(3, 2)
    with fw.dual_level():
        out = vmap(lambda a: a.sin().sum())(fw.make_dual(x, t))
        assert trt.allclose(fw.unpack_dual(out).tangent, (x.cos() * t).sum(1))
    assert trt.allclose(jvp(lambda a: a.sin(), (x,), (t,))[1], x.cos() * t)


def test_an_error_leaves_no_level() -> None:
    def fails(x):
        raise KeyError("inside")

    for transformed in (vmap(fails), grad(fails), vmap(grad(fails))):
        with pytest.raises(KeyError):
            transformed(trt.ones(2))


def test_threads_have_levels_of_their_own() -> None:
    found = {}

    def inside(x):
        def other():
            found["level"] = transform.innermost()
            found["sum"] = trt.ones(2).sum().item()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x

    vmap(inside)(trt.ones(2))
    assert found == {"level": None, "sum": 2.0}


def test_autocast_casts_inside_vmap() -> None:
    with trt.autocast("cpu", dtype=trt.bfloat16):
        out = vmap(lambda a, b: a @ b, in_dims=(0, None))(trt.ones(3, 2, 4), trt.ones(4, 2))
    assert out.dtype is trt.bfloat16


def test_index_fill_of_an_unbatched_tensor_by_values_with_gradients():
    x, index, values = trt.arange(4.0), trt.tensor([1, 3]), trt.tensor([2.0, 5.0, 7.0])

    def filled(value):
        return x.index_fill(0, index, value).square().sum()

    gradients = vmap(grad(filled))(values)
    assert gradients.tolist() == [grad(filled)(v).item() for v in values] == [8.0, 20.0, 28.0]


def test_a_batch_of_indices_reads_a_tensor_that_all_elements_share() -> None:
    table, indices = trt.arange(12.0).reshape(4, 3), trt.tensor([[3, 0], [1, 2]])
    assert trt.equal(vmap(lambda i: table[i])(indices), table[indices])
    assert trt.equal(vmap(vmap(lambda i: table[i, 1]))(indices), table[indices, 1])
