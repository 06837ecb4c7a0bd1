"""`dir()` and tab completion offer every public name, imported or not, and nothing else."""

from __future__ import annotations

import rlcompleter
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import tensorrt_lite as trt

MODULES = [
    "", "accelerator", "amp", "autograd", "backends", "compiler", "cuda", "distributed", "fft", "func", "jit", "library", "linalg", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "hub", "onnx", "optim", "optim.lr_scheduler", "profiler", "random", "signal", "signal.windows", "special",
    "serialization", "testing", "utils", "utils.checkpoint", "utils.data",
]  # fmt: skip


def module(name: str) -> ModuleType:
    return import_module(f"tensorrt_lite.{name}" if name else "tensorrt_lite")


@pytest.mark.parametrize("name", MODULES)
def test_listed_names_exist(name):
    here = module(name)
    listed = dir(here)
    assert listed == sorted(set(listed))
    assert [n for n in listed if not hasattr(here, n)] == []


@pytest.mark.parametrize("name", MODULES)
def test_nothing_private_or_foreign_is_listed(name):
    assert {n for n in dir(module(name)) if n.startswith("_")} <= {"__version__"}
    assert {"annotations", "builtins", "functools", "math", "sys", "trt", "warnings", "Any", "TYPE_CHECKING", "Callable"}.isdisjoint(dir(module(name)))


def test_every_lazy_name_and_every_operator_is_listed():
    from tensorrt_lite import _ops

    public = {n for n in {*trt._LAZY, *trt._LAZY_NAMES, *trt._METHODS, *_ops.FUNCTIONS} if not n.startswith("_")}
    assert public <= set(dir(trt))
    assert {*trt.cuda._LAZY, *trt.cuda._SUBMODULES} <= set(dir(trt.cuda))


@pytest.mark.parametrize("name", [n for n in MODULES if hasattr(module(n), "__all__")])
def test_all_is_listed(name):
    assert set(module(name).__all__) <= set(dir(module(name)))


def test_names_of_pytorch_that_are_here_are_listed():
    torch = pytest.importorskip("torch")

    for name in MODULES:
        theirs = getattr(import_module(f"torch.{name}" if name else "torch"), "__all__", [])
        assert [n for n in theirs if not n.startswith("_") and hasattr(module(name), n) and n not in dir(module(name))] == []
    assert torch.__name__ == "torch"


def test_a_fresh_process_lists_the_same_names_and_imports_nothing_for_it():
    code = "import sys, tensorrt_lite as trt; print(*dir(trt), sep='\\n'); assert 'tensorrt_lite.nn' not in sys.modules"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"nn", "optim", "utils", "autograd", "linalg", "cuda", "no_grad", "manual_seed", "save", "load", "Generator", "FloatTensor", "add", "float32"} <= set(listed)
    assert set(listed) <= set(dir(trt))


@pytest.mark.parametrize(("typed", "offered"), [("trt.man", "trt.manual_seed("), ("trt.sav", "trt.save("), ("trt.nn.Lin", "trt.nn.Linear("), ("trt.optim.lr_s", "trt.optim.lr_scheduler")])
def test_completion(typed, offered):
    assert offered in rlcompleter.Completer({"trt": trt}).attr_matches(typed)
