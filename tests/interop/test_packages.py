"""Other packages take tensors and give them data: each test is skipped where its package is not installed."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- einops


def test_einops_functions():
    einops = pytest.importorskip("einops")
    x = trt.arange(24.0).reshape(2, 3, 4)
    a = x.numpy()
    for call in (
        lambda t: einops.rearrange(t, "a b c -> (c a) b"), lambda t: einops.rearrange(t, "a (b d) c -> d a b c", d=3), lambda t: einops.repeat(t, "a b c -> a b c n", n=2),
        lambda t: einops.repeat(t, "a b c -> (a 2) b c"), lambda t: einops.einsum(t, t, "a b c, a d c -> a b d"), lambda t: einops.rearrange([t, t], "n a b c -> a (n b) c"),
        lambda t: einops.pack([t, t[..., 0]], "a b *")[0],
        *(lambda t, how=how: einops.reduce(t, "a b c -> b", how) for how in ("min", "max", "sum", "mean", "prod")),
        lambda t: einops.reduce(t > 5, "a b c -> b", "any"), lambda t: einops.reduce(t > 5, "a b c -> b 1 1", "all"),
    ):  # fmt: skip
        made = call(x)
        assert type(made) is trt.Tensor
        np.testing.assert_allclose(made.numpy(), call(a), rtol=1e-5)
    assert einops.parse_shape(x, "a _ c") == {"a": 2, "c": 4} and type(einops.asnumpy(x)) is np.ndarray
    first, second = einops.unpack(x, [[3], []], "a b *")
    assert first.shape == (2, 3, 3) and second.shape == (2, 3)


def test_einops_keeps_gradients_and_shares_memory():
    einops = pytest.importorskip("einops")
    x = trt.ones(2, 3, requires_grad=True)
    einops.reduce(einops.rearrange(x, "a b -> b a") * 2, "b a -> ", "sum").backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    assert einops.rearrange(x, "a b -> b a").data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    "order",
    [
        "tensorrt_lite, einops",
        "einops, tensorrt_lite",
        "einops; from einops import rearrange; rearrange([[1]], 'a b -> b a') if 0 else 0; import tensorrt_lite",
    ],
)
def test_einops_needs_no_further_line(order):
    pytest.importorskip("einops")
    program = f"import {order}; import einops, tensorrt_lite as trt; import gc; gc.collect(); print(tuple(einops.rearrange(trt.ones(2, 3), 'a b -> b a').shape), type(einops._backends.__loader__).__name__)"
    assert run(program) == "(3, 2) SourceFileLoader"


def test_nothing_is_imported_for_packages_that_are_not_used():
    found = run(
        "import sys, tensorrt_lite; print(*sorted({'einops', 'pandas', 'pyarrow', 'matplotlib', 'PIL', 'IPython', 'ml_dtypes', 'tensorrt_lite._interop.einops'} & set(sys.modules)))"
    )
    assert found == ""


# ---- tables and pictures


def test_pandas():
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0, 4.0], index=[7, 8, 9], name="a")
    for dtype in (None, trt.float16, trt.int64):
        made = trt.tensor(series, dtype=dtype)
        assert made.dtype == (dtype or trt.float64) and made.tolist() == [1, 2, 4]
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=["x", "y"])
    for make in (trt.tensor, trt.as_tensor, trt.asarray):
        assert make(frame).dtype == trt.int64 and make(frame).tolist() == [[1, 3], [2, 4]]
    assert trt.tensor(frame, dtype=trt.float32).dtype == trt.float32
    made = trt.tensor(frame)
    made.zero_()
    assert frame["a"].tolist() == [1, 2]
    assert trt.tensor(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})).tolist() == [[1.0, 0.5], [2.0, 1.5]]
    with pytest.raises(TypeError, match="object"):
        trt.tensor(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    assert pd.Series(trt.arange(3)).tolist() == [0, 1, 2] and pd.DataFrame(trt.ones(2, 3)).shape == (2, 3)
    assert pd.DataFrame({"a": trt.arange(3)})["a"].dtype == np.int64
    frame["c"] = trt.tensor([5, 6])
    assert frame["c"].tolist() == [5, 6]


def test_arrow():
    pa = pytest.importorskip("pyarrow")
    column = pa.array([1.5, 2.5, 3.5])
    shared = trt.from_dlpack(column)
    assert shared.tolist() == [1.5, 2.5, 3.5] and shared.data_ptr() == column.buffers()[1].address
    with pytest.raises(RuntimeError, match="read-only|written"):
        shared.zero_()
    assert trt.tensor(column, dtype=trt.float32).tolist() == [1.5, 2.5, 3.5]
    t = trt.arange(4, dtype=trt.int32)
    made = pa.array(t)
    assert made.type == pa.int32() and made.to_pylist() == [0, 1, 2, 3] and made.buffers()[1].address == t.data_ptr()
    assert pa.array(t, type=pa.float64()).type == pa.float64()
    assert pa.table({"a": t})["a"].to_pylist() == [0, 1, 2, 3]
    assert trt.tensor(pa.chunked_array([[1, 2], [3]])).tolist() == [1, 2, 3] and trt.tensor(pa.table({"a": [1, 2], "b": [3, 4]})).tolist() == [
        [1, 3],
        [2, 4],
    ]
    with pytest.raises(ValueError, match="2 dimensions"):
        pa.array(trt.ones(2, 2))
    assert pa.Tensor.from_numpy(trt.ones(2, 3).numpy()).shape == (2, 3)


def test_pillow():
    image = pytest.importorskip("PIL.Image")
    picture = image.fromarray(np.arange(24, dtype=np.uint8).reshape(2, 4, 3))
    for made in (trt.tensor(picture), trt.as_tensor(picture), trt.from_numpy(np.array(picture))):
        assert made.dtype == trt.uint8 and made.shape == (2, 4, 3) and made[1, 3, 2].item() == 23
    assert trt.tensor(picture, dtype=trt.float32).dtype == trt.float32
    back = image.fromarray(trt.arange(6, dtype=trt.uint8).reshape(2, 3).numpy())
    assert back.size == (3, 2) and list(np.asarray(back).ravel()) == [0, 1, 2, 3, 4, 5]


def test_matplotlib():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    x = trt.linspace(0, 1, 5)
    figure, axes = plt.subplots()
    [line] = axes.plot(x, x**2)
    np.testing.assert_allclose(line.get_ydata(), (x**2).numpy())
    axes.scatter(x, x, c=x, s=x + 1)
    axes.imshow(trt.rand(4, 4))
    axes.hist(x)
    axes.bar(x, x)
    axes.axvline(x[2])
    figure.canvas.draw()
    with pytest.raises(RuntimeError, match="requires grad"):
        axes.plot(trt.ones(2, requires_grad=True))
    plt.close(figure)


# ---- files and processes


def test_safetensors_share_the_file(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    from tensorrt_lite.utils import safetensors as ours

    tensors = {"a": trt.arange(6.0).reshape(2, 3), "b": trt.tensor([1, 2], dtype=trt.int8)}
    ours.save_file(tensors, str(tmp_path / "a.safetensors"))
    theirs = safetensors.load_file(str(tmp_path / "a.safetensors"))
    assert all(theirs[name].tolist() == t.tolist() for name, t in tensors.items())
    safetensors.save_file({name: t.numpy() for name, t in tensors.items()}, str(tmp_path / "b.safetensors"))
    loaded = ours.load_file(str(tmp_path / "b.safetensors"))
    assert all(loaded[name].dtype == t.dtype and loaded[name].tolist() == t.tolist() for name, t in tensors.items())


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale, self.linear = scale, nn.Linear(2, 2)

    def forward(self, x):
        return self.scale * self.linear(x)


def test_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    bias = trt.tensor([1.0, 2.0])
    function = pickle.loads(cloudpickle.dumps(lambda x: x + bias))
    assert function(trt.ones(2)).tolist() == [2.0, 3.0]

    class Local(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(trt.ones(2))

    module = pickle.loads(cloudpickle.dumps(Local()))
    assert module.weight.requires_grad and module.weight.tolist() == [1.0, 1.0]


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    state = {"x": trt.arange(5.0), "module": Scaled(2.0), "p": nn.Parameter(trt.ones(2))}
    for compress in (0, 3):
        joblib.dump(state, tmp_path / "state.joblib", compress=compress)
        loaded = joblib.load(tmp_path / "state.joblib")
        assert loaded["x"].tolist() == state["x"].tolist() and loaded["p"].requires_grad
        assert trt.equal(loaded["module"].linear.weight, state["module"].linear.weight)
    assert joblib.hash(trt.arange(3)) == joblib.hash(trt.arange(3)) != joblib.hash(trt.arange(4))
    joblib.dump(np.arange(6.0), tmp_path / "array.joblib")
    mapped = joblib.load(tmp_path / "array.joblib", mmap_mode="r+")
    t = trt.from_numpy(mapped)
    t[0] = 7
    assert mapped[0] == 7 and isinstance(mapped, np.memmap)


def test_joblib_sends_tensors_to_threads_and_processes():
    joblib = pytest.importorskip("joblib")
    batches = [trt.full((3,), float(i)) for i in range(4)]
    for backend in ("threading", "loky"):
        sums = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(trt.sum)(x) for x in batches)
        assert [s.item() for s in sums] == [0.0, 3.0, 6.0, 9.0]


# ---- IPython


def test_html_of_tensors_and_modules():
    x = trt.ones(2, 3, requires_grad=True)
    assert "2 x 3 · torch.float32 · cpu · requires grad · 24 B" in x._repr_html_() and "<pre>tensor([[1." in x._repr_html_()
    assert "MulBackward0" in (x * 2)._repr_html_() and "no dimensions" in trt.tensor(1)._repr_html_()
    assert "torch.sparse_coo" in trt.eye(2).to_sparse()._repr_html_()
    module = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1).requires_grad_(False)))
    html = module._repr_html_()
    assert html.count("<details") == html.count("</details>") == 2 and "13 parameters, 9 trained" in html and "in_features=2" in html
    assert (
        "&lt;b&gt;" in nn.ModuleDict({"<b>": nn.ReLU()})._repr_html_()
        and "and 6 more" in nn.Sequential(*(nn.ReLU() for _ in range(70)))._repr_html_()
    )


def test_ipython_shows_them():
    formatters = pytest.importorskip("IPython.core.formatters")
    x = trt.arange(3.0)
    data, _ = formatters.DisplayFormatter().format(x)
    assert data["text/plain"] == repr(x) and data["text/html"] == x._repr_html_()
    from IPython.lib.pretty import pretty

    assert pretty({"x": trt.eye(2)}) == "{'x': tensor([[1., 0.],\n         [0., 1.]])}"
    data, _ = formatters.DisplayFormatter().format(nn.Linear(2, 3))
    assert data["text/plain"] == repr(nn.Linear(2, 3)) and "9 parameters" in data["text/html"]


def test_completion_imports_little():
    program = """
import sys, rlcompleter, tensorrt_lite as trt
before = set(sys.modules)
completer = rlcompleter.Completer({"trt": trt, "x": trt.ones(2)})
assert "trt.arange(" in completer.attr_matches("trt.ara") and "x.numpy(" in completer.attr_matches("x.nump")
dir(trt), dir(trt.Tensor), dir(trt.ones(2))
print(len([name for name in set(sys.modules) - before if name.startswith("tensorrt_lite") and not hasattr(sys.modules[name], "__path__")]), *sorted({"numpy.testing", "inspect", "tensorrt_lite.nn"} & (set(sys.modules) - before)))
"""
    count, *named = run(program).split()
    assert int(count) <= 7 and "tensorrt_lite.nn" not in named
