"""Matrix products: square from 64 to 2048, transposed operands, skinny shapes, matrix-vector, batches, layers of few rows, other types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05


def _product(m: int, k: int, n: int, transpose_a: bool = False, transpose_b: bool = False) -> Builder:
    """`a: (m, k)` times `b: (k, n)`; a transposed operand is stored the other way round and passed as a view."""

    def build(lib: Any, threads: int) -> Work:
        a = lib.randn(k, m).t() if transpose_a else lib.randn(m, k)
        b = lib.randn(n, k).t() if transpose_b else lib.randn(k, n)
        return lambda: a @ b

    return build


def _product_numpy(m: int, k: int, n: int, transpose_a: bool = False, transpose_b: bool = False) -> Builder:
    def build(np: Any, threads: int) -> Work:
        normal: Callable[..., Any] = np.random.default_rng(0).standard_normal
        a = normal((k, m), np.float32).T if transpose_a else normal((m, k), np.float32)
        b = normal((n, k), np.float32).T if transpose_b else normal((k, n), np.float32)
        return lambda: a @ b

    return build


def _vector(n: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a, x = lib.randn(n, n), lib.randn(n)
        return lambda: a @ x

    return build


def _batched(batch: int, m: int, k: int, n: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a, b, bmm = lib.randn(batch, m, k), lib.randn(batch, k, n), lib.bmm
        return lambda: bmm(a, b)

    return build


def _batched_numpy(batch: int, m: int, k: int, n: int) -> Builder:
    def build(np: Any, threads: int) -> Work:
        normal = np.random.default_rng(0).standard_normal
        a, b = normal((batch, m, k), np.float32), normal((batch, k, n), np.float32)
        return lambda: a @ b

    return build


def _linear(rows: int, inputs: int, outputs: int, dtype: str = "float32") -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x, weight, bias = (lib.randn(*size).to(getattr(lib, dtype)) for size in ((rows, inputs), (outputs, inputs), (outputs,)))
        linear = lib.nn.functional.linear
        return lambda: linear(x, weight, bias)

    return build


def rows() -> list[Row]:
    def row(name: str, build: Builder, numpy: Builder | None = None) -> Row:
        return Row(name, "gemm", build, numpy, limit=_AT_OR_UNDER)

    found = [row(f"{n}x{n}x{n}", _product(n, n, n), _product_numpy(n, n, n)) for n in (64, 128, 256, 512, 1024, 2048)]
    for n in (256, 1024):
        for label, a, b in (("A @ B.t()", False, True), ("A.t() @ B", True, False), ("A.t() @ B.t()", True, True)):
            found.append(row(f"{label} {n}", _product(n, n, n, a, b), _product_numpy(n, n, n, a, b)))
    for m, k, n in ((1, 4096, 4096), (4, 4096, 4096), (4096, 4096, 4), (4096, 16, 4096), (64, 65536, 64)):
        found.append(row(f"{m}x{k}x{n}", _product(m, k, n), _product_numpy(m, k, n)))
    found += [row(f"{m}x{k}x{n}", _product(m, k, n), _product_numpy(m, k, n)) for m, k, n in ((20000, 3, 3), (20000, 10, 10), (20000, 64, 3))]
    found += [row(f"{m}x{k}x{n}", _product(m, k, n), _product_numpy(m, k, n)) for m, k, n in ((3, 3, 20000), (8, 16, 20000))]
    found += [row(f"A.t() @ B {m}x{k}x{n}", _product(m, k, n, True), _product_numpy(m, k, n, True)) for m, k, n in ((3, 20000, 3), (16, 20000, 3), (16, 20000, 16), (512, 2048, 128), (384, 4096, 1536), (30, 256, 300), (10, 256, 300))]
    found += [
        row("A @ B.t() 8x8x20000", _product(8, 8, 20000, False, True), _product_numpy(8, 8, 20000, False, True)),
        row("A @ B.t() 3x3x20000", _product(3, 3, 20000, False, True), _product_numpy(3, 3, 20000, False, True)),
        row("matrix-vector 4096", _vector(4096)),
        row("linear 1x4096x4096", _linear(1, 4096, 4096)),
        row("linear 512x768x3072", _linear(512, 768, 3072)),
        *(row(f"linear {m}x{k}x{n}", _linear(m, k, n)) for m, k, n in ((1, 512, 512), (1, 960, 240), (8, 128, 128), (12, 128, 256), (16, 64, 64), (64, 1024, 1024), (256, 300, 10), (256, 30, 30), (2000, 10, 30))),
        *(row(f"bfloat16 linear {m}x1024x1024", _linear(m, 1024, 1024, "bfloat16")) for m in (1, 8, 64, 256, 1024)),
        row("float16 linear 64x1024x1024", _linear(64, 1024, 1024, "float16")),
        row("float64 linear 256x1024x1024", _linear(256, 1024, 1024, "float64")),
        row("bmm 64 of 128x64x128", _batched(64, 128, 64, 128), _batched_numpy(64, 128, 64, 128)),
        row("bmm 512 of 16x16x16", _batched(512, 16, 16, 16), _batched_numpy(512, 16, 16, 16)),
    ]
    return found
