"""Image models of timm from random weights: losses of four steps, in double precision (where batch norm does not magnify rounding) and in single."""

from __future__ import annotations

import timm
import torch
import torch.nn.functional as F

from tools.packages._cases import Result, case, train

MODELS = {
    "resnet18": {}, "densenet121": {}, "efficientnet_b0": {}, "mobilenetv3_small_100": {}, "regnety_002": {}, "convnext_atto": {}, "mixer_s32_224": {"img_size": 64},
    "vit_tiny_patch16_224": {"img_size": 64}, "swin_tiny_patch4_window7_224": {"img_size": 56, "window_size": 7},
}  # fmt: skip


def losses(name: str, dtype: torch.dtype) -> Result:
    model = timm.create_model(name, pretrained=False, num_classes=5, **MODELS[name]).to(dtype).train()
    size = MODELS[name].get("img_size", 64)
    images, labels = torch.randn(4, 3, size, size).to(dtype), torch.tensor([1, 3, 0, 2])
    return train(model, lambda: F.cross_entropy(model(images), labels), 4, lr=1e-4)


for model_name in MODELS:
    for precision in (torch.float64, torch.float32):
        case(f"timm: {model_name}, {str(precision).removeprefix('torch.')}")(lambda name=model_name, dtype=precision: losses(name, dtype))
