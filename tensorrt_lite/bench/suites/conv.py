"""Convolution, forward and backward, contiguous (NCHW) and channels-last, its other dimensions and types, and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..rows import Row

if TYPE_CHECKING:
    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05


class Shape(NamedTuple):
    """A convolution of `x: (batch, inputs, side, side)` with `weight: (outputs, inputs / groups, kernel, kernel)`."""

    batch: int
    inputs: int
    outputs: int
    side: int
    kernel: int
    stride: int = 1
    groups: int = 1

    @property
    def label(self) -> str:
        kind = ("depthwise " if self.groups > 1 else "") + f"{self.kernel}x{self.kernel}"
        step = f" stride {self.stride}" if self.stride > 1 else ""
        return f"{self.inputs} to {self.outputs} at {self.side}x{self.side}, {kind}{step}"


SHAPES = (
    Shape(16, 3, 64, 32, 3),
    Shape(8, 64, 64, 56, 3),
    Shape(8, 64, 64, 28, 3),
    Shape(8, 256, 256, 14, 3),
    Shape(8, 64, 256, 56, 1),
    Shape(8, 256, 64, 56, 1),
    Shape(8, 3, 64, 224, 7, stride=2),
    Shape(8, 64, 128, 56, 3, stride=2),
    Shape(8, 64, 64, 56, 3, groups=64),
    Shape(64, 1, 6, 28, 5),
    Shape(64, 6, 16, 14, 5),
    Shape(64, 16, 32, 14, 5),
    Shape(16, 1, 16, 28, 7),
    Shape(8, 64, 2, 56, 1),
    Shape(4, 32, 3, 64, 5),
)
# of other operators: name, sizes of x and of the weight, options
OTHERS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int]], ...] = (
    ("conv1d", (8, 64, 1024), (128, 64, 5), {"padding": 2}),
    ("conv3d", (2, 16, 8, 28, 28), (32, 16, 3, 3, 3), {"padding": 1}),
    ("conv_transpose2d", (8, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}),
    ("conv_transpose2d", (8, 128, 28, 28), (128, 64, 2, 2), {"stride": 2}),
)


def _operands(lib: Any, shape: Shape, channels_last: bool, requires_grad: bool) -> tuple[Any, Any, Any]:
    x = lib.randn(shape.batch, shape.inputs, shape.side, shape.side)
    weight = lib.randn(shape.outputs, shape.inputs // shape.groups, shape.kernel, shape.kernel)
    bias = lib.randn(shape.outputs)
    if channels_last:
        x = x.contiguous(memory_format=lib.channels_last)
        weight = weight.contiguous(memory_format=lib.channels_last)
    if requires_grad:
        x, weight, bias = (operand.detach().requires_grad_() for operand in (x, weight, bias))
    return x, weight, bias


def forward_pass(shape: Shape, channels_last: bool) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x, weight, bias = _operands(lib, shape, channels_last, requires_grad=False)
        conv2d, padding = lib.nn.functional.conv2d, shape.kernel // 2
        return lambda: conv2d(x, weight, bias, shape.stride, padding, 1, shape.groups)

    return build


def backward_pass(shape: Shape, channels_last: bool) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x, weight, bias = _operands(lib, shape, channels_last, requires_grad=True)
        y = lib.nn.functional.conv2d(x, weight, bias, shape.stride, shape.kernel // 2, 1, shape.groups)
        incoming, grad = lib.ones_like(y), lib.autograd.grad
        return lambda: grad(y, (x, weight, bias), incoming, retain_graph=True)

    return build


def _other(name: str, x_size: tuple[int, ...], w_size: tuple[int, ...], options: dict[str, int], *, backward: bool) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x, weight = (lib.randn(*size).requires_grad_(backward) for size in (x_size, w_size))
        function = getattr(lib.nn.functional, name)
        if not backward:
            return lambda: function(x, weight, **options)
        y, grad = function(x, weight, **options), lib.autograd.grad
        incoming = lib.ones_like(y)
        return lambda: grad(y, (x, weight), incoming, retain_graph=True)

    return build


def _bfloat16(lib: Any, threads: int) -> Work:
    x, weight = lib.randn(8, 64, 28, 28).to(lib.bfloat16), lib.randn(64, 64, 3, 3).to(lib.bfloat16)
    conv2d = lib.nn.functional.conv2d
    return lambda: conv2d(x, weight, None, 1, 1)


def _max_pool(lib: Any, threads: int) -> Work:
    x, pool = lib.randn(8, 64, 56, 56), lib.nn.functional.max_pool2d
    return lambda: pool(x, 2)


def _average_pool(lib: Any, threads: int) -> Work:
    x, pool = lib.randn(8, 64, 56, 56), lib.nn.functional.avg_pool2d
    return lambda: pool(x, 2)


def _interpolate(lib: Any, threads: int) -> Work:
    x, interpolate = lib.randn(4, 16, 64, 64), lib.nn.functional.interpolate
    return lambda: interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)


def rows() -> list[Row]:
    found = []
    for channels_last, layout in ((False, "NCHW"), (True, "channels_last")):
        for shape in SHAPES:
            for direction, build in (("forward", forward_pass), ("backward", backward_pass)):
                name = f"{shape.label}, {direction}, {layout}"
                found.append(Row(name, "conv", build(shape, channels_last), limit=_AT_OR_UNDER))
    for name, x_size, w_size, options in OTHERS:
        label = "x".join(map(str, x_size)) + " with " + "x".join(map(str, w_size)) + "".join(f", {k} {v}" for k, v in options.items())
        for direction, backward in (("forward", False), ("backward", True)):
            work = _other(name, x_size, w_size, options, backward=backward)
            found.append(Row(f"{name} {label}, {direction}", "conv", work, limit=_AT_OR_UNDER))
    found += [
        Row("64 to 64 at 28x28, 3x3, forward, bfloat16", "conv", _bfloat16, limit=_AT_OR_UNDER),
        Row("max_pool2d 8x64x56x56", "conv", _max_pool, limit=_AT_OR_UNDER),
        Row("avg_pool2d 8x64x56x56", "conv", _average_pool, limit=_AT_OR_UNDER),
        Row("interpolate bilinear 4x16x64x64 by 2", "conv", _interpolate, limit=_AT_OR_UNDER),
    ]
    return found
