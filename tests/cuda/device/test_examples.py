"""The examples' models train on a device and follow the CPU's losses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def example(name: str) -> ModuleType:
    for needed in {"digits": ("tqdm", "matplotlib", "sklearn"), "char_gpt": ("tqdm", "matplotlib")}.get(name, ()):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_characters_follow_the_cpu():
    gpt = example("char_gpt")
    corpus = gpt.Corpus.from_pydoc()
    losses = {}
    for device in ("cpu", "cuda"):
        options = gpt.parse_arguments(["--layers", "1", "--width", "32", "--heads", "2", "--context", "16", "--batch", "4", "--steps", "6", "--warmup", "2"])
        options.device, options.dropout = device, 0.0
        trt.manual_seed(0)
        model = gpt.CharGPT(len(corpus.characters), context=16, layers=1, width=32, heads=2, dropout=0.0).to(device)
        losses[device] = gpt.train(model, corpus, options)
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-4)
    written = gpt.sample(model, corpus.encode("The ").to("cuda"), 5, 0.8, 20)
    assert written.is_cuda and len(written) == 9


def test_digits_follow_the_cpu():
    digits = example("digits")
    data, _ = digits.load_data(0)
    losses = {}
    for device in ("cpu", "cuda"):
        trt.manual_seed(0)
        model = digits.DigitsCNN(width=8, dropout=0.0)  # the device draws other masks
        model.to(device).train()
        optimizer = trt.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
        losses[device] = []
        for step in range(4):
            images, labels = (t[16 * step : 16 * step + 16].to(device) for t in data.tensors)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-4)


def test_custom_operator():
    custom = example("custom_operator")
    assert max(custom.largest_error("cpu"), custom.largest_error("cuda")) < 4e-6  # two ulp of numbers up to 30
    assert custom.train("cuda", 8) == pytest.approx(custom.train("cpu", 8), rel=1e-4)
