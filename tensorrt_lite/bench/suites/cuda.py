"""Operators and training steps on a CUDA device. Times are of a device that has finished: a work queues its calls and then waits.

Launch-bound rows queue CALLS operators before they wait, so their time is that of CALLS calls. Rows of bandwidth move 256 MB; the row `copy`
is what the device can do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import models
from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

CALLS = 100
_SIDE = 8192  # 256 MB of float32


def _queued(make: Callable[[Any], tuple[Any, ...]], call: Callable[..., object], calls: int = 1) -> Builder:
    """`calls` times `call(lib, *operands)`, then a wait. RuntimeError without a device."""

    def build(lib: Any, threads: int) -> Work:
        if not lib.cuda.is_available():
            raise RuntimeError("no CUDA device")
        operands = make(lib)
        wait = lib.cuda.synchronize

        def work() -> None:
            for _ in range(calls):
                call(lib, *operands)
            wait()

        return work

    return build


def _normal(*shape: int, dtype: str = "float32", grad: bool = False) -> Callable[[Any], Any]:
    def make(lib: Any) -> Any:
        x = lib.randn(*shape).to(getattr(lib, dtype)).to("cuda")
        return x.requires_grad_() if grad else x

    return make


def _operands(*makers: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda lib: tuple(make(lib) for make in makers)


def _backward(call: Callable[..., Any]) -> Callable[..., object]:
    def both(lib: Any, *operands: Any) -> object:
        y = call(lib, *operands)
        return lib.autograd.grad(y, [x for x in operands if x.requires_grad], lib.ones_like(y))

    return both


def _gpt(layers: int, width: int, heads: int, batch: int, context: int, vocabulary: int, dtype: str) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        if not lib.cuda.is_available():
            raise RuntimeError("no CUDA device")
        lib.manual_seed(0)
        model = models.char_gpt(lib, vocabulary, context, layers, width, heads).to("cuda", getattr(lib, dtype))
        optimizer = lib.optim.AdamW(model.parameters(), lr=3e-4)
        tokens = lib.randint(0, vocabulary, (batch, context + 1)).to("cuda")
        x, target = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)
        cross_entropy, wait = lib.nn.functional.cross_entropy, lib.cuda.synchronize

        def step() -> None:
            optimizer.zero_grad()
            logits = model(x)
            cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), target).backward()
            optimizer.step()
            wait()

        return step

    return build


def rows() -> list[Row]:
    small, large = _normal(1000), _normal(_SIDE, _SIDE)
    found: list[tuple[str, Builder]] = [
        ("launch add", _queued(_operands(small, small), lambda lib, a, b: a + b, CALLS)),
        ("launch add out=", _queued(_operands(small, small, small), lambda lib, a, b, c: lib.add(a, b, out=c), CALLS)),
        ("launch mul number", _queued(_operands(small), lambda lib, a: a * 2.0, CALLS)),
        ("launch add recorded", _queued(_operands(_normal(1000, grad=True), small), lambda lib, a, b: a + b, CALLS)),
        ("launch sum", _queued(_operands(small), lambda lib, a: a.sum(), CALLS)),
        ("launch matmul 4x4", _queued(_operands(_normal(4, 4), _normal(4, 4)), lambda lib, a, b: a @ b, CALLS)),
        ("copy 256 MB", _queued(_operands(large, large), lambda lib, a, b: b.copy_(a))),
        ("add 256 MB", _queued(_operands(large, large, large), lambda lib, a, b, c: lib.add(a, b, out=c))),
        ("gelu 256 MB", _queued(_operands(large), lambda lib, a: lib.nn.functional.gelu(a))),
        ("mul bfloat16 256 MB", _queued(_operands(_normal(2 * _SIDE, _SIDE, dtype="bfloat16")), lambda lib, a: a * 2.0)),
        ("transpose copy 256 MB", _queued(_operands(large), lambda lib, a: a.t().contiguous())),
        ("sum 256 MB", _queued(_operands(large), lambda lib, a: a.sum())),
        ("sum dim 0 256 MB", _queued(_operands(large), lambda lib, a: a.sum(0))),
        ("sum dim 1 256 MB", _queued(_operands(large), lambda lib, a: a.sum(1))),
        ("softmax 256 MB", _queued(_operands(large), lambda lib, a: a.softmax(-1))),
        ("layer_norm 256 MB", _queued(_operands(large), lambda lib, a: lib.nn.functional.layer_norm(a, (_SIDE,)))),
        ("float32 1024^3", _queued(_operands(_normal(1024, 1024), _normal(1024, 1024)), lambda lib, a, b: a @ b)),
    ]
    for dtype in ("float16", "bfloat16"):
        for n in (1024, 4096, 8192):
            found.append((f"{dtype} {n}^3", _queued(_operands(_normal(n, n, dtype=dtype), _normal(n, n, dtype=dtype)), lambda lib, a, b: a @ b)))
    heads = [_normal(8, 16, 2048, 64, dtype="bfloat16", grad=True) for _ in range(3)]

    def attend(lib: Any, q: Any, k: Any, v: Any) -> Any:
        return lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    image, weight = _normal(32, 64, 56, 56, grad=True), _normal(64, 64, 3, 3, grad=True)

    def convolve(lib: Any, x: Any, w: Any) -> Any:
        return lib.nn.functional.conv2d(x, w, padding=1)

    found += [
        ("attention 8x16x2048x64 causal", _queued(_operands(*heads), attend)),
        ("attention 8x16x2048x64 causal, both ways", _queued(_operands(*heads), _backward(attend))),
        ("conv2d 32x64x56x56 3x3", _queued(_operands(image, weight), convolve)),
        ("conv2d 32x64x56x56 3x3, both ways", _queued(_operands(image, weight), _backward(convolve))),
        ("char GPT 6 layers, width 384, batch 16x256", _gpt(6, 384, 6, 16, 256, 96, "float32")),
        ("GPT-2 small, bfloat16, batch 8x1024", _gpt(12, 768, 12, 8, 1024, 50304, "bfloat16")),
    ]
    return [Row(name, "cuda", build, limit=1.0, slow="GPT-2" in name) for name, build in found]
