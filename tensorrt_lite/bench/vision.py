"""Five vision models written out in PyTorch's API for the benchmark: ResNet-50, MobileNetV3-Large, EfficientNet-B0, U-Net, ConvNeXt-Tiny.

`lib` is a module with PyTorch's API. Layers, widths and kernels are those of the models' papers (He 2015, Howard 2019, Tan 2019, Ronneberger
2015, Liu 2022); U-Net has half the width and pads, so that output and input agree in size. Weights are the library's own initial ones.
"""

from __future__ import annotations

from typing import Any


def _conv(lib: Any, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1, activation: Any = None) -> Any:
    nn = lib.nn
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def resnet50(lib: Any, classes: int = 1000) -> Any:
    """`x: (N, 3, S, S)` to logits `(N, classes)`; S a multiple of 32."""
    nn = lib.nn

    class Bottleneck(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.main = nn.Sequential(
                _conv(lib, inputs, width, activation=nn.ReLU), _conv(lib, width, width, 3, stride, activation=nn.ReLU), _conv(lib, width, 4 * width)
            )
            self.side = nn.Identity() if inputs == 4 * width else _conv(lib, inputs, 4 * width, 1, stride)

        def forward(self, x: Any) -> Any:
            return (self.main(x) + self.side(x)).relu()

    layers, inputs = [_conv(lib, 3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, 2 if i == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def _inverted(lib: Any, inputs: int, wide: int, outputs: int, kernel: int, stride: int, squeeze: int, activation: Any, gate: Any) -> Any:
    """An inverted bottleneck: 1x1 up, depthwise, squeeze and excitation where `squeeze` > 0, 1x1 down."""
    nn = lib.nn

    class Excite(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, hidden: int, inner: Any) -> None:
            super().__init__()
            self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, hidden, 1), inner(), nn.Conv2d(hidden, channels, 1), gate())

        def forward(self, x: Any) -> Any:
            return x * self.gate(x)

    class Inverted(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            layers = [] if wide == inputs else [_conv(lib, inputs, wide, activation=activation)]
            layers.append(_conv(lib, wide, wide, kernel, stride, groups=wide, activation=activation))
            if squeeze:
                layers.append(Excite(wide, squeeze, nn.ReLU if gate is nn.Hardsigmoid else nn.SiLU))
            self.layers = nn.Sequential(*layers, _conv(lib, wide, outputs))

        def forward(self, x: Any) -> Any:
            return x + self.layers(x) if stride == 1 and inputs == outputs else self.layers(x)

    return Inverted()


# kernel, expanded, outputs, squeeze and excitation, hard swish, stride
_MOBILENET = (
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
    (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
    (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip


def mobilenet_v3(lib: Any, classes: int = 1000) -> Any:
    """The large one; `x: (N, 3, S, S)` to logits `(N, classes)`."""
    nn = lib.nn
    layers, inputs = [_conv(lib, 3, 16, 3, 2, activation=nn.Hardswish)], 16
    for kernel, wide, outputs, squeeze, hard, stride in _MOBILENET:
        hidden = max(8, (wide // 4 + 4) // 8 * 8) if squeeze else 0
        layers.append(_inverted(lib, inputs, wide, outputs, kernel, stride, hidden, nn.Hardswish if hard else nn.ReLU, nn.Hardsigmoid))
        inputs = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, classes)]
    return nn.Sequential(*layers, _conv(lib, inputs, 960, activation=nn.Hardswish), *head)


def efficientnet_b0(lib: Any, classes: int = 1000) -> Any:
    """`x: (N, 3, S, S)` to logits `(N, classes)`."""
    nn = lib.nn
    layers, inputs = [_conv(lib, 3, 32, 3, 2, activation=nn.SiLU)], 32
    stages = ((1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2), (6, 112, 3, 5, 1), (6, 192, 4, 5, 2), (6, 320, 1, 3, 1))
    for factor, outputs, count, kernel, stride in stages:
        for i in range(count):
            layers.append(_inverted(lib, inputs, factor * inputs, outputs, kernel, stride if i == 0 else 1, inputs // 4, nn.SiLU, nn.Sigmoid))
            inputs = outputs
    return nn.Sequential(*layers, _conv(lib, inputs, 1280, activation=nn.SiLU), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes))


def unet(lib: Any, classes: int = 2, width: int = 32) -> Any:
    """`x: (N, 3, S, S)` to logits `(N, classes, S, S)`; S a multiple of 16."""
    nn = lib.nn

    def double(inputs: int, outputs: int) -> Any:
        return nn.Sequential(_conv(lib, inputs, outputs, 3, activation=nn.ReLU), _conv(lib, outputs, outputs, 3, activation=nn.ReLU))

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            widths = [width << i for i in range(5)]
            self.down = nn.ModuleList([double(i, o) for i, o in zip([3, *widths[:-1]], widths, strict=True)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1])])
            self.join = nn.ModuleList([double(2 * w, w) for w in reversed(widths[:-1])])
            self.head = nn.Conv2d(width, classes, 1)

        def forward(self, x: Any) -> Any:
            skipped = []
            for i, block in enumerate(self.down):
                x = block(x if i == 0 else lib.nn.functional.max_pool2d(x, 2))
                skipped.append(x)
            for up, join, skip in zip(self.up, self.join, reversed(skipped[:-1]), strict=True):
                x = join(lib.cat([skip, up(x)], 1))
            return self.head(x)

    return UNet()


def convnext_tiny(lib: Any, classes: int = 1000) -> Any:
    """`x: (N, 3, S, S)` to logits `(N, classes)`; S a multiple of 32."""
    nn = lib.nn

    class Norm(nn.Module):  # type: ignore[misc, name-defined]
        """Layer norm over the channels of (N, C, H, W)."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(channels, eps=1e-6)

        def forward(self, x: Any) -> Any:
            return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.norm = nn.LayerNorm(channels, eps=1e-6)
            self.mix = nn.Sequential(nn.Linear(channels, 4 * channels), nn.GELU(), nn.Linear(4 * channels, channels))
            self.scale = nn.Parameter(lib.full((channels,), 1e-6))

        def forward(self, x: Any) -> Any:
            y = self.mix(self.norm(self.depthwise(x).permute(0, 2, 3, 1))) * self.scale
            return x + y.permute(0, 3, 1, 2)

    layers, inputs = [nn.Conv2d(3, 96, 4, 4), Norm(96)], 96
    for channels, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if channels != inputs:
            layers += [Norm(inputs), nn.Conv2d(inputs, channels, 2, 2)]
            inputs = channels
        layers += [Block(channels) for _ in range(count)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(inputs, eps=1e-6), nn.Linear(inputs, classes))


MODELS = {"ResNet-50": resnet50, "MobileNetV3": mobilenet_v3, "EfficientNet-B0": efficientnet_b0, "U-Net": unet, "ConvNeXt-T": convnext_tiny}
