"""Own kernels give the same bits with one thread and with several, forward and backward."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops
from tensorrt_lite._declared import declarations as _declarations

F = trt.nn.functional
pytestmark = pytest.mark.usefixtures("split_small_work")

# drawn so that every pointwise domain is met, large enough to be cut between threads
_RANGES = {"unit": (-0.9, 0.9), "positive": (0.2, 5.0), "above": (1.2, 6.0), "nonzero": (0.5, 4.0)}


def _operands(kind: str, dtype: trt.dtype) -> list[trt.Tensor]:
    low, high = next((r for word, r in _RANGES.items() if word in kind), (-2.2, 2.2))
    count = {"unary": 1, "binary": 2, "ternary": 3}.get(kind.split("_")[0], 0)
    if "unit_positive" in kind:
        low, high = 0.1, 0.9
    return [trt.empty(257, 301).uniform_(low, high).to(dtype) for _ in range(count)]


def _bits(tensors: list[trt.Tensor]) -> list[bytes]:
    return [t.detach().contiguous().numpy().tobytes() if t.dtype is not trt.bfloat16 else t.detach().view(trt.int16).numpy().tobytes() for t in tensors]


def _with_threads(f, tensors: list[trt.Tensor]) -> list[list[bytes]]:
    """Results and gradients of f with 1, 2 and 5 threads."""
    before, found = trt.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            trt.set_num_threads(threads)
            leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
            out = f(*leaves)
            outs = [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(o, trt.Tensor)]
            wanted = [o for o in outs if o.requires_grad]
            if wanted:
                trt.autograd.backward(wanted, [trt.cos(trt.arange(float(o.numel())).reshape(o.shape)).to(o.dtype) for o in wanted])
            found.append(_bits(outs + [x.grad for x in leaves if x.grad is not None]))
    finally:
        trt.set_num_threads(before)
    return found


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64, trt.bfloat16], ids=str)
def test_pointwise(dtype: trt.dtype) -> None:
    trt.manual_seed(0)
    differing = []
    for name, kind in _declarations.samples().items():
        operands = _operands(kind, dtype)
        if not operands:
            continue
        f = getattr(_ops, name)
        try:
            found = _with_threads(f, operands)
        except (RuntimeError, NotImplementedError) as refused:  # integer operators refuse floats
            assert dtype is trt.bfloat16 or "loat" in str(refused) or "not implemented" in str(refused), (name, refused)
            continue
        if found[0] != found[1] or found[0] != found[2]:
            differing.append(name)
    assert differing == []



CASES = {
    "sum": lambda x: x.sum(), "sum 0": lambda x: x.sum(0), "sum last": lambda x: x.sum(-1), "sum middle": lambda x: x.sum((1, 2)),
    "mean": lambda x: x.mean(), "mean 0": lambda x: x.mean(0), "var": lambda x: x.var(), "std 0": lambda x: x.std(0), "var last": lambda x: x.var(-1),
    "prod last": lambda x: (x * 0.1 + 1).prod(-1), "norm": lambda x: x.norm(), "norm 3": lambda x: trt.linalg.vector_norm(x, 3, dim=0),
    "max": lambda x: x.max(), "max 0": lambda x: x.max(0), "argmax": lambda x: x.argmax(-1), "amax": lambda x: x.amax((0, 1)),
    "logsumexp": lambda x: x.logsumexp(-1), "logsumexp 0": lambda x: x.logsumexp(0), "softmax": lambda x: x.softmax(-1), "softmax 1": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(-1), "cumsum": lambda x: x.cumsum(-1), "cumsum 0": lambda x: x.cumsum(0), "cumprod": lambda x: (x * 0.01 + 1).cumprod(1),
    "attention": lambda x: F.scaled_dot_product_attention(x.reshape(1, -1, x.shape[-1]), x.reshape(1, -1, x.shape[-1]), x.reshape(1, -1, x.shape[-1]), is_causal=True),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]), "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 4), "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1), "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 3), "transpose": lambda x: x.transpose(0, -1).contiguous(), "flip": lambda x: x.flip(0, 2),
    "cat": lambda x: trt.cat([x, x * 2], 1), "index_add": lambda x: trt.zeros(7, *x.shape[1:]).index_add(0, trt.arange(x.shape[0]) % 7, x),
    "index": lambda x: x[trt.arange(x.shape[0]) % 5], "gather": lambda x: x.gather(0, (x.detach() > 0).long()),
    "scatter_add": lambda x: trt.zeros_like(x).scatter_add(0, (x.detach() > 0).long(), x), "mse": lambda x: F.mse_loss(x, x.detach() * 0.5),
    "cross_entropy": lambda x: F.cross_entropy(x.flatten(1), trt.arange(x.shape[0])),
    "embedding": lambda x: F.embedding(trt.arange(5000) % 11, x.flatten(1)), "clip": lambda x: x / x.norm().clamp(min=1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    trt.manual_seed(1)
    x = trt.randn(24, 16, 19, 23)
    found = _with_threads(CASES[name], [x])
    assert found[0] == found[1] == found[2]


def test_one_long_row() -> None:
    trt.manual_seed(2)
    x = trt.randn(1_000_003)
    for f in (trt.sum, trt.mean, trt.var, trt.norm, trt.max, lambda t: t.softmax(0), lambda t: t.logsumexp(0)):
        found = _with_threads(f, [x])
        assert found[0] == found[1] == found[2]
