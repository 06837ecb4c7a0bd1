"""Arguments of generated rows that are not pointwise, with sizes drawn at random: what the rules of sizes and dtypes are compared with the kernels over."""

from __future__ import annotations

import random
from typing import Any

import tensorrt_lite as trt


class Draw:
    """Sizes by letters: a letter has one size throughout a draw."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.letters: dict[str, int] = {}

    def __getattr__(self, letter: str) -> int:
        """0 is seldom: most operators refuse it, or answer at once."""
        if len(letter) != 1:
            raise AttributeError(letter)
        return self.letters.setdefault(letter, self.random.choice([1, 2, 3, 3, 4, 5, 6, 7, 9, 12]))

    def below(self, n: int) -> int:
        return self.random.randrange(n)

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def truth(self) -> bool:
        return self.random.random() < 0.5

    def sizes(self, text: str) -> list[int]:
        """`a b 3` as sizes; `*` stands for up to two leading dimensions, the same throughout a draw."""
        found: list[int] = []
        for word in text.split():
            if word == "*":
                found += [self.X, self.Y][: self.letters.setdefault("leading", self.below(3))]
            else:
                found.append(int(word) if word.isdigit() else getattr(self, word))
        return found

    def t(self, text: str = "", dtype: Any = trt.float32) -> trt.Tensor:
        return trt.empty(self.sizes(text), dtype=dtype, device="meta")

    def any(self, least: int = 0, dtype: Any = trt.float32) -> trt.Tensor:
        """A tensor of any rank from `least` on."""
        return self.t(" ".join("abcde"[: max(least, self.below(5))]), dtype)

    def real(self) -> Any:
        return self.pick(trt.float32, trt.float64, trt.float16, trt.bfloat16, trt.int64, trt.int32, trt.uint8)

    def float(self) -> Any:
        return self.pick(trt.float32, trt.float64)

    def number(self) -> Any:
        return self.pick(trt.float32, trt.float64, trt.complex64, trt.complex128)

    def dim(self, x: trt.Tensor) -> int:
        n = max(x.dim(), 1)
        return self.below(2 * n) - n

    def dims(self, x: trt.Tensor) -> list[int]:
        return [d if self.truth() else d - x.dim() for d in self.random.sample(range(x.dim()), self.below(x.dim() + 1))]

    def dims_or_none(self, x: trt.Tensor) -> Any:
        return self.pick(None, self.dims(x))

    def part(self, x: trt.Tensor) -> list[int]:
        """Sizes up to those of a tensor."""
        return [1 + self.below(n) for n in x.shape]


I64 = trt.int64


def _reduced(dtype: bool = False, types: str = "real", dims: bool = False) -> Any:
    def sample(d: Draw) -> tuple[Any, ...]:
        x = d.any(dtype=getattr(d, types)())
        named = d.dims(x) if dims else d.dims_or_none(x)
        return (x, named, d.truth(), *([d.pick(None, trt.float64, trt.float32)] if dtype else []))

    return sample


def _along(*more: Any, types: str = "real", flag: bool = False, least: int = 0) -> Any:
    def sample(d: Draw) -> tuple[Any, ...]:
        x = d.any(least, getattr(d, types)())
        return (x, d.dim(x), *([d.truth()] if flag else []), *more)

    return sample


def _selected(d: Draw, values: int = 1) -> tuple[Any, ...]:
    """(self, dim, index, source)"""
    x = d.any(1)
    dim = d.dim(x)
    return x, dim, d.t("k", I64), trt.empty([*x.shape[: dim % x.dim()], d.k, *x.shape[dim % x.dim() + 1 :]], device="meta")


def _scattered(d: Draw) -> tuple[Any, ...]:
    """(self, dim, index, src)"""
    x = d.any(1)
    index = trt.empty(d.part(x), dtype=I64, device="meta")
    return x, d.dim(x), index, trt.empty(list(x.shape), device="meta")


def _indexed(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    count = 1 + d.below(x.dim())
    used = d.random.sample(range(x.dim()), count)
    return x, [d.t(d.pick("k", "k m", "1 m", "")[: 9], I64) if i in used else None for i in range(max(used) + 1)]


def _conv(d: Draw) -> tuple[Any, ...]:
    spatial, groups = 1 + d.below(3), 1 + d.below(3)
    kernel, dilation = [1 + d.below(3) for _ in range(spatial)], [1 + d.below(2) for _ in range(spatial)]
    x = trt.empty(d.n, d.c * groups, *[5 + d.below(9) for _ in range(spatial)], device="meta")
    w = trt.empty(d.o * groups, d.c, *kernel, device="meta")
    bias = d.pick(None, trt.empty(d.o * groups, device="meta"))
    return x, w, bias, [1 + d.below(3) for _ in range(spatial)], [d.below(3) for _ in range(spatial)], dilation, groups


def _convolution(d: Draw) -> tuple[Any, ...]:
    x, w, bias, stride, padding, dilation, groups = _conv(d)
    return x, w, bias, stride, padding, dilation, False, [0] * len(stride), groups


def _convolution_backward(d: Draw) -> tuple[Any, ...]:
    from tensorrt_lite._transforms.batching import call_row

    x, w, _, *rest = _convolution(d)
    return call_row("convolution", x, w, None, *rest), x, w, None, *rest, [d.truth() for _ in range(3)]


def _mask(d: Draw, n: int) -> list[bool]:
    return [d.truth() for _ in range(n)]


def _norm_backward(d: Draw) -> tuple[Any, ...]:
    x = d.t(d.pick("n c", "n c a", "n c a b"), d.float())
    return x, x, None, None, None, d.t("c", x.dtype), d.t("c", x.dtype), True, 1e-5, _mask(d, 3)


def _layer_norm_backward(d: Draw) -> tuple[Any, ...]:
    x, size, weight, *_ = _layer_norm(d)
    kept = trt.empty([*x.shape[: x.dim() - len(size)], *[1] * len(size)], dtype=x.dtype, device="meta")
    return x, x, size, kept, kept, weight, None, _mask(d, 3)


def _rms_norm_backward(d: Draw) -> tuple[Any, ...]:
    grad, x, size, _, rstd, weight, _, _ = _layer_norm_backward(d)
    return grad, x, size, rstd, weight, _mask(d, 2)


def _group_norm(d: Draw) -> tuple[Any, ...]:
    x = trt.empty(d.n, d.g * d.c, *d.sizes(d.pick("", "a", "a b")), dtype=d.float(), device="meta")
    return x, None, None, d.n, d.g * d.c, x.shape[2:].numel(), d.g, 1e-5


def _group_norm_backward(d: Draw) -> tuple[Any, ...]:
    x, weight, _, n, c, rest, groups, _ = _group_norm(d)
    return x, x, d.t("n g", x.dtype), d.t("n g", x.dtype), weight, n, c, rest, groups, _mask(d, 3)


def _pair_loss(*rest: Any) -> Any:
    return lambda d: (d.t("a b", kind := d.float()), d.t("a b", kind), *(r(d) if callable(r) else r for r in rest))


def _pair_loss_backward(*rest: Any) -> Any:
    return lambda d: (d.t("", kind := d.float()), d.t("a b", kind), d.t("a b", kind), *rest)


def _heads(d: Draw) -> tuple[Any, ...]:
    return d.t("n h a e"), d.t("n h b e"), d.t("n h b e")


def _window(d: Draw) -> tuple[list[int], list[int], list[int]]:
    """(kernel size, stride, padding)"""
    kernel = [1 + d.below(4), 1 + d.below(4)]
    return kernel, [1 + d.below(3), 1 + d.below(3)], [d.below(k // 2 + 1) for k in kernel]


def _image(d: Draw, spatial: int = 2, least: int = 6) -> trt.Tensor:
    return trt.empty(*d.pick([d.n, d.c], [d.c]), *[least + d.below(9) for _ in range(spatial)], device="meta")


def _max_pool(d: Draw) -> tuple[Any, ...]:
    kernel, stride, padding = _window(d)
    return _image(d, least=9), kernel, stride, padding, [1 + d.below(2), 1 + d.below(2)], d.truth()


def _avg_pool(d: Draw) -> tuple[Any, ...]:
    return (_image(d), *_window(d), d.truth(), d.truth(), d.pick(None, 3))


def _avg_pool_backward(d: Draw) -> tuple[Any, ...]:
    from tensorrt_lite._transforms.batching import call_row

    x, *rest = _avg_pool(d)
    return (call_row("avg_pool2d", x, *rest), x, *rest)


def _max_pool_backward(d: Draw) -> tuple[Any, ...]:
    from tensorrt_lite._transforms.batching import call_row

    x, *rest = _max_pool(d)
    y, indices = call_row("max_pool2d_with_indices", x, *rest)
    return (y, x, *rest, indices)


def _adaptive_max_backward(d: Draw) -> tuple[Any, ...]:
    from tensorrt_lite._transforms.batching import call_row

    x, size = _adaptive(d)
    return (call_row("adaptive_max_pool2d", x, size)[0], x, call_row("adaptive_max_pool2d", x, size)[1])


def _adaptive(d: Draw) -> tuple[Any, ...]:
    return _image(d), [1 + d.below(5), 1 + d.below(5)]


def _adaptive_backward(d: Draw) -> tuple[Any, ...]:
    x, size = _adaptive(d)
    return trt.empty(*x.shape[:-2], *size, device="meta"), x


def _fractional(spatial: int) -> Any:
    def sample(d: Draw) -> tuple[Any, ...]:
        x = trt.empty(d.n, d.c, *[6 + d.below(6) for _ in range(spatial)], device="meta")
        return x, [2] * spatial, [1 + d.below(4) for _ in range(spatial)], trt.empty(d.n, d.c, spatial, device="meta")

    return sample


def _spatial_resize(d: Draw) -> tuple[Any, ...]:
    spatial = 1 + d.below(3)
    return trt.empty(d.n, d.c, *[1 + d.below(6) for _ in range(spatial)], device="meta"), 0, [1 + d.below(9) for _ in range(spatial)], (None,) * spatial, False, False


def _resize_backward(d: Draw) -> tuple[Any, ...]:
    x, kind, size, *rest = _spatial_resize(d)
    return (trt.empty(*x.shape[:2], *size, device="meta"), list(x.shape), kind, *rest)


def _im2col(d: Draw) -> tuple[Any, ...]:
    kernel, stride, padding = _window(d)
    return _image(d), kernel, [1, 1], padding, stride


def _col2im(d: Draw) -> tuple[Any, ...]:
    from tensorrt_lite._transforms.batching import call_row

    x, *rest = _im2col(d)
    return (call_row("im2col", x, *rest), list(x.shape[-2:]), *rest)


def _square(*more: Any, types: str = "number", batch: str = "*") -> Any:
    return lambda d: (d.t(f"{batch} n n", getattr(d, types)()), *[m(d) if callable(m) else m for m in more])


def _tall(d: Draw, types: str = "number", text: str = "* m n") -> trt.Tensor:
    return d.t(text, getattr(d, types)())


def _system(d: Draw) -> tuple[Any, ...]:
    kind = d.number()
    return d.t("* n n", kind), d.t(d.pick("* n k", "n"), kind)


def _pair(a: str, b: str, *more: Any, types: str = "number") -> Any:
    def sample(d: Draw) -> tuple[Any, ...]:
        kind = getattr(d, types)()
        return (d.t(a, kind), d.t(b, kind), *[m(d) if callable(m) else m for m in more])

    return sample


def _least_squares(d: Draw) -> tuple[Any, ...]:
    kind = d.float()
    return d.t("* m n", kind), d.t("* m k", kind), 1e-6, d.pick("gelsy", "gelsd", "gelss")


def _truth(d: Draw) -> bool:
    return d.truth()


def _view(d: Draw) -> tuple[Any, ...]:
    x = d.t("a b c")
    return x, d.pick([d.a * d.b, d.c], [-1, d.c], [d.a, 1, -1], [d.a * d.b * d.c], [d.c, -1, d.a])


def _expand(d: Draw) -> tuple[Any, ...]:
    return d.t("a 1 c"), [*d.pick([], [d.k], [2, 3]), d.pick(-1, d.a), d.m, -1]


def _joined(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, d.number())
    dim = d.dim(x)
    shapes = [list(x.shape) for _ in range(1 + d.below(3))]
    for s in shapes:
        s[dim] = 1 + d.below(5)
    return [trt.empty(s, dtype=d.real() if d.truth() else x.dtype, device="meta") for s in shapes], dim


def _stacked(d: Draw) -> tuple[Any, ...]:
    x = d.any(0, d.number())
    return [trt.empty(list(x.shape), dtype=x.dtype, device="meta") for _ in range(1 + d.below(3))], d.below(x.dim() + 1)


def _padding(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return x, [d.below(3) for _ in range(2 * (1 + d.below(x.dim())))], 1


def _margins(d: Draw) -> tuple[Any, ...]:
    return d.t("a b 6 7"), [d.below(4) for _ in range(4)], d.below(2)


def _margins_backward(d: Draw) -> tuple[Any, ...]:
    x, pad, kind = _margins(d)
    return trt.empty(x.shape[0], x.shape[1], 6 + pad[2] + pad[3], 7 + pad[0] + pad[1], device="meta"), list(x.shape), pad, kind


def _normed(d: Draw) -> tuple[trt.Tensor, list[int]]:
    x = d.any(1, d.float())
    return x, list(x.shape[-(1 + d.below(x.dim())) :])


def _layer_norm(d: Draw) -> tuple[Any, ...]:
    x, size = _normed(d)
    return x, size, d.pick(None, trt.empty(size, dtype=x.dtype, device="meta")), None, 1e-5


def _class_target(d: Draw) -> tuple[Any, ...]:
    return d.t("n c"), d.t("n", I64), d.pick(None, d.t("c")), d.below(3), -100


def _fft(d: Draw, dtype: Any) -> tuple[trt.Tensor, list[int]]:
    x = d.t(d.pick("a", "a b", "a b c"), dtype)
    return x, d.random.sample(range(x.dim()), 1 + d.below(x.dim()))


def _slice(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return x, d.dim(x), d.below(9) - 4, d.pick(d.below(12) - 4, 2**63 - 1), 1 + d.below(3)


def _narrow(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    start = d.below(x.shape[dim])
    return x, dim, start, d.below(x.shape[dim] - start + 1)


def _split_sizes(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    first = d.below(x.shape[dim] + 1)
    return x, (first, x.shape[dim] - first), dim


def _diagonal(d: Draw) -> tuple[Any, ...]:
    x = d.any(2)
    a, b = d.random.sample(range(x.dim()), 2)
    return x, d.below(7) - 3, a, b - x.dim()


def _unfold(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    return x, dim, 1 + d.below(x.shape[dim]), 1 + d.below(3)


def _top(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    return x, d.below(x.shape[dim] + 1), dim, d.truth(), d.truth()


def _nth(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    return x, 1 + d.below(x.shape[dim]), dim, d.truth()


def _fill(*more: Any) -> Any:
    return lambda d: (d.any(), *more)


def _csr(d: Draw) -> tuple[trt.Tensor, trt.Tensor]:
    return trt.empty(d.r + 1, dtype=I64, device="meta"), d.t("z", I64)


def _recurrent(d: Draw) -> tuple[Any, ...]:
    mode, biases = d.below(4), d.truth()
    gates = (1, 1, 4, 3)[mode]
    projected = mode == 2 and d.truth()
    width = d.p if projected else d.h
    t = [d.t("s n f"), trt.empty(d.n, width, device="meta"), *([d.t("n h")] if mode == 2 else [])]
    t += [trt.empty(gates * d.h, d.f, device="meta"), trt.empty(gates * d.h, width, device="meta")]
    t += [trt.empty(gates * d.h, device="meta")] * (2 * biases) + ([d.t("p h")] if projected else [])
    return t, None, mode, d.truth(), biases


def _ctc_backward(d: Draw) -> tuple[Any, ...]:
    from tensorrt_lite._transforms.batching import call_row

    given = SAMPLES["_ctc_loss"](d)
    loss, alpha = call_row("_ctc_loss", *given)
    return (trt.empty(loss.shape, device="meta"), *given[:4], loss, alpha, *given[4:])


def tensors(d: Draw) -> list[trt.Tensor]:
    return [d.t("a b"), d.t("c")]


def _view_dtype(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, trt.float32)
    return x, d.pick(trt.int32, trt.float16, trt.uint8, trt.float32)


SAMPLES: dict[str, Any] = {
    "_fused_sgd_": lambda d: (tensors(d), tensors(d), tensors(d), 0.0, 0.9, 0.1, 0.0, False, False, True, None, None),
    "_fused_adam_": lambda d: (*[[trt.zeros(d.sizes("a b")), trt.zeros(d.c)] for _ in range(4)], [], [trt.ones(()), trt.ones(())], 0.1, 0.9, 0.99, 0.0, 1e-8, False, False, None, None),
    "_fused_adamw_": lambda d: (*[[trt.zeros(d.sizes("a b")), trt.zeros(d.c)] for _ in range(4)], [], [trt.ones(()), trt.ones(())], 0.1, 0.9, 0.99, 0.0, 1e-8, False, False, None, None),
    "_amp_foreach_non_finite_check_and_unscale_": lambda d: (tensors(d), d.t("1"), d.t("1")),
    "_amp_update_scale_": lambda d: (d.t("1"), d.t("1", trt.int32), d.t("1"), 2.0, 0.5, 10),
    "_scaled_dot_product_flash_attention_for_cpu": lambda d: (*_heads(d), 0.0, d.truth(), None, None),
    "_scaled_dot_product_flash_attention_for_cpu_backward": lambda d: (d.t("n h a e"), *_heads(d), d.t("n h a e"), d.t("n h a"), 0.0, False, None, None),
    "trtl_attention": lambda d: (d.t("n h a e"), d.t("n h b e"), d.t("n h b f"), None, False, 1.0, 0.0, 0, 0, 0),
    "_recurrent_layer": _recurrent,
    "_ctc_loss": lambda d: (d.t("s n c"), d.t("n l", I64), [d.s] * d.n, [1 + d.below(d.l)] * d.n, 0, False),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "clone": _fill(None),
    "contiguous": _fill(None),
    "_to_copy": lambda d: (d.any(dtype=d.real()), d.pick(None, trt.float64, trt.complex64), None, None),
    "copy": lambda d: (d.t("a b"), d.t(d.pick("a b", "b", "1 b"))),
    "fill": _fill(2),
    "zero": _fill(),
    "_lazy_clone": _fill(),
    "_row_distances": lambda d: (d.t("* m k"), d.t("* n k"), 2.0),
    "_pair_distances": lambda d: (d.t("n k"), 2.0),
    "_fft_c2c": lambda d: (*_fft(d, trt.complex64), 0, True),
    "_fft_r2c": lambda d: (*_fft(d, d.float()), 0, d.truth()),
    "_fft_c2r": lambda d: (*(a := _fft(d, d.pick(trt.complex64, trt.complex128))), 0, 2 * a[0].shape[a[1][-1]] - 2 + d.below(2) or 1),
    "index": _indexed,
    "index_put": lambda d: (*_indexed(d), d.t(), d.truth()),
    "index_select": lambda d: _selected(d)[:3],
    "index_add": lambda d: (*_selected(d), 1),
    "index_copy": _selected,
    "index_fill": lambda d: (*_selected(d)[:3], 2),
    "gather": lambda d: (*_scattered(d)[:3], False),
    "scatter": lambda d: (*_scattered(d), None),
    "scatter_add": _scattered,
    "scatter_reduce": lambda d: (*_scattered(d), d.pick("sum", "amax", "mean"), d.truth()),
    "masked_fill": lambda d: (d.t(d.pick("a b", "b", "1 b")), d.t(d.pick("a b", "b", "a 1"), trt.bool), trt.empty((), device="meta")),
    "masked_scatter": lambda d: (d.t("a b"), d.t(d.pick("a b", "b"), trt.bool), d.t("m")),
    "take": lambda d: (d.any(1, d.real()), d.t(d.pick("k", "k m", ""), I64)),
    "put": lambda d: (d.any(1), d.t("k m", I64), d.t("k m"), d.truth()),
    "embedding": lambda d: (d.t("v c", d.float()), d.t(d.pick("k", "k m", ""), d.pick(I64, trt.int32)), -1, False, False),
    "_embedding_bag_sums": lambda d: (d.t("v c"), d.t("k", I64), d.t("m", I64), None, -1),
    "_embedding_bag_largest": lambda d: (d.t("v c"), d.t("k", I64), d.t("m", I64), -1),
    "searchsorted": lambda d: (d.t("n"), d.any(), d.truth(), d.truth(), None),
    "cat": _joined,
    "stack": _stacked,
    "flip": lambda d: (x := d.any(), d.dims(x)),
    "roll": lambda d: (d.any(1), [1], [0]),
    "tril": lambda d: (d.any(2), d.below(5) - 2),
    "triu": lambda d: (d.any(2), d.below(5) - 2),
    "constant_pad_nd": _padding,
    "_pad_margins": _margins,
    "_pad_margins_backward": _margins_backward,
    "linalg_lu_factor_ex": lambda d: (_tall(d), True, False),
    "linalg_lu_factor": lambda d: (_tall(d), True),
    "linalg_lu_solve": lambda d: (*(a := _pair("* n n", "* n k")(d))[:1], d.t("* n", trt.int32), a[1], True, d.truth()),
    "_lu_permutation": lambda d: (d.t("* n", trt.int32), d.n),
    "_linalg_solve_ex": lambda d: (*_system(d), True, False),
    "linalg_solve_ex": lambda d: (*_system(d), True, False),
    "linalg_solve": lambda d: (*_system(d), True),
    "linalg_inv_ex": _square(False),
    "linalg_inv": _square(),
    "inverse": _square(),
    "_linalg_det": _square(),
    "_linalg_slogdet": _square(),
    "linalg_det": _square(),
    "det": _square(),
    "linalg_slogdet": _square(),
    "slogdet": _square(),
    "logdet": _square(),
    "linalg_cholesky_ex": _square(_truth, False),
    "linalg_cholesky": _square(_truth),
    "cholesky": _square(_truth),
    "cholesky_solve": _pair("* n k", "* n n", _truth),
    "cholesky_inverse": _square(_truth),
    "linalg_solve_triangular": _pair("* n n", "* n k", _truth, True, _truth),
    "linalg_ldl_factor_ex": _square(False, False),
    "linalg_ldl_factor": _square(False),
    "linalg_ldl_solve": lambda d: (*(a := _pair("* n n", "* n k")(d))[:1], d.t("* n", trt.int32), a[1], False),
    "_linalg_qr": lambda d: (_tall(d), d.pick("reduced", "complete", "r")),
    "geqrf": lambda d: (_tall(d),),
    "linalg_householder_product": lambda d: (d.t("* m m", kind := d.number()), d.t("* m", kind)),
    "orgqr": lambda d: (d.t("* m m", kind := d.number()), d.t("* m", kind)),
    "ormqr": lambda d: (d.t("* m m", kind := d.number()), d.t("* m", kind), d.t("* m k", kind), True, d.truth()),
    "_linalg_eigh": _square("L", _truth),
    "linalg_eigh": _square("L"),
    "linalg_eigvalsh": _square("U"),
    "_linalg_eig": _square(_truth),
    "linalg_eig": _square(),
    "linalg_eigvals": _square(),
    "_linalg_svd": lambda d: (_tall(d), d.truth(), d.truth()),
    "linalg_svd": lambda d: (_tall(d), d.truth(), None),
    "linalg_svdvals": lambda d: (_tall(d), None),
    "_linalg_lstsq": _least_squares,
    "mse_loss": _pair_loss(lambda d: d.below(3)),
    "mse_loss_backward": _pair_loss_backward(1),
    "smooth_l1_loss": _pair_loss(lambda d: d.below(3), 1.0),
    "smooth_l1_loss_backward": _pair_loss_backward(1, 1.0),
    "huber_loss": _pair_loss(lambda d: d.below(3), 1.0),
    "huber_loss_backward": _pair_loss_backward(1, 1.0),
    "soft_margin_loss": _pair_loss(lambda d: d.below(3)),
    "soft_margin_loss_backward": _pair_loss_backward(1),
    "binary_cross_entropy": _pair_loss(None, lambda d: d.below(3)),
    "binary_cross_entropy_backward": _pair_loss_backward(None, 1),
    "binary_cross_entropy_with_logits": _pair_loss(None, None, lambda d: d.below(3)),
    "nll_loss_forward": lambda d: (d.t("n c"), d.t("n", I64), d.pick(None, d.t("c")), d.below(3), -100),
    "nll_loss_backward": lambda d: (d.t(), d.t("n c"), d.t("n", I64), d.pick(None, d.t("c")), 1, -100, d.t()),
    "nll_loss2d_forward": lambda d: (d.t("n c h w"), d.t("n h w", I64), d.pick(None, d.t("c")), d.below(3), -100),
    "nll_loss2d_backward": lambda d: (d.t("n h w"), d.t("n c h w"), d.t("n h w", I64), d.pick(None, d.t("c")), 0, -100, d.t()),
    "trtl_cross_entropy": lambda d: (*_class_target(d), d.pick(0.0, 0.1)),
    "_ctc_loss_backward": _ctc_backward,
    "_polar": lambda d: (d.t(d.pick("a b", "b"), kind := d.float()), d.t(d.pick("a b", "a 1"), kind)),
    "mm": _pair("a b", "b c"),
    "bmm": _pair("n a b", "n b c"),
    "mv": _pair("a b", "b"),
    "dot": _pair("a", "a"),
    "vdot": _pair("a", "a"),
    "addmm": lambda d: (d.t(d.pick("a c", "c", "1 c", "a 1", "")), d.t("a b"), d.t("b c"), 1, 2),
    "_addmm_activation": lambda d: (d.t(d.pick("a c", "c", "1 c")), d.t("a b"), d.t("b c"), 1, 1, d.truth()),
    "_int_mm": lambda d: (d.t("a b", trt.int8), d.t("b c", trt.int8)),
    "addmv": lambda d: (d.t(d.pick("a", "1", "")), d.t("a b"), d.t("b"), 1, 1),
    "baddbmm": lambda d: (d.t(d.pick("n a c", "c", "1 1 c")), d.t("n a b"), d.t("n b c"), 1, 1),
    "linear": lambda d: (d.t("* a b"), d.t(d.pick("o b", "b")), None),
    "trace": lambda d: (d.t("a b", d.real()),),
    "_bilinear": lambda d: (d.t("a i"), d.t("a j"), d.t("o i j")),
    "native_batch_norm": lambda d: (d.t(d.pick("n c", "n c a", "n c a b"), d.float()), None, None, None, None, True, 0.1, 1e-5),
    "native_batch_norm_backward": _norm_backward,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "_fused_rms_norm": lambda d: (*_layer_norm(d)[:3], 1e-5),
    "_fused_rms_norm_backward": _rms_norm_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "max_pool2d_with_indices": _max_pool,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "avg_pool2d": _avg_pool,
    "avg_pool2d_backward": _avg_pool_backward,
    "_adaptive_avg_pool2d": _adaptive,
    "_adaptive_avg_pool2d_backward": _adaptive_backward,
    "adaptive_max_pool2d": _adaptive,
    "adaptive_max_pool2d_backward": _adaptive_max_backward,
    "_pooled_volume": lambda d: (d.t("n c 4 5 6"), d.t("n c 2 2 3", I64)),
    "fractional_max_pool2d": _fractional(2),
    "fractional_max_pool3d": _fractional(3),
    "uniform": _fill(0.0, 1.0, None),
    "normal": _fill(0.0, 1.0, None),
    "random": _fill(None, None, None),
    "bernoulli": _fill(0.5, None),
    "_bernoulli_tensor": lambda d: (x := d.any(), x, None),
    "exponential": _fill(1.0, None),
    "geometric": _fill(0.5, None),
    "cauchy": _fill(0.0, 1.0, None),
    "log_normal": _fill(0.0, 1.0, None),
    "_sample_bernoulli": _fill(None),
    "_sample_normal": lambda d: (d.t(d.pick("a b", "b")), d.pick(None, d.t("a b")), 0.0, 1.0, None),
    "poisson": _fill(None),
    "binomial": lambda d: (d.t("a b"), d.t(d.pick("a b", "b")), None),
    "_standard_gamma": _fill(None),
    "_sample_dirichlet": lambda d: (d.any(1), None),
    "_keep_mask": _fill(0.5),
    "_masked_scale": lambda d: (x := d.any(), trt.empty(x.shape, dtype=trt.bool, device="meta"), 2.0),
    "rrelu_with_noise": lambda d: (x := d.any(), trt.empty(x.shape, device="meta"), 0.1, 0.3, d.truth(), None),
    "sum": _reduced(True),
    "nansum": _reduced(True),
    "mean": _reduced(True, "float"),
    "prod": _reduced(True),
    "amax": _reduced(),
    "amin": _reduced(),
    "max_dim": _along(flag=True),
    "min_dim": _along(flag=True),
    "argmax": lambda d: (x := d.any(dtype=d.real()), d.pick(None, d.dim(x)), d.truth()),
    "argmin": lambda d: (x := d.any(dtype=d.real()), d.pick(None, d.dim(x)), d.truth()),
    "all": _reduced(),
    "any": _reduced(),
    "count_nonzero": lambda d: (x := d.any(dtype=d.real()), d.dims_or_none(x)),
    "var_kernel": lambda d: (x := d.any(dtype=d.number()), d.dims_or_none(x), 1.0, d.truth(), d.truth()),
    "logsumexp": _reduced(dims=True),
    "vector_norm": lambda d: (x := d.any(dtype=d.number()), d.pick(2.0, 0.0, 1.0, 3.0, float("inf")), d.dims_or_none(x), d.truth(), None),
    "cumsum": _along(None),
    "cumprod": _along(trt.float64),
    "cummax": _along(),
    "cummin": _along(),
    "trtl_softmax": _along(None, types="float"),
    "trtl_log_softmax": _along(trt.float64, types="float"),
    "_safe_softmax": _along(None, types="float"),
    "_softmax": _along(False, types="float"),
    "_log_softmax": _along(False, types="float"),
    "_softmax_backward_data": lambda d: (x := d.any(dtype=d.float()), x, d.dim(x), d.float()),
    "_log_softmax_backward_data": lambda d: (x := d.any(dtype=d.float()), x, d.dim(x), d.float()),
    "_resize": _spatial_resize,
    "_resize_backward": _resize_backward,
    "grid_sampler": lambda d: (d.t("n c a b"), d.t("n k m 2"), 0, 0, False),
    "_grid_sampler_backward": lambda d: (d.t("n c k m"), d.t("n c a b"), d.t("n k m 2"), 0, 0, False, d.truth()),
    "im2col": _im2col,
    "col2im": _col2im,
    "segment_reduce": lambda d: (d.t("a b"), d.pick("sum", "max"), d.t("k", I64), None, None, 0, True, None),
    "sort": _along(False, False),
    "topk": _top,
    "kthvalue": _nth,
    "mode": _along(flag=True),
    "median_dim": _along(flag=True),
    "nanmedian_dim": _along(flag=True),
    "median_all": lambda d: (d.any(dtype=d.real()), d.truth()),
    "_csr_mm": lambda d: (*_csr(d), d.t("z"), d.t("c k")),
    "_csr_sampled": lambda d: (*_csr(d), d.t("r k"), d.t("c k")),
    "_csr_extreme": lambda d: (*_csr(d), d.t("z"), d.t("c k"), d.truth()),
    "view": _view,
    "view_dtype": _view_dtype,
    "detach": _fill(),
    "alias": _fill(),
    "as_strided": lambda d: (d.t("a b c"), [d.a, d.b], [d.b, 1], 0),
    "expand": _expand,
    "permute": lambda d: (x := d.any(), d.random.sample(range(x.dim()), x.dim())),
    "transpose": lambda d: (x := d.any(), d.dim(x), d.dim(x)),
    "t": lambda d: (d.t(d.pick("", "a", "a b")),),
    "squeeze": lambda d: (x := d.t(d.pick("a 1 b", "1 1", "a", "1 b 1 c")), d.dims_or_none(x)),
    "unsqueeze": lambda d: (x := d.any(), d.below(2 * x.dim() + 2) - x.dim() - 1),
    "select": lambda d: (x := d.any(1), d.dim(x), 0),
    "slice": _slice,
    "narrow": _narrow,
    "diagonal": _diagonal,
    "unfold": _unfold,
    "split": lambda d: (x := d.any(1), 1 + d.below(4), d.dim(x)),
    "split_with_sizes": _split_sizes,
    "unbind": _along(least=1, types="float"),
    "view_as_real": lambda d: (d.any(0, d.pick(trt.complex64, trt.complex128)),),
    "view_as_complex": lambda d: (d.t("* a 2", d.float()),),
}  # fmt: skip
